// Package server is the MCP server towards clients, in both eras of the
// protocol: a handful of small tools in front of all the user's servers.
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

// Engine does what the tools offer. Each part is declared where its tools are handled.
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

// Options for a Server. The zero value offers the full surface.
type Options struct {
	Version string
	Lean    bool // only the four tools that everything else can be reached with
	// Sandboxes are the names that a call can give to choose a sandbox.
	Sandboxes []string
	// Principal is the principal of all clients of this server. Rounds are shared by the servers of all principals.
	Principal string
	Rounds    *RequestStates
	// Grace is how long a call may run before a client that supports tasks gets a task instead of the result. 0 means
	// 2 s.
	Grace time.Duration
	Log   *slog.Logger // nil: nobody is told
}

// Server answers MCP clients.
type Server struct {
	mcp       *mcp.Server
	engine    Engine
	principal string
	rounds    *RequestStates
	log       *slog.Logger
	// offerResume offers the lean surface's resume_execution, once something waits.
	offerResume func()
	direct      *exposedServers // nil: no server is exposed
	talks       openConversations
	ctx         context.Context // until Close
	stop        context.CancelFunc
	grace       time.Duration // see patient
}

// New makes a server in front of an engine.
func New(e Engine, o Options) (*Server, error) {
	s := &Server{engine: e, principal: o.Principal, rounds: o.Rounds, offerResume: func() {}, grace: cmp.Or(o.Grace, grace), log: o.Log}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if s.rounds == nil {
		s.rounds = NewRequestStates()
	}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "retort", Title: "Retort", Version: o.Version}, &mcp.ServerOptions{
		Instructions: instructions, Capabilities: serverCapabilities(e, o), SubscribeHandler: s.subscribe, UnsubscribeHandler: s.unsubscribe,
		// What is listed is what one principal may see.
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
	})
	if err := s.addTools(o); err != nil {
		return nil, fmt.Errorf("mcpserver: %w", err)
	}
	s.mcp.AddReceivingMiddleware(explainMissing)
	s.setUpPassthrough()
	if err := s.setUpTasks(); err != nil {
		return nil, fmt.Errorf("mcpserver: %w", err)
	}
	s.mcp.AddReceivingMiddleware(s.withConversation)
	s.mcp.AddReceivingMiddleware(s.containPanics) // last, so that it is around all others
	return s, nil
}

// addTools offers the tools of the full or the lean surface. The lean surface offers resume_execution only once an
// execution is pending.
func (s *Server) addTools(o Options) error {
	for i, t := range s.modelTools() {
		d, err := t.definition(o.Sandboxes)
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

// maxLine bounds one message from the client.
const maxLine = 16 << 20

// draining sets how long requests have to end when the context of Serve is done.
const draining = 30 * time.Second

// Serve answers one client over a stream of newline-delimited JSON until the
// stream ends or ctx is done. Then it takes no more requests, gives those under way 30 s, and
// cancels the rest. The end of the stream is no error.
func (s *Server) Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	t := newLineTransport(in, out)
	defer context.AfterFunc(ctx, func() { t.conn.drainRequests(draining) })()
	err := s.mcp.Run(context.WithoutCancel(ctx), t)
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) || errors.Is(err, mcp.ErrConnectionClosed) {
		return nil
	}
	return err
}

// toolHandler answers one tool. What it returns becomes the structured content and
// the same JSON as text. A *core.Error becomes an answer marked as an error. An error in the place of
// what it returns is one of the protocol.
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
		}
		return resultOf(answer, failed)
	}
}

// resultOf returns an answer as structured content, and the same JSON as text.
func resultOf(answer any, failed bool) (*mcp.CallToolResult, error) {
	text, err := marshalPlain(answer)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{
		Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}, StructuredContent: text, IsError: failed,
	}, nil
}

// withTrace makes what a call does part of the trace that the client says it belongs to.
func withTrace(ctx context.Context, req *mcp.CallToolRequest) context.Context {
	parent, _ := req.Params.Meta["traceparent"].(string)
	if parent == "" {
		return ctx
	}
	state, _ := req.Params.Meta["tracestate"].(string)
	return core.WithTrace(ctx, core.NewTrace(parent, state))
}

// explainMissing explains, in the error for an unknown tool, that this version or surface does not offer a tool that
// Retort has.
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
