package catalog

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"retort/internal/catalog/prose"
	"retort/internal/run"
)

const (
	maxProse   = 64 << 10 // bytes of all prose of one definition
	maxFlags   = 64       // of one definition
	maxExcerpt = 120      // bytes
)

// cleaner makes of a definition what a model may see of it, and flags what it takes
// out. Names and values that calls need are flagged and stay.
type cleaner struct {
	scanner *prose.Scanner
	where   [][]byte // the way to what is looked at
	flags   []run.Flag
	size    int // bytes of prose so far
}

// clean makes t what a model may see of it. d is its definition, parsed as deep as it is.
func clean(t *run.Tool, d node, s *prose.Scanner) {
	c := cleaner{scanner: s}
	c.at([]byte("name"), func() { c.name(t.Name) })
	c.at([]byte("title"), func() { t.Title = c.text(t.Title) })
	c.at([]byte("description"), func() { t.Description = c.text(t.Description) })
	c.part(d, "inputSchema", &t.InputSchema)
	c.part(d, "outputSchema", &t.OutputSchema)
	slices.SortStableFunc(c.flags, func(a, b run.Flag) int { return strings.Compare(a.Where, b.Where) })
	t.Flags = c.flags
}

// part cleans one schema of a definition.
func (c *cleaner) part(d node, key string, schema *json.RawMessage) {
	if n, ok := d.member(key); ok && len(*schema) > 0 {
		c.at([]byte(key), func() { *schema = c.schema(n) })
	}
}

// cleanText is one text that a model may see.
func cleanText(where, text string, s *prose.Scanner) (string, []run.Flag) {
	c := cleaner{scanner: s, where: [][]byte{[]byte(where)}}
	return c.text(text), c.flags
}

func (c *cleaner) at(step []byte, f func()) {
	c.where = append(c.where, step)
	f()
	c.where = c.where[:len(c.where)-1]
}

func (c *cleaner) flag(text string, found []prose.Finding) {
	for _, f := range found {
		if len(c.flags) == maxFlags {
			return
		}
		c.flags = append(c.flags, run.Flag{Rule: f.Rule, Reason: f.Reason, Where: run.Legible(string(bytes.Join(c.where, []byte(".")))), Text: excerpt(text[f.Start:f.End])})
	}
}

func excerpt(text string) string {
	if len(text) > maxExcerpt {
		end := maxExcerpt
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + "…"
	}
	return run.Legible(strings.Join(strings.Fields(text), " "))
}

// text is prose without what does not belong there.
func (c *cleaner) text(text string) string {
	if text == prose.Mark {
		return text
	}
	if c.size += len(text); c.size > maxProse {
		c.flag(text, []prose.Finding{{Rule: "long", Reason: "the definition has more text than any has to have", End: len(text)}})
		return prose.Mark
	}
	cleaned, found := c.scanner.Clean(text)
	c.flag(text, found)
	return cleaned
}

// name flags a name or value, which is also read with the words apart that are only
// told apart by capitals.
func (c *cleaner) name(text string) {
	found := c.scanner.Scan(text)
	if apart := spaced(text); len(found) == 0 && apart != "" && len(c.scanner.Scan(apart)) > 0 {
		found = c.scanner.Scan(apart)[:1]
		found[0].Start, found[0].End = 0, len(text)
	}
	c.flag(text, found)
}

// spaced is a name like ignoreThis as words, "" for a name that is none or short.
func spaced(name string) string {
	capitals := 0
	for i := 1; i < len(name); i++ {
		if name[i] <= ' ' || name[i] >= utf8.RuneSelf {
			return ""
		}
		if 'A' <= name[i] && name[i] <= 'Z' {
			capitals++
		}
	}
	if capitals < 2 || len(name) < 12 {
		return ""
	}
	var words []byte
	for i := range len(name) {
		if i > 0 && 'A' <= name[i] && name[i] <= 'Z' && 'a' <= name[i-1] && name[i-1] <= 'z' {
			words = append(words, ' ')
		}
		words = append(words, name[i])
	}
	return string(words)
}

// What the members of a schema are.
type part uint8

const (
	partOther   part = iota
	partSchema       // a schema, or a list of some
	partSchemas      // schemas by name
	partProse        // text for whoever reads it
	partExample      // values that nothing depends on
	partValue        // values that calls need
)

func partOf(keyword string) part {
	switch keyword {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
		return partSchemas
	case "items", "additionalProperties", "additionalItems", "not", "if", "then", "else", "contains", "propertyNames",
		"unevaluatedItems", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "prefixItems", "contentSchema":
		return partSchema
	case "description", "title", "$comment", "format", "contentMediaType", "markdownDescription":
		return partProse
	case "default", "examples", "example":
		return partExample
	case "enum", "const":
		return partValue
	}
	return partOther
}

// schema is a schema with its prose cleaned: the same bytes if there is nothing to clean.
func (c *cleaner) schema(n node) json.RawMessage {
	switch n.kind() {
	case '[':
		return n.rewritten(func(i int) []byte { return c.schema(n.items[i]) })
	case '{':
		return n.rewritten(func(i int) []byte { return c.member(n, i) })
	}
	return n.raw
}

// member is the cleaned value of one member of a schema.
func (c *cleaner) member(n node, i int) (value []byte) {
	keyword, item := inside(n.keys[i]), n.items[i]
	kind := partOf(string(keyword))
	if kind == partOther && item.kind() != '{' && item.kind() != '[' {
		return item.raw
	}
	c.at(keyword, func() {
		switch kind {
		case partSchema:
			value = c.schema(item)
		case partSchemas:
			value = c.schemas(item)
		case partProse, partExample:
			value = c.values(item, c.text)
		case partValue:
			value = c.values(item, func(s string) string { c.name(s); return s })
		default:
			value = item.raw
		}
	})
	return value
}

// schemas is an object of schemas by name.
func (c *cleaner) schemas(n node) []byte {
	if !n.isObject() {
		return n.raw
	}
	return n.rewritten(func(i int) (value []byte) {
		name := inside(n.keys[i])
		c.at(name, func() {
			c.name(string(name))
			value = c.schema(n.items[i])
		})
		return value
	})
}

// inside is a JSON string without quotes and escapes.
func inside(quoted []byte) []byte {
	if len(quoted) >= 2 && bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	text, _ := unquote(quoted)
	return []byte(text)
}

// values are JSON values with their texts as f makes them.
func (c *cleaner) values(n node, f func(string) string) []byte {
	switch n.kind() {
	case '[', '{':
		for _, key := range n.keys {
			name, _ := unquote(key)
			c.name(name)
		}
		return n.rewritten(func(i int) []byte { return c.values(n.items[i], f) })
	case '"':
		if text, ok := unquote(n.raw); ok {
			if other := f(text); other != text {
				return appendString(nil, other)
			}
		}
	}
	return n.raw
}

// rewritten is an array or object with its items as item makes them, nil for one that
// is left out. If all are what they were, it is the same bytes.
func (n node) rewritten(item func(i int) []byte) []byte {
	var values [][]byte // nil as long as nothing is another
	for i := range n.items {
		value := item(i)
		if values == nil && sameText(value, n.items[i].raw) {
			continue
		}
		if values == nil {
			values = make([][]byte, len(n.items))
			for j := range i {
				values[j] = n.items[j].raw
			}
		}
		values[i] = value
	}
	if values == nil {
		return n.raw
	}
	return n.with(values)
}

// sameText reports whether two texts are equal; mostly they are one.
func sameText(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || bytes.Equal(a, b))
}

// with is an array or object with other items; nil leaves one out.
func (n node) with(values [][]byte) []byte {
	text := []byte{n.raw[0]}
	for i, value := range values {
		if value == nil {
			continue
		}
		if n.keys != nil {
			text = append(append(text, n.keys[i]...), ':')
		}
		text = append(append(text, value...), ',')
	}
	return end(text, n.raw[0]+2) // ] and } follow [ and { by two
}

// bare is a schema without any prose: names, types and values that calls need.
func bare(n node) []byte {
	switch n.kind() {
	case '[':
		return n.rewritten(func(i int) []byte { return bare(n.items[i]) })
	case '{':
		return n.rewritten(func(i int) []byte {
			keyword, _ := unquote(n.keys[i])
			item := n.items[i]
			switch partOf(keyword) {
			case partProse, partExample:
				if text, ok := unquote(item.raw); ok && keyword == "format" && len(text) < 32 && !strings.ContainsAny(text, " \n") {
					return item.raw
				}
				return nil
			case partSchema:
				return bare(item)
			case partSchemas:
				return item.rewritten(func(j int) []byte { return bare(item.items[j]) })
			}
			return item.raw
		})
	}
	return n.raw
}

// Offered is the definition of a tool as it was received, without what its flags say does not
// belong into it. Members that the pin does not cover are left out, since a server could change
// them unseen.
func Offered(t *run.Tool) json.RawMessage {
	d := parse(t.Raw, maxDepth)
	clean := map[string]any{"title": t.Title, "description": t.Description, "inputSchema": t.InputSchema, "outputSchema": t.OutputSchema}
	return d.rewritten(func(i int) []byte {
		key, _ := unquote(d.keys[i])
		switch value, ok := clean[key]; {
		case !slices.Contains(pinned(), key) || d.repeats(i, key):
			return nil
		case len(t.Flags) == 0 || key == "name":
			return d.items[i].raw
		case ok:
			return offeredPart(value)
		case key == "execution":
			return d.items[i].raw
		}
		return nil // nobody has looked into it
	})
}

// repeats reports whether a later member of an object has the key of the member i.
func (n node) repeats(i int, key string) bool {
	return slices.ContainsFunc(n.keys[i+1:], func(later []byte) bool { text, _ := unquote(later); return text == key })
}

// offeredPart is a cleaned part of a definition as JSON; nil if nothing is left of it.
func offeredPart(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil || string(text) == "null" || string(text) == `""` {
		return nil
	}
	return text
}

// Listed is one thing that a server lists beside its tools, a resource or a prompt, as a model may
// see it, and what was found in it. key is the member by which it is used, which stays as it is.
func Listed(item json.RawMessage, key string, s *prose.Scanner) (json.RawMessage, []run.Flag) {
	if !json.Valid(item) {
		return item, nil // who reads it says so
	}
	d := parse(item, maxDepth)
	if !d.isObject() {
		return item, nil
	}
	c := cleaner{scanner: s}
	shown := c.listed(d, key)
	if len(c.flags) == 0 {
		return item, nil
	}
	return shown, c.flags
}

// listed is such a thing cleaned. If there was anything to clean, what nobody has looked into is
// left out.
func (c *cleaner) listed(d node, key string) []byte {
	values := make([][]byte, len(d.items))
	for i, item := range d.items {
		name := inside(d.keys[i])
		c.at(name, func() { values[i] = c.detail(string(name), key, item) })
	}
	if len(c.flags) == 0 {
		return d.raw
	}
	return d.with(values)
}

// detail is one member of such a thing; nil for what nobody looks into.
func (c *cleaner) detail(name, key string, item node) []byte {
	switch name {
	case key:
		return c.values(item, func(s string) string { c.name(s); return s })
	case "name", "title", "description", "mimeType":
		return c.values(item, c.text)
	case "size":
		return item.raw
	case "arguments": // of a prompt
		return item.rewritten(func(i int) []byte {
			if !item.items[i].isObject() {
				return item.items[i].raw
			}
			return c.argument(item.items[i])
		})
	}
	return nil
}

// argument is an argument of a prompt, of which the name is needed.
func (c *cleaner) argument(d node) []byte {
	return d.rewritten(func(i int) []byte {
		name := string(inside(d.keys[i]))
		switch name {
		case "name":
			return c.values(d.items[i], func(s string) string { c.name(s); return s })
		case "required":
			return d.items[i].raw
		}
		return c.values(d.items[i], c.text)
	})
}
