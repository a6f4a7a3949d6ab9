package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
)

//lint:file-ignore SA1019 roots, sampling and logging are passed on between those who have them; only 2026-07-28 gives them up

// Kind represents a kind of items that upstream servers have in addition to tools, such as resources.
type Kind struct {
	Method string // method that lists the items
	Member string // member of the list result that contains the items
	Key    string // member that identifies an item
	Tool   string // name under which the policy checks the use of the items
}

// Resources and the following variables are the kinds of items that servers list in addition to tools.
var (
	Resources = Kind{"resources/list", "resources", "uri", "read_resource"}
	Templates = Kind{"resources/templates/list", "resourceTemplates", "uriTemplate", "read_resource"}
	Prompts   = Kind{"prompts/list", "prompts", "name", "get_prompt"}
)

// ListedItem represents an item that an upstream server has listed, exactly as received.
type ListedItem struct {
	Server string
	Item   json.RawMessage
}

// exposedItem represents a resource, resource template or prompt of an exposed server, an upstream server that
// clients see directly. name is the name that clients see.
type exposedItem struct {
	server, own, name string
	item              json.RawMessage
}

// listItems returns all items of a kind. If several servers use the same name, the name that clients see includes the
// server: retort://SERVER/URI for resources, server__name for prompts.
func (d *exposedServers) listItems(ctx context.Context, k Kind) []exposedItem {
	count := map[string]int{}
	var all []exposedItem
	for _, l := range d.passer.ListExposed(ctx, k) {
		var members map[string]json.RawMessage
		var own string
		if json.Unmarshal(l.Item, &members) != nil || json.Unmarshal(members[k.Key], &own) != nil {
			continue
		}
		count[own]++
		all = append(all, exposedItem{l.Server, own, own, l.Item})
	}
	for i, t := range all {
		if count[t.own] > 1 {
			all[i].name = k.prefixedName(t)
			all[i].item = withMember(t.item, k.Key, all[i].name)
		}
	}
	return all
}

const ownScheme = "retort://"

func (k Kind) prefixedName(t exposedItem) string {
	if k == Prompts {
		return t.server + "__" + t.own
	}
	return ownScheme + url.PathEscape(t.server) + "/" + t.own
}

// answerRequests returns a handler for clients' requests to exposed servers that are not about tools.
func (d *exposedServers) answerRequests(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		for _, k := range []Kind{Resources, Templates, Prompts} {
			if k.Method == method {
				return d.listResult(ctx, k, req)
			}
		}
		switch params := req.GetParams().(type) {
		case *mcp.ReadResourceParams:
			return d.readResource(ctx, req, params.URI)
		case *mcp.GetPromptParams:
			return d.getPrompt(ctx, req, params)
		case *mcp.CompleteParams:
			return d.completeArgument(ctx, req, params)
		}
		return next(ctx, method, req)
	}
}

func (d *exposedServers) listResult(ctx context.Context, k Kind, req mcp.Request) (mcp.Result, error) {
	items := []json.RawMessage{}
	for _, t := range d.listItems(ctx, k) {
		items = append(items, t.item)
	}
	return ownResult(req, map[string]any{k.Member: items})
}

// ownResult returns a result that Retort makes itself, with the given members.
func ownResult(req mcp.Request, members map[string]any) (mcp.Result, error) {
	if isModern(req) {
		members["ttlMs"], members["cacheScope"] = 0, "private"
	}
	raw, err := marshalPlain(members)
	if err != nil {
		return nil, err
	}
	return &exactResult{raw: raw, modern: isModern(req)}, nil
}

func (d *exposedServers) readResource(ctx context.Context, req mcp.Request, uri string) (mcp.Result, error) {
	server, own, ok := d.findResource(ctx, uri)
	if !ok {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	return d.passRequest(
		ctx, req, core.PassthroughRequest{Server: server, Method: "resources/read", Tool: Resources.Tool},
		map[string]any{"uri": own},
	)
}

// findResource finds the exposed server that has a resource: by the server's name in the URI, by the servers' lists,
// by their templates, or because there is only one server.
func (d *exposedServers) findResource(ctx context.Context, uri string) (server, own string, ok bool) {
	exposed := d.passer.ExposedServers()
	if rest, prefixed := strings.CutPrefix(uri, ownScheme); prefixed {
		name, own, _ := strings.Cut(rest, "/")
		for _, s := range exposed {
			if url.PathEscape(s) == name {
				return s, own, true
			}
		}
	}
	for _, t := range d.listItems(ctx, Resources) {
		if t.name == uri {
			return t.server, t.own, true
		}
	}
	for _, t := range d.listItems(ctx, Templates) {
		if matchesTemplate(t.own, uri) {
			return t.server, uri, true
		}
	}
	if len(exposed) == 1 {
		return exposed[0], uri, true
	}
	return "", "", false
}

var expression = regexp.MustCompile(`\\\{[^{}]*\\\}`)

// matchesTemplate reports whether a URI matches a URI template.
func matchesTemplate(template, uri string) bool {
	if len(template) > 2048 || len(uri) > 8192 {
		return false
	}
	pattern, err := regexp.Compile("^" + expression.ReplaceAllString(regexp.QuoteMeta(template), ".*") + "$")
	return err == nil && pattern.MatchString(uri)
}

func (d *exposedServers) getPrompt(ctx context.Context, req mcp.Request, params *mcp.GetPromptParams) (mcp.Result, error) {
	t, ok := d.promptOf(ctx, params.Name)
	if !ok {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown prompt " + params.Name}
	}
	own := map[string]any{"name": t.own}
	if params.Arguments != nil {
		own["arguments"] = params.Arguments
	}
	return d.passRequest(ctx, req, core.PassthroughRequest{Server: t.server, Method: "prompts/get", Tool: Prompts.Tool}, own)
}

// promptOf finds the exposed server that has a prompt: by the servers' lists, by the server's name in the prompt's
// name, or because there is only one server. The lists alone are not enough, because a server that requires a login
// may list no prompts before the login.
func (d *exposedServers) promptOf(ctx context.Context, name string) (exposedItem, bool) {
	if t, ok := d.findItem(ctx, Prompts, name); ok {
		return t, true
	}
	exposed := d.passer.ExposedServers()
	for _, s := range exposed {
		if own, prefixed := strings.CutPrefix(name, s+"__"); prefixed {
			return exposedItem{server: s, own: own}, true
		}
	}
	if len(exposed) == 1 {
		return exposedItem{server: exposed[0], own: name}, true
	}
	return exposedItem{}, false
}

func (d *exposedServers) findItem(ctx context.Context, k Kind, name string) (exposedItem, bool) {
	for _, t := range d.listItems(ctx, k) {
		if t.name == name {
			return t, true
		}
	}
	return exposedItem{}, false
}

func (d *exposedServers) completeArgument(ctx context.Context, req mcp.Request, params *mcp.CompleteParams) (mcp.Result, error) {
	if params.Ref == nil || params.Argument.Name == "" {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "ref and argument.name are required"}
	}
	kind, name := Prompts, params.Ref.Name
	if params.Ref.Type == "ref/resource" {
		kind, name = Templates, params.Ref.URI
	}
	t, ok := d.findItem(ctx, kind, name)
	if !ok {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there is no " + name}
	}
	ref := map[string]any{"type": params.Ref.Type, kind.referenceType(): t.own}
	own := map[string]any{"ref": ref, "argument": params.Argument}
	if params.Context != nil {
		own["context"] = params.Context
	}
	return d.passRequest(ctx, req, core.PassthroughRequest{Server: t.server, Method: "completion/complete", Tool: kind.Tool}, own)
}

func (k Kind) referenceType() string {
	if k == Prompts {
		return "name"
	}
	return "uri"
}

// passRequest passes a request on to an exposed server and returns its result. If the server first needs answers from
// the client (elicitation, for instance), the result holds the server's questions instead.
func (d *exposedServers) passRequest(
	ctx context.Context, req mcp.Request, what core.PassthroughRequest, params map[string]any,
) (mcp.Result, error) {
	arguments, err := marshalPlain(params)
	if err != nil {
		return nil, err
	}
	what.Arguments = arguments
	o, asked, err := d.passOnce(ctx, req, what)
	if err != nil || asked != nil {
		return asked, err
	}
	if o.Status == core.StatusOK {
		result := o.Result
		if isModern(req) && what.Method == "resources/read" {
			result = orMember(orMember(result, "ttlMs", 0), "cacheScope", "private")
		}
		return &exactResult{raw: result, modern: isModern(req)}, nil
	}
	return nil, requestError(o)
}

// passOnce passes a request on to an exposed server and returns the Outcome, or instead the questions that the person
// at the client must answer first. If the client has repeated the request with the answers, passOnce continues the
// earlier execution, so that the server gets the request only once.
func (d *exposedServers) passOnce(
	ctx context.Context, req mcp.Request, what core.PassthroughRequest,
) (o core.Outcome, asked mcp.Result, err error) {
	var answer any
	if state, again := roundOf(ctx); again && state.Execution != "" {
		answer, err = d.server.resumeAnswered(ctx, req)
	} else {
		answer = d.server.answerOutcome(req, d.passer.PassThrough(d.server.withApprovalChannel(ctx, req), core.ExecutionRequest{Client: clientOf(req)}, what), 0)
	}
	if err != nil {
		return o, nil, requestError(core.Outcome{Error: core.AsError(err)})
	}
	if questions, ok := answer.(*mcp.CallToolResult); ok {
		return o, questions, nil
	}
	o, _ = answer.(core.Outcome)
	return o, nil, missingCapability(req, o)
}

// missingCapability returns an error that names the capabilities that an upstream server needs and the client has not
// declared, if a request failed because of them. Protocol version 2026-07-28 defines this error. In all other cases,
// missingCapability returns nil.
func missingCapability(req mcp.Request, o core.Outcome) error {
	var lacks *core.MissingCapability
	if !isModern(req) || o.Error == nil || !errors.As(o.Error, &lacks) {
		return nil
	}
	needs := *lacks
	if caps := capabilitiesOf(req); caps != nil {
		if caps.Elicitation != nil {
			needs.Elicitation = nil
		}
		if caps.Sampling != nil {
			needs.Sampling = nil
		}
	}
	if needs == (core.MissingCapability{}) {
		return nil // the settings withhold it from the server
	}
	data, err := marshalPlain(map[string]any{"requiredCapabilities": needs})
	if err != nil {
		return nil
	}
	return &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: o.Error.Message, Data: data}
}

// requestError converts the error of an Outcome to a protocol error, for requests other than tools/call.
func requestError(o core.Outcome) error {
	e := o.Error
	if e == nil && o.Status == core.StatusPendingApproval {
		e = core.Errorf(
			core.KindPolicy, "mcpserver", "it waits for a person, but this client cannot ask one",
		).WithHint("to get its result, call resume_execution with the execution_id %s", o.ExecutionID)
	}
	if e == nil {
		e = core.Errorf(core.KindInternal, "mcpserver", "it ended as %s", o.Status)
	}
	code := int64(jsonrpc.CodeInternalError)
	if e.Kind == core.KindInvalidArguments || e.Kind == core.KindToolNotFound {
		code = jsonrpc.CodeInvalidParams
	}
	data, err := marshalPlain(map[string]any{"error": e})
	if err != nil {
		data = nil
	}
	return &jsonrpc.Error{Code: code, Message: e.Message, Data: data}
}

func clientOf(req mcp.Request) string {
	s, ok := req.GetSession().(*mcp.ServerSession)
	if !ok || s.InitializeParams() == nil || s.InitializeParams().ClientInfo == nil {
		return ""
	}
	info := s.InitializeParams().ClientInfo
	return info.Name + " " + info.Version
}
