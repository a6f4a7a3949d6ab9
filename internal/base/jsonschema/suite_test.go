package jsonschema

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// skipped lists the groups of the official test suite that are not run, because they need a second document. prefix is
// the start of the group's file name and description, separated by a slash. Compile must reject the schemas of these
// groups. Only the schemas of the group vocabulary may compile, because Compile ignores their meta-schema.
var skipped = []struct{ prefix, why string }{
	{"refRemote/", "remote documents are the subject"},
	{"vocabulary/", "meta-schemas say which keywords count"},
	{"definitions/validate definition against metaschema", "refers to the meta-schema"},
	{"defs/validate definition against metaschema", "refers to the meta-schema"},
	{"ref/remote ref, containing refs itself", "refers to the meta-schema"},
	{"dynamicRef/strict-tree schema, guards against misspelled properties", "extends a remote document"},
	{"dynamicRef/tests for implementation dynamic anchor and reference link", "extends a remote document"},
	{"dynamicRef/$ref and $dynamicAnchor are independent of order", "extends a remote document"},
	{"dynamicRef/$ref to $dynamicRef finds detached $dynamicAnchor", "begins in a remote document"},
}

// TestSuite runs the required tests of the official JSON-Schema-Test-Suite for each draft.
func TestSuite(t *testing.T) {
	for _, draft := range []string{"draft7", "draft2019-09", "draft2020-12"} {
		t.Run(draft, func(t *testing.T) {
			raw, err := os.ReadFile("testdata/suite/" + draft + ".json")
			if err != nil {
				t.Fatal(err)
			}
			var files map[string][]suiteGroup
			if err := json.Unmarshal(raw, &files); err != nil {
				t.Fatal(err)
			}
			ran := 0
			for _, file := range sortedKeys(files) {
				for _, g := range files[file] {
					ran += g.run(t, draft, file+"/"+g.Description)
				}
			}
			if ran < 850 {
				t.Errorf("only %d tests ran", ran)
			}
		})
	}
}

type suiteGroup struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

func (g suiteGroup) run(t *testing.T, draft, name string) (ran int) {
	s, err := Compile(dated(g.Schema, draft))
	for _, skip := range skipped {
		if strings.HasPrefix(name, skip.prefix) {
			if skip.prefix != "vocabulary/" && (err == nil || !strings.HasSuffix(err.Error(), " is not loaded")) {
				t.Errorf("%s is skipped because it %s, but: %v", name, skip.why, err)
			}
			return 0
		}
	}
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return 0
	}
	for _, test := range g.Tests {
		v, err := Decode(test.Data)
		if err != nil {
			t.Fatal(err)
		}
		ran++
		if got := s.Validate(v); (got == nil) != test.Valid {
			t.Errorf("%s/%s: valid: %v, violation: %+v\n%s\n%s", name, test.Description, test.Valid, got, g.Schema, test.Data)
		}
	}
	return ran
}

// dated adds the keyword $schema with the given draft to a schema that lacks this keyword.
func dated(schema []byte, draft string) []byte {
	s, is := strings.CutPrefix(strings.TrimSpace(string(schema)), "{")
	if !is || strings.Contains(s, `"$schema"`) {
		return schema
	}
	uri := map[string]string{
		"draft7": "http://json-schema.org/draft-07/schema#", "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
		"draft2020-12": "https://json-schema.org/draft/2020-12/schema",
	}[draft]
	comma := ","
	if strings.TrimSpace(s) == "}" {
		comma = ""
	}
	return fmt.Appendf(nil, `{"$schema":%q%s%s`, uri, comma, s)
}
