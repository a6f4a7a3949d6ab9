package headers

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

const schema = `{"type":"object","properties":{
	"a":{"type":"string","x-mcp-header":"A"},
	"in":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}},
	"yes":{"type":"boolean","x-mcp-header":"Yes"},"other":{"type":"string"}}}`

func bound(t *testing.T) []HeaderBinding {
	t.Helper()
	found, err := FindBindings(json.RawMessage(schema))
	if err != nil || len(found) != 3 {
		t.Fatal(found, err)
	}
	return found
}

// TestSetAndCheck checks that CheckHeaders accepts the headers that SetHeaders writes, and refuses the header of
// another value.
func TestSetAndCheck(t *testing.T) {
	all := []string{
		`{}`, `{"a":null}`, `{"a":""}`, `{"a":"x"}`, `{"a":" x"}`, `{"a":"x\r\nMcp-Param-N: 7"}`, `{"a":"ü"}`, `{"a":"=?base64?eA==?="}`, `{"a":"=?base64?="}`,
		`{"a":"7","in":{"n":7}}`, `{"in":{"n":8}}`, `{"in":{"n":-3}}`, `{"in":{"n":9007199254740991}}`, `{"yes":true}`, `{"yes":false}`, `{"a":"true"}`, `{"other":"x"}`,
	}
	b := bound(t)
	for i, args := range all {
		header := http.Header{}
		SetHeaders(header, b, json.RawMessage(args))
		for name, values := range header {
			if strings.ContainsAny(values[0], "\r\n") {
				t.Errorf("%s: %s: %q", args, name, values)
			}
		}
		for j, other := range all {
			err := CheckHeaders(header, b, json.RawMessage(other))
			empty := func(k int) bool { return k == 0 || k == 1 || k == len(all)-1 } // nothing is bound in them
			if same := i == j || empty(i) && empty(j); same != (err == nil) {
				t.Errorf("headers of %s with %s: %v", args, other, err)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct{ header, args, want string }{
		{"Mcp-Param-A: x", `{"a":"x"}`, ""},
		{"mcp-param-a: x", `{"a":"x"}`, ""}, // names of headers have no case
		{"Mcp-Param-A: X", `{"a":"x"}`, "differs from"},
		{"Mcp-Param-A: =?base64?eA==?=", `{"a":"x"}`, ""},
		{"Mcp-Param-A: =?BASE64?eA==?=", `{"a":"x"}`, "differs from"},
		{"Mcp-Param-A: =?BASE64?eA==?=", `{"a":"=?BASE64?eA==?="}`, ""},
		{"Mcp-Param-A: =?base64?eA=?=", `{"a":"x"}`, "not the base64"},
		{"Mcp-Param-A: =?base64?eB==?=", `{"a":"x"}`, "not the base64"}, // another spelling of the same byte
		{"Mcp-Param-A: =?base64?e!!A==?=", `{"a":"x"}`, "not the base64"},
		{"Mcp-Param-A: =?base64?/w==?=", `{"a":"\ufffd"}`, "not the base64"},
		{"Mcp-Param-A: =?base64?eA==", `{"a":"=?base64?eA=="}`, ""},
		{"Mcp-Param-A: =?base64??=", `{"a":""}`, ""},
		{"Mcp-Param-A: ü", `{"a":"ü"}`, "must be encoded"},
		{"Mcp-Param-A: a\x7f", `{"a":"a\u007f"}`, "must be encoded"},
		{"Mcp-Param-A: x|Mcp-Param-A: x", `{"a":"x"}`, "more than one"},
		{"Mcp-Param-A: x", `{}`, "but not the argument"},
		{"Mcp-Param-A: x", `{"a":["x"]}`, "but not the argument"},
		{"", `{"a":"x"}`, "missing"},
		{"", `{"a":["x"]}`, ""}, // the schema refuses it
		{"Mcp-Param-N: 42.0", `{"in":{"n":42}}`, ""},
		{"Mcp-Param-N: 4.2e1", `{"in":{"n":42}}`, ""},
		{"Mcp-Param-N: 0x2a", `{"in":{"n":42}}`, "differs from"},
		{"Mcp-Param-N: 4_2", `{"in":{"n":42}}`, "differs from"},
		{"Mcp-Param-N: 42", `{"in":{"n":"42"}}`, ""},
		{"Mcp-Param-N: 9007199254740993", `{"in":{"n":9007199254740993}}`, "but not the argument"},
		{"Mcp-Param-Yes: TRUE", `{"yes":true}`, "differs from"},
		{"Mcp-Param-Other: y", `{"other":"x"}`, ""},
	} {
		header := http.Header{}
		for _, line := range strings.Split(c.header, "|") {
			if name, value, ok := strings.Cut(line, ": "); ok {
				header.Add(name, value)
			}
		}
		err := CheckHeaders(header, bound(t), json.RawMessage(c.args))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q with %s: %v, want %q", c.header, c.args, err, c.want)
		}
	}
}

func FuzzEncode(f *testing.F) {
	for _, s := range []string{"", "x", " x", "ü", "=?base64?eA==?=", "a\nb", "=?base64?="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		header := EncodeValue(s)
		if strings.ContainsAny(header, "\r\n") {
			t.Errorf("%q in a header: %q", s, header)
		}
		if back, err := DecodeValue(header); back != s && err == nil {
			t.Errorf("%q became %q", s, back)
		}
	})
}
