// Package server is the MCP server for clients of every protocol version, with and without a handshake. It offers a
// few tools through which clients use all of the user's upstream servers.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
)

// Engine executes the calls of Retort's tools.
type Engine interface {
	Searcher
	Executor
	Approver
	StatsKeeper
	TextSanitizer
	FileKeeper
	SkillKeeper
	AgentRunner
}

// Options configures a Server. The zero value offers all tools.
type Options struct {
	Version string
	Lean    bool // offer only the four most important tools, through which clients can reach everything else
	// Sandboxes lists the names by which a call can choose a sandbox.
	Sandboxes []string
	// Timeout is the longest that a program may run, and how long it may if the call does not say. 0 means 10 minutes.
	Timeout time.Duration
	// Principal is the principal of all clients of this server. Rounds signs the states that clients keep while a
	// question is open; all servers at one address share it, whatever their principal.
	Principal string
	Rounds    *RequestStates
	// Grace is how long a call may run before a client that supports tasks gets a task instead of the result. 0 means
	// 2 s.
	Grace time.Duration
	Log   *slog.Logger // receives log messages; nil discards them
}

// Server answers MCP clients.
type Server struct {
	mcp       *mcp.Server
	engine    Engine
	principal string
	rounds    *RequestStates
	log       *slog.Logger
	// offerResume adds resume_execution to the offered tools if the Server offers only the lean (small) set. It is
	// called when an execution begins to wait for an approval.
	offerResume func()
	direct      *exposedServers // exposed servers; nil if there are none
	talks       openConversations
	forms       openForms
	ctx         context.Context // context of the Server; it ends with Close
	stop        context.CancelFunc
	grace       time.Duration // time after which a call of a client that supports tasks becomes a task
}

// New returns a Server that executes calls with an engine.
func New(e Engine, o Options) (*Server, error) {
	s := &Server{engine: e, principal: o.Principal, rounds: o.Rounds, offerResume: func() {}, grace: cmp.Or(o.Grace, taskGrace), log: o.Log}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if s.rounds == nil {
		s.rounds = NewRequestStates()
	}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "retort", Title: "Retort", Version: o.Version}, &mcp.ServerOptions{
		Instructions: serverInstructions, Capabilities: serverCapabilities(e, o), SubscribeHandler: s.subscribeResource, UnsubscribeHandler: s.unsubscribeResource,
		// What is listed is what one principal may see.
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
	})
	if err := s.addTools(o); err != nil {
		return nil, fmt.Errorf("mcpserver: %w", err)
	}
	s.mcp.AddReceivingMiddleware(explainMissing)
	s.mcp.AddSendingMiddleware(dropNulls)
	s.setUpPassthrough()
	if err := s.setUpTasks(); err != nil {
		return nil, fmt.Errorf("mcpserver: %w", err)
	}
	s.mcp.AddReceivingMiddleware(s.withConversation)
	s.mcp.AddReceivingMiddleware(ensureEncodable, s.containPanics) // last, so that they are around all others
	return s, nil
}

// addTools adds the full set of tools, or the lean (small) one. The lean set gets resume_execution only once an
// execution is pending.
func (s *Server) addTools(o Options) error {
	for i, t := range s.modelTools() {
		d, err := t.loadDefinition(o)
		if err != nil {
			return err
		}
		add := func() { s.mcp.AddTool(d, s.serveTool(t.handle)) }
		switch {
		case !o.Lean || i < leanTools:
			add()
		case t.name == "resume_execution":
			s.offerResume = sync.OnceFunc(add)
		}
	}
	return nil
}

// maxLine bounds the size of a message from the client, in bytes.
const maxLine = 16 << 20

// drainTimeout is how long pending requests may take to finish after the context of Serve has ended.
const drainTimeout = 30 * time.Second

// ServeLines serves one client over newline-delimited JSON until the stream ends or ctx is done. Then it accepts no
// more requests, gives pending ones 30 s to finish, and cancels the rest. The end of the stream is not an error.
func (s *Server) ServeLines(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	t := newLineTransport(in, out)
	defer context.AfterFunc(ctx, func() { t.conn.drainRequests(drainTimeout) })()
	err := s.mcp.Run(context.WithoutCancel(ctx), t)
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) || errors.Is(err, mcp.ErrConnectionClosed) {
		return nil
	}
	return err
}

// toolHandler handles the calls of one tool. Its result becomes the structured content of the answer, and the same
// JSON also becomes the answer's text. If the result is a *core.Error, the answer is marked as an error. An error
// that the handler returns is a protocol error.
type toolHandler func(ctx context.Context, req *mcp.CallToolRequest) (any, error)

func (s *Server) serveTool(h toolHandler) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer, err := h(withTrace(ctx, req), req)
		if result, ok := answer.(*mcp.CallToolResult); ok && err == nil {
			return result, nil
		}
		if refused, ok := answer.(error); ok && err == nil {
			return nil, refused
		}
		failed := err != nil
		if failed {
			answer = map[string]any{"error": core.AsError(err)}
		}
		if o, ok := answer.(core.Outcome); ok {
			failed = o.Status != core.StatusOK && o.Status != core.StatusPendingApproval && o.TaskContext == nil
			if all, _ := req.Params.Meta[allStats].(bool); all {
				return encodeResult(o, failed)
			}
		}
		return resultOf(answer, failed)
	}
}

// allStats is the key in the _meta of a call with which a client that is a program asks for all statistics.
const allStats = "retort/stats"

// resultOf returns a tool result with the answer as structured content, and the same JSON as text. An Outcome is
// shortened to what a model can use.
func resultOf(answer any, failed bool) (*mcp.CallToolResult, error) {
	if o, ok := answer.(core.Outcome); ok {
		answer = o.ForModel()
	}
	return encodeResult(answer, failed)
}

// encodeResult returns a tool result with the answer as structured content, and the same JSON as text.
func encodeResult(answer any, failed bool) (*mcp.CallToolResult, error) {
	text, err := marshalPlain(answer)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{
		Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}, StructuredContent: text, IsError: failed,
	}, nil
}

// withTrace returns a context with the trace context that the client has sent with the call.
func withTrace(ctx context.Context, req *mcp.CallToolRequest) context.Context {
	parent, _ := req.Params.Meta["traceparent"].(string)
	if parent == "" {
		return ctx
	}
	state, _ := req.Params.Meta["tracestate"].(string)
	return core.WithTrace(ctx, core.NewTrace(parent, state))
}

// explainMissing returns a handler that extends the error for an unknown tool if Retort has the tool, but not in this
// protocol version or set of tools.
func explainMissing(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		call, ok := req.(*mcp.CallToolRequest)
		if err == nil || !ok {
			return result, err
		}
		if name := call.Params.Name; isModelTool(name) {
			return nil, fmt.Errorf("%w (%s is not offered by this version or surface of Retort)", err, name)
		}
		return result, err
	}
}
