package server

import (
	"encoding/json"
	"testing"
)

// TestOrMember checks that orMember adds a member to an object that does not have it, and returns any other text
// unchanged, because an upstream server decides what its result is.
func TestOrMember(t *testing.T) {
	for given, want := range map[string]string{
		`{}`: `{"a":true}`, ` { "b" : 1 } `: `{"a":true,"b" : 1 }`, `{"a":2}`: `{"a":2}`,
		``: ``, `1`: `1`, `{`: `{`, `"x"`: `"x"`, `[1]`: `[1]`, `null`: `null`, ` `: ` `,
	} {
		if got := orMember(json.RawMessage(given), "a", true); string(got) != want {
			t.Errorf("%q became %q, want %q", given, got, want)
		}
	}
}
