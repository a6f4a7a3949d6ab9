package index

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadSchema(t *testing.T) {
	for _, c := range []struct{ name, schema, names, prose string }{
		{"none", ``, "", ""},
		{"no object", `true`, "", ""},
		{"list", `[1,2]`, "", ""},
		{
			"plain", `{"type":"object","description":"about it","properties":{"owner":{"type":"string","description":"who"},"n":{"title":"How many"}},"required":["owner"]}`,
			"owner n", "about it|who|How many",
		},
		{"nested", `{"properties":{"a":{"items":{"properties":{"b":{"description":"inner"}}}}}}`, "a b", "inner"},
		{"definitions", `{"$defs":{"X":{"properties":{"c":{}}}},"properties":{"x":{"$ref":"#/$defs/X"}}}`, "c x", ""},
		{"alternatives", `{"anyOf":[{"properties":{"p":{}}},{"properties":{"q":{"enum":["red","blue"]}}}]}`, "p q", "red|blue"},
		{"parameters called like keywords", `{"properties":{"properties":{"description":"d"},"enum":{"type":"string"},"description":{"description":"e"}}}`, "properties enum description", "d|e"},
		{"data is not read", `{"properties":{"a":{"default":{"description":"no"},"const":"no","examples":[{"title":"no"}]}}}`, "a", ""},
		{"escapes", `{"properties":{"a\u0062":{"description":"x\ny \"z\""}}}`, "ab", "x\ny \"z\""},
		{"broken", `{"properties":{"a":{"description":"kept"},"b":`, "a b", "kept"},
		{"broken string", `{"properties":{"a":{"description":"cut`, "a", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := readSchema([]byte(c.schema))
			if diff := cmp.Diff([2]string{c.names, c.prose}, [2]string{strings.Join(got.names, " "), strings.Join(got.prose, "|")}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadSchemaIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"properties":{"first":{}`)
	for range 5_000 {
		b.WriteString(`,"p":{"description":"` + strings.Repeat("long ", 100) + `"}`)
	}
	b.WriteString(`}}`)
	got := readSchema([]byte(b.String()))
	total := 0
	for _, p := range got.prose {
		total += len(p)
	}
	if len(got.names) != maxParams || total == 0 || total > maxProse {
		t.Errorf("%d names and %d bytes", len(got.names), total)
	}
	deep := strings.Repeat(`{"properties":{"a":`, 100_000)
	if got := readSchema([]byte(deep)); len(got.names) == 0 || len(got.names) > maxDepth {
		t.Errorf("%d names of a deep schema", len(got.names))
	}
}

func FuzzReadSchema(f *testing.F) {
	f.Add([]byte(`{"properties":{"a":{"description":"x","enum":["p","q"]}},"$defs":{},"anyOf":[{},true,null,1.5e3]}`))
	f.Add([]byte(`{"properties":{"\u0061":{}}`))
	f.Add([]byte(`[[[[{"title":"`))
	f.Fuzz(func(t *testing.T, schema []byte) {
		got := readSchema(schema)
		if len(got.names) > maxParams || got.bytes > 4*maxProse {
			t.Fatalf("%d names, %d bytes", len(got.names), got.bytes)
		}
		var flat struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if json.Unmarshal(schema, &flat) == nil && len(flat.Properties) > 0 && len(got.names) == 0 {
			var exact map[string]json.RawMessage
			if json.Unmarshal(schema, &exact); exact["properties"] != nil {
				t.Fatalf("no names found in %s", schema)
			}
		}
	})
}
