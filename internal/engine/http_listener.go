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

// Aliases of the types for serving clients over HTTP.
type (
	Listener      = web.Listener        // answers clients over HTTP
	Authenticator = web.Authenticator   // maps a bearer token to its principal
	Caller        = web.BearerPrincipal // the principal of a bearer token
)

// ListenOptions has the options for serving clients over HTTP that are not in the settings.
type ListenOptions struct {
	Addr string // host:port; "": that of the settings
	Lean bool   // offer only the few tools through which all others can be used
	// Authenticator maps a bearer token to its principal. It replaces the tokens of this configuration and the
	// authorization server of the settings. If none of these exist, the listener accepts only addresses of this
	// machine.
	Authenticator Authenticator
}

// Listen opens the address for clients over HTTP. The Listener's Serve method answers them until its context is done.
// The engine must stay open until Serve returns.
func (e *Engine) Listen(l ListenOptions) (*Listener, error) {
	s := e.config.Settings.HTTP
	if l.Authenticator == nil {
		own, err := e.newAuthenticator()
		if err != nil {
			return nil, err
		}
		l.Authenticator = own
	}
	e.startWorking()
	e.background.reloader.start()
	hosts := s.AllowedHosts
	if u, err := url.Parse(cmp.Or(s.OAuth.Resource, s.OAuth.Audience)); err == nil && u.Hostname() != "" {
		hosts = append(slices.Clone(hosts), u.Hostname()) // clients know this server by it
	}
	return web.OpenListener(web.Options{
		Addr: cmp.Or(l.Addr, s.Addr), Cert: s.TLS.Cert, Key: s.TLS.Key, AllowedHosts: hosts, AllowedOrigins: s.AllowedOrigins,
		Authenticator: l.Authenticator,
		Engine:        func(principal string, groups []string) web.Engine { return e.As(principal, groups...) },
		Cancel:        func() { _ = e.pipeline.Flights.Close() },
		Refused:       e.recordRefused,
		Server: server.Options{
			Version: Version, Lean: l.Lean, Sandboxes: config.SandboxNames(), Timeout: e.pipeline.Limits.Timeout, Log: e.log,
		},
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

// CountRunning returns the number of unfinished executions of the engine's principal.
func (e *Engine) CountRunning() int {
	return e.pipeline.Flights.CountRunning(e.pipeline.Policy.Principal())
}

// recordRefused records in the audit log that calls were refused because of an invalid token. If recording fails,
// it only logs a warning.
func (e *Engine) recordRefused(r web.RefusedLogins) {
	facts := map[string]any{"why": r.Why, "count": r.Count}
	if r.From != "" {
		facts["from"] = r.From
	}
	if err := e.data.recordEvent(core.AuditEvent{Kind: core.EventToken, Status: "refused", Facts: facts}, false); err != nil {
		e.log.Warn("a refused token could not be recorded", "error", err.Message)
	}
}
