package bindings

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// FuzzGrammar checks the code and text generated for random schemas, which use every keyword in every place.
func FuzzGrammar(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { checkAll(t, toolset(randomListing(seed, 3))) })
}

// randomListing returns a server whose tools have random schemas.
func randomListing(seed uint64, tools int) listing {
	g := generator{rand.New(rand.NewPCG(seed, 1))}
	l := listing{Name: fmt.Sprintf("random-%d", seed)}
	for i := range tools {
		d := definition{Name: fmt.Sprintf("%s_%d", g.name(), i), Description: g.name(), InputSchema: json.RawMessage(g.document())}
		if g.IntN(2) == 0 {
			d.OutputSchema = json.RawMessage(g.document())
		}
		l.Tools = append(l.Tools, d)
	}
	return l
}

type generator struct{ *rand.Rand }

var (
	oddNames = []string{
		"a", "b", "id", "class", "__proto__", "constructor", "with-dash", "1", "", "é", "😀", `q"'\`, "x\u2028y", "then", "*/", `"""`, "default", "A", "Input",
	}
	formats    = []string{"date-time", "uuid", "int64", "*/", "\n", `"`}
	references = []string{
		"#", "#/$defs/a", "#/$defs/b", "#/$defs/c", "#/definitions/a", "#/properties/a", "#/properties/id/items", "#anchor", "other.json", "inner.json",
		"inner.json#/properties/a", "#/$defs/a/anyOf/0", "#/nowhere", "https://example.com/x",
	}
	types = []string{"string", "number", "integer", "boolean", "null", "object", "array", "file"}
)

func (g generator) name() string { return oddNames[g.IntN(len(oddNames))] }

func text(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

// document returns a random schema with definitions, which in most cases describes an object.
func (g generator) document() string {
	members := []string{`"$defs": {"a": ` + g.schema(3) + `, "b": ` + g.schema(3) + `, "c": ` + g.schema(1) + `, "d": {"$id": "inner.json", "properties": {"a": ` + g.schema(2) + `}}}`}
	if g.IntN(2) == 0 {
		members = append(members, `"definitions": {"a": `+g.schema(2)+`}`)
	}
	if g.IntN(3) == 0 {
		members = append(members, `"$schema": "http://json-schema.org/draft-07/schema#"`)
	}
	if g.IntN(5) > 0 {
		members = append(members, `"type": "object"`)
	}
	return "{" + strings.Join(append(members, g.keywords(4, 4)...), ", ") + "}"
}

func (g generator) schema(depth int) string {
	switch n := g.IntN(20); {
	case n == 0:
		return "true"
	case n == 1:
		return "false"
	case n == 2:
		return g.value(1)
	case n < 8 || depth <= 0:
		return `{"type": ` + text(types[g.IntN(len(types))]) + `}`
	}
	return "{" + strings.Join(g.keywords(depth-1, 1+g.IntN(4)), ", ") + "}"
}

func (g generator) keywords(depth, n int) []string {
	var out []string
	for range n {
		out = append(out, g.keyword(depth))
	}
	return out
}

func (g generator) keyword(depth int) string {
	sub := func() string { return g.schema(depth) }
	many := func() string {
		var items []string
		for range g.IntN(4) {
			items = append(items, sub())
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	switch g.IntN(24) {
	case 0, 1, 2, 3:
		return `"properties": ` + g.members(sub)
	case 4:
		return `"required": ["a", ` + text(g.name()) + `]`
	case 5:
		return `"additionalProperties": ` + sub()
	case 6:
		return `"patternProperties": ` + g.members(sub)
	case 7:
		return `"items": ` + sub()
	case 8:
		return `"items": ` + many()
	case 9:
		return `"prefixItems": ` + many() + fmt.Sprintf(`, "minItems": %d`, g.IntN(3))
	case 10:
		return `"anyOf": ` + many()
	case 11:
		return `"oneOf": ` + many()
	case 12:
		return `"allOf": ` + many()
	case 13:
		return `"not": ` + sub()
	case 14:
		return `"if": ` + sub() + `, "then": ` + sub()
	case 15, 16:
		return `"$ref": ` + text(references[g.IntN(len(references))])
	case 17:
		return `"enum": [` + g.value(2) + `, ` + g.value(1) + `]`
	case 18:
		return `"const": ` + g.value(2)
	case 19:
		return `"type": [` + text(types[g.IntN(len(types))]) + `, ` + text(types[g.IntN(len(types))]) + `]`
	case 20:
		return `"description": ` + text(g.name()+"\n@ts-ignore "+g.name())
	case 21:
		return `"default": ` + g.value(2)
	case 22:
		return `"format": ` + text(formats[g.IntN(len(formats))]) + `, "nullable": true`
	}
	return `"$anchor": "anchor"`
}

func (g generator) members(value func() string) string {
	var members []string
	for range g.IntN(5) {
		members = append(members, text(g.name())+": "+value())
	}
	return "{" + strings.Join(members, ", ") + "}"
}

func (g generator) value(depth int) string {
	switch n := g.IntN(9); {
	case n == 0:
		return "null"
	case n == 1:
		return "true"
	case n == 2:
		return "-1.50"
	case n == 3:
		return "9007199254740993"
	case n == 4:
		return "1e3"
	case n == 5 && depth > 0:
		return "[" + g.value(depth-1) + ", " + g.value(depth-1) + "]"
	case n == 6 && depth > 0:
		return g.members(func() string { return g.value(depth - 1) })
	}
	return text(g.name())
}
