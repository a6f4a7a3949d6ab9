package engine_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"retort/internal/admin"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
)

// testAuthority simulates an OAuth authorization server.
type testAuthority struct {
	*httptest.Server
	key *rsa.PrivateKey
}

func newAuthority(t *testing.T) *testAuthority {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	a := &testAuthority{key: key}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/oauth-authorization-server":
			_, _ = fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, a.URL, a.URL+"/keys")
		case "/keys":
			_, _ = fmt.Fprintf(w, `{"keys":[{"kty":"RSA","kid":"1","use":"sig","n":%q,"e":"AQAB"}]}`, base64.RawURLEncoding.EncodeToString(key.N.Bytes()))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(a.Close)
	return a
}

// token returns a token for an audience, with a scope.
func (a *testAuthority) token(t *testing.T, audience, scope string) string {
	t.Helper()
	return a.sign(t, map[string]any{"aud": audience, "sub": "anna", "scope": scope})
}

// sign returns a token with these claims, which expires in an hour.
func (a *testAuthority) sign(t *testing.T, claims map[string]any) string {
	t.Helper()
	claims["iss"], claims["exp"] = a.URL, time.Now().Add(time.Hour).Unix()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","kid":"1","typ":"at+jwt"}`)) + "." + base64.RawURLEncoding.EncodeToString(payload)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, a.key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// resource is the audience of tokens for the engine under test.
const resource = "https://retort.example.com/mcp"

// logCollector collects log records.
type logCollector struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logCollector) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logCollector) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// openListening opens an engine that listens at an address until the test ends.
func openListening(t *testing.T, c engine.Config) (address string) {
	t.Helper()
	e, err := engine.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	l, err := e.Listen(engine.ListenOptions{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = e.Close()
	})
	return strings.TrimSuffix(l.URL(), "/mcp")
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// sendRequest sends a request, with a token unless it is empty. The body of the returned response is unread.
func sendRequest(t *testing.T, method, address, token, body string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// TestAuthorizationServer checks that the response to a client without a token names the authorization server, and
// that a token of this authorization server is accepted.
func TestAuthorizationServer(t *testing.T) {
	a, log, home := newAuthority(t), &logCollector{}, t.TempDir()
	address := openListening(t, engine.Config{
		NoFiles: true, Reserve: engine.ReserveNone, Home: home, Keys: t.TempDir(), Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Settings: "http: {oauth: {issuer: \"" + a.URL + "\", audience: " + resource + ", scopes: [\"mcp:tools\"]}}",
	})
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		answer := sendRequest(t, "GET", address+path, "", "")
		var metadata struct {
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers"`
		}
		if err := json.NewDecoder(answer.Body).Decode(&metadata); err != nil || metadata.Resource != resource || len(metadata.Servers) != 1 || metadata.Servers[0] != a.URL {
			t.Errorf("%s: %+v, %v", path, metadata, err)
		}
	}
	good := a.token(t, resource, "mcp:tools")
	for _, c := range []struct {
		token     string
		status    int
		challenge string
	}{
		{"", 401, `resource_metadata="https://retort.example.com/.well-known/oauth-protected-resource/mcp", scope="mcp:tools"`},
		{a.token(t, "https://other.example.com", "mcp:tools"), 401, `error="invalid_token", error_description="the token is not for the audience`},
		{a.token(t, resource, "openid"), 403, `error="insufficient_scope"`},
		{newAuthority(t).token(t, resource, "mcp:tools"), 401, `error="invalid_token", error_description="the token was not issued by`},
		{good, 200, ""},
	} {
		answer := sendRequest(t, "POST", address+"/mcp", c.token, initialize)
		if answer.StatusCode != c.status || !strings.Contains(answer.Header.Get("WWW-Authenticate"), c.challenge) {
			body, _ := io.ReadAll(answer.Body)
			t.Errorf("%d %v %s", answer.StatusCode, answer.Header, body)
		}
	}
	if answer := sendRequest(t, "POST", address+"/mcp", good, initialize, "Host", "retort.example.com"); answer.StatusCode != 200 {
		t.Error("by the name that the settings give it:", answer.Status)
	}
	if strings.Contains(log.String(), strings.Split(good, ".")[2]) {
		t.Error("the log has a token")
	}
}

// TestRevokedWhileStreaming checks that a stream and its session end when their token is revoked,
// and not before.
func TestRevokedWhileStreaming(t *testing.T) {
	c := engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: t.TempDir(), Keys: t.TempDir()}
	address := openListening(t, c) + "/mcp"
	berta, _, _ := openStream(t, c, address, "berta") // the engine checks this token before anna's, each time
	anna, token, session := openStream(t, c, address, "anna")
	revoke := func(name string, ended <-chan error) {
		if _, err := admin.RevokeTokens(c, name); err != nil {
			t.Fatal(err)
		}
		testenv.Receive(t, ended, "the end of the stream of "+name)
	}
	revoke("anna", anna)
	select {
	case err := <-berta:
		t.Error("revoking anna's token ended berta's stream too:", err)
	default:
		revoke("berta", berta)
	}
	if answer := sendRequest(t, "POST", address, token, initialize, "Mcp-Session-Id", session); answer.StatusCode != 401 {
		t.Error(answer.Status)
	}
	if found, _ := filepath.Glob(filepath.Join(c.Home, "access", "*")); len(found) != 1 {
		t.Error(found)
	}
}

// openStream creates an access token and opens a stream with it. When the stream ends, the channel ended receives
// the error.
func openStream(t *testing.T, c engine.Config, address, name string) (ended <-chan error, token, session string) {
	t.Helper()
	made, err := admin.CreateToken(c, name, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	session = sendRequest(t, "POST", address, made.Text, initialize).Header.Get("Mcp-Session-Id")
	sendRequest(t, "POST", address, made.Text, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", session)
	stream := sendRequest(t, "GET", address, made.Text, "", "Mcp-Session-Id", session)
	if stream.StatusCode != 200 || session == "" {
		t.Fatal(stream.Status, session)
	}
	end := make(chan error, 1)
	go func() { _, err := io.Copy(io.Discard, stream.Body); end <- err }()
	return end, made.Text, session
}
