// Package web is the HTTP listener for MCP clients. It checks for each request who sends it, whether it is allowed,
// and whether the sender is within the limits. It passes allowed requests to the MCP server of the caller's
// principal. All versions of the protocol use the same path.
package web

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"retort/internal/core"
	"retort/internal/mcp/server"
)

// Path and the following constants are the URL paths of the listener.
const (
	Path       = "/mcp"
	EventsPath = "/sse" // path of the transport that clients before version 2025-03-26 use
	livePath   = "/healthz"
	readyPath  = "/readyz"
)

// BearerPrincipal is the authenticated caller of a request.
type BearerPrincipal struct {
	Name   string // name of the principal; never empty
	Scopes []string
	Groups []string // groups that the principal is a member of; their rules apply too
	// Holds reports whether the token is still valid. A nil Holds means that the token stays valid. When the token
	// becomes invalid, everything that was requested with it ends: requests, streams, executions and jobs.
	Holds func() bool
	// Credential is the part of the token that jobs store, so that the token can be checked again after a restart.
	Credential core.Credential
}

// Authenticator checks bearer tokens. If it has a method Routes() map[string]http.Handler, these paths are served
// without authentication. If it has a method Required() bool that returns false because there are no tokens at all,
// the listener works without authentication.
type Authenticator interface {
	// Authenticate returns the principal of a token; bearer is empty if the request had none. An error is answered
	// with status 401. An error with a method Challenge() string is answered with 403 and that challenge. An error
	// with a method Refuse(http.ResponseWriter) is answered by that method.
	Authenticate(ctx context.Context, bearer string) (BearerPrincipal, error)
	// Challenge returns the WWW-Authenticate header for answers with status 401.
	Challenge(r *http.Request) string
}

// Engine lists the methods of the engine that the listener uses to serve one principal.
type Engine interface {
	server.Engine
	server.PassthroughEngine
	server.TaskEngine
	server.LogLevelSetter
	// CountRunning returns the number of the principal's executions that have not ended.
	CountRunning() int
}

// Options configures a Listener.
type Options struct {
	// Addr is the address to listen on, as host:port. Without an Authenticator it must be a loopback address.
	Addr string
	// Cert and Key are the paths of PEM files. Set both or neither. The files are read again when they change.
	Cert, Key string
	// AllowedHosts lists the names that the Host header of requests may have in addition to those of this machine.
	// AllowedOrigins lists the origins of web pages that may send requests, as https://host:port.
	AllowedHosts, AllowedOrigins []string
	Authenticator                Authenticator // if nil, every caller counts as the local user
	// Engine returns the engine of a principal who is a member of these groups. "" is the local user.
	Engine func(principal string, groups []string) Engine
	// Cancel cancels the work that is still in progress after the grace period, and waits for its end. It may be nil.
	Cancel func()
	// Refused is called for requests with invalid tokens, at a bounded rate. It must not block. It may be nil.
	Refused func(RefusedLogins)
	Server  server.Options
	Limits  ListenerLimits
	Log     *slog.Logger // receives log messages; nil discards them
}

// Listener serves MCP clients over HTTP.
type Listener struct {
	Options
	net      net.Listener
	http     *http.Server
	loopback bool
	certs    *reloadingCertificate // TLS certificate; nil means no TLS
	routes   map[string]http.Handler
	slots    chan struct{} // has an item for each running program; its capacity is the limit
	draining atomic.Bool
	calls    atomic.Int64 // number of calls in progress
	sessions atomic.Int64
	refused  refusalLog

	mu      sync.Mutex
	tenants map[string]*principalTenant
}

// OpenListener returns a Listener on the address in the options. Its errors are *core.Error.
func OpenListener(o Options) (*Listener, error) {
	address, err := net.ResolveTCPAddr("tcp", o.Addr)
	if err != nil {
		return nil, core.Errorf(
			core.KindInvalidArguments, "http", "%q is not an address to listen on: %w", o.Addr, err,
		).WithHint("write it as 127.0.0.1:7337")
	}
	loopback := address.IP != nil && address.IP.IsLoopback()
	if !loopback && !requiresToken(o.Authenticator) {
		return nil, core.Errorf(
			core.KindPolicy, "http", "%s can be reached from other machines, and clients would not have to authenticate",
			o.Addr,
		).
			WithHint("listen on 127.0.0.1, or create tokens: retort token create NAME")
	}
	l := newListener(o, loopback)
	if r, ok := o.Authenticator.(interface {
		Routes() map[string]http.Handler
	}); ok {
		l.routes = r.Routes()
	}
	if o.Cert != "" || o.Key != "" {
		if l.certs, err = openCertificate(o.Cert, o.Key); err != nil {
			return nil, err
		}
	}
	if l.net, err = net.Listen("tcp", address.String()); err != nil {
		return nil, core.Errorf(core.KindInvalidArguments, "http", "%w", err).WithHint("check whether another Retort already listens there")
	}
	return l, nil
}

// newListener returns a Listener without a network listener.
func newListener(o Options, loopback bool) *Listener {
	o.Limits = o.Limits.withDefaults()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Server.Rounds == nil {
		o.Server.Rounds = server.NewRequestStates()
	}
	l := &Listener{
		Options: o, loopback: loopback, tenants: map[string]*principalTenant{}, slots: make(chan struct{}, o.Limits.Programs),
		refused: refusalLog{tell: o.Refused},
	}
	l.http = &http.Server{
		Handler: l, ReadHeaderTimeout: min(o.Limits.Read, maxHeaderTime), IdleTimeout: idleConnection, MaxHeaderBytes: o.Limits.Header,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelInfo),
	}
	return l
}

// URL returns the URL that clients connect to.
func (l *Listener) URL() string {
	scheme := "http://"
	if l.certs != nil {
		scheme = "https://"
	}
	return scheme + l.net.Addr().String() + Path
}

// Serve serves clients until ctx is done. Then it accepts no more calls, gives pending ones time to finish, cancels
// the rest, and returns.
func (l *Listener) Serve(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- l.acceptRequests() }()
	sweeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go l.sweepTenants(sweeping)
	select {
	case err := <-failed:
		return core.Errorf(core.KindInternal, "http", "%w", err)
	case <-ctx.Done():
	}
	l.drainRequests()
	l.refused.flushPending(time.Now())
	if err := l.http.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return core.Errorf(core.KindInternal, "http", "%w", err)
	}
	if err := <-failed; err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		l.Log.Warn("the listener ended", "error", err)
	}
	return nil
}

func (l *Listener) acceptRequests() error {
	limited := limitConnections(l.net, l.Limits.Connections, l.Limits.PerAddress)
	if l.certs == nil {
		return l.http.Serve(limited)
	}
	l.http.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: l.certs.getCertificate}
	return l.http.ServeTLS(limited, "", "")
}

// drainAnswerTimeout is how long the listener waits until the answers of cancelled calls are sent.
const drainAnswerTimeout = 2 * time.Second

func (l *Listener) drainRequests() {
	l.draining.Store(true)
	l.Log.Info("draining", "calls", l.calls.Load())
	if l.waitUntilQuiet(l.Limits.Drain) {
		return
	}
	l.Log.Warn("running programs are cancelled", "calls", l.calls.Load())
	if l.Cancel != nil {
		l.Cancel()
	}
	l.waitUntilQuiet(drainAnswerTimeout)
}

// waitUntilQuiet waits until no call is being answered and no program runs, but not longer than the duration
// patience. It returns false if a call is still being answered after that time.
func (l *Listener) waitUntilQuiet(patience time.Duration) bool {
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if l.calls.Load() == 0 && l.countRunning() == 0 {
			return true
		}
	}
	return l.calls.Load() == 0
}

// countRunning returns the number of executions that do not wait for a person. It includes executions whose request
// has ended.
func (l *Listener) countRunning() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.tenants {
		waiting := map[string]bool{}
		for _, a := range t.engine.Waiting("") {
			waiting[a.Execution] = true
		}
		n += max(0, t.engine.CountRunning()-len(waiting))
	}
	return n
}
