package catalog

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"retort/internal/catalog/sanitize"
	"retort/internal/core"
)

const (
	maxProse   = 64 << 10 // bytes of all prose of one definition
	maxFlags   = 64       // of one definition
	maxExcerpt = 120      // bytes
)

// cleaner removes suspicious text from a definition before a model sees it, and flags what it removes. Every string
// of a definition goes through text or name. A name or value that calls need cannot be removed: if one is rejected,
// the whole definition is withheld.
type cleaner struct {
	scanner  *sanitize.Scanner
	where    [][]byte // path to the value being examined
	flags    []core.Flag
	size     int    // bytes of prose so far
	withheld string // where the first name or value is that does not pass; "" if all do
}

// clean reduces t to what a model may see. d is its parsed definition.
func clean(t *core.Tool, d node, s *sanitize.Scanner) {
	c := cleaner{scanner: s}
	c.at([]byte("name"), func() { c.need(t.Name) })
	c.at([]byte("title"), func() { t.Title = c.text(t.Title) })
	c.at([]byte("description"), func() { t.Description = c.text(t.Description) })
	c.part(d, "inputSchema", &t.InputSchema)
	c.part(d, "outputSchema", &t.OutputSchema)
	for i, key := range d.keys {
		name := inside(key)
		again := slices.ContainsFunc(d.keys[i+1:], func(later []byte) bool { return bytes.Equal(inside(later), name) })
		if again || !readElsewhere(string(name), d.items[i]) {
			c.at(name, func() { c.passes(d.items[i]) }) // of a key that is written twice the last counts here
		}
	}
	slices.SortStableFunc(c.flags, func(a, b core.Flag) int { return strings.Compare(a.Where, b.Where) })
	t.Flags, t.Withheld = c.flags, c.withheld
}

// readElsewhere reports whether a member of a definition needs no cleaning here: it has its proper type and is read
// elsewhere, or it is icons, which is not text.
func readElsewhere(name string, item node) bool {
	switch name {
	case "name", "title", "description":
		return item.kind() == '"'
	case "inputSchema", "outputSchema":
		return item.kind() == '{'
	}
	return name == "icons"
}

// part cleans one schema of a definition.
func (c *cleaner) part(d node, key string, schema *json.RawMessage) {
	if n, ok := d.member(key); ok && len(*schema) > 0 {
		c.at([]byte(key), func() { *schema = c.schema(n) })
	}
}

// showable reports whether a model may see every name in a schema that was learned.
func (c *Catalog) showable(schema json.RawMessage) bool {
	look := cleaner{scanner: c.scanner()}
	look.schema(parse(schema, maxDepth))
	return len(look.flags) == 0
}

// cleanText returns a text without suspicious parts.
func cleanText(where, text string, s *sanitize.Scanner) (string, []core.Flag) {
	c := cleaner{scanner: s, where: [][]byte{[]byte(where)}}
	return c.text(text), c.flags
}

func (c *cleaner) at(step []byte, f func()) {
	c.where = append(c.where, step)
	f()
	c.where = c.where[:len(c.where)-1]
}

func (c *cleaner) flag(text string, found []sanitize.Finding) {
	for _, f := range found {
		if len(c.flags) == maxFlags {
			return
		}
		c.flags = append(c.flags, core.Flag{Rule: f.Rule, Reason: f.Reason, Where: core.Legible(string(bytes.Join(c.where, []byte(".")))), Text: excerpt(text[f.Start:f.End])})
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
	return core.Legible(strings.Join(strings.Fields(text), " "))
}

// text returns prose without suspicious parts.
func (c *cleaner) text(text string) string {
	if text == sanitize.Mark {
		return text
	}
	if c.size += len(text); c.size > maxProse {
		c.flag(text, []sanitize.Finding{{Rule: "long", Reason: "the definition has more text than any has to have", End: len(text)}})
		return sanitize.Mark
	}
	cleaned, found := c.scanner.Clean(text)
	c.flag(text, found)
	return cleaned
}

// name reports whether a model may see a name or value, and flags what is wrong with it. Words that are separated
// only by capitals are also checked as separate words.
func (c *cleaner) name(text string) bool {
	found := c.scanner.Scan(text)
	if apart := spaced(text); len(found) == 0 && apart != "" {
		if found = c.scanner.Scan(apart); len(found) > 0 {
			found = found[:1]
			found[0].Start, found[0].End = 0, len(text)
		}
	}
	c.flag(text, found)
	return len(found) == 0
}

// need withholds the definition if a name or value that calls need is rejected.
func (c *cleaner) need(text string) {
	if !c.name(text) {
		c.withhold()
	}
}

func (c *cleaner) withhold() {
	if c.withheld == "" {
		c.withheld = core.Legible(string(bytes.Join(c.where, []byte("."))))
	}
}

// passes reports whether a model may see every name and text in a value, and flags what is wrong.
func (c *cleaner) passes(n node) bool {
	passes := true
	for _, key := range n.keys {
		passes = c.name(string(inside(key))) && passes
	}
	for _, item := range n.items {
		passes = c.passes(item) && passes
	}
	if text, ok := unquote(n.raw); ok {
		passes = c.name(text) && passes
	}
	return passes
}

// needed returns a value that calls need unchanged. If it is rejected, the definition is withheld.
func (c *cleaner) needed(n node) []byte {
	if !c.passes(n) {
		c.withhold()
	}
	return n.raw
}

// pattern checks a regular expression, in which brackets are not links and letters are not text.
func (c *cleaner) pattern(n node) []byte {
	text, _ := unquote(n.raw)
	found := slices.DeleteFunc(c.scanner.Scan(text), func(f sanitize.Finding) bool { return slices.Contains(inPatterns, f.Rule) })
	if c.flag(text, found); len(found) > 0 {
		c.withhold()
	}
	return n.raw
}

// inPatterns lists the rules that do not apply to regular expressions.
var inPatterns = []string{"link", "encoded", "homoglyph"}

// spaced splits a name like ignoreThis into words. It returns "" if the text is not such a name or too short.
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

// part says what a member of a schema contains.
type part uint8

const (
	partOther   part = iota // undefined keywords; advice
	partSchema              // a schema, or a list of some
	partSchemas             // schemas by name
	partProse               // text for readers
	partExample             // values that nothing depends on
	partNeeded              // names and values that calls need
	partPattern             // a regular expression
)

func partOf(keyword string) part {
	switch keyword {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
		return partSchemas
	case "items", "additionalProperties", "additionalItems", "not", "if", "then", "else", "contains", "propertyNames",
		"unevaluatedItems", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "prefixItems", "contentSchema":
		return partSchema
	case "description", "title", "$comment", "format", "contentMediaType", "contentEncoding", "markdownDescription":
		return partProse
	case "default", "examples", "example":
		return partExample
	case "enum", "const", "required", "dependentRequired", "type", "$ref", "$id", "id", "$anchor", "$schema",
		"$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$vocabulary":
		return partNeeded
	case "pattern":
		return partPattern
	}
	return partOther
}

// schema returns the schema with its prose cleaned, or the same bytes if there is nothing to clean.
func (c *cleaner) schema(n node) json.RawMessage {
	switch n.kind() {
	case '[':
		return n.rewritten(func(i int) []byte { return c.schema(n.items[i]) })
	case '{':
		return n.rewritten(func(i int) []byte { return c.member(n, i) })
	case '"': // as in dependencies
		return c.needed(n)
	}
	return n.raw
}

// member returns the cleaned value of one schema member, or nil to leave it out.
func (c *cleaner) member(n node, i int) (value []byte) {
	keyword, item := inside(n.keys[i]), n.items[i]
	kind := partOf(string(keyword))
	if kind == partNeeded && item.kind() == '"' && plainType(item.raw) {
		return item.raw
	}
	c.at(keyword, func() { value = c.keyword(string(keyword), kind, item) })
	return value
}

// plainType reports whether a JSON string is one of the types of JSON Schema.
func plainType(raw []byte) bool {
	switch string(raw) {
	case `"string"`, `"object"`, `"array"`, `"number"`, `"integer"`, `"boolean"`, `"null"`:
		return true
	}
	return false
}

func (c *cleaner) keyword(keyword string, kind part, item node) []byte {
	switch kind {
	case partSchema:
		return c.schema(item)
	case partSchemas:
		return c.schemas(item)
	case partProse:
		return c.values(item, c.text)
	case partExample:
		if !c.passes(item) {
			return nil
		}
		return item.raw
	case partNeeded:
		return c.needed(item)
	case partPattern:
		return c.pattern(item)
	}
	return c.unknown(keyword, item)
}

// unknown checks a member that JSON Schema does not define. Text in it is advice and is left out if rejected. If a
// structured value is rejected, the definition is withheld, because a $ref may point to it.
func (c *cleaner) unknown(keyword string, item node) []byte {
	switch ok := c.name(keyword) && c.passes(item); {
	case ok:
		return item.raw
	case item.kind() == '{' || item.kind() == '[':
		c.withhold()
		return item.raw
	}
	return nil
}

// schemas returns n, an object of schemas by name, with each schema cleaned.
func (c *cleaner) schemas(n node) []byte {
	if !n.isObject() {
		return n.raw
	}
	return n.rewritten(func(i int) (value []byte) {
		name := inside(n.keys[i])
		c.at(name, func() {
			c.need(string(name))
			value = c.schema(n.items[i])
		})
		return value
	})
}

// inside returns the contents of a JSON string: without quotes, with escapes decoded.
func inside(quoted []byte) []byte {
	if len(quoted) >= 2 && bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	text, _ := unquote(quoted)
	return []byte(text)
}

// values returns n with f applied to its texts and without members whose name is rejected.
func (c *cleaner) values(n node, f func(string) string) []byte {
	switch n.kind() {
	case '[':
		return n.rewritten(func(i int) []byte { return c.values(n.items[i], f) })
	case '{':
		return n.rewritten(func(i int) []byte {
			if !c.name(string(inside(n.keys[i]))) {
				return nil
			}
			return c.values(n.items[i], f)
		})
	case '"':
		if text, ok := unquote(n.raw); ok {
			if other := f(text); other != text {
				return appendString(nil, other)
			}
		}
	}
	return n.raw
}

// rewritten returns n re-encoded with each item replaced by item(i). A nil value drops the item. If nothing changes,
// it returns the same bytes.
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

// sameText reports whether two texts are equal. In most cases they share their memory.
func sameText(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || bytes.Equal(a, b))
}

// with returns n re-encoded with its items replaced by values. A nil value drops the item.
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

// bare returns a schema without prose: only names, types and values that calls need.
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

// Listed returns a listed resource or prompt as a model may see it, and the flags for what was removed. key names the
// member that identifies the item, which stays unchanged. It returns nil if that member or the name of an argument is
// rejected.
func Listed(item json.RawMessage, key string, s *sanitize.Scanner) (json.RawMessage, []core.Flag) {
	if !json.Valid(item) {
		return item, nil // its reader reports that
	}
	d := parse(item, maxDepth)
	if !d.isObject() {
		return item, nil
	}
	c := cleaner{scanner: s}
	shown := c.listed(d, key)
	switch {
	case len(c.flags) == 0:
		return item, nil
	case c.withheld != "":
		return nil, c.flags
	}
	return shown, c.flags
}

// listed cleans a listed item. If anything was removed, members that are not checked are left out too.
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

// detail returns one cleaned member of a listed item, or nil for a member that is not checked.
func (c *cleaner) detail(name, key string, item node) []byte {
	switch name {
	case key:
		return c.needed(item)
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
	case "icons":
	default:
		c.passes(item)
	}
	return nil
}

// argument cleans a prompt's argument, whose name is needed.
func (c *cleaner) argument(d node) []byte {
	return d.rewritten(func(i int) []byte {
		name := string(inside(d.keys[i]))
		switch name {
		case "name":
			return c.needed(d.items[i])
		case "required":
			return d.items[i].raw
		}
		return c.values(d.items[i], c.text)
	})
}
