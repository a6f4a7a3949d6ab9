package client

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"retort/internal/base/deadline"
	"retort/internal/base/throttle"
	"retort/internal/core"
)

const (
	defaultConnectTimeout = time.Minute
	defaultCallTimeout    = time.Minute
	defaultProbe          = 2 * time.Second
	defaultMaxMessage     = 64 << 20
	changeDelay           = 200 * time.Millisecond
	maxTries              = 3 // maximum number of attempts for a call that did not reach the server
)

// serverConn manages the connection to one instance of a server. It has at most one session, which is established
// when needed.
type serverConn struct {
	spec    ServerSpec
	connect *connector
	base    context.Context // context of the server's background work; it ends when the pool is closed
	idle    time.Duration   // time without a call after which the session ends; 0 means never
	stderr  outputTail
	rubbish strayOutput
	changes *debouncer
	log     *slog.Logger

	// identify returns name and pin (hash) of a tool's definition. If it is nil, definitions are not compared.
	identify func(definition json.RawMessage) (name, pin string)

	mu              sync.Mutex
	session         *serverSession
	dialing         *pendingDial // connection attempt in progress, shared by all callers that wait for it; nil if none
	era             protocolEra  // transport and protocol version of the last successful connection
	breaker         throttle.Breaker
	state           ServerState
	since           time.Time
	last            ToolListing // what the server said about itself in the last session, without its tools
	watched         watchedResources
	listedNames     map[string]bool // plain names of the tools that the server has listed; nil before the first listing
	lastErr         *core.Error
	connects        int
	connectDuration time.Duration // duration of the last connection attempt
	latency         time.Duration
	unanswered      int         // number of pings in a row that the server has not answered
	called          time.Time   // time at which the last call began or ended, or at which the session began
	rest            *time.Timer // timer that ends the session if it has been idle for long enough
	closed          bool
	why             *core.Error    // reason why the server was dropped; nil if it was not dropped or the Pool is closed
	wg              sync.WaitGroup // counts the goroutines of connection attempts and sessions
}

// pendingDial represents a connection attempt in progress.
type pendingDial struct {
	done    chan struct{}
	session *serverSession
	err     *core.Error
}

func newServer(base context.Context, spec ServerSpec, o Options, place *spoolDir, level func() string) *serverConn {
	spec.ConnectTimeout = orDuration(spec.ConnectTimeout, defaultConnectTimeout)
	spec.CallTimeout = orDuration(spec.CallTimeout, defaultCallTimeout)
	spec.probe = orDuration(spec.probe, defaultProbe)
	spec.exit = orDuration(spec.exit, orDuration(o.ExitPatience, exitPatience))
	if spec.MaxMessage <= 0 {
		spec.MaxMessage = defaultMaxMessage
	}
	s := &serverConn{
		spec: spec, base: base, state: StateIdle, since: time.Now(), era: firstEra(spec), breaker: newBreaker(),
		log: slog.New(slog.DiscardHandler), identify: o.Identify,
	}
	if o.Log != nil {
		s.log = o.Log.With("server", spec.Name)
	}
	if s.configError() != nil {
		s.state = StateInvalid
	}
	s.changes = newDebounce(changeDelay, func() {
		if o.OnChange != nil {
			o.OnChange(spec.Name)
		}
	})
	s.connect = &connector{
		spec: spec, opts: o, rubbish: &s.rubbish, stderr: &s.stderr, changed: s.changes.restartTimer,
		bindings: &headerBindings{}, tasks: &taskTools{}, spool: place,
		level: level,
	}
	if o.OnNews != nil {
		owner := core.CallerOf(base)
		s.connect.news = func(method string, params json.RawMessage) { o.OnNews(spec.Name, owner, method, params) }
	}
	return s
}

func orDuration(d, or time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return or
}

// configError returns the configuration error of the server, or nil.
func (s *serverConn) configError() *core.Error {
	if s.spec.Err != nil {
		var e *core.Error
		if errors.As(s.spec.Err, &e) {
			return e
		}
		return core.Errorf(core.KindUpstreamGone, "upstream", "the server's configuration is wrong: %w", s.spec.Err)
	}
	return checkSpec(s.spec)
}

// callTool makes one tool call. An answer that is stored on disk because of its size is returned as large instead of
// result.
func (s *serverConn) callTool(
	ctx context.Context, tool string, args json.RawMessage, spools bool,
) (result json.RawMessage, large *core.SpooledAnswer, err *core.Error) {
	if len(args) > 0 && (!json.Valid(args) || firstByte(args) != '{') {
		return nil, nil, core.Errorf(core.KindInvalidArguments, "upstream.call", "the arguments are not a JSON object")
	}
	result, large, err = s.callOnce(ctx, tool, args, spools)
	if err == nil || !isHeaderMismatch(err) || ctx.Err() != nil {
		return result, large, err
	}
	// The server did not look at the call for want of headers. Which headers a
	// tool wants is in its definition.
	if _, failed := s.listTools(ctx); failed != nil {
		return nil, nil, err
	}
	return s.callOnce(ctx, tool, args, spools)
}

func (s *serverConn) callOnce(
	ctx context.Context, tool string, args json.RawMessage, spools bool,
) (result json.RawMessage, large *core.SpooledAnswer, _ *core.Error) {
	err := s.runOnSession(ctx, "upstream.call", func(ctx context.Context, sess *serverSession, x *pendingCall) (err error) {
		if err := s.checkPin(ctx, sess, tool); err != nil {
			return err
		}
		if refused := core.FinalCheck(ctx); refused != nil {
			return refused
		}
		if s.aboutResources(tool) {
			result, err = sess.callResources(ctx, x, tool, args, s.spec.MaxMessage)
			return err
		}
		x.spools = spools
		if s.connect.tasks.hasTool(tool) && sess.era.protocol == protocolLegacy && sess.link.hasTasks() {
			result, err = sess.callTask(ctx, x, tool, args)
		} else {
			result, err = sess.callTool(ctx, x, tool, args)
		}
		large = x.spooled
		return err
	})
	return result, large, err
}

// listTools returns all tools of the server.
func (s *serverConn) listTools(ctx context.Context) (ToolListing, *core.Error) {
	var l ToolListing
	ctx, claim := core.WithClaim(ctx, "tools of "+s.spec.Name)
	defer claim.Free()
	err := s.runOnSession(ctx, "upstream.list", func(ctx context.Context, sess *serverSession, _ *pendingCall) (err error) {
		l, err = s.listOver(ctx, sess) // the exchange stays unsent: listing has no effects and may be tried again
		return err
	})
	return l, err
}

// newInstance returns another serverConn for the same server, which has sessions of its own. It copies from s what is
// known about the server: the protocol version and which tools need headers or can be tasks. The credentials of the
// new instance are those of the caller in the context base.
func (s *serverConn) newInstance(base context.Context, o Options, place *spoolDir, level func() string) *serverConn {
	spec := s.spec
	if p, ok := spec.Auth.(PersonalAuthorizer); ok {
		spec.Auth = p.For(core.CallerOf(base))
	}
	twin := newServer(base, spec, o, place, level)
	twin.connect.bindings, twin.connect.tasks = s.connect.bindings.cloneBindings(), s.connect.tasks.cloneTools()
	s.mu.Lock()
	defer s.mu.Unlock()
	twin.era = s.era
	return twin
}

// runOnSession runs the function f on a session, within the call timeout. It repeats f on a new session only if the
// server certainly has not received the request that f made.
func (s *serverConn) runOnSession(ctx context.Context, op string, f func(context.Context, *serverSession, *pendingCall) error) *core.Error {
	for try := 1; ; try++ {
		sess, err := s.acquireSession(ctx)
		if err != nil {
			return err
		}
		x := &pendingCall{}
		err = s.useSession(ctx, op, sess, x, f)
		if err == nil {
			return nil
		}
		if try == maxTries || ctx.Err() != nil || !certainlyUnsent(sess, x, err) {
			return err
		}
	}
}

// useSession calls f once with the session sess, and updates the state of the server according to the result.
func (s *serverConn) useSession(
	ctx context.Context, op string, sess *serverSession, x *pendingCall,
	f func(context.Context, *serverSession, *pendingCall) error,
) *core.Error {
	defer sess.leaveUse()
	if op == "upstream.call" { // what lists the tools from time to time keeps nothing awake
		s.noteUse()
		defer s.noteUse()
	}
	began, life := time.Now(), s.bytesReceived(sess)
	limited, cancel := deadline.With(ctx, s.spec.CallTimeout)
	defer cancel()
	cause := f(limited, sess, x)
	if cause == nil || isAnswer(cause) {
		s.noteAnswered(time.Since(began))
	}
	if cause == nil {
		return nil
	}
	if limited.Err() != nil {
		s.pingIfSilent(sess, life)
	}
	var known *core.Error
	if sess.link.isDown() && !errors.As(cause, &known) {
		cause = sess.link.cause // the SDK only says that the connection is closed
	}
	if errors.Is(cause, errSessionGone) || errors.Is(cause, errUnreachable) {
		s.discardSession(sess)
	}
	return s.explainError(ctx, op, limited, x, cause)
}

// certainlyUnsent reports whether a failed request has certainly not reached the server, so that it can be repeated.
func certainlyUnsent(sess *serverSession, x *pendingCall, err error) bool {
	return !x.sent.Load() && (sess.link.isDown() || errors.Is(err, errSessionGone) || errors.Is(err, errUnreachable))
}

// isAnswer reports whether a call's error was sent by the server, and not caused by the connection or the engine.
func isAnswer(err error) bool {
	var rpc *jsonrpc.Error
	return errors.As(err, &rpc)
}

// noteAnswered records that the server has answered, so that earlier failures no longer count.
func (s *serverConn) noteAnswered(latency time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latency = latency
	s.breaker.NoteSuccess()
}

func (s *serverConn) currentStatus() ServerStatus {
	invalid := s.configError()
	s.mu.Lock()
	defer s.mu.Unlock()
	st := ServerStatus{
		Server: s.spec.Name, State: s.state, Transport: s.era.transport, Protocol: s.last.Protocol, Name: s.last.Name,
		Version: s.last.Version, Since: s.since, Connects: s.connects, Restarts: max(0, s.connects-1),
		Failures: s.breaker.Failures, LastError: s.lastErr, Connect: s.connectDuration, Latency: s.latency,
		Stderr: s.stderr.lastLines(20), Rubbish: s.rubbish.takeSnapshot(),
		Unanswered: s.unanswered,
	}
	if s.state == StateFailing || s.state == StateOpen {
		st.RetryAt = s.breaker.RetryAt
	}
	if s.session != nil {
		st.PID = s.session.pid
	}
	if invalid != nil {
		st.LastError = invalid.AtTool(s.spec.Name, "")
	}
	return st
}
