package server

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
	"retort/internal/tokens"
)

// testSandboxes lists the sandboxes that the retort command offers.
var testSandboxes = []string{"process", "docker", "gvisor", "vm"}

// TestToolListStaysSmall checks that the tool lists and the server's instructions stay below fixed numbers of tokens,
// because a client pays for them in every session.
func TestToolListStaysSmall(t *testing.T) {
	all := (*Server)(nil).modelTools()
	for surface, c := range map[string]struct{ tools, tokens int }{"full": {len(all), 1200}, "lean": {leanTools, 500}} {
		var list mcp.ListToolsResult
		for _, tool := range all[:c.tools] {
			d, err := tool.loadDefinition(Options{Sandboxes: testSandboxes})
			if err != nil {
				t.Fatal(err)
			}
			list.Tools = append(list.Tools, d)
		}
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		n := tokens.CountTokens(string(text))
		t.Logf("%s: %d tokens", surface, n)
		if n >= c.tokens {
			t.Errorf("the %s tool list has %d tokens, the surface promises less than %d", surface, n, c.tokens)
		}
	}
	if n := tokens.CountTokens(serverInstructions); n >= 150 {
		t.Errorf("the instructions have %d tokens, they must stay under 150", n)
	} else {
		t.Logf("instructions: %d tokens", n)
	}
}

// TestSchemasMatchHandlers checks that every tool accepts each argument of its schema and refuses unknown ones.
func TestSchemasMatchHandlers(t *testing.T) {
	s, err := New(newEngine(), Options{Version: "0.0.0-test"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range s.modelTools() {
		d, err := tool.loadDefinition(Options{Sandboxes: testSandboxes})
		if err != nil {
			t.Fatal(err)
		}
		var schema struct{ Properties map[string]any }
		if err := json.Unmarshal(d.InputSchema.(json.RawMessage), &schema); err != nil {
			t.Fatal(err)
		}
		params := &mcp.CallToolParamsRaw{Name: tool.name, Arguments: json.RawMessage(`{"qqqqqqqqqqqqqqqq": null}`)} // like no other name
		_, err = tool.handle(t.Context(), &mcp.CallToolRequest{Session: &mcp.ServerSession{}, Params: params})
		var refused *core.Error
		if !errors.As(err, &refused) || !strings.HasPrefix(refused.Message, "there is no argument") {
			t.Errorf("%s: an unknown argument was not refused: %v", tool.name, err)
			continue
		}
		taken := strings.Fields(strings.Trim(strings.TrimPrefix(refused.Hint, "arguments: "), "[]"))
		for name := range schema.Properties {
			if !slices.Contains(taken, name) {
				t.Errorf("%s: the schema has %s, but the tool takes only %v", tool.name, name, taken)
			}
		}
	}
}
