package guest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"retort/internal/core"
)

// resultHost implements a host for the test program. It answers the program's i-th call with the i-th text, which is
// JSON or almost JSON.
type resultHost []string

func (r resultHost) Call(_ context.Context, c core.ToolCall) (core.CallResult, error) {
	var args struct{ I int }
	err := json.Unmarshal(c.Arguments, &args)
	return core.CallResult{Value: json.RawMessage(r[args.I])}, err
}

// TestResultValues checks which JavaScript values the results of calls become, and that invalid JSON makes only its own
// call fail.
func TestResultValues(t *testing.T) {
	r := resultHost{
		`{"a":"grün 👍","b":[1.5,-0,1e3],"__proto__":{"c":1},"a":"twice"}`, `"\ud800\u0000"`, `null`, ` 1 `,
		"\"a\xffb\xe2\x82\"", "[\"\xff\",12345678901234567890]", `{"then":{"call":1}}`, `12345678901234567`, `{"a":`, `12345678901234567 x`, "\"\xff",
		strings.Repeat("[", 500) + strings.Repeat("]", 500),
	}
	end := runProgram(t, core.CheckedProgram{Namespaces: demoNamespaces, Code: `
		const seen = []
		for (let i = 0; i < 12; i++) {
			await demo.echo({i}).then((v) => seen.push(typeof v, i === 11 ? JSON.stringify(v).length : v), (e) => seen.push(e.name))
		}
		return seen`}, r)
	want := `["object",{"a":"twice","b":[1.5,0,1000],"__proto__":{"c":1}},"string","\ud800\u0000","object",null,"number",1,` +
		`"string","a�b��","object",["�",12345678901234567890],"object",{"then":{"call":1}},"bigint",12345678901234567,"SyntaxError","SyntaxError","SyntaxError","object",1000]`
	if string(end.Value) != want {
		t.Errorf("%s %v\n%s\nwant\n%s", end.Status, end.Error, end.Value, want)
	}
}
