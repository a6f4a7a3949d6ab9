package jsonschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// oracle compiles a schema with another JSON Schema library, to which the tests compare this package. It configures
// that library to behave like this package: to assert no formats, load no documents and accept patterns that Go cannot
// compile.
func oracle(raw []byte) (s *jsonschema.Schema, lenient bool, err error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, false, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(closed{})
	c.UseRegexpEngine(func(source string) (jsonschema.Regexp, error) {
		re, err := regexp.Compile(source)
		if err != nil {
			lenient = true
			return anything(source), nil
		}
		return re, nil
	})
	for _, name := range []string{
		"json-pointer", "relative-json-pointer", "uuid", "duration", "period", "ipv4", "ipv6", "hostname", "email", "date",
		"time", "date-time", "uri", "iri", "uri-reference", "iri-reference", "uri-template", "semver",
	} {
		c.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(any) error { return nil }})
	}
	if err := c.AddResource("schema:///input", doc); err != nil {
		return nil, lenient, err
	}
	s, err = c.Compile("schema:///input")
	return s, lenient, err
}

type closed struct{}

func (closed) Load(string) (any, error) { return nil, errors.New("not loaded") }

type anything string

func (anything) MatchString(string) bool { return true }
func (a anything) String() string        { return string(a) }

// inputSchemas returns the tools' input schemas from the test catalogues of real servers, and from those in the
// folder that the environment variable RETORT_CATALOGS names.
func inputSchemas(tb testing.TB) map[string]json.RawMessage {
	tb.Helper()
	files, _ := filepath.Glob("../../pipeline/bindings/testdata/catalog/*.json")
	if folder := os.Getenv("RETORT_CATALOGS"); folder != "" {
		more, _ := filepath.Glob(filepath.Join(folder, "*.json"))
		files = append(files, more...)
	}
	schemas := map[string]json.RawMessage{}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			tb.Fatal(err)
		}
		var listed struct {
			Tools []struct {
				Name         string
				InputSchema  json.RawMessage
				OutputSchema json.RawMessage
			}
		}
		if err := json.Unmarshal(raw, &listed); err != nil {
			tb.Fatalf("%s: %v", f, err)
		}
		for _, tool := range listed.Tools {
			schemas[filepath.Base(f)+" "+tool.Name] = tool.InputSchema
			if tool.OutputSchema != nil {
				schemas[filepath.Base(f)+" "+tool.Name+" output"] = tool.OutputSchema
			}
		}
	}
	if len(schemas) < 20 {
		tb.Fatalf("only %d schemas", len(schemas))
	}
	return schemas
}

// TestAgreesWithTheLibrary checks that this package and another JSON Schema library accept and reject the same values
// for the schemas of real tools.
func TestAgreesWithTheLibrary(t *testing.T) {
	valid, invalid := 0, 0
	schemas := inputSchemas(t)
	for _, name := range sortedKeys(schemas) {
		raw := schemas[name]
		want, lenient, err := oracle(raw)
		if err != nil {
			t.Logf("%s: the library refuses it: %v", name, err)
			continue
		}
		got, err := Compile(raw)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		doc, _ := Decode(raw)
		g := &generator{rand: rand.New(rand.NewPCG(1, 2)), root: doc}
		for i := range 150 {
			value := g.value(doc, 0)
			for range i % 4 {
				value = g.mutate(value)
			}
			if agree(t, got, want, lenient, raw, value) {
				valid++
			} else {
				invalid++
			}
		}
	}
	t.Logf("%d schemas, %d valid values, %d invalid", len(schemas), valid, invalid)
	if min(valid, invalid) < len(schemas)*20 {
		t.Error("too few of one kind: the generator is of no use")
	}
}

func agree(t *testing.T, got *Schema, want *jsonschema.Schema, lenient bool, raw []byte, value any) (valid bool) {
	t.Helper()
	v, err := got.Validate(value), want.Validate(value)
	if (v == nil) != (err == nil) && !(lenient && bytes.Contains(raw, []byte("patternProperties"))) {
		b, _ := json.Marshal(value)
		t.Errorf("schema %s\nvalue %s\nhere: %+v\nlibrary: %v", raw, b, v, err)
	}
	return v == nil
}

// generator creates random values that nearly conform to a schema. Equal seeds give equal values.
type generator struct {
	rand *rand.Rand
	root any
	old  bool // whether the schema has a draft before 2019-09
}

func (g *generator) value(schema any, depth int) any {
	s, ok := schema.(map[string]any)
	if !ok || depth > 6 {
		return g.scalar()
	}
	if ref, ok := s["$ref"].(string); ok {
		return g.value(g.follow(ref), depth+1)
	}
	for _, k := range []string{"anyOf", "oneOf", "allOf"} {
		if list, ok := s[k].([]any); ok && len(list) > 0 && g.rand.IntN(4) > 0 {
			return g.value(list[g.rand.IntN(len(list))], depth+1)
		}
	}
	if list, ok := s["enum"].([]any); ok && len(list) > 0 {
		return list[g.rand.IntN(len(list))]
	}
	if c, ok := s["const"]; ok {
		return c
	}
	kind, _ := s["type"].(string)
	if list, ok := s["type"].([]any); ok && len(list) > 0 {
		kind, _ = list[g.rand.IntN(len(list))].(string)
	}
	if kind == "" && s["properties"] != nil {
		kind = "object"
	}
	return g.typed(kind, s, depth)
}

func (g *generator) typed(kind string, s map[string]any, depth int) any {
	switch kind {
	case "object":
		return g.object(s, depth)
	case "array":
		items := []any{}
		for range g.rand.IntN(4) {
			items = append(items, g.value(s["items"], depth+1))
		}
		return items
	case "string":
		return strings.Repeat("aé7-", g.rand.IntN(12))
	case "integer", "number":
		for _, k := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} {
			if n, ok := s[k].(json.Number); ok && g.rand.IntN(2) == 0 {
				return n
			}
		}
		return g.number()
	case "boolean":
		return g.rand.IntN(2) == 0
	case "null":
		return nil
	}
	return g.scalar()
}

func (g *generator) object(s map[string]any, depth int) any {
	required := stringsIn(s["required"])
	properties, _ := s["properties"].(map[string]any)
	obj := map[string]any{}
	for _, name := range sortedKeys(properties) {
		if slices.Contains(required, name) || g.rand.IntN(3) == 0 {
			obj[name] = g.value(properties[name], depth+1)
		}
	}
	if more, ok := s["additionalProperties"].(map[string]any); ok {
		obj["more"] = g.value(more, depth+1)
	}
	return obj
}

func (g *generator) follow(ref string) any {
	at := g.root
	for _, token := range strings.Split(strings.TrimPrefix(ref, "#"), "/")[1:] {
		obj, _ := at.(map[string]any)
		at = obj[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)]
	}
	return at
}

func (g *generator) number() json.Number {
	numbers := []json.Number{"0", "1", "-1", "1.0", "2.5", "10", "100", "1e2", "9007199254740993", "0.1", "1000000", "-0.0", "12345678901234567890.5"}
	return numbers[g.rand.IntN(len(numbers))]
}

func (g *generator) scalar() any {
	return []any{nil, true, "", "x", g.number(), []any{}, map[string]any{}, []any{"a", "a"}}[g.rand.IntN(8)]
}

// mutate changes one random part of a value and returns the value.
func (g *generator) mutate(v any) any {
	switch v := v.(type) {
	case map[string]any:
		names := sortedKeys(v)
		if len(names) == 0 || g.rand.IntN(4) == 0 {
			v["unknown"] = g.scalar()
			return v
		}
		name := names[g.rand.IntN(len(names))]
		if g.rand.IntN(4) == 0 {
			delete(v, name)
		} else {
			v[name] = g.mutate(v[name])
		}
		return v
	case []any:
		if len(v) == 0 || g.rand.IntN(3) == 0 {
			return append(v, g.scalar())
		}
		i := g.rand.IntN(len(v))
		v[i] = g.mutate(v[i])
		return v
	}
	return g.scalar()
}

// largeExponent matches numbers with an exponent of three or more digits. The comparison library takes very long for
// such numbers, or fails.
var largeExponent = regexp.MustCompile(`[eE][+-]?\d{3,}`)

func FuzzValidate(f *testing.F) {
	for _, s := range hostile() {
		if len(s.schema)+len(s.value) < 10_000 {
			f.Add(s.schema, s.value)
		}
	}
	f.Add(`{"type":"object","properties":{"a":{"minimum":1.5}},"required":["a"],"additionalProperties":false}`, `{"a":1,"b":2}`)
	f.Add(`{"$defs":{"a":{"$anchor":"x","items":{"$ref":"#x"}}},"$ref":"#/$defs/a","unevaluatedItems":false}`, `[[],[1]]`)
	f.Add(`{"anyOf":[{"properties":{"a":true}},{"patternProperties":{"^b":{"multipleOf":0.1}}}],"unevaluatedProperties":false}`, `{"a":1,"b":0.3}`)
	f.Add(`{"$schema":"http://json-schema.org/draft-07/schema#","if":{"const":1.0},"else":{"uniqueItems":true},"contains":{"enum":[2]}}`, `[1,2,1.0]`)
	f.Fuzz(func(t *testing.T, schema, value string) {
		s, err := Compile([]byte(schema))
		v, bad := Decode([]byte(value))
		if err != nil || bad != nil {
			return
		}
		e := evaluator{dynamic: s.dynamic}
		e.applyNode(s.root, v, nil)
		if words := s.Validate(v); words != nil && (words.String() == "" || e.exhausted) {
			t.Errorf("%+v", words)
		}
		if e.steps > 10_000 || e.exhausted || len(schema)+len(value) > 4_000 || largeExponent.MatchString(schema+value) {
			return
		}
		if want, lenient, err := oracle([]byte(schema)); err == nil {
			agree(t, s, want, lenient, []byte(schema), v)
		}
	})
}
