// Package oauthtest provides an MCP server that requires a login, together with its authorization server, for tests.
// It checks that clients follow the protocol, and can be configured to violate it.
package oauthtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Rules configures how the server behaves. The zero value is a correct server whose tokens never expire.
type Rules struct {
	// Change modifies the JSON of a document before the server sends it. document is "resource", "server",
	// "register", "token", "device" or "error".
	Change func(document string, m map[string]any)
	// Hook may answer a request itself. It reports whether it did.
	Hook    func(w http.ResponseWriter, r *http.Request) bool
	Lasts   int    // lifetime of an access token, in seconds; 0 means that it never expires
	Rotates bool   // a refresh returns a new refresh token and invalidates the old one
	Grace   bool   // with Rotates, the old refresh token stays valid until the new one is used
	Scope   string // scope that the server's first refusal names; empty means "read"
	Issuer  string // issuer that the redirect names; empty means the server's own issuer, "-" means none
	Deny    string // error code with which the login is refused, such as "access_denied"
	Client  [2]string
	Polls   []string // error codes for the first token requests of a device login, such as "slow_down"
	Bare    bool     // refusals have no WWW-Authenticate header
	// Inside answers requests to the MCP endpoint that have a valid token. If it is nil, a default MCP server with
	// three tools answers them.
	Inside http.Handler
}

// Server serves the MCP endpoint and the authorization endpoints on this machine.
type Server struct {
	URL  string // address of the MCP endpoint
	Root string // issuer of the authorization server

	listener net.Listener
	http     *http.Server

	mu       sync.Mutex
	rules    Rules
	counts   map[string]int
	clients  map[string]string // maps client ids to secrets
	codes    map[string]grant
	access   map[string]grant
	refresh  map[string]grant
	spent    map[string]string // maps a refresh token to the earlier refresh token that was exchanged for it
	devices  map[string]bool   // maps device codes to whether the user has approved
	sent     []http.Header     // headers of the requests to the MCP endpoint
	Revoked  []string
	Secrets  []string // all values that clients must redact
	requests []url.Values
}

// grant describes an access that the user has approved: the client, redirect address, scope and resource.
type grant struct {
	client, redirect, challenge, scope, resource string
	until                                        time.Time
}

// Start starts a server at the given address or, without an address, at a free port.
func Start(r Rules, address ...string) (*Server, error) {
	at := append(address, "127.0.0.1:0")[0]
	l, err := net.Listen("tcp", at)
	if err != nil {
		return nil, err
	}
	return Serve(l, r), nil
}

// Serve starts a server on an existing listener.
func Serve(l net.Listener, r Rules) *Server {
	s := &Server{
		listener: l, rules: r, counts: map[string]int{}, clients: map[string]string{}, codes: map[string]grant{}, access: map[string]grant{},
		refresh: map[string]grant{}, spent: map[string]string{}, devices: map[string]bool{},
	}
	s.Root = "http://" + l.Addr().String()
	s.URL = s.Root + "/mcp"
	if r.Client[0] != "" {
		s.clients[r.Client[0]] = r.Client[1]
	}
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve)}
	go func() { _ = s.http.Serve(l) }()
	return s
}

// Close stops the server.
func (s *Server) Close() { _ = s.http.Close() }

// Set changes the rules.
func (s *Server) Set(change func(*Rules)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.rules)
}

// Count returns how many requests of one kind have arrived so far. The argument what names the kind: the path of the
// requests or, for token requests with one grant type, "token " and the grant type.
func (s *Server) Count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[what]
}

// Forms returns the parameters of all requests to the token and the authorization endpoint.
func (s *Server) Forms() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Sent returns the headers of all requests to the MCP endpoint.
func (s *Server) Sent() []http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

// Known returns all secrets that the server has issued so far.
func (s *Server) Known() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.Secrets)
}

// Expire invalidates all access tokens and, if all is set, all refresh tokens.
func (s *Server) Expire(all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.access)
	if all {
		clear(s.refresh)
	}
}

// Agree approves all pending device logins. It simulates a user who enters the code.
func (s *Server) Agree() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for d := range s.devices {
		s.devices[d] = true
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.counts[r.URL.Path]++
	rules := s.rules
	s.mu.Unlock()
	if rules.Hook != nil && rules.Hook(w, r) {
		return
	}
	switch r.URL.Path {
	case "/mcp":
		s.mcp(w, r)
	case "/.well-known/oauth-protected-resource/mcp":
		s.document(
			w, "resource",
			map[string]any{"resource": s.URL, "authorization_servers": []string{s.Root}, "scopes_supported": []string{"read", "admin"}},
		)
	case "/.well-known/oauth-authorization-server":
		s.document(w, "server", map[string]any{
			"issuer": s.Root, "authorization_endpoint": s.Root + "/authorize", "token_endpoint": s.Root + "/token",
			"registration_endpoint": s.Root + "/register",
			"revocation_endpoint":   s.Root + "/revoke", "device_authorization_endpoint": s.Root + "/device",
			"code_challenge_methods_supported":               []string{"S256"},
			"token_endpoint_auth_methods_supported":          []string{"none", "client_secret_basic", "client_secret_post"},
			"authorization_response_iss_parameter_supported": true,
		})
	case "/authorize":
		s.authorize(w, r)
	case "/token":
		s.token(w, r)
	case "/register":
		s.register(w, r)
	case "/device":
		s.device(w, r)
	case "/revoke":
		s.revoke(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) document(w http.ResponseWriter, name string, m map[string]any, status ...int) {
	s.mu.Lock()
	change := s.rules.Change
	s.mu.Unlock()
	if change != nil {
		change(name, m)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(append(status, http.StatusOK)[0])
	_ = json.NewEncoder(w).Encode(m)
}

func (s *Server) secret(kind string) string {
	v := kind + "-" + rand.Text()
	s.Secrets = append(s.Secrets, v)
	return v
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	var a struct {
		Redirects []string `json:"redirect_uris"`
		Method    string   `json:"token_endpoint_auth_method"`
	}
	if json.NewDecoder(r.Body).Decode(&a) != nil || len(a.Redirects) == 0 {
		s.document(w, "error", map[string]any{"error": "invalid_client_metadata"}, http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	id, secret := "client-"+rand.Text()[:8], ""
	if a.Method != "none" {
		secret = s.secret("secret")
	}
	s.clients[id] = secret
	s.mu.Unlock()
	m := map[string]any{"client_id": id, "redirect_uris": a.Redirects, "token_endpoint_auth_method": a.Method}
	if secret != "" {
		m["client_secret"] = secret
	}
	s.document(w, "register", m, http.StatusCreated)
}

// authorize serves the authorization endpoint. It approves each request immediately, without a user.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, q)
	_, known := s.clients[q.Get("client_id")]
	known = known || strings.HasPrefix(q.Get("client_id"), "https://")
	back, err := url.Parse(q.Get("redirect_uri"))
	if !known || err != nil || q.Get("code_challenge_method") != "S256" || q.Get("response_type") != "code" || q.Get("resource") == "" {
		http.Error(w, "a bad request", http.StatusBadRequest)
		return
	}
	out := url.Values{"state": {q.Get("state")}}
	switch {
	case s.rules.Deny != "":
		out.Set("error", s.rules.Deny)
	default:
		code := s.secret("code")
		s.codes[code] = grant{
			client: q.Get("client_id"), redirect: q.Get("redirect_uri"), challenge: q.Get("code_challenge"),
			scope: q.Get("scope"), resource: q.Get("resource"),
		}
		out.Set("code", code)
	}
	switch s.rules.Issuer {
	case "":
		out.Set("iss", s.Root)
	case "-":
	default:
		out.Set("iss", s.rules.Issuer)
	}
	back.RawQuery = out.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	s.mu.Lock()
	s.requests = append(s.requests, r.PostForm)
	s.counts["token "+r.PostForm.Get("grant_type")]++
	m, no := s.granted(r)
	s.mu.Unlock()
	if no != "" {
		s.document(w, "error", map[string]any{"error": no}, http.StatusBadRequest)
		return
	}
	s.document(w, "token", m)
}

// granted returns the tokens for a token request, or the OAuth error code that refuses it. The caller must hold mu.
func (s *Server) granted(r *http.Request) (map[string]any, string) {
	f := r.PostForm
	id, ok := s.authenticated(r)
	if !ok {
		return nil, "invalid_client"
	}
	var g grant
	switch f.Get("grant_type") {
	case "authorization_code":
		g, ok = s.codes[f.Get("code")]
		delete(s.codes, f.Get("code"))
		sum := sha256.Sum256([]byte(f.Get("code_verifier")))
		ok = ok && g.challenge == base64.RawURLEncoding.EncodeToString(sum[:]) && g.redirect == f.Get("redirect_uri")
	case "refresh_token":
		g, ok = s.refresh[f.Get("refresh_token")]
		if s.rules.Rotates && !s.rules.Grace {
			delete(s.refresh, f.Get("refresh_token"))
		}
		if ok && s.rules.Rotates && s.rules.Grace {
			delete(s.refresh, s.spent[f.Get("refresh_token")])
			m := s.give(g)
			s.spent[m["refresh_token"].(string)] = f.Get("refresh_token")
			return m, s.refused(g, id, f)
		}
	case "urn:ietf:params:oauth:grant-type:device_code":
		agreed, known := s.devices[f.Get("device_code")]
		if n := len(s.rules.Polls); n > 0 && known {
			said := s.rules.Polls[0]
			s.rules.Polls = s.rules.Polls[1:]
			return nil, said
		}
		if known && !agreed {
			return nil, "authorization_pending"
		}
		g, ok = grant{client: id, scope: "read", resource: f.Get("resource")}, known
	default:
		return nil, "unsupported_grant_type"
	}
	if no := s.refused(g, id, f); !ok || no != "" {
		return nil, "invalid_grant"
	}
	return s.give(g), ""
}

// refused returns an OAuth error code if a grant was given to another client or for another resource. Otherwise it
// returns "".
func (s *Server) refused(g grant, id string, f url.Values) string {
	if g.client != id || g.resource != f.Get("resource") {
		return "invalid_grant"
	}
	return ""
}

func (s *Server) give(g grant) map[string]any {
	g.until = time.Time{}
	access, refresh := s.secret("access"), s.secret("refresh")
	s.refresh[refresh] = g
	m := map[string]any{"access_token": access, "token_type": "Bearer", "refresh_token": refresh, "scope": g.scope}
	if s.rules.Lasts > 0 {
		g.until = time.Now().Add(time.Duration(s.rules.Lasts) * time.Second)
		m["expires_in"] = s.rules.Lasts
	}
	s.access[access] = g
	return m
}

func (s *Server) authenticated(r *http.Request) (string, bool) {
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	want, known := s.clients[id]
	return id, known && want == secret || strings.HasPrefix(id, "https://")
}

func (s *Server) device(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	s.mu.Lock()
	code := s.secret("device")
	s.devices[code] = false
	s.mu.Unlock()
	s.document(
		w, "device",
		map[string]any{"device_code": code, "user_code": "WDJB-MJHT", "verification_uri": s.Root + "/activate", "expires_in": 60, "interval": 0},
	)
}

func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.authenticated(r); !ok {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	token := r.PostForm.Get("token")
	delete(s.access, token)
	delete(s.refresh, token)
	s.Revoked = append(s.Revoked, token)
}

// allowed reports whether a request has a valid token, and refuses it otherwise. The tool "admin" requires the scope
// "admin".
func (s *Server) allowed(w http.ResponseWriter, r *http.Request, tool string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, r.Header.Clone())
	g, ok := s.access[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	where := `resource_metadata="` + s.Root + `/.well-known/oauth-protected-resource/mcp"`
	switch {
	case !ok || g.resource != s.URL || !g.until.IsZero() && time.Now().After(g.until):
		scope := s.rules.Scope
		if scope == "" {
			scope = "read"
		}
		if !s.rules.Bare {
			w.Header().Set("WWW-Authenticate", `Bearer `+where+`, scope="`+scope+`"`)
		}
		w.WriteHeader(http.StatusUnauthorized)
	case tool == "admin" && !slices.Contains(strings.Fields(g.scope), "admin"):
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="admin", `+where)
		w.WriteHeader(http.StatusForbidden)
	default:
		return true
	}
	return false
}

// mcp answers requests to the MCP endpoint: it checks their token and then acts as an MCP server of protocol version
// 2025-11-25 that has three tools.
func (s *Server) mcp(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Name string `json:"name"`
		} `json:"params"`
	}
	_ = json.Unmarshal(body, &m)
	if !s.allowed(w, r, m.Params.Name) {
		return
	}
	s.mu.Lock()
	inside := s.rules.Inside
	s.mu.Unlock()
	if inside != nil {
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		inside.ServeHTTP(w, r)
		return
	}
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	answer := `"error":{"code":-32601,"message":"there is no such method"}`
	switch m.Method {
	case "initialize":
		answer = `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"oauthtest","version":"1"}}`
	case "tools/list":
		answer = `"result":{"tools":[{"name":"hello","description":"Says hello","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},` +
			`{"name":"mirror","description":"Gives the header Authorization back","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},` +
			`{"name":"admin","description":"Reads what only administrators may","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`
	case "tools/call":
		s.mu.Lock()
		s.counts["call "+m.Params.Name]++
		s.mu.Unlock()
		text := "hello from " + m.Params.Name
		if m.Params.Name == "mirror" {
			text = r.Header.Get("Authorization")
		}
		answer = `"result":{"content":[{"type":"text","text":"` + text + `"}]}`
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,`+answer+`}`)
}

// Browse opens an address like a browser whose user agrees to everything.
func Browse(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
