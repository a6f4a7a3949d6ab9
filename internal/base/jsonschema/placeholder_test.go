package jsonschema

import (
	"encoding/json"
	"testing"
)

func TestPlaceholder(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{``, `{}`},
		{`{`, `{}`},
		{`true`, `{}`},
		{`{"type":"object","properties":{"id":{"type":"integer"},"name":{"type":"string"},"done":{"type":"boolean"}}}`, `{"done":false,"id":0,"name":"(dry run)"}`},
		{`{"type":"array","items":{"type":["null","number"],"exclusiveMinimum":3}}`, `[4]`},
		{`{"type":"array","items":{"type":"string","enum":["open","closed"]},"minItems":2}`, `["open","open"]`},
		{`{"type":"array","maxItems":0,"items":{}}`, `[]`},
		{`{"type":"string","format":"date-time"}`, `"1970-01-01T00:00:00Z"`},
		{`{"type":"string","minLength":12}`, `"(dry run)---"`},
		{`{"type":"string","maxLength":4}`, `"(dry"`},
		{`{"const":12345678901234567890}`, `12345678901234567890`},
		{`{"anyOf":[{"type":"null"},{"$ref":"#/$defs/a~1b"}],"$defs":{"a/b":{"type":"integer","minimum":7}}}`, `7`},
		{`{"allOf":[{"properties":{"a":{"type":"integer"}}},{"properties":{"b":{"type":"boolean"}}}],"type":"object"}`, `{"a":0,"b":false}`},
		{`{"type":"object","required":["x"],"additionalProperties":{"type":"integer"}}`, `{"x":0}`},
		{`{"$ref":"#"}`, `null`},
		{`{"type":"object","properties":{"child":{"$ref":"#"}},"required":["child"]}`, ""}, // ends somewhere
	} {
		if got := PlaceholderFor([]byte(c.schema)); c.want != "" && string(got) != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.schema, got, c.want)
		}
	}
}

// TestPlaceholdersFit checks that the sample values for the input schemas of real tools are valid for those schemas.
func TestPlaceholdersFit(t *testing.T) {
	schemas := inputSchemas(t)
	fit, all := 0, 0
	for _, name := range sortedKeys(schemas) {
		s, err := Compile(schemas[name])
		if err != nil {
			continue
		}
		made := PlaceholderFor(schemas[name])
		value, err := Decode(made)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all++
		if v := s.Validate(value); v != nil {
			t.Logf("%s: %s", name, v)
		} else {
			fit++
		}
	}
	t.Logf("%d of %d fit", fit, all)
	if fit*100 < all*98 {
		t.Errorf("%d of %d fit", fit, all)
	}
}

func FuzzPlaceholder(f *testing.F) {
	f.Add([]byte(`{"type":"array","minItems":1e9,"items":{"$ref":"#"}}`))
	f.Add([]byte(`{"type":"string","minLength":-5,"maxLength":-1}`))
	f.Add([]byte(`{"allOf":[{"$ref":"#/allOf/0"}],"$ref":"#/%zz"}`))
	f.Add([]byte(`{"anyOf":[{"anyOf":[{"$ref":"#"}]}],"properties":1,"required":[1]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if made := PlaceholderFor(raw); !json.Valid(made) || len(made) > len(raw)*100+1<<20 {
			t.Errorf("%q: %d bytes", raw, len(made))
		}
	})
}
