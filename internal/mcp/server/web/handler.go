package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"retort/internal/base/deadline"
	"retort/internal/core"
	"retort/internal/mcp/server"
)

// ServeHTTP answers one request.
func (l *Listener) ServeHTTP(plain http.ResponseWriter, r *http.Request) {
	w := newWriter(plain, l.Limits.Write)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch r.URL.Path {
	case livePath:
		writeText(w, http.StatusOK, "ok")
		return
	case readyPath:
		l.serveReady(w)
		return
	}
	if !l.checkOrigin(w, r) || l.setCORSHeaders(w, r) {
		return
	}
	if open, ok := l.routes[r.URL.Path]; ok {
		open.ServeHTTP(w, r)
		return
	}
	if r.URL.Path != Path && r.URL.Path != EventsPath {
		l.refuseRequest(w, r, http.StatusNotFound, "there is nothing here; the MCP endpoint is "+Path)
		return
	}
	p, ok := l.authenticateRequest(w, r)
	if !ok {
		return
	}
	t, err := l.tenantOf(p)
	if err != nil {
		l.refuseRequest(w, r, http.StatusInternalServerError, "the server cannot be created")
		return
	}
	defer t.enterRequests(-1)
	l.serveWhilePermitted(w, r, t, p)
}

// serveWhilePermitted serves a request only while its token is valid. If the token becomes invalid meanwhile, the
// request is ended.
func (l *Listener) serveWhilePermitted(w *permittedWriter, r *http.Request, t *principalTenant, p BearerPrincipal) {
	c := &tokenHolder{tenant: t, now: p}
	t.noteToken(p)
	w.permit = c.callPermit()
	ctx, end := deadline.WhilePermitted(core.WithPermit(r.Context(), w.permit))
	defer end()
	l.serveTenant(w, r.WithContext(ctx), t, c)
	if refused := w.permit.CheckValid(); refused != nil && !w.begun.Load() {
		w.permit = core.Permit{}
		if l.Authenticator != nil {
			w.Header().Set("WWW-Authenticate", l.Authenticator.Challenge(r))
		}
		l.refuseRequest(w, r, http.StatusUnauthorized, refused.Message)
	}
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}

func (l *Listener) serveReady(w http.ResponseWriter) {
	if l.draining.Load() {
		writeText(w, http.StatusServiceUnavailable, "draining")
		return
	}
	writeText(w, http.StatusOK, "ready")
}

// authenticateRequest returns the principal of a request. If it returns false, it has answered the request.
func (l *Listener) authenticateRequest(w http.ResponseWriter, r *http.Request) (p BearerPrincipal, ok bool) {
	if l.loopback && !requiresToken(l.Authenticator) {
		if l.Authenticator != nil {
			p.Holds = func() bool { return !requiresToken(l.Authenticator) }
		}
		return p, true
	}
	scheme, bearer, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		bearer = ""
	}
	bearer = strings.TrimSpace(bearer)
	p, err := l.Authenticator.Authenticate(r.Context(), bearer)
	var challenge interface{ Challenge() string }
	var refusal interface{ Refuse(http.ResponseWriter) }
	switch {
	case errors.As(err, &refusal):
		l.noteRefusedToken(r, bearer)
		refusal.Refuse(w)
		return p, false
	case errors.As(err, &challenge):
		l.refused.noteRefusal(networkOf(r.RemoteAddr), "the token does not allow this", time.Now())
		w.Header().Set("WWW-Authenticate", challenge.Challenge())
		l.refuseRequest(w, r, http.StatusForbidden, "the token does not allow this")
		return p, false
	case err != nil || p.Name == "":
		l.noteRefusedToken(r, bearer)
		w.Header().Set("WWW-Authenticate", l.Authenticator.Challenge(r))
		l.refuseRequest(w, r, http.StatusUnauthorized, "send a token with the request: Authorization: Bearer …")
		return p, false
	}
	return p, true
}

// noteRefusedToken reports a request with an invalid token. Requests without a token are not reported: clients send
// them to find out how to log in.
func (l *Listener) noteRefusedToken(r *http.Request, bearer string) {
	if bearer != "" {
		l.refused.noteRefusal(networkOf(r.RemoteAddr), "the token is not valid", time.Now())
	}
}

// requiresToken reports whether callers must have a token.
func requiresToken(a Authenticator) bool {
	r, may := a.(interface{ Required() bool })
	return a != nil && (!may || r.Required())
}

// serveTenant answers a request of a principal, unless the principal is over a limit.
func (l *Listener) serveTenant(w *permittedWriter, r *http.Request, t *principalTenant, c *tokenHolder) {
	var a server.MessageContent
	if r.Method == http.MethodPost {
		var ok bool
		if a, ok = l.readBody(w, r); !ok {
			return
		}
	}
	if wait := t.takeQuota(max(1, a.Messages)); wait > 0 {
		l.refuseForNow(w, r, wait, "there are too many requests; the setting http.rate limits them")
		return
	}
	if a.Calls > 0 {
		if l.calls.Add(int64(a.Calls)); !l.beginCalls(w, r, t, a.Calls) {
			l.calls.Add(-int64(a.Calls))
			return
		}
		defer func() { l.calls.Add(-int64(a.Calls)); t.endCalls(a.Calls) }()
	}
	l.routeRequest(w, r, t, c, a)
}

// beginCalls counts the tool calls of a request against the principal's limit. If it returns false, it has answered
// the request.
func (l *Listener) beginCalls(w http.ResponseWriter, r *http.Request, t *principalTenant, calls int) bool {
	switch {
	case l.draining.Load():
		w.Header().Set("Retry-After", "5")
		l.refuseRequest(w, r, http.StatusServiceUnavailable, "the server is ending; nothing ran")
	case !t.beginCalls(calls):
		l.refuseForNow(
			w, r, time.Second,
			"too many executions have not ended yet; the setting http.executions limits them, and those that wait for a person count",
		)
	default:
		return true
	}
	return false
}

// routeRequest passes a request to the handler for its protocol version.
func (l *Listener) routeRequest(w *permittedWriter, r *http.Request, t *principalTenant, c *tokenHolder, a server.MessageContent) {
	switch {
	case r.URL.Path == EventsPath && r.Method == http.MethodPost:
		end, ok := t.requests.admitMessages(w, r, r.URL.Query().Get("sessionid"), a)
		defer end()
		if ok {
			l.serveEvents(w, r, t)
		}
	case r.URL.Path == EventsPath:
		l.serveEvents(w, r, t)
	case isSessionless(r, a):
		t.http.Stateless.ServeHTTP(w, r)
	default:
		l.inSession(w, r, t, c, a)
	}
}

// serveEvents serves the oldest HTTP transport (HTTP with SSE). There a session exists as long as its event stream is
// open.
func (l *Listener) serveEvents(w *permittedWriter, r *http.Request, t *principalTenant) {
	if r.Method == http.MethodGet {
		if !l.admitSession(w, r, t) {
			return
		}
		id := newStreamName()
		t.openSession(id, nil)
		defer t.closeSession(id)
	}
	t.http.Events.ServeHTTP(w, r)
}

func (l *Listener) inSession(w *permittedWriter, r *http.Request, t *principalTenant, c *tokenHolder, a server.MessageContent) {
	id := r.Header.Get(server.SessionHeader)
	switch {
	case r.Method == http.MethodDelete && id != "":
		defer t.closeSession(id)
	case id != "":
		if !t.touchSession(id, c) {
			l.refuseRequest(w, r, http.StatusNotFound, "session not found")
			return
		}
		defer t.releaseSession(id)
		end, ok := t.requests.admitMessages(w, r, id, a)
		defer end()
		if !ok {
			return
		}
	case a.Begins:
		if !l.admitSession(w, r, t) {
			return
		}
		r = r.WithContext(core.WithPermit(r.Context(), c.callPermit())) // all requests of the session are answered under it
		w.begins = func(h http.Header) {
			if begun := h.Get(server.SessionHeader); begun != "" {
				t.openSession(begun, c)
				id = begun
			}
		}
		defer func() { t.releaseSession(id) }()
	}
	t.http.Sessions.ServeHTTP(w, r)
}

// admitSession counts a new session against the principal's limit. If it returns false, it has answered the request.
func (l *Listener) admitSession(w http.ResponseWriter, r *http.Request, t *principalTenant) bool {
	if l.draining.Load() || l.sessions.Load() >= int64(l.Limits.AllSessions) {
		w.Header().Set("Retry-After", "5")
		l.refuseRequest(w, r, http.StatusServiceUnavailable, "no more sessions can be started now")
		return false
	}
	if !t.makeRoom() {
		l.refuseForNow(w, r, 5*time.Second, "all sessions are in use; the setting http.sessions limits their number")
		return false
	}
	return true
}

func (l *Listener) refuseForNow(w http.ResponseWriter, r *http.Request, wait time.Duration, why string) {
	w.Header().Set("Retry-After", strconv.Itoa(max(1, int(wait/time.Second))))
	l.refuseRequest(w, r, http.StatusTooManyRequests, why)
}

// refuseRequest answers a request with an error in the form of the protocol.
func (l *Listener) refuseRequest(w http.ResponseWriter, r *http.Request, status int, why string) {
	l.Log.Info("refused", "status", status, "why", why, "from", r.RemoteAddr)
	text, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": -32000, "message": why}})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}
