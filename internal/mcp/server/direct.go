package server

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
	"retort/internal/mcp/headers"
)

//lint:file-ignore SA1019 roots, sampling and logging are passed on between those who have them; only 2026-07-28 gives them up

// PassthroughEngine represents an Engine that exposes upstream servers to clients unchanged, in addition to Retort's
// own tools.
type PassthroughEngine interface {
	// ExposedServers returns the names of the exposed servers, sorted.
	ExposedServers() []string
	// WaitForExposed waits until the exposed servers have listed their features. It returns after the duration
	// patience at the latest.
	WaitForExposed(ctx context.Context, patience time.Duration)
	Toolset() *core.Toolset
	// Offer returns the definition of a tool as clients see it, or nil if they do not see it.
	Offer(t *core.Tool) json.RawMessage
	// ListExposed returns the items of one kind, such as the prompts, that the exposed servers list.
	ListExposed(ctx context.Context, k Kind) []ListedItem
	// PassThrough makes an MCP request to an exposed server. The result in the Outcome is that server's MCP result.
	PassThrough(ctx context.Context, r core.ExecutionRequest, what core.PassthroughRequest) core.Outcome
	// SetSubscription subscribes to changes of a resource, or ends the subscription.
	SetSubscription(ctx context.Context, server, uri string, wanted bool) error
	// WatchChanges sets the function that is called when a server announces a change. The function gets the method of
	// the MCP notification with which the server announced it.
	WatchChanges(f func(server, method string, params json.RawMessage)) (stop func())
}

// LogLevelSetter represents an Engine that can be told the lowest level of log messages that a client wants from
// upstream servers.
type LogLevelSetter interface{ SetLogLevel(level string) }

// ToolsChanged is the method of the notification that a server's list of tools has changed.
const ToolsChanged = "notifications/tools/list_changed"

// serverWaitTimeout bounds how long the first tools/list waits for exposed servers that are starting.
const serverWaitTimeout = 10 * time.Second

// exposedServers answers requests that are meant for exposed servers: upstream servers whose tools, prompts and
// resources clients see unchanged.
type exposedServers struct {
	passer PassthroughEngine
	server *Server
	stop   func()

	subscribed resourceSubscriptions

	mu     sync.Mutex
	tools  []exposedTool          // tools of exposed servers, in the order in which clients list them
	byName map[string]exposedTool // the same tools by the name that clients see
}

// exposedTool represents a tool of an exposed server, with the name that clients see.
type exposedTool struct {
	name       string
	tool       *core.Tool
	definition json.RawMessage
	bound      []headers.HeaderBinding // arguments that clients must repeat in HTTP headers
}

// setUpPassthrough makes the Server pass requests on to exposed servers (upstream servers whose features clients see
// directly), if there are any.
func (s *Server) setUpPassthrough() {
	p, ok := s.engine.(PassthroughEngine)
	if !ok || len(p.ExposedServers()) == 0 {
		return
	}
	s.direct = &exposedServers{passer: p, server: s, byName: map[string]exposedTool{}}
	s.direct.syncTools()
	s.direct.stop = p.WatchChanges(s.direct.notifyChange)
	s.mcp.AddReceivingMiddleware(s.direct.answerLists, s.direct.answerRequests)
}

// serverCapabilities returns the capabilities that the server declares to clients. It includes prompts and resources
// only if upstream servers are exposed to clients.
func serverCapabilities(e Engine, o Options) *mcp.ServerCapabilities {
	c := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: o.Lean}} // see offerResume
	if _, ok := e.(LogLevelSetter); ok {
		c.Logging = &mcp.LoggingCapabilities{}
	}
	if p, ok := e.(PassthroughEngine); ok && len(p.ExposedServers()) > 0 {
		c.Tools.ListChanged = true
		c.Resources = &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true}
		c.Prompts = &mcp.PromptCapabilities{ListChanged: true}
		c.Completions = &mcp.CompletionCapabilities{}
	}
	return c
}

// Close stops the notifications from the engine and ends all subscriptions at exposed servers.
func (s *Server) Close() {
	s.stop()
	if s.direct != nil {
		s.direct.closeSubscriptions()
	}
}

// notifyChange notifies clients of a change at an exposed server. The SDK notifies clients that a list has changed
// only if its own list changes. Therefore notifyChange updates the tools that are registered at the SDK, or registers
// a prompt or resource and removes it immediately.
func (d *exposedServers) notifyChange(server, method string, params json.RawMessage) {
	const odd = "retort-changed"
	switch m := d.server.mcp; method {
	case ToolsChanged:
		d.syncTools()
	case "notifications/prompts/list_changed":
		m.AddPrompt(&mcp.Prompt{Name: odd}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) { return nil, nil })
		m.RemovePrompts(odd)
	case "notifications/resources/list_changed":
		m.AddResource(
			&mcp.Resource{Name: odd, URI: "retort:" + odd},
			func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) { return nil, nil },
		)
		m.RemoveResources("retort:" + odd)
	case "notifications/resources/updated":
		d.notifyUpdated(server, params)
	}
}

// syncTools registers the current tools of exposed servers at the SDK, as stubs, so that the SDK dispatches calls of
// these tools and notifies clients of changes. Lists of tools contain the servers' own definitions instead of the
// stubs.
func (d *exposedServers) syncTools() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.offeredTools()
	byName := map[string]exposedTool{}
	for _, n := range now {
		byName[n.name] = n
		if was, ok := d.byName[n.name]; !ok || !bytes.Equal(was.definition, n.definition) || was.tool.Server != n.tool.Server {
			d.server.mcp.AddTool(
				&mcp.Tool{Name: n.name, InputSchema: json.RawMessage(`{"type":"object"}`)},
				d.server.serveTool(d.callHandler(n.name)),
			)
		}
	}
	for name := range d.byName {
		if _, still := byName[name]; !still {
			d.server.mcp.RemoveTools(name)
		}
	}
	d.tools, d.byName = now, byName
}

// offeredTools returns the tools of exposed servers with the names that clients see: the tool's own name if it is
// unique, otherwise server__tool.
func (d *exposedServers) offeredTools() (all []exposedTool) {
	exposed, tools := d.passer.ExposedServers(), d.passer.Toolset()
	count := map[string]int{}
	for _, s := range tools.Servers {
		if !slices.Contains(exposed, s.Name) {
			continue
		}
		for _, t := range s.Tools {
			if definition := d.passer.Offer(t); definition != nil {
				all = append(all, exposedTool{t.Name, t, definition, boundOf(definition)})
				count[t.Name]++
			}
		}
	}
	for i, n := range all {
		if count[n.name] > 1 || isModelTool(n.name) {
			all[i].name = n.tool.Server + "__" + n.name
			all[i].definition = withMember(n.definition, "name", all[i].name)
		}
	}
	return all
}

// boundOf returns those arguments of a tool that are bound to HTTP headers: according to the tool's definition,
// clients must repeat them in headers. It returns nil if the definition's annotations about headers are invalid,
// because clients then ignore the tool.
func boundOf(definition json.RawMessage) []headers.HeaderBinding {
	if !bytes.Contains(definition, []byte(headers.Keyword)) {
		return nil
	}
	var d struct {
		Schema json.RawMessage `json:"inputSchema"`
	}
	if json.Unmarshal(definition, &d) != nil {
		return nil
	}
	bound, err := headers.FindBindings(d.Schema)
	if err != nil {
		return nil
	}
	return bound
}

func (d *exposedServers) lookupTool(name string) (exposedTool, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, ok := d.byName[name]
	return n, ok
}

// callHandler returns the handler of a tool of an exposed server.
func (d *exposedServers) callHandler(name string) toolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (any, error) {
		n, ok := d.lookupTool(name)
		if !ok {
			return nil, core.Errorf(core.KindToolNotFound, "mcpserver", "the tool %q no longer exists", name)
		}
		arguments := req.Params.Arguments
		if len(bytes.TrimSpace(arguments)) == 0 {
			arguments = json.RawMessage("{}")
		}
		if req.Params.RequestState != "" {
			answer, err := d.server.resumeAnswered(ctx, req)
			return serverResult(ctx, answer), err
		}
		what := core.PassthroughRequest{Server: n.tool.Server, Tool: n.tool.Name, Arguments: arguments}
		o := d.passer.PassThrough(d.server.withApprovalChannel(ctx, req), core.ExecutionRequest{Client: clientName(req)}, what)
		if lacks := missingCapability(req, o); lacks != nil {
			return lacks, nil
		}
		return serverResult(ctx, d.server.answerOutcome(req, o, 0)), nil
	}
}

// serverResult prepares the answer to a call of an exposed server's tool. If the call succeeded, serverResult stores
// the server's own result where withExactResult has asked for it, and the client gets exactly that result. A call
// that waits for an approval is answered with notYet.
func serverResult(ctx context.Context, answer any) any {
	o, ok := answer.(core.Outcome)
	place := requestValuesOf(ctx).exact
	if !ok || place == nil {
		return answer
	}
	if o.Status != core.StatusOK {
		o.Result = nil
		if o.Status == core.StatusPendingApproval {
			return notYet(o)
		}
		return answer
	}
	place.raw = o.Result
	return &mcp.CallToolResult{}
}

// notYet returns the answer to a call that waits for an approval. It is marked as an error, because a client may
// check other results against the tool's output schema.
func notYet(o core.Outcome) any {
	text, err := marshalPlain(o.ForModel())
	if err != nil {
		return o
	}
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}
}

// answerLists returns a handler that answers list requests with the items of exposed servers included.
func (d *exposedServers) answerLists(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch method {
		case "tools/list":
			d.passer.WaitForExposed(ctx, serverWaitTimeout)
			d.syncTools()
			result, err := next(ctx, method, req)
			own, ok := result.(*mcp.ListToolsResult)
			if err != nil || !ok {
				return result, err
			}
			return d.mergeTools(own, isModern(req))
		case "tools/call":
			if p, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok {
				d.awaitTool(ctx, p.Name)
			}
			place := &exactResult{modern: isModern(req)}
			result, err := next(withExactResult(ctx, place), method, req)
			if err == nil && place.raw != nil {
				return place, nil
			}
			return result, err
		}
		return next(ctx, method, req)
	}
}

// awaitTool waits for exposed servers that are starting, unless the named tool is already known.
func (d *exposedServers) awaitTool(ctx context.Context, name string) {
	if _, known := d.lookupTool(name); !known && !isModelTool(name) {
		d.passer.WaitForExposed(ctx, serverWaitTimeout)
		d.syncTools()
	}
}

// mergeTools adds the tools of exposed servers to the last page of Retort's own tools.
func (d *exposedServers) mergeTools(own *mcp.ListToolsResult, modern bool) (mcp.Result, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	own.Tools = slices.DeleteFunc(slices.Clone(own.Tools), func(t *mcp.Tool) bool { _, theirs := d.byName[t.Name]; return theirs })
	text, err := json.Marshal(own)
	if err != nil || own.NextCursor != "" {
		return own, err
	}
	var definitions []json.RawMessage
	for _, t := range own.Tools {
		raw, err := json.Marshal(t)
		if err != nil {
			return nil, err
		}
		definitions = append(definitions, raw)
	}
	for _, n := range d.tools {
		definitions = append(definitions, n.definition)
	}
	all, err := marshalPlain(definitions)
	if err != nil {
		return nil, err
	}
	return &exactResult{raw: withMember(text, "tools", all), modern: modern}, nil
}
