// Package client is the pool of MCP clients towards the user's servers. It
// connects lazily and in parallel, speaks every version of the protocol over
// standard input and output, Streamable HTTP and legacy SSE, keeps the exact
// bytes that servers send, and restarts what dies. One broken server never hurts
// another, and no call whose outcome is unknown is made twice.
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

// Server represents one upstream as configured. Exactly one of Command, URL and Dial is set. Zero durations and sizes
// mean the defaults.
type Server struct {
	Name string

	Command string // started as a child process: JSON lines over its standard streams
	Args    []string
	Env     map[string]string // added to a small safe part of the own environment
	Dir     string            // working directory; empty = the own

	URL     string
	Headers map[string]string // sent to the origin of URL and nowhere else
	Auth    Authorizer        // gives requests their credentials; may be nil

	// Dial connects to a server in this process: JSON lines over the stream.
	Dial func(ctx context.Context) (io.ReadWriteCloser, error)

	// Transport is "stdio", "http" (Streamable HTTP, or legacy SSE if the server refuses it) or "sse". Empty means
	// that Command, URL or Dial decide.
	Transport string

	ConnectTimeout time.Duration // default 60 s: the first npx of a package downloads it
	CallTimeout    time.Duration // of one call or one listing; default 60 s
	MaxMessage     int64         // bytes of one message from the server that is held in memory; default 64 MiB

	// Client describes what the server may request from the client.
	Client Client
	// Isolation determines which callers share an instance. Its default is described there.
	Isolation Isolation
	// Stateful means that the server remembers what it was told: principals do not share it, and it does not end when
	// idle unless Idle is set.
	Stateful bool
	// Idle is the time without a call after which an instance ends; it starts again with the next call. Below 0 means
	// never. The default is 10 min, and never for shared instances that are not processes.
	Idle time.Duration
	// Instances bounds the instances apart from the one that lists the tools. The default is 16.
	Instances int

	// Err is an error in this server's configuration, such as an unset variable. The server is listed, and every use
	// returns Err.
	Err error

	probe time.Duration // how long server/discover may take; default 2 s
	exit  time.Duration // how long to wait for a server that closed its output to exit; default exitPatience

	// dial connects to the host of URL; over TCP if nil.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Options describes what all servers of a Pool share.
type Options struct {
	ClientVersion string // sent to servers together with the name "retort"

	// OnChange is called when the tools of a server may have changed: 200 ms after the last such notification, and
	// after a restart. It runs in its own goroutine and may call the Pool.
	OnChange func(server string)

	// Identify returns the name of a tool and the pin of its definition, a text that differs if
	// two definitions do; both are empty if the definition can't be used. With it calls whose
	// context has a pin (core.WithPin) are sent only where the server lists that definition. Nil:
	// definitions are not compared.
	Identify func(definition json.RawMessage) (name, pin string)

	// OnNews is called for notifications about resources and prompts, with the caller whose instance they came to, or
	// the zero caller for the shared one. It must not block.
	OnNews func(server string, owner core.Caller, method string, params json.RawMessage)

	// Spool configures where answers go that are too large for memory. Without a folder they are refused.
	Spool Spool

	// Memory bounds the answers in memory. nil means a budget of the Pool's own.
	Memory *memory.Budget

	// ExitPatience bounds the wait for the exit of a server that closed its output, so that its exit status can be
	// reported. The default is 1 s.
	ExitPatience time.Duration

	// Processes starts the stdio servers; nil means a reaper.Reaper without a
	// helper process, closed together with the Pool.
	Processes Starter

	// Log receives connections, losses and failures of servers. It may be nil. It is called while a server is locked,
	// so it must not block.
	Log *slog.Logger
}

// Authorizer gives the requests to one HTTP server their credentials. It is used
// by several goroutines, Authorize by one of each instance at a time. The core.Caller
// of ctx is that of the instance.
type Authorizer interface {
	// Authorization returns the value of the header of that name, empty for none.
	Authorization(ctx context.Context) (string, error)
	// Authorize obtains credentials after the server refused req with resp, a 401 or 403. It closes the body of resp.
	// If it returns nil, the request is made once more.
	Authorize(ctx context.Context, req *http.Request, resp *http.Response) error
}

// PersonalAuthorizer represents an Authorizer that has other credentials for each caller.
type PersonalAuthorizer interface {
	Authorizer
	// For returns the credentials of one caller. The shared instance, and the one that lists the tools, use the
	// Authorizer's own.
	For(c core.Caller) Authorizer
}

// Starter starts child processes that can't outlive this process;
// *reaper.Reaper is one.
type Starter interface {
	Start(cmd *exec.Cmd) (*reaper.Process, error)
}

// Listing describes what a server says of itself.
type Listing struct {
	Tools        []json.RawMessage // the exact definitions, in the server's order
	Instructions string
	Name         string // of the implementation
	Version      string // of the implementation
	Protocol     string // negotiated version, as in "2025-11-25"
	Offers       Offers
}

// ErrOutcomeUnknown marks, for errors.Is, the error of a call that the server may have executed although no answer
// came.
var ErrOutcomeUnknown = core.ErrOutcomeUnknown

// Pool holds one client for each server, and more where callers are kept apart. It is safe for use by several
// goroutines. All its errors are *core.Error.
type Pool struct {
	base   context.Context
	o      Options
	place  *spoolDir
	own    *reaper.Reaper // nil if Options.Processes was set
	memory *memory.Budget // nil if Options.Memory was set
	cancel context.CancelFunc
	level  atomic.Pointer[string] // of the log lines that clients want
	ending sync.WaitGroup         // of servers that were dropped

	mu       sync.RWMutex
	servers  map[string]*instancePool
	dropped  map[string]*core.Error // why, by name
	revision uint64
}

// New makes a pool; it starts nothing. Of servers with the same name the last
// one counts.
func New(servers []Server, o Options) *Pool {
	ctx, cancel := context.WithCancel(context.Background())
	p := &Pool{base: ctx, cancel: cancel, servers: map[string]*instancePool{}, dropped: map[string]*core.Error{}, revision: 1}
	if o.Processes == nil {
		p.own = reaper.New()
		o.Processes = p.own
	}
	if o.Memory == nil {
		p.memory = memory.New(memory.Auto())
		o.Memory = p.memory
	}
	p.o, p.place = o, newSpool(o.Spool)
	for _, spec := range servers {
		p.servers[spec.Name] = p.instancesOf(spec)
	}
	return p
}

// Names lists the servers, sorted.
func (p *Pool) Names() []string {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.Sorted(maps.Keys(p.servers))
}

// Call calls a tool and returns the server's CallToolResult, byte for byte; one
// with isError set is no error here. args must be a JSON object; nil means {}. The
// core.Caller of ctx says which instance of the server is called.
//
// A call is sent at most once, except when it certainly did not reach the server.
// An error for which errors.Is(err, ErrOutcomeUnknown) holds leaves open whether
// the call took effect.
func (p *Pool) Call(ctx context.Context, server, tool string, args json.RawMessage) (json.RawMessage, error) {
	result, _, err := p.fetchResult(ctx, server, tool, args, false)
	return result, err
}

// Fetch makes a call like Call. If the answer is too large for memory, result is nil and large has the answer, which
// the caller closes.
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
func (p *Pool) List(ctx context.Context, server string) (Listing, error) {
	s, err := p.mainInstance(server)
	if err != nil {
		return Listing{}, err.AtTool(server, "")
	}
	l, err := s.listTools(ctx)
	if err != nil {
		return Listing{}, err.AtTool(server, "")
	}
	return l, nil
}

// ListAll lists every server, all at once. each is called once per server, as
// they answer, never twice at the same time. ListAll returns after the last one.
func (p *Pool) ListAll(ctx context.Context, each func(server string, l Listing, err error)) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, name := range p.Names() {
		wg.Go(func() {
			l, err := p.List(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			each(name, l, err)
		})
	}
	wg.Wait()
}

// Close ends every connection and every process and returns when nothing is
// left, within a few seconds. Calls under way end with an error.
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

// takeInstance returns the instance of a server for the caller of ctx, which does not end before done.
func (p *Pool) takeInstance(ctx context.Context, name string) (_ *serverConn, done func(), _ *core.Error) {
	n, err := p.instances(name)
	if err != nil {
		return nil, nil, err
	}
	return n.takeInstance(ctx)
}

// mainInstance returns the instance of a server that lists its tools.
func (p *Pool) mainInstance(name string) (*serverConn, *core.Error) {
	n, err := p.instances(name)
	if err != nil {
		return nil, err
	}
	return n.main, nil
}

func (p *Pool) instances(name string) (*instancePool, *core.Error) {
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
	if near := core.NearestNames(name, p.Names(), 3); len(near) > 0 {
		return nil, e.WithHint("did you mean %q?", near[0])
	}
	return nil, e
}
