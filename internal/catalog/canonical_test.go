package catalog

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"retort/internal/catalog/sanitize"
)

func pinOf(t testing.TB, text string) string {
	t.Helper()
	if !json.Valid([]byte(text)) {
		t.Fatalf("not JSON: %s", text)
	}
	return computePin(parseJSON([]byte(text), maxDepth))
}

func TestPinIgnoresSpelling(t *testing.T) {
	want := pinOf(t, `{"name":"a","description":"é/","inputSchema":{"type":"object","required":["x"]}}`)
	for _, text := range []string{
		"{ \"inputSchema\":\t{\"required\":[\"x\"],\n\"type\":\"object\"},\"name\":\"a\" , \"description\":\"\\u00e9\\/\" }",
		`{"name":"a","description":"é/","inputSchema":{"type":"object","required":["x"]},"title":null,"_meta":null,"unknown":1}`,
		`{"\u006eame":"a","description":"é/","inputSchema":{"type":"obj\u0065ct","required":["x"]}}`,
	} {
		if pinOf(t, text) != want {
			t.Errorf("another pin for %s", text)
		}
	}
}

func TestPinSeesWhatMatters(t *testing.T) {
	seen := map[string]string{}
	for _, text := range []string{
		`{"name":"a"}`,
		`{"name":"b"}`,
		`{"name":"a","title":"a"}`,
		`{"name":"a","description":"a"}`,
		`{"name":"a","description":"a "}`,
		`{"name":"a","description":"a\u0000"}`,
		`{"name":"a","inputSchema":{}}`,
		`{"name":"a","outputSchema":{}}`,
		`{"name":"a","annotations":{"readOnlyHint":true}}`,
		`{"name":"a","annotations":{"readOnlyHint":false}}`,
		`{"name":"a","inputSchema":{"a":1}}`,
		`{"name":"a","inputSchema":{"a":1.0}}`,
		`{"name":"a","inputSchema":{"a":"1"}}`,
		`{"name":"a","inputSchema":{"a":1,"a":2}}`,
		`{"name":"a","inputSchema":{"a":2,"a":1}}`,
		`{"name":"a","inputSchema":{"a":[1,2]}}`,
		`{"name":"a","inputSchema":{"a":[2,1]}}`,
		`{"name":"a","inputSchema":{"a":[[1],2]}}`,
	} {
		p := pinOf(t, text)
		if len(p) != 64 {
			t.Errorf("pin %q", p)
		}
		if other, taken := seen[p]; taken {
			t.Errorf("one pin for %s and %s", text, other)
		}
		seen[p] = text
	}
}

// TestPinIsStable checks that the pin (hash) of a definition is the same in all versions of Retort. Otherwise people
// would be asked about servers that have not changed.
func TestPinIsStable(t *testing.T) {
	const want = "d695eaa8f3e42344f5fff31a542576626169ca6fedbc393c808f4199b19abce7"
	if got := pinOf(t, issue); got != want {
		t.Errorf("pin %s, want %s", got, want)
	}
}

// FuzzCanonical checks that the canonical form has the same value as the original text according to encoding/json,
// and that it is its own canonical form.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{issue, `[1, {"b":"\u0001\"","a":[]}, null, -1.5E+3, "\ud800"]`, `{"a":{"b":{}},"a":1}`, ` "x" `, `0`, strings.Repeat("[", 300) + strings.Repeat("]", 300)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			return
		}
		n := parseJSON(text, maxDepth)
		if n.tooDeep {
			return
		}
		var a, b any
		if json.Unmarshal(text, &a) != nil {
			return // a number that Go cannot hold
		}
		form := n.appendCanonical(nil)
		if err := json.Unmarshal(form, &b); err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("%s became %s", text, form)
		}
		if again := parseJSON(form, maxDepth).appendCanonical(nil); string(again) != string(form) {
			t.Fatalf("%s became %s", form, again)
		}
	})
}

// FuzzParse checks that the parser and its callers do not panic on text that is not valid JSON.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{issue, `{"a`, `{"a":`, `[[[`, `"\\`, `}`, `{,}`, `{{}}`, "", `[1 2]`, `{"a" "b"}`} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, text []byte, depth int) {
		n := parseJSON(text, depth%20)
		n.appendCanonical(nil)
		n.findMember("a")
		readBody(text)
		readStoredTool("s", text, "")
	})
}

func FuzzRead(f *testing.F) {
	scanner := sanitize.New()
	for _, seed := range []string{issue, `{"name":"a","annotations":{"readOnlyHint":1}}`, `{"name":"a","inputSchema":[]}`, `[]`, `{"name":"\u202e"}`, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		tool, _, err := readDefinition("s", raw, scanner)
		if err != nil {
			return
		}
		if tool.Name == "" || len(tool.Name) > maxName || !isPrintable(tool.Name) || len(tool.Pin) != 64 {
			t.Fatalf("tool %+v", tool)
		}
		if len(tool.InputSchema) > 0 && !json.Valid(tool.InputSchema) {
			t.Fatalf("schema %s", tool.InputSchema)
		}
	})
}

func FuzzDecode(f *testing.F) {
	whole, _ := encodeFile("s", bodyOf(issue, `{"name":"b"}`))
	f.Add(whole)
	f.Add([]byte("{}\n{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		server, b, err := decodeFile(data)
		if err != nil {
			return
		}
		again, err := encodeFile(server, b)
		if err != nil {
			t.Fatal(err)
		}
		if _, c, err := decodeFile(again); err != nil || !reflect.DeepEqual(b, c) {
			t.Fatalf("%v: %+v became %+v", err, b, c)
		}
	})
}
