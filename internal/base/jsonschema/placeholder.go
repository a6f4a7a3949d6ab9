package jsonschema

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Bounds on a placeholder (a sample value): the number of values, the nesting depth and the length of one text.
const (
	placeholderValues = 2_000
	placeholderDepth  = 16
	placeholderText   = 256
)

// PlaceholderFor returns a placeholder, a sample value for a schema. An object has every property, an array has one
// item, and a string contains a word that describes it. In a dry run, programs get a placeholder instead of a real
// result. It satisfies simple schemas, but not always a pattern or a condition. Without a schema PlaceholderFor
// returns {}.
func PlaceholderFor(raw []byte) json.RawMessage { return makePlaceholder(raw, nil) }

// PlaceholderMark marks the placeholder values that programs get in place of the results of calls that were not sent, so
// that they can be recognized in the arguments of later calls. Use NewPlaceholderMark; the zero value is not usable.
type PlaceholderMark struct {
	text   string
	number string // decimal digits of the number that marks integers
}

// NewPlaceholderMark returns a mark made from parts of seed. If the seed is random, real values do not contain the
// mark.
func NewPlaceholderMark(seed uint64) *PlaceholderMark {
	return &PlaceholderMark{text: "unknown-" + strconv.FormatUint(seed, 36), number: strconv.FormatUint(7e14+seed%1e14, 10)}
}

// PlaceholderFor works like the function PlaceholderFor, but marks values: strings without a format, e-mail addresses,
// URLs, and integers whose name says that they are ids. It leaves out members of objects that cannot be marked, such as
// amounts and dates, unless the schema allows only one value. A program could otherwise pass them on as if they were
// real. Without a schema, it returns an object with one marked member.
func (m *PlaceholderMark) PlaceholderFor(raw []byte) json.RawMessage { return makePlaceholder(raw, m) }

// IsIn reports whether a JSON document contains a marked value, or a text that was made from one, in any letter case.
func (m *PlaceholderMark) IsIn(document []byte) bool {
	return bytes.Contains(bytes.ToLower(document), []byte(m.text)) || bytes.Contains(document, []byte(m.number))
}

// emptyObject returns the placeholder for a missing schema. m may be nil.
func (m *PlaceholderMark) emptyObject() json.RawMessage {
	if m == nil {
		return json.RawMessage("{}")
	}
	return json.RawMessage(`{"` + m.text + `":true}`)
}

func makePlaceholder(raw []byte, mark *PlaceholderMark) json.RawMessage {
	doc, err := Decode(raw)
	if o, ok := doc.(map[string]any); err != nil || ok && len(o) == 0 {
		return mark.emptyObject()
	}
	m := placeholderMaker{root: doc, mark: mark}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(m.makeValue(doc, 0)) != nil {
		return mark.emptyObject()
	}
	return bytes.TrimSpace(b.Bytes())
}

type placeholderMaker struct {
	root any
	made int
	mark *PlaceholderMark // mark to put on values; nil marks no value
}

// makeValue returns a sample value for the schema s. It returns null for parts that would make the value too large.
func (m *placeholderMaker) makeValue(s any, depth int) any {
	if m.made++; m.made > placeholderValues || depth > placeholderDepth {
		return nil
	}
	o, ok := s.(map[string]any)
	if !ok || len(o) == 0 {
		return map[string]any{}
	}
	if o = m.joinSchema(o); o == nil {
		return nil
	}
	if v, ok := o["const"]; ok {
		return v
	}
	if values, ok := o["enum"].([]any); ok && len(values) > 0 {
		return values[0]
	}
	switch kindOf(o) {
	case "object":
		return m.makeObject(o, depth)
	case "array":
		return m.makeArray(o, depth)
	case "string":
		return m.textFor(o)
	case "integer", "number":
		return numberFor(o)
	case "boolean":
		return false
	}
	return nil
}

// joinSchema merges a schema with its $ref target, all schemas of its allOf, and the first alternative of its anyOf
// and oneOf. It returns nil if the schemas refer to each other in a circle or are too large.
func (m *placeholderMaker) joinSchema(o map[string]any) map[string]any {
	for range placeholderDepth {
		var more []any
		if ref, ok := o["$ref"].(string); ok {
			more = append(more, m.followRef(ref))
		}
		all, _ := o["allOf"].([]any)
		more = append(more, all...)
		for _, choice := range []string{"anyOf", "oneOf"} {
			if of, ok := o[choice].([]any); ok {
				more = append(more, firstChoice(of))
			}
		}
		if len(more) == 0 {
			return o
		}
		o = maps.Clone(o)
		for _, key := range []string{"$ref", "allOf", "anyOf", "oneOf"} {
			delete(o, key)
		}
		for _, s := range more {
			if m.made += 1 + propertyCount(s)/64; m.made > placeholderValues {
				return nil // to join much, again and again, takes long too
			}
			mergeSchema(o, s)
		}
	}
	return nil // it leads in a circle
}

// firstChoice returns the first alternative whose type is not null. It returns nil if the type of every alternative is
// null.
func firstChoice(of []any) any {
	for _, s := range of {
		if o, ok := s.(map[string]any); ok && o["type"] != "null" {
			return s
		}
	}
	return nil
}

// propertyCount returns the number of keywords of the schema s plus the number of properties that it defines. The sum
// estimates how much work it is to merge s into another schema.
func propertyCount(s any) int {
	o, _ := s.(map[string]any)
	properties, _ := o["properties"].(map[string]any)
	return len(o) + len(properties)
}

// mergeSchema copies into the schema o those keywords of the schema s that o lacks. If both have the keyword
// properties, it adds the properties that o lacks.
func mergeSchema(o map[string]any, s any) {
	more, _ := s.(map[string]any)
	for key, v := range more {
		have, there := o[key]
		mine, both := have.(map[string]any)
		theirs, objects := v.(map[string]any)
		switch {
		case !there:
			o[key] = v
		case key == "properties" && both && objects:
			joined := maps.Clone(theirs)
			maps.Copy(joined, mine)
			o[key] = joined
		}
	}
}

// followRef returns the target of a reference within the document. The reference is a JSON pointer or an anchor.
func (m *placeholderMaker) followRef(ref string) any {
	path, ok := strings.CutPrefix(ref, "#")
	if path, err := url.PathUnescape(path); ok && err == nil {
		at := m.root
		for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
			if path == "" {
				break
			}
			part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
			switch here := at.(type) {
			case map[string]any:
				at = here[part]
			case []any:
				i, err := strconv.Atoi(part)
				if err != nil || i < 0 || i >= len(here) {
					return nil
				}
				at = here[i]
			default:
				return nil
			}
		}
		return at
	}
	return nil
}

// kindOf returns the type for the sample value: the first type other than null that the schema allows. If the schema
// names no type, kindOf infers it from the other keywords.
func kindOf(o map[string]any) string {
	switch t := o["type"].(type) {
	case string:
		return t
	case []any:
		for _, one := range t {
			if name, ok := one.(string); ok && name != "null" {
				return name
			}
		}
		return "null"
	}
	switch {
	case o["items"] != nil || o["prefixItems"] != nil:
		return "array"
	case o["format"] != nil || o["pattern"] != nil || o["minLength"] != nil || o["maxLength"] != nil:
		return "string"
	case o["minimum"] != nil || o["maximum"] != nil:
		return "number"
	}
	return "object"
}

func (m *placeholderMaker) makeObject(o map[string]any, depth int) any {
	made := map[string]any{}
	properties, _ := o["properties"].(map[string]any)
	required, _ := o["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		v := m.markID(name, m.makeValue(properties[name], depth+1))
		if m.isUnmarked(properties[name], v) {
			continue
		}
		if v == nil && !slices.Contains(required, any(name)) {
			continue
		}
		made[name] = v
	}
	for _, r := range required {
		if name, ok := r.(string); ok && properties[name] == nil {
			made[name] = m.makeValue(o["additionalProperties"], depth+1)
		}
	}
	return made
}

func (m *placeholderMaker) makeArray(o map[string]any, depth int) any {
	made := []any{}
	items := o["items"]
	for _, key := range []string{"prefixItems", "items"} {
		if list, ok := o[key].([]any); ok {
			for _, s := range list {
				made = append(made, m.makeValue(s, depth+1))
			}
			items = nil
		}
	}
	if most, ok := limitOf(o["maxItems"]); items == nil || ok && most < 1 {
		return made
	}
	least, _ := limitOf(o["minItems"])
	for len(made) < max(1, int(least)) && m.made < placeholderValues {
		v := m.makeValue(items, depth+1)
		if v == nil && least == 0 {
			break
		}
		made = append(made, v)
	}
	return made
}

// ofFormat maps names of formats to sample texts that programs can parse.
var ofFormat = map[string]string{
	"date-time": "1970-01-01T00:00:00Z", "date": "1970-01-01", "time": "00:00:00Z", "duration": "PT0S",
	"email": "dry-run@example.invalid", "uri": "https://example.invalid/dry-run", "url": "https://example.invalid/dry-run",
	"uuid": "00000000-0000-0000-0000-000000000000", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "hostname": "example.invalid",
}

// idName matches names of values that identify something, such as id, userId and order_number.
var idName = regexp.MustCompile(`^(?:id|ID|key|number)$|[a-z]I[dD]$|_(?:id|ID|key|number)$`)

// markID returns the marked number if v is a number and its name says that it is an id. Otherwise it returns v.
func (m *placeholderMaker) markID(name string, v any) any {
	if _, number := v.(float64); number && m.mark != nil && idName.MatchString(name) {
		return json.Number(m.mark.number)
	}
	return v
}

// isUnmarked reports whether v, the placeholder for the schema s, should be marked but is not.
func (m *placeholderMaker) isUnmarked(s, v any) bool {
	if m.mark == nil {
		return false
	}
	if o, ok := s.(map[string]any); ok && o["const"] != nil {
		return false
	}
	switch v := v.(type) {
	case string:
		return !m.mark.IsIn([]byte(v))
	case json.Number:
		return !m.mark.IsIn([]byte(v))
	case bool, float64:
		return true
	}
	return false
}

func (m *placeholderMaker) textFor(o map[string]any) any {
	format, _ := o["format"].(string)
	s, known := ofFormat[format]
	if !known {
		s = "(dry run)"
	}
	if m.mark != nil {
		s = strings.NewReplacer("(dry run)", m.mark.text, "dry-run", m.mark.text).Replace(s)
	}
	if least, ok := limitOf(o["minLength"]); ok && int(least) > len(s) {
		s += strings.Repeat("-", min(int(least), placeholderText)-len(s))
	}
	if most, ok := limitOf(o["maxLength"]); ok && int(most) < len(s) && m.mark == nil {
		s = s[:max(0, int(most))]
	}
	return s
}

// numberFor returns 0 if the schema's bounds allow it, otherwise a number near 0 that they allow.
func numberFor(o map[string]any) any {
	n := 0.0
	if least, ok := limitOf(o["minimum"]); ok {
		n = max(n, least)
	}
	if least, ok := limitOf(o["exclusiveMinimum"]); ok && n <= least {
		n = least + 1
	}
	if most, ok := limitOf(o["maximum"]); ok {
		n = min(n, most)
	}
	if most, ok := limitOf(o["exclusiveMaximum"]); ok && n >= most {
		n = most - 1
	}
	return n
}

func limitOf(v any) (float64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}
