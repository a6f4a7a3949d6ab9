//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"retort/internal/testenv"
)

// The core suite of the client side of MCP's conformance tests, against a Pool.
// What fails by design is in testdata/conformance.yml, with the reason.
func TestConformance(t *testing.T) {
	modules, node := testenv.NPM22(t), testenv.Need(t, "node22")
	expected, err := filepath.Abs("testdata/conformance.yml")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, filepath.Join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js"),
		"client", "--command", os.Args[0]+" conformance", "--suite", "core", "--expected-failures", expected)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	summary := regexp.MustCompile(`(?m)^Total:.*$`).FindString(string(out))
	if summary == "" {
		t.Errorf("no summary in\n%s", out)
	}
	t.Log(summary)
}

// conformanceClient is the client under test: it drives a Pool as the scenario
// wants it, and returns an exit status.
func conformanceClient(server string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	scenario := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	p := New([]Server{{Name: "s", URL: server, Auth: conformanceAuth(scenario)}}, Options{ClientVersion: "test"})
	defer p.Close()
	if _, err := p.List(ctx, "s"); err != nil {
		fmt.Fprintln(os.Stderr, "list:", err)
		return 1
	}
	call, ok := map[string][2]string{
		"tools_call":                          {"add_numbers", `{"a":5,"b":3}`},
		"elicitation-sep1034-client-defaults": {"test_client_elicitation_defaults", `{}`},
		"sse-retry":                           {"test_reconnection", `{}`},
	}[scenario]
	if strings.HasPrefix(scenario, "auth/") {
		call, ok = [2]string{"test-tool", `{}`}, true
	}
	if !ok {
		return 0
	}
	if _, err := p.Call(ctx, "s", call[0], json.RawMessage(call[1])); err != nil {
		fmt.Fprintln(os.Stderr, "call:", err)
		return 1
	}
	return 0
}

// conformanceAuth authorizes with the SDK's flow; the suite's authorization
// server sends the code back at once.
func conformanceAuth(scenario string) Authorizer {
	if !strings.HasPrefix(scenario, "auth/") {
		return nil
	}
	config := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL:                    "http://localhost:3000/callback",
		AuthorizationCodeFetcher:       fetchCode,
		ClientIDMetadataDocumentConfig: &auth.ClientIDMetadataDocumentConfig{URL: "https://conformance-test.local/client-metadata.json"},
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{
			Metadata: &oauthex.ClientRegistrationMetadata{RedirectURIs: []string{"http://localhost:3000/callback"}},
		},
	}
	var given struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	_ = json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &given)
	if given.ID != "" && given.Secret != "" {
		config.PreregisteredClient = &oauthex.ClientCredentials{ClientID: given.ID, ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: given.Secret}}
	}
	handler, err := auth.NewAuthorizationCodeHandler(config)
	if err != nil {
		fmt.Fprintln(os.Stderr, "auth:", err)
		return nil
	}
	return sdkAuthorizer{handler}
}

func fetchCode(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, args.URL, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	location, err := url.Parse(resp.Header.Get("Location"))
	if err != nil {
		return nil, err
	}
	q := location.Query()
	return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
}

// sdkAuthorizer is an authorization flow of the SDK as an Authorizer.
type sdkAuthorizer struct{ auth.OAuthHandler }

func (a sdkAuthorizer) Authorization(ctx context.Context) (string, error) {
	source, err := a.TokenSource(ctx)
	if err != nil || source == nil {
		return "", err
	}
	token, err := source.Token()
	if err != nil {
		return "", nil // the server's refusal starts a new flow
	}
	return "Bearer " + token.AccessToken, nil
}
