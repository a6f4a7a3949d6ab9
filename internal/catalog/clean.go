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
	maxProse   = 64 << 10 // bytes of all texts for readers in one definition
	maxFlags   = 64       // flags of one definition
	maxExcerpt = 120      // bytes of suspicious text that a flag quotes
)

// definitionCleaner removes suspicious text from a definition before a model sees it, and flags what it removes. A
// name, or a value that calls need, cannot be removed: if one is suspicious, the whole definition is withheld.
type definitionCleaner struct {
	scanner  *sanitize.TextScanner
	where    [][]byte // path to the value being examined
	flags    []core.DefinitionFlag
	size     int    // bytes of texts for readers so far
	withheld string // path of the first suspicious name or needed value; "": none was found
	names    []string
	prose    []string // texts for readers, in the order of the definition
	all      []string // names and texts, in the order of the definition
}

// cleanDefinition removes from the tool t everything that a model must not see. d is the tool's parsed definition.
func cleanDefinition(t *core.Tool, d jsonNode, s *sanitize.TextScanner) {
	c := definitionCleaner{scanner: s}
	c.withinStep([]byte("name"), func() { c.requireName(t.Name) })
	c.withinStep([]byte("title"), func() { t.Title = c.cleanText(t.Title) })
	c.withinStep([]byte("description"), func() { t.Description = c.cleanText(t.Description) })
	c.cleanSchemaPart(d, "inputSchema", &t.InputSchema)
	c.cleanSchemaPart(d, "outputSchema", &t.OutputSchema)
	for i, key := range d.keys {
		name := stringContents(key)
		again := slices.ContainsFunc(d.keys[i+1:], func(later []byte) bool { return bytes.Equal(stringContents(later), name) })
		if again || !isCheckedElsewhere(string(name), d.items[i]) {
			c.withinStep(name, func() { c.acceptsValue(d.items[i]) }) // of a key that is written twice the last counts here
		}
	}
	c.checkTogether(t)
	slices.SortStableFunc(c.flags, func(a, b core.DefinitionFlag) int { return strings.Compare(a.Where, b.Where) })
	t.Flags, t.Withheld = c.flags, c.withheld
}

// isCheckedElsewhere reports whether cleanDefinition can skip a member of a definition, because other code reads
// and cleans it or because it contains no text for models, as "icons" does.
func isCheckedElsewhere(name string, item jsonNode) bool {
	switch name {
	case "name", "title", "description":
		return item.firstByte() == '"'
	case "inputSchema", "outputSchema":
		return item.firstByte() == '{'
	}
	return name == "icons"
}

// cleanSchemaPart cleans one schema of a definition: the input schema or the output schema.
func (c *definitionCleaner) cleanSchemaPart(d jsonNode, key string, schema *json.RawMessage) {
	if n, ok := d.findMember(key); ok && len(*schema) > 0 {
		c.withinStep([]byte(key), func() { *schema = c.cleanSchema(n) })
	}
}

// isShowable reports whether a model may see every name in a schema that was learned from results.
func (c *Catalog) isShowable(schema json.RawMessage) bool {
	look := definitionCleaner{scanner: c.scanner()}
	look.cleanSchema(parseJSON(schema, maxDepth))
	return len(look.flags) == 0
}

// cleanText returns a text without its suspicious parts, such as instructions to a model or hidden characters. It
// also returns a flag for each removed part.
func cleanText(where, text string, s *sanitize.TextScanner) (string, []core.DefinitionFlag) {
	c := definitionCleaner{scanner: s, where: [][]byte{[]byte(where)}}
	return c.cleanText(text), c.flags
}

func (c *definitionCleaner) withinStep(step []byte, f func()) {
	c.where = append(c.where, step)
	f()
	c.where = c.where[:len(c.where)-1]
}

func (c *definitionCleaner) addFlags(text string, found []sanitize.TextFinding) {
	for _, f := range found {
		if len(c.flags) == maxFlags {
			return
		}
		c.flags = append(c.flags, core.DefinitionFlag{
			Rule: f.Rule, Reason: f.Reason, Where: core.EscapeIllegible(string(bytes.Join(c.where, []byte(".")))),
			Text: excerptOf(text[f.Start:f.End]),
		})
	}
}

func excerptOf(text string) string {
	if len(text) > maxExcerpt {
		end := maxExcerpt
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + "…"
	}
	return core.EscapeIllegible(strings.Join(strings.Fields(text), " "))
}

// cleanText returns a text for readers without its suspicious parts, and adds a flag for each removed part.
func (c *definitionCleaner) cleanText(text string) string {
	if text == sanitize.Mark {
		return text
	}
	if c.size += len(text); c.size > maxProse {
		c.addFlags(text, []sanitize.TextFinding{{Rule: "long", Reason: "the definition has more text than any definition needs", End: len(text)}})
		return sanitize.Mark
	}
	cleaned, found := c.scanner.CleanText(text)
	c.addFlags(text, found)
	c.prose, c.all = append(c.prose, cleaned), append(c.all, cleaned)
	return cleaned
}

// acceptsName reports whether a model may see a name or a value. If not, it flags the reason. A name such as
// ignoreThis is also checked as separate words.
func (c *definitionCleaner) acceptsName(text string) bool {
	found := c.scanner.Scan(text)
	if apart := splitName(text); len(found) == 0 && apart != "" {
		if found = c.scanner.Scan(apart); len(found) > 0 {
			found = found[:1]
			found[0].Start, found[0].End = 0, len(text)
		}
	}
	c.addFlags(text, found)
	if len(found) > 0 {
		return false // it is left out, or all of the definition is withheld
	}
	c.names, c.all = append(c.names, text), append(c.all, text)
	return true
}

// requireName withholds the definition if a name or value that calls need is suspicious.
func (c *definitionCleaner) requireName(text string) {
	if !c.acceptsName(text) {
		c.withholdDefinition()
	}
}

func (c *definitionCleaner) withholdDefinition() {
	if c.withheld == "" {
		c.withheld = core.EscapeIllegible(string(bytes.Join(c.where, []byte("."))))
	}
}

// acceptsValue reports whether a model may see every name and text in a value. If not, it flags the suspicious
// ones.
func (c *definitionCleaner) acceptsValue(n jsonNode) bool {
	passes := true
	for _, key := range n.keys {
		passes = c.acceptsName(string(stringContents(key))) && passes
	}
	for _, item := range n.items {
		passes = c.acceptsValue(item) && passes
	}
	if text, ok := unquoteJSON(n.raw); ok {
		passes = c.acceptsName(text) && passes
	}
	return passes
}

// cleanNeeded returns a value that calls need, without any change. If the value is suspicious, cleanNeeded withholds
// the whole definition.
func (c *definitionCleaner) cleanNeeded(n jsonNode) []byte {
	if !c.acceptsValue(n) {
		c.withholdDefinition()
	}
	return n.raw
}

// cleanPattern checks a regular expression. Rules about links and letters do not apply, because brackets and single
// letters have another meaning there.
func (c *definitionCleaner) cleanPattern(n jsonNode) []byte {
	text, _ := unquoteJSON(n.raw)
	found := slices.DeleteFunc(c.scanner.Scan(text), func(f sanitize.TextFinding) bool { return slices.Contains(rulesNotInPatterns, f.Rule) })
	if c.addFlags(text, found); len(found) > 0 {
		c.withholdDefinition()
	}
	return n.raw
}

// rulesNotInPatterns lists the rules for suspicious text that are not applied to regular expressions, which a
// schema contains as the value of "pattern". Their brackets, for example, would look like links.
var rulesNotInPatterns = []string{"link", "encoded", "homoglyph"}

// splitName splits a name like ignoreThis into words. It returns "" if the text is not such a name or too short.
func splitName(name string) string {
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

// memberRole says how the value of a schema's member must be cleaned.
type memberRole uint8

const (
	partOther   memberRole = iota // undefined keywords, and advice
	partSchema                    // a schema or a list of schemas
	partSchemas                   // an object that maps names to schemas
	partProse                     // text for readers
	partExample                   // values that no call depends on
	partNeeded                    // names and values that calls need
	partPattern                   // a regular expression
)

func partOf(keyword string) memberRole {
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

// cleanSchema returns the schema with its texts cleaned. It returns the same bytes if nothing had to be removed.
func (c *definitionCleaner) cleanSchema(n jsonNode) json.RawMessage {
	switch n.firstByte() {
	case '[':
		return n.rewriteItems(func(i int) []byte { return c.cleanSchema(n.items[i]) })
	case '{':
		return n.rewriteItems(func(i int) []byte { return c.cleanMember(n, i) })
	case '"': // as in dependencies
		return c.cleanNeeded(n)
	}
	return n.raw
}

// cleanMember returns the cleaned value of one schema member, or nil if the member must be left out.
func (c *definitionCleaner) cleanMember(n jsonNode, i int) (value []byte) {
	keyword, item := stringContents(n.keys[i]), n.items[i]
	kind := partOf(string(keyword))
	if kind == partNeeded && item.firstByte() == '"' && plainType(item.raw) {
		return item.raw
	}
	c.withinStep(keyword, func() { value = c.cleanKeyword(string(keyword), kind, item) })
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

func (c *definitionCleaner) cleanKeyword(keyword string, kind memberRole, item jsonNode) []byte {
	switch kind {
	case partSchema:
		return c.cleanSchema(item)
	case partSchemas:
		return c.cleanSchemaMap(item)
	case partProse:
		return c.cleanTexts(item, c.cleanText)
	case partExample:
		if !c.acceptsValue(item) {
			return nil
		}
		return item.raw
	case partNeeded:
		return c.cleanNeeded(item)
	case partPattern:
		return c.cleanPattern(item)
	}
	return c.cleanUnknown(keyword, item)
}

// cleanUnknown checks a member that JSON Schema does not define. It drops the member if it is a suspicious text.
// If a structured value is suspicious, it withholds the whole definition, because a $ref may refer to the value.
func (c *definitionCleaner) cleanUnknown(keyword string, item jsonNode) []byte {
	switch ok := c.acceptsName(keyword) && c.acceptsValue(item); {
	case ok:
		return item.raw
	case item.firstByte() == '{' || item.firstByte() == '[':
		c.withholdDefinition()
		return item.raw
	}
	return nil
}

// cleanSchemaMap returns n, an object that maps names to schemas, with each schema cleaned.
func (c *definitionCleaner) cleanSchemaMap(n jsonNode) []byte {
	if !n.isObject() {
		return n.raw
	}
	return n.rewriteItems(func(i int) (value []byte) {
		name := stringContents(n.keys[i])
		c.withinStep(name, func() {
			c.requireName(string(name))
			value = c.cleanSchema(n.items[i])
		})
		return value
	})
}

// stringContents returns the contents of a JSON string: without quotes, with escapes decoded.
func stringContents(quoted []byte) []byte {
	if len(quoted) >= 2 && bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	text, _ := unquoteJSON(quoted)
	return []byte(text)
}

// cleanTexts returns n with each string in it replaced by the result of f. It drops members with suspicious names.
func (c *definitionCleaner) cleanTexts(n jsonNode, f func(string) string) []byte {
	switch n.firstByte() {
	case '[':
		return n.rewriteItems(func(i int) []byte { return c.cleanTexts(n.items[i], f) })
	case '{':
		return n.rewriteItems(func(i int) []byte {
			if !c.acceptsName(string(stringContents(n.keys[i]))) {
				return nil
			}
			return c.cleanTexts(n.items[i], f)
		})
	case '"':
		if text, ok := unquoteJSON(n.raw); ok {
			if other := f(text); other != text {
				return appendString(nil, other)
			}
		}
	}
	return n.raw
}

// rewriteItems returns n with the item at each index i replaced by item(i), or dropped if that is nil. If no item
// changes, it returns the same bytes.
func (n jsonNode) rewriteItems(item func(i int) []byte) []byte {
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
	return n.withValues(values)
}

// sameText reports whether two texts are equal. It is fast in the usual case, in which they share memory.
func sameText(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || bytes.Equal(a, b))
}

// withValues returns n with its items replaced by values. A nil value drops the item.
func (n jsonNode) withValues(values [][]byte) []byte {
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
	return closeBracket(text, n.raw[0]+2) // ] and } follow [ and { by two
}

// stripProse returns a schema without descriptions and other texts for readers. It keeps names, types and the
// values that calls need.
func stripProse(n jsonNode) []byte {
	switch n.firstByte() {
	case '[':
		return n.rewriteItems(func(i int) []byte { return stripProse(n.items[i]) })
	case '{':
		return n.rewriteItems(func(i int) []byte {
			keyword, _ := unquoteJSON(n.keys[i])
			item := n.items[i]
			switch partOf(keyword) {
			case partProse, partExample:
				if text, ok := unquoteJSON(item.raw); ok && keyword == "format" && len(text) < 32 && !strings.ContainsAny(text, " \n") {
					return item.raw
				}
				return nil
			case partSchema:
				return stripProse(item)
			case partSchemas:
				return item.rewriteItems(func(j int) []byte { return stripProse(item.items[j]) })
			}
			return item.raw
		})
	}
	return n.raw
}

// CleanListed returns a resource or prompt from a server's list without suspicious text, and flags for the removed
// text. key is the member that identifies the item; it is never changed. CleanListed returns nil if that member or
// the name of an argument is suspicious.
func CleanListed(item json.RawMessage, key string, s *sanitize.TextScanner) (json.RawMessage, []core.DefinitionFlag) {
	if !json.Valid(item) {
		return item, nil // its reader reports that
	}
	d := parseJSON(item, maxDepth)
	if !d.isObject() {
		return item, nil
	}
	c := definitionCleaner{scanner: s}
	shown := c.cleanListedItem(d, key)
	switch {
	case len(c.flags) == 0:
		return item, nil
	case c.withheld != "":
		return nil, c.flags
	}
	return shown, c.flags
}

// cleanListedItem removes suspicious text from an item of a list, such as a resource or a prompt. If it removes
// anything, it also leaves out the members that are not checked.
func (c *definitionCleaner) cleanListedItem(d jsonNode, key string) []byte {
	values := make([][]byte, len(d.items))
	for i, item := range d.items {
		name := stringContents(d.keys[i])
		c.withinStep(name, func() { values[i] = c.cleanDetail(string(name), key, item) })
	}
	if len(c.flags) == 0 {
		return d.raw
	}
	return d.withValues(values)
}

// cleanDetail returns a member of a listed resource or prompt with its text cleaned. It returns nil for a member that
// is not checked.
func (c *definitionCleaner) cleanDetail(name, key string, item jsonNode) []byte {
	switch name {
	case key:
		return c.cleanNeeded(item)
	case "name", "title", "description", "mimeType":
		return c.cleanTexts(item, c.cleanText)
	case "size":
		return item.raw
	case "arguments": // of a prompt
		return item.rewriteItems(func(i int) []byte {
			if !item.items[i].isObject() {
				return item.items[i].raw
			}
			return c.cleanArgument(item.items[i])
		})
	case "icons":
	default:
		c.acceptsValue(item)
	}
	return nil
}

// cleanArgument removes suspicious text from the definition of a prompt's argument. It never changes the
// argument's name, because requests need it. If the name is suspicious, it withholds the prompt.
func (c *definitionCleaner) cleanArgument(d jsonNode) []byte {
	return d.rewriteItems(func(i int) []byte {
		name := string(stringContents(d.keys[i]))
		switch name {
		case "name":
			return c.cleanNeeded(d.items[i])
		case "required":
			return d.items[i].raw
		}
		return c.cleanTexts(d.items[i], c.cleanText)
	})
}
