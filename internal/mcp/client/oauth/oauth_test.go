package oauth_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/mcp/client"
	"retort/internal/mcp/client/oauth"
	"retort/internal/mcp/client/oauth/oauthtest"
)

// bench is a server that requires a login, with a folder for the stored logins.
type bench struct {
	*oauthtest.Server
	t   *testing.T
	dir string
	// dial connects to the server. If it is nil, TCP is used.
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu              sync.Mutex
	reportedSecrets map[string]bool // values that were passed to Options.Secret
}

func newBench(t *testing.T, r oauthtest.Rules) *bench {
	t.Helper()
	s, err := oauthtest.Start(r)
	if err != nil {
		t.Fatal(err)
	}
	testenv.CheckGoroutines(t)
	t.Cleanup(s.Close)
	return &bench{Server: s, t: t, dir: t.TempDir(), reportedSecrets: map[string]bool{}}
}

// client returns a new Client for the server and folder, as another process would create it.
func (b *bench) client(change ...func(*oauth.Options)) *oauth.Client {
	o := oauth.Options{Server: "s", URL: b.URL, Store: oauth.Open(b.dir, key), Secret: func(_, value string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.reportedSecrets[value] = true
	}}
	o.Network.Dial = b.dial
	for _, f := range change {
		f(&o)
	}
	return oauth.New(o)
}

func key() ([]byte, error) { return []byte("0123456789abcdef0123456789abcdef"), nil }

// login logs in with a simulated browser whose user agrees.
func (b *bench) login(c *oauth.Client) error {
	b.t.Helper()
	ctx := testenv.Context(b.t)
	l, err := c.BeginLogin(ctx, oauth.LoginOptions{})
	if err != nil {
		return err
	}
	defer l.Close()
	if err := oauthtest.Browse(ctx, l.URL); err != nil {
		b.t.Fatal(err)
	}
	return l.Wait(ctx)
}

func (b *bench) mustLogin(c *oauth.Client) {
	b.t.Helper()
	if err := b.login(c); err != nil {
		b.t.Fatal(err)
	}
}

// pool returns a pool that contains the server of the test. The pool calls this server with the login that c manages.
func (b *bench) pool(c *oauth.Client) *client.Pool {
	p := client.New([]client.ServerSpec{{Name: "s", URL: b.URL, Auth: c}}, client.Options{ClientVersion: "test"})
	b.t.Cleanup(func() { _ = p.Close() })
	return p
}

func call(t *testing.T, p *client.Pool, tool string) error {
	t.Helper()
	_, err := p.Call(testenv.Context(t), "s", tool, nil)
	return err
}

func TestLogin(t *testing.T) {
	b := newBench(t, oauthtest.Rules{})
	c := b.client()
	if value, err := c.Authorization(t.Context()); value != "" || err != nil {
		t.Fatal(value, err)
	}
	p := b.pool(c)
	err := call(t, p, "hello")
	e := core.AsError(err)
	if !errors.Is(err, core.ErrLogin) || e.Kind != core.KindUpstreamGone || !strings.Contains(e.Hint, "retort auth login s") || errors.Is(err, client.ErrOutcomeUnknown) {
		t.Fatalf("%v, hint %q", err, e.Hint)
	}
	b.mustLogin(c)
	if err := call(t, p, "hello"); err != nil {
		t.Fatal("after the login:", err)
	}
	if err := call(t, b.pool(b.client()), "hello"); err != nil {
		t.Fatal("another process:", err)
	}
	for _, f := range b.Forms() {
		if f.Get("resource") != b.URL {
			t.Errorf("a request without the resource: %v", f)
		}
	}
	files, _ := filepath.Glob(filepath.Join(b.dir, "*"))
	for _, f := range files {
		info, err := os.Stat(f)
		text, _ := os.ReadFile(f)
		if err != nil || info.Mode().Perm() != 0o600 || strings.Contains(string(text), "access-") || strings.Contains(string(text), "refresh") {
			t.Errorf("%s: %v, %v", f, info.Mode(), err)
		}
	}
}

// TestSecretsAreReported checks that every secret that the server has issued was passed to the function Options.Secret,
// which redacts it from output.
func TestSecretsAreReported(t *testing.T) {
	b := newBench(t, oauthtest.Rules{Lasts: 3600, Change: func(doc string, m map[string]any) {
		if doc == "server" {
			m["token_endpoint_auth_methods_supported"] = []string{"client_secret_post"}
		}
	}})
	c := b.client()
	b.mustLogin(c)
	b.age(-2 * time.Hour)
	if _, err := c.Authorization(t.Context()); err != nil {
		t.Fatal(err)
	}
	known := b.Known()
	if len(known) < 6 {
		t.Fatal(known)
	}
	for _, s := range known {
		if !b.reportedSecrets[s] {
			t.Errorf("%s was not told", s)
		}
	}
}

// TestIdentity checks the identity with which Retort logs in at an authorization server: a metadata document, a client
// id from the settings, or a registration.
func TestIdentity(t *testing.T) {
	server := func(fields map[string]any) func(string, map[string]any) {
		return func(doc string, m map[string]any) {
			for k, v := range fields {
				if doc == "server" {
					m[k] = v
				}
			}
		}
	}
	const document = "https://client.example/retort.json"
	for name, c := range map[string]struct {
		rules    oauthtest.Rules
		settings oauth.Settings
		client   string // client id that the login's address must contain; "" stands for a registered one
		fails    string
	}{
		"by document": {rules: oauthtest.Rules{Change: server(map[string]any{"client_id_metadata_document_supported": true})},
			settings: oauth.Settings{ClientMetadata: document, ClientID: "own"}, client: document},
		"by document that is not supported": {settings: oauth.Settings{ClientMetadata: document}},
		"by hand":                           {rules: oauthtest.Rules{Client: [2]string{"own", "hidden"}}, settings: oauth.Settings{ClientID: "own", ClientSecret: "hidden"}, client: "own"},
		"by hand, public":                   {rules: oauthtest.Rules{Client: [2]string{"own", ""}}, settings: oauth.Settings{ClientID: "own"}, client: "own"},
		"by hand, wrong secret":             {rules: oauthtest.Rules{Client: [2]string{"own", "hidden"}}, settings: oauth.Settings{ClientID: "own", ClientSecret: "wrong"}, client: "own", fails: "invalid_client"},
		"by hand, in the form": {rules: oauthtest.Rules{Client: [2]string{"own", "hidden"}, Change: server(map[string]any{"token_endpoint_auth_methods_supported": []string{"client_secret_post"}})},
			settings: oauth.Settings{ClientID: "own", ClientSecret: "hidden"}, client: "own"},
		"registered":               {},
		"registered with a secret": {rules: oauthtest.Rules{Change: server(map[string]any{"token_endpoint_auth_methods_supported": []string{"client_secret_basic"}})}},
		"nothing":                  {rules: oauthtest.Rules{Change: server(map[string]any{"registration_endpoint": ""})}, fails: "does not register clients"},
		"refused": {rules: oauthtest.Rules{Hook: func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/register" {
				http.Error(w, `{"error":"access_denied","error_description":"ask the \u001b[31madministrator"}`, http.StatusForbidden)
			}
			return r.URL.Path == "/register"
		}}, fails: `ask the \u001b[31madministrator`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.rules)
			err := b.login(b.client(func(o *oauth.Options) { o.Settings = c.settings }))
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("%v, want %q", err, c.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if id := b.Forms()[0].Get("client_id"); c.client != "" && id != c.client || c.client == "" && !strings.HasPrefix(id, "client-") {
				t.Errorf("the client is %q", id)
			}
			if err := call(t, b.pool(b.client()), "hello"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRegistrationIsKept checks that a client is registered only once, and again only when its redirect changes.
func TestRegistrationIsKept(t *testing.T) {
	b := newBench(t, oauthtest.Rules{})
	b.mustLogin(b.client())
	b.mustLogin(b.client())
	b.mustLogin(b.client(func(o *oauth.Options) { o.Server = "other" }))
	if n := b.Count("/register"); n != 1 {
		t.Errorf("registered %d times", n)
	}
	held, err := b.client().BeginLogin(t.Context(), oauth.LoginOptions{}) // has the port
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	b.mustLogin(b.client())
	if n := b.Count("/register"); n != 2 {
		t.Errorf("registered %d times, want 2: the port was taken", n)
	}
}

// TestHostileMetadata checks that a login fails if the server's metadata is wrong, incomplete or dangerous.
func TestHostileMetadata(t *testing.T) {
	set := func(document, field string, value any) oauthtest.Rules {
		return oauthtest.Rules{Change: func(doc string, m map[string]any) {
			if doc == document {
				m[field] = value
			}
		}}
	}
	answer := func(path string, do func(w http.ResponseWriter)) oauthtest.Rules {
		return oauthtest.Rules{Hook: func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == path {
				do(w)
			}
			return r.URL.Path == path
		}}
	}
	const resource, server = "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server"
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed to another origin") }))
	defer elsewhere.Close()
	for name, c := range map[string]struct {
		rules oauthtest.Rules
		says  string
	}{
		"another issuer":              {set("server", "issuer", "https://evil.example"), "names another server"},
		"another resource":            {set("resource", "resource", "https://bank.example/mcp"), "another resource"},
		"a resource beside it":        {set("resource", "resource", "http://127.0.0.1:1/mcp"), "another resource"},
		"no resource":                 {set("resource", "resource", ""), "another resource"},
		"no PKCE":                     {set("server", "code_challenge_methods_supported", []string{"plain"}), "PKCE"},
		"no word of PKCE":             {set("server", "code_challenge_methods_supported", nil), "PKCE"},
		"a server in the network":     {set("resource", "authorization_servers", []string{"https://10.0.0.7"}), "inside the local network"},
		"metadata of the cloud":       {set("resource", "authorization_servers", []string{"http://169.254.169.254/latest"}), "plain http"},
		"the same, encrypted":         {set("resource", "authorization_servers", []string{"https://169.254.169.254/latest"}), "inside the local network"},
		"the same, in IPv6":           {set("resource", "authorization_servers", []string{"https://[::ffff:169.254.169.254]/"}), "inside the local network"},
		"the same, translated":        {set("resource", "authorization_servers", []string{"https://[64:ff9b::a9fe:a9fe]/"}), "inside the local network"},
		"a file":                      {set("resource", "authorization_servers", []string{"file:///etc/passwd"}), "no"},
		"plain http":                  {set("server", "token_endpoint", "http://auth.example/token"), "plain http"},
		"a page in the network":       {set("server", "authorization_endpoint", "https://192.168.0.1/setup"), "inside the local network"},
		"a page that is a program":    {set("server", "authorization_endpoint", "javascript:alert(1)"), "not an https address"},
		"a page with a user":          {set("server", "authorization_endpoint", "https://a:b@auth.example/"), "not an https address"},
		"registration in the network": {set("server", "registration_endpoint", "https://10.1.1.1/register"), "inside the local network"},
		"no addresses":                {set("server", "token_endpoint", ""), "does not name its login addresses"},
		"a long document":             {answer(server, func(w http.ResponseWriter) { _, _ = w.Write(make([]byte, 1<<20)) }), "longer than"},
		"no JSON":                     {answer(resource, func(w http.ResponseWriter) { fmt.Fprint(w, "<html>") }), "is not valid JSON"},
		"a redirect elsewhere": {answer(resource, func(w http.ResponseWriter) {
			w.Header().Set("Location", elsewhere.URL)
			w.WriteHeader(http.StatusFound)
		}), "redirects to another origin"},
		"a redirect of the token": {answer("/token", func(w http.ResponseWriter) {
			w.Header().Set("Location", elsewhere.URL)
			w.WriteHeader(http.StatusTemporaryRedirect)
		}), "which is not followed"},
		"a redirect of the registration": {answer("/register", func(w http.ResponseWriter) {
			w.Header().Set("Location", "/authorize")
			w.WriteHeader(http.StatusPermanentRedirect)
		}), "which is not followed"},
		"another type of token":   {set("token", "token_type", "mac"), "only bearer tokens"},
		"a token with a new line": {set("token", "access_token", "a\r\nX-Evil: 1"), "cannot be sent"},
		"no token":                {set("token", "access_token", ""), "has no token"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.rules)
			err := b.login(b.client())
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
			if value, _ := b.client().Authorization(t.Context()); value != "" {
				t.Errorf("there is a token: %q", value)
			}
		})
	}
}

// TestDiscovery checks that a login works with each way in which servers publish their metadata, and without
// metadata.
func TestDiscovery(t *testing.T) {
	moved := func(to string, gone ...string) oauthtest.Rules {
		return oauthtest.Rules{Hook: func(w http.ResponseWriter, r *http.Request) bool {
			if slices.Contains(gone, r.URL.Path) {
				http.NotFound(w, r)
				return true
			}
			if to != "" && r.URL.Path == to {
				r.URL.Path = gone[0]
			}
			return false
		}}
	}
	const resource, server = "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server"
	for name, r := range map[string]oauthtest.Rules{
		"named by the refusal": {},
		"at the usual place":   {Bare: true},
		"OpenID Connect":       moved("/.well-known/openid-configuration", server),
		"no resource metadata": {Bare: true, Hook: moved("", resource).Hook},
		"no metadata at all":   {Bare: true, Issuer: "-", Hook: moved("", resource, server).Hook},
		"a resource above":     {Change: func(doc string, m map[string]any) { delete(m, "scopes_supported") }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, r)
			b.mustLogin(b.client())
			if err := call(t, b.pool(b.client()), "hello"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRedirect checks that a redirect from a wrong issuer, with an error, or for another login does not log in, and
// that its code is not sent to the server.
func TestRedirect(t *testing.T) {
	for name, c := range map[string]struct {
		rules oauthtest.Rules
		says  string
	}{
		"another issuer": {oauthtest.Rules{Issuer: "https://evil.example"}, "the response to the login must name the issuer"},
		"no issuer":      {oauthtest.Rules{Issuer: "-"}, "the response to the login must name the issuer"},
		"denied":         {oauthtest.Rules{Deny: "access_denied"}, "access_denied"},
		"no issuer where none is promised": {oauthtest.Rules{Issuer: "-", Change: func(doc string, m map[string]any) {
			delete(m, "authorization_response_iss_parameter_supported")
		}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.rules)
			err := b.login(b.client())
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v, want %q", err, c.says)
			}
			if n := b.Count("/token"); c.says != "" && n > 0 {
				t.Errorf("the code was sent %d times", n)
			}
		})
	}
	b := newBench(t, oauthtest.Rules{})
	l, err := b.client().BeginLogin(t.Context(), oauth.LoginOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, forged := range []string{"?code=x&state=guess", "?code=x", "?error=access_denied&state="} {
		resp, err := http.Get(l.Redirect() + forged)
		if err != nil || resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %v, %v", forged, resp, err)
		}
		_ = resp.Body.Close()
	}
	if err := oauthtest.Browse(t.Context(), l.URL); err != nil {
		t.Fatal(err)
	}
	if err := l.Wait(t.Context()); err != nil {
		t.Error("forged redirects ended the login:", err)
	}
}

// TestPaste checks that a login can be finished with the address that the user copies from a browser on another
// machine.
func TestPaste(t *testing.T) {
	b := newBench(t, oauthtest.Rules{})
	c := b.client()
	l, err := c.BeginLogin(t.Context(), oauth.LoginOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := browser.Get(l.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if err := l.Paste(t.Context(), l.Redirect()+"?code=1&state=2"); core.AsError(err) == nil || core.AsError(err).Kind != core.KindInvalidArguments {
		t.Error("another address:", err)
	}
	if err := l.Paste(t.Context(), " "+resp.Header.Get("Location")+"\n"); err != nil {
		t.Fatal(err)
	}
	if value, err := c.Authorization(t.Context()); value == "" || err != nil {
		t.Error(value, err)
	}
}

// TestOneRefresh checks that fifty concurrent calls with an expired token cause only one refresh, whether one or two
// processes make them.
func TestOneRefresh(t *testing.T) {
	for name, processes := range map[string]int{"one process": 1, "two processes": 2} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, oauthtest.Rules{Rotates: true})
			b.mustLogin(b.client())
			var pools []*client.Pool
			for range processes {
				pools = append(pools, b.pool(b.client()))
			}
			for _, p := range pools {
				if err := call(t, p, "hello"); err != nil {
					t.Fatal(err)
				}
			}
			b.Expire(false)
			var all sync.WaitGroup
			for i := range 50 {
				all.Go(func() {
					if err := call(t, pools[i%processes], "hello"); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if n := b.Count("token refresh_token"); n != 1 {
				t.Errorf("%d refreshes", n)
			}
			if n := b.Count("call hello"); n != 50+processes {
				t.Errorf("%d calls", n)
			}
		})
	}
}

// TestRefreshRefused checks that every call fails with core.ErrLogin after the server has refused to renew the token,
// and that the refresh token is sent only once.
func TestRefreshRefused(t *testing.T) {
	b := newBench(t, oauthtest.Rules{})
	c := b.client()
	b.mustLogin(c)
	p := b.pool(c)
	b.Expire(true)
	for range 3 {
		err := call(t, p, "hello")
		if !errors.Is(err, core.ErrLogin) || !strings.Contains(err.Error(), "invalid_grant") && !strings.Contains(err.Error(), "ended") && !strings.Contains(err.Error(), "accept") {
			t.Error(err)
		}
	}
	if n := b.Count("token refresh_token"); n != 1 {
		t.Errorf("a refresh token that is worth nothing was sent %d times", n)
	}
	if s, _ := c.Status(t.Context()); s.State != oauth.StateExpired || s.Command != "retort auth login s" {
		t.Errorf("%+v", s)
	}
	b.mustLogin(c)
	if err := call(t, p, "hello"); err != nil {
		t.Error(err)
	}
}

// TestInterruptedRefresh checks a refresh whose answer is lost after the server has rotated the tokens. The next
// process must try the old token again. Its error must say that the refresh was cut off and that a login is needed.
func TestInterruptedRefresh(t *testing.T) {
	b := newBench(t, oauthtest.Rules{Rotates: true})
	b.mustLogin(b.client())
	b.Expire(false)
	b.Set(func(r *oauthtest.Rules) {
		r.Change = func(doc string, _ map[string]any) {
			if doc == "token" {
				panic(http.ErrAbortHandler) // the answer is lost
			}
		}
	})
	refuse := func(c *oauth.Client) error {
		value, err := c.Authorization(t.Context())
		if err != nil {
			return err
		}
		req, _ := http.NewRequest(http.MethodPost, b.URL, nil)
		req.Header.Set("Authorization", value)
		return c.Authorize(t.Context(), req, &http.Response{StatusCode: 401, Body: http.NoBody, Header: http.Header{}})
	}
	if err := refuse(b.client()); err == nil || errors.Is(err, core.ErrLogin) {
		t.Error("the first:", err)
	}
	b.Set(func(r *oauthtest.Rules) { r.Change = nil })
	if err := refuse(b.client()); !errors.Is(err, core.ErrLogin) || !strings.Contains(err.Error(), "interrupted") {
		t.Error("the next process:", err)
	}
	if n := b.Count("token refresh_token"); n != 2 {
		t.Errorf("%d refreshes: the old token was not tried again", n)
	}
}

// TestStepUp checks a call that needs more rights than the token has. It must require exactly one new login, which
// asks for the old and the new scopes.
func TestStepUp(t *testing.T) {
	b := newBench(t, oauthtest.Rules{Scope: "read"})
	c := b.client()
	b.mustLogin(c)
	p := b.pool(c)
	err := call(t, p, "admin")
	if !errors.Is(err, core.ErrLogin) || !strings.Contains(err.Error(), "admin") {
		t.Fatal(err)
	}
	if err := call(t, p, "hello"); err != nil {
		t.Error("the old login is gone:", err)
	}
	if s, _ := c.Status(t.Context()); s.State != oauth.StateNeeded || !slices.Equal(s.Wanted, []string{"admin"}) {
		t.Errorf("%+v", s)
	}
	b.mustLogin(b.client())
	if err := call(t, p, "admin"); err != nil {
		t.Error(err)
	}
	if scope := b.Forms()[len(b.Forms())-2].Get("scope"); scope != "read admin" {
		t.Errorf("asked for %q", scope)
	}
	// A server that is not content with what it has asked for.
	b.Set(func(r *oauthtest.Rules) {
		r.Change = func(doc string, m map[string]any) {
			if doc == "token" {
				m["scope"] = "read"
			}
		}
		r.Hook = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/mcp" && r.Header.Get("Authorization") != "" {
				w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="admin"`)
				w.WriteHeader(http.StatusForbidden)
				return true
			}
			return false
		}
	})
	if err := call(t, p, "admin"); err == nil || errors.Is(err, core.ErrLogin) || errors.Is(err, client.ErrOutcomeUnknown) {
		t.Error("asked for a login without end:", err)
	}
}

func TestLogout(t *testing.T) {
	b := newBench(t, oauthtest.Rules{})
	c := b.client()
	b.mustLogin(c)
	p := b.pool(c)
	if err := call(t, p, "hello"); err != nil {
		t.Fatal(err)
	}
	was, revoked, err := b.client().RemoveLogin(t.Context())
	if !was || !revoked || err != nil || len(b.Revoked) != 2 {
		t.Error(was, revoked, err, b.Revoked)
	}
	if files, _ := filepath.Glob(filepath.Join(b.dir, "*.token")); len(files) > 0 {
		t.Error(files)
	}
	if err := call(t, p, "hello"); !errors.Is(err, core.ErrLogin) {
		t.Error("an engine that runs goes on:", err)
	}
	if was, _, err := c.RemoveLogin(t.Context()); was || err != nil {
		t.Error(was, err)
	}
}

// TestTokenIsBound checks that a token is not used for another address of a server with the same name, nor if its
// file is copied to another server's file.
func TestTokenIsBound(t *testing.T) {
	b := newBench(t, oauthtest.Rules{})
	b.mustLogin(b.client())
	for _, other := range []string{"http://127.0.0.1:1/mcp", b.Root + "/other", strings.Replace(b.URL, "http:", "https:", 1)} {
		c := b.client(func(o *oauth.Options) { o.URL = other })
		if value, err := c.Authorization(t.Context()); value != "" || err != nil {
			t.Errorf("%s: %q, %v", other, value, err)
		}
	}
	// Nor does a file that was put in the place of another.
	token, _ := filepath.Glob(filepath.Join(b.dir, "*.token"))
	text, _ := os.ReadFile(token[0])
	other := b.client(func(o *oauth.Options) { o.Server = "t" })
	b.mustLogin(other)
	all, _ := filepath.Glob(filepath.Join(b.dir, "*.token"))
	for _, f := range all {
		if f != token[0] {
			_ = os.WriteFile(f, text, 0o600)
		}
	}
	if value, err := b.client(func(o *oauth.Options) { o.Server = "t" }).Authorization(t.Context()); value != "" || err == nil {
		t.Errorf("%q, %v", value, err)
	}
}

// TestTokenStaysAtItsOrigin checks that a token is not sent to another origin when the server redirects there.
func TestTokenStaysAtItsOrigin(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a stranger got %v", r.Header)
	}))
	defer elsewhere.Close()
	b := newBench(t, oauthtest.Rules{})
	c := b.client()
	b.mustLogin(c)
	b.Set(func(r *oauthtest.Rules) {
		r.Hook = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/mcp" {
				http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
			}
			return r.URL.Path == "/mcp"
		}
	})
	if err := call(t, b.pool(c), "hello"); err == nil || !strings.Contains(err.Error(), "another origin") {
		t.Error(err)
	}
}

// TestErrorsContainNoSecrets checks that errors contain no secrets, whether from addresses or from a server's error
// description.
func TestErrorsContainNoSecrets(t *testing.T) {
	b := newBench(t, oauthtest.Rules{Hook: func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/token" {
			return false
		}
		_ = r.ParseForm()
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": "invalid_grant", "error_description": strings.Repeat("no ", 500)})
		return true
	}})
	err := b.login(b.client())
	if err == nil || len(err.Error()) > 400 {
		t.Error(err)
	}
	for _, s := range b.Known() {
		if strings.Contains(err.Error(), s) {
			t.Errorf("%v tells %s", err, s)
		}
	}
	dead := b.client(func(o *oauth.Options) { o.URL = "http://127.0.0.1:1/mcp?token=hidden-in-the-address" })
	if _, err := dead.BeginLogin(t.Context(), oauth.LoginOptions{}); err == nil || strings.Contains(err.Error(), "hidden") {
		t.Error(err)
	}
	var u *url.Error
	if errors.As(err, &u) {
		t.Error("an error with an address")
	}
}
