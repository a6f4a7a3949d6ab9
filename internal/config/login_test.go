package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLogin checks that login settings of Retort take precedence over those in a client's entry, and that unknown
// forms in an entry cause no error.
func TestLogin(t *testing.T) {
	m := newMachine(t, map[string]string{
		"project/.mcp.json": `{"mcpServers": {
  "claude": {"type": "http", "url": "https://a.example", "oauth": {"clientId": "id", "callbackPort": 8080, "unknown": [1]}},
  "cursor": {"url": "https://a.example", "auth": {"CLIENT_ID": "id", "CLIENT_SECRET": "${TOKEN}", "scopes": ["a", "b"]}},
  "open": {"url": "https://a.example", "oauth": false},
  "both": {"url": "https://a.example", "oauth": {"clientId": "theirs", "clientSecret": "theirs", "scopes": "a b"}},
}}`,
		"project/retort.yaml": "servers:\n  both: {oauth: {clientId: mine, clientMetadata: 'https://me.example/retort.json', redirectPort: 9}}\n",
	})
	got := map[string]OAuthClient{}
	for _, s := range m.load().Servers {
		if s.Err != nil {
			t.Error(s.Err)
		}
		got[s.Name] = s.OAuth
	}
	want := map[string]OAuthClient{
		"claude": {ClientID: "id", RedirectPort: 8080},
		"cursor": {ClientID: "id", ClientSecret: "secret-value", Scopes: []string{"a", "b"}},
		"open":   {},
		"both":   {ClientID: "mine", ClientMetadata: "https://me.example/retort.json", RedirectPort: 9, Scopes: []string{"a", "b"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for text, says := range map[string]string{
		"servers: {a: {oauth: {clientID: x}}}":                               "clientId",
		"servers: {a: {oauth: {redirectPort: 0}}}":                           "redirectPort",
		"servers: {a: {oauth: {clientMetadata: http://x.example/y}}}":        "https",
		"servers: {a: {oauth: {clientMetadata: 'https://x.example/'}}}":      "https",
		"servers: {a: {oauth: {clientMetadata: 'https://u:p@x.example/y'}}}": "https",
	} {
		if _, err := ParseSettings("retort.yaml", ".", []byte(text), nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}
