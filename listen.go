package retort

import (
	"cmp"
	"net/url"
	"slices"
	"time"

	"retort/internal/core"
	"retort/internal/mcp/server"
	"retort/internal/mcp/server/web"
)

// The nouns of listening.
type (
	Listener      = web.Listener      // answers clients over HTTP
	Authenticator = web.Authenticator // knows bearer tokens
	Caller        = web.Principal     // whose a bearer token is
)

// Listening says how clients are answered over HTTP; the rest stands in the settings.
type Listening struct {
	Addr string // host:port; that of the settings if empty
	Lean bool   // only the tools that everything else can be reached with
	// Authenticator says whose a bearer token is, instead of the tokens of this configuration
	// and the authorization server of the settings. Where there never was any of them, only
	// this machine is listened to.
	Authenticator Authenticator
}

// Listen takes an address for clients over HTTP. Its Serve answers them until its context
// is done; the engine must be open until it returns.
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
	return web.Listen(web.Options{
		Addr: cmp.Or(l.Addr, s.Addr), Cert: s.TLS.Cert, Key: s.TLS.Key, AllowedHosts: hosts, AllowedOrigins: s.AllowedOrigins,
		Authenticator: l.Authenticator,
		Engine:        func(principal string) web.Engine { return e.As(principal) },
		Cancel:        func() { _ = e.pipeline.Flights.Close() },
		Refused:       e.refused,
		Server:        server.Options{Version: Version, Lean: l.Lean, Log: e.log},
		Limits: web.Limits{
			Body: s.MaxBody, Header: int(s.MaxHeader), Connections: s.Connections, PerAddress: s.PerAddress,
			Sessions: s.Sessions, AllSessions: s.AllSessions,
			Executions: s.Executions, Programs: s.Programs,
			Requests: max(1, int(int64(s.Rate.Count)*int64(time.Minute)/int64(max(s.Rate.Per, 1)))), Idle: s.Idle,
			Read: s.ReadTimeout, Drain: s.Drain,
		},
		Log: e.log,
	})
}

// Running counts the executions that have not ended, of the principal that the engine is for.
func (e *Engine) Running() int { return e.pipeline.Flights.CountRunning(e.pipeline.Policy.Principal()) }

// refused records calls whose token does not count. They were refused whether or not that can be
// recorded.
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
