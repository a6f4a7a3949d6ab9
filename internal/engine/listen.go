package engine

import (
	"cmp"
	"net/url"
	"slices"
	"time"

	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/mcp/server"
	"retort/internal/mcp/server/web"
)

// The nouns of listening.
type (
	// Types for listening over HTTP.
	Listener      = web.Listener        // answers clients over HTTP
	Authenticator = web.Authenticator   // knows bearer tokens
	Caller        = web.BearerPrincipal // whose a bearer token is
)

// Listening has the options for serving clients over HTTP. All others are in the settings.
type Listening struct {
	Addr string // host:port; that of the settings if empty
	Lean bool   // only the tools that everything else can be reached with
	// Authenticator maps a bearer token to its principal. It replaces the tokens of this configuration and the
	// authorization server of the settings. If none of these exist, the listener accepts only addresses of this
	// machine.
	Authenticator Authenticator
}

// Listen opens the address for clients over HTTP. The Listener's Serve method answers them until its context is done.
// The engine must stay open until Serve returns.
func (e *Engine) Listen(l Listening) (*Listener, error) {
	s := e.config.Settings.HTTP
	if l.Authenticator == nil {
		callers, err := e.callers()
		if err != nil {
			return nil, err
		}
		l.Authenticator = callers
	}
	e.works()
	e.reloader.start()
	hosts := s.AllowedHosts
	if u, err := url.Parse(cmp.Or(s.OAuth.Resource, s.OAuth.Audience)); err == nil && u.Hostname() != "" {
		hosts = append(slices.Clone(hosts), u.Hostname()) // clients know this server by it
	}
	return web.OpenListener(web.Options{
		Addr: cmp.Or(l.Addr, s.Addr), Cert: s.TLS.Cert, Key: s.TLS.Key, AllowedHosts: hosts, AllowedOrigins: s.AllowedOrigins,
		Authenticator: l.Authenticator,
		Engine:        func(principal string) web.Engine { return e.As(principal) },
		Cancel:        func() { _ = e.pipeline.Flights.Close() },
		Refused:       e.refused,
		Server:        server.Options{Version: Version, Lean: l.Lean, Sandboxes: config.SandboxNames(), Log: e.log},
		Limits: web.ListenerLimits{
			Body: s.MaxBody, Header: int(s.MaxHeader), Connections: s.Connections, PerAddress: s.PerAddress,
			Sessions: s.Sessions, AllSessions: s.AllSessions,
			Executions: s.Executions, Programs: s.Programs,
			Requests: max(1, int(int64(s.Rate.Count)*int64(time.Minute)/int64(max(s.Rate.Per, 1)))), Idle: s.Idle,
			Read: s.ReadTimeout, Drain: s.Drain,
		},
		Log: e.log,
	})
}

// Running returns the number of unfinished executions of the engine's principal.
func (e *Engine) Running() int { return e.pipeline.Flights.CountRunning(e.pipeline.Policy.Principal()) }

// refused records calls that were refused for an invalid token. They are refused even if that cannot be recorded.
func (e *Engine) refused(r web.RefusedLogins) {
	if e.audit == nil {
		return
	}
	facts := map[string]any{"why": r.Why, "count": r.Count}
	if r.From != "" {
		facts["from"] = r.From
	}
	if err := e.audit.Record(core.AuditEvent{Kind: core.EventToken, Status: "refused", Facts: facts}, false); err != nil {
		e.log.Warn("a refused token could not be recorded", "error", err.Message)
	}
}
