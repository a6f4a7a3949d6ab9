package jsonschema

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestRandomSchemas checks that this package and another JSON Schema library accept and reject the same values for
// random schemas.
func TestRandomSchemas(t *testing.T) {
	compiled, valid, invalid := 0, 0, 0
	for seed := range uint64(2_500) {
		g := &generator{rand: rand.New(rand.NewPCG(seed, 3))}
		doc := g.document()
		raw, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		g.root, _ = Decode(raw)
		got, err := Compile(raw)
		want, lenient, bad := oracle(raw)
		if bad != nil {
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		compiled++
		for range 12 {
			value := g.mutate(g.value(g.root, 0))
			e := evaluator{dynamic: got.dynamic}
			if e.applyNode(got.root, value, nil); e.exhausted {
				continue // a circle: the library calls it an error of the value
			}
			if agree(t, got, want, lenient, raw, value) {
				valid++
			} else {
				invalid++
			}
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d schemas, %d valid values, %d invalid", compiled, valid, invalid)
	if compiled < 1_500 || min(valid, invalid) < 5_000 {
		t.Errorf("too few: %d schemas, %d valid values, %d invalid", compiled, valid, invalid)
	}
}

func (g *generator) pick(list ...any) any { return list[g.rand.IntN(len(list))] }

func (g *generator) document() any {
	doc, ok := g.schema(0).(map[string]any)
	if !ok {
		return true
	}
	doc["$defs"] = map[string]any{"a": g.schema(1), "b": g.schema(1)}
	doc["definitions"] = map[string]any{"c": g.schema(1)}
	if draft := g.pick("", "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema",
		"https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-04/schema#"); draft != "" {
		doc["$schema"] = draft
		g.old = strings.Contains(draft.(string), "draft-0")
		g.withoutSiblings(doc)
	}
	return doc
}

// withoutSiblings removes the keyword const from every schema of an old draft that also has a $ref. Drafts before
// 2019-09 ignore the siblings of a $ref, but the library used for comparison does not ignore const.
func (g *generator) withoutSiblings(v any) {
	switch v := v.(type) {
	case map[string]any:
		if v["$ref"] != nil && g.old {
			delete(v, "const")
		}
		for _, sub := range v {
			g.withoutSiblings(sub)
		}
	case []any:
		for _, sub := range v {
			g.withoutSiblings(sub)
		}
	}
}

func (g *generator) schema(depth int) any {
	if depth > 3 || g.rand.IntN(12) == 0 {
		return g.pick(true, false, map[string]any{}, map[string]any{"type": "integer"}, map[string]any{"type": "string"})
	}
	s := map[string]any{}
	for range 1 + g.rand.IntN(3) {
		g.keyword(s, depth+1)
	}
	return s
}

func (g *generator) list(depth int) []any {
	list := []any{g.schema(depth)}
	for range g.rand.IntN(3) {
		list = append(list, g.schema(depth))
	}
	return list
}

func (g *generator) named(depth int) map[string]any {
	m := map[string]any{}
	for range 1 + g.rand.IntN(2) {
		m[fmt.Sprint(g.pick("a", "b", "unknown"))] = g.schema(depth)
	}
	return m
}

var keywords = []string{
	"$ref", "type", "type", "enum", "const", "minimum", "exclusiveMaximum", "multipleOf", "minLength", "pattern",
	"properties", "properties", "patternProperties", "additionalProperties", "propertyNames", "required", "dependentRequired",
	"dependentSchemas", "dependencies", "items", "items", "prefixItems", "additionalItems", "contains", "minContains",
	"maxContains", "uniqueItems", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "unevaluatedProperties",
	"unevaluatedItems", "minItems", "maxProperties", "$dynamicRef", "$anchor", "$dynamicAnchor",
}

func (g *generator) keyword(s map[string]any, depth int) {
	switch k := keywords[g.rand.IntN(len(keywords))]; k {
	case "$ref":
		s[k] = g.pick("#/$defs/a", "#/$defs/b", "#/definitions/c", "#")
	case "$dynamicRef":
		s[k] = g.pick("#/$defs/a", "#")
	case "$anchor", "$dynamicAnchor":
		s[k] = fmt.Sprintf("n%d", g.rand.Uint32())
	case "type":
		s[k] = g.pick("object", "array", "integer", "number", "string", []any{"null", "boolean"}, []any{"integer", "array"})
	case "enum":
		s[k] = []any{g.scalar(), g.number()}
	case "const":
		s[k] = g.scalar()
	case "minimum", "exclusiveMaximum":
		s[k] = g.number()
	case "multipleOf":
		s[k] = g.pick(json.Number("0.1"), 2, json.Number("2.5"), 7)
	case "minLength", "minItems", "maxProperties", "minContains", "maxContains":
		s[k] = g.rand.IntN(4)
	case "pattern":
		s[k] = g.pick("^a", "é.$", "[0-9]+")
	case "properties", "dependentSchemas":
		s[k] = g.named(depth)
	case "patternProperties":
		s[k] = map[string]any{"^a|n": g.schema(depth)}
	case "required":
		s[k] = []any{g.pick("a", "b", "unknown")}
	case "dependentRequired":
		s[k] = map[string]any{"a": []any{"b"}}
	case "dependencies":
		s[k] = map[string]any{"a": g.schema(depth), "b": []any{"a"}}
	case "uniqueItems":
		s[k] = true
	case "prefixItems", "allOf", "anyOf", "oneOf":
		s[k] = g.list(depth)
	case "items":
		if s[k] = g.schema(depth); g.rand.IntN(4) == 0 {
			s[k] = g.list(depth)
		}
	default:
		s[k] = g.schema(depth)
	}
}
