package server

import (
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/tokens"
)

// The bounds are promises of the surface: a client pays for the list in every
// session.
func TestToolListStaysSmall(t *testing.T) {
	for surface, c := range map[string]struct{ tools, tokens int }{"full": {len(names), 1200}, "lean": {lean, 500}} {
		var list mcp.ListToolsResult
		for _, name := range names[:c.tools] {
			d, err := define(name)
			if err != nil {
				t.Fatal(err)
			}
			list.Tools = append(list.Tools, d.tool())
		}
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		n := tokens.Count(string(text))
		t.Logf("%s: %d tokens", surface, n)
		if n >= c.tokens {
			t.Errorf("the %s tool list has %d tokens, the surface promises less than %d", surface, n, c.tokens)
		}
	}
	if n := tokens.Count(instructions); n >= 150 {
		t.Errorf("the instructions have %d tokens, they must stay under 150", n)
	} else {
		t.Logf("instructions: %d tokens", n)
	}
}
