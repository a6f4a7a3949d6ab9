// Package client is the pool of MCP clients for the user's servers. It connects to servers when they are first
// needed, in parallel, and restarts servers that end. It speaks every version of the protocol over standard input and
// output, Streamable HTTP and legacy SSE, and returns results exactly as servers sent them. A failing server never
// affects another one. A call whose outcome is unknown is never repeated.
package client

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"retort/internal/base/memory"
	"retort/internal/base/reaper"
	"retort/internal/core"
)

// ServerSpec is one server of the pool, as configured. Exactly one of Command, URL and Dial is set. Zero durations and
// sizes mean the defaults.
type ServerSpec struct {
	Name string

	// Command is the command line of the server, which is started as a child process and speaks JSON lines over its
	// standard streams.
	Command string
	Args    []string
	Env     map[string]string // variables added to the few that the server gets from Retort's own environment
	Dir     string            // working directory of the server; empty means Retort's own

	URL     string
	Headers map[string]string // HTTP headers, sent to the origin of URL and nowhere else
	Auth    Authorizer        // provides the credentials for requests; may be nil

	// Dial connects to a server within this process. The server sends and receives JSON lines over the stream.
	Dial func(ctx context.Context) (io.ReadWriteCloser, error)

	// Transport is "stdio", "http" (Streamable HTTP, or legacy SSE if the server refuses it) or "sse". Empty means
	// that it follows from Command, URL or Dial.
	Transport string

	ConnectTimeout time.Duration // timeout of connecting; default 60 s, because the first npx downloads a package
	CallTimeout    time.Duration // timeout of one call or one listing; default 60 s
	MaxMessage     int64         // maximum size in bytes of a message that is held in memory; default 64 MiB

	// Client lists the requests that the server may send to the client, such as questions to the person.
	Client ClientFeatures
	// Isolation determines which callers share an instance of the server. See Isolation for the default.
	Isolation Isolation
	// Stateful means that the server remembers earlier calls. Principals then do not share an instance, and an
	// instance does not end when idle unless Idle is set.
	Stateful bool
	// Idle is the time without a call after which an instance ends. The next call starts it again. A negative value
	// means that it never ends. The default is 10 min; by default, shared instances that are not processes never end.
	Idle time.Duration
	// Instances bounds the number of instances in addition to the main one. The default is 16.
	Instances int

	// Err is an error in the server's configuration, such as an unset variable. The server appears in lists, but
	// every use returns Err.
	Err error

	probe time.Duration // timeout for server/discover; default 2 s
	exit  time.Duration // how long to wait for the exit of a server that has closed its output; default exitPatience

	// dial connects to the host of URL. nil means TCP.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Options configures a Pool. It applies to all servers.
type Options struct {
	ClientVersion string // version that is sent to servers together with the name "retort"

	// OnChange is called when the tools of a server may have changed: after a restart, and 200 ms after the last
	// notification of a change. It runs in its own goroutine and may call the Pool.
	OnChange func(server string)

	// Identify returns the name of a tool and its pin, a hash that differs for different definitions. Both are empty
	// if the definition is invalid. If Identify is set, a call whose context has a pin (core.WithPin) is sent only if
	// the server lists that definition. If nil, definitions are not compared.
	Identify func(definition json.RawMessage) (name, pin string)

	// OnNews is called for notifications about resources and prompts. owner is the caller that has its own instance
	// and received the notification there; it is the zero Caller for the shared instance. OnNews must not block.
	OnNews func(server string, owner core.Caller, method string, params json.RawMessage)

	// Spool configures the folder for answers that are too large for memory. Without a folder such answers are
	// refused.
	Spool SpoolOptions

	// Memory bounds the memory for answers. nil means that the Pool creates its own budget.
	Memory *memory.Budget

	// ExitPatience bounds the wait for the exit of a server that closed its output, so that its exit status can be
	// reported. The default is 1 s.
	ExitPatience time.Duration

	// Processes starts the servers that are processes. nil means a reaper.Reaper without a helper process, which is
	// closed with the Pool.
	Processes ProcessStarter

	// Log receives messages about connections, lost connections and failures. It may be nil. It is called while a
	// server is locked, so it must not block.
	Log *slog.Logger
}

// Authorizer provides the credentials for requests to one HTTP server. It must be safe for concurrent use, but each
// instance of the server calls Authorize from one goroutine at a time. The core.Caller of ctx is the caller that the
// instance belongs to.
type Authorizer interface {
	// Authorization returns the value of the Authorization header, or "" for none.
	Authorization(ctx context.Context) (string, error)
	// Authorize obtains credentials after the server refused req with resp, a 401 or 403. It closes the body of resp.
	// If it returns nil, the request is made once more.
	Authorize(ctx context.Context, req *http.Request, resp *http.Response) error
}

// PersonalAuthorizer represents an Authorizer with different credentials for each caller.
type PersonalAuthorizer interface {
	Authorizer
	// For returns the Authorizer of one caller. The main instance uses the PersonalAuthorizer itself.
	For(c core.Caller) Authorizer
}

// ProcessStarter starts child processes that cannot outlive this process, such as a *reaper.Reaper.
type ProcessStarter interface {
	Start(cmd *exec.Cmd) (*reaper.ReapedProcess, error)
}

// ToolListing is the information that a server gives about itself, with its tools.
type ToolListing struct {
	Tools        []json.RawMessage // exact definitions of the tools, in the server's order
	Instructions string
	Name         string // name that the server's implementation gives itself
	Version      string // version that the server's implementation gives itself
	Protocol     string // negotiated protocol version, such as "2025-11-25"
	Offers       ServerOffers
}

// ErrOutcomeUnknown marks the error of a call that the server may have executed although no answer arrived. Callers
// test for it with errors.Is.
var ErrOutcomeUnknown = core.ErrOutcomeUnknown

// Pool holds one client for each server, or several if callers must not share an instance. It is safe for concurrent
// use. All its errors are *core.Error.
type Pool struct {
	base   context.Context
	o      Options
	place  *spoolDir
	own    *reaper.Reaper // the Pool's own reaper; nil if Options.Processes was set
	memory *memory.Budget // the Pool's own memory budget; nil if Options.Memory was set
	cancel context.CancelFunc
	level  atomic.Pointer[string] // lowest level of log messages that clients want
	ending sync.WaitGroup         // counts the dropped servers that have not ended yet

	mu       sync.RWMutex
	servers  map[string]*instancePool
	dropped  map[string]*core.Error // reason why each dropped server was dropped, by name
	revision uint64
}

// New returns a Pool. It starts nothing. If several servers have the same name, the last one counts.
func New(servers []ServerSpec, o Options) *Pool {
	ctx, cancel := context.WithCancel(context.Background())
	p := &Pool{base: ctx, cancel: cancel, servers: map[string]*instancePool{}, dropped: map[string]*core.Error{}, revision: 1}
	if o.Processes == nil {
		p.own = reaper.New()
		o.Processes = p.own
	}
	if o.Memory == nil {
		p.memory = memory.New(memory.AutoLimit())
		o.Memory = p.memory
	}
	p.o, p.place = o, newSpool(o.Spool)
	for _, spec := range servers {
		p.servers[spec.Name] = p.instancesOf(spec)
	}
	return p
}

// ServerNames returns the names of the servers, sorted.
func (p *Pool) ServerNames() []string {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.Sorted(maps.Keys(p.servers))
}

// Call calls a tool and returns the server's CallToolResult byte for byte. A result with isError set is not an error
// here. args must be a JSON object; nil means {}. The core.Caller of ctx determines which instance of the server is
// called.
//
// A call is sent at most once, except when it certainly did not reach the server. If errors.Is(err,
// ErrOutcomeUnknown) holds, the call may have taken effect.
func (p *Pool) Call(ctx context.Context, server, tool string, args json.RawMessage) (json.RawMessage, error) {
	result, _, err := p.fetchResult(ctx, server, tool, args, false)
	return result, err
}

// Fetch makes a call like Call. If the answer is too large for memory, result is nil and large has the answer; the
// caller must close it.
func (p *Pool) Fetch(
	ctx context.Context, server, tool string, args json.RawMessage,
) (result json.RawMessage, large *core.SpooledAnswer, err error) {
	return p.fetchResult(ctx, server, tool, args, true)
}

func (p *Pool) fetchResult(
	ctx context.Context, server, tool string, args json.RawMessage, spools bool,
) (json.RawMessage, *core.SpooledAnswer, error) {
	s, done, err := p.takeInstance(ctx, server)
	if err != nil {
		return nil, nil, err.AtTool(server, tool)
	}
	defer done()
	result, large, err := s.callTool(ctx, tool, args, spools)
	if err != nil {
		return nil, nil, err.AtTool(server, tool)
	}
	if large != nil {
		return nil, large, nil
	}
	return result, nil, nil
}

// List asks a server for all its tools.
func (p *Pool) List(ctx context.Context, server string) (ToolListing, error) {
	s, err := p.mainInstance(server)
	if err != nil {
		return ToolListing{}, err.AtTool(server, "")
	}
	l, err := s.listTools(ctx)
	if err != nil {
		return ToolListing{}, err.AtTool(server, "")
	}
	return l, nil
}

// ListAll lists the tools of all servers concurrently. each is called once for each server, in the order in which
// they answer and never concurrently. ListAll returns after the last call.
func (p *Pool) ListAll(ctx context.Context, each func(server string, l ToolListing, err error)) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, name := range p.ServerNames() {
		wg.Go(func() {
			l, err := p.List(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			each(name, l, err)
		})
	}
	wg.Wait()
}

// Close ends all connections and processes, and waits for their end, which takes at most a few seconds. Pending calls
// fail.
func (p *Pool) Close() error {
	p.cancel()
	var wg sync.WaitGroup
	for _, s := range p.allInstances() {
		wg.Go(s.close)
	}
	wg.Wait()
	p.ending.Wait()
	if p.own != nil {
		p.own.Close(0)
	}
	if p.memory != nil {
		_ = p.memory.Close()
	}
	return nil
}

// takeInstance returns the instance of a server for the caller of ctx. The instance does not end before done is
// called.
func (p *Pool) takeInstance(ctx context.Context, name string) (_ *serverConn, done func(), _ *core.Error) {
	n, err := p.findInstances(name)
	if err != nil {
		return nil, nil, err
	}
	return n.takeInstance(ctx)
}

// mainInstance returns the main instance of a server, which lists its tools.
func (p *Pool) mainInstance(name string) (*serverConn, *core.Error) {
	n, err := p.findInstances(name)
	if err != nil {
		return nil, err
	}
	return n.main, nil
}

func (p *Pool) findInstances(name string) (*instancePool, *core.Error) {
	p.mu.RLock()
	n, why := p.servers[name], p.dropped[name]
	p.mu.RUnlock()
	if n != nil {
		return n, nil
	}
	if why != nil {
		return nil, why
	}
	e := core.Errorf(core.KindToolNotFound, "upstream", "there is no server %q", name)
	if near := core.NearestNames(name, p.ServerNames(), 3); len(near) > 0 {
		return nil, e.WithHint("did you mean %q?", near[0])
	}
	return nil, e
}
