package redact

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// argumentPath is where in the arguments of a call a scan is: the open objects and arrays, from the outside in.
type argumentPath []argumentStep

// argumentStep is an open object or array.
type argumentStep struct {
	array   bool
	key     string           // of an object: its last key. Of an array: the key under which it stands
	index   int              // of the item of an array
	schemas []map[string]any // that apply to the object or array; see schemasAt
	known   bool             // schemas is set
}

// open adds an object or an array.
func (p *argumentPath) open(array bool) { *p = append(*p, argumentStep{array: array, key: p.name()}) }

// close removes the innermost object or array.
func (p *argumentPath) close() { *p = (*p)[:max(0, len(*p)-1)] }

// next goes on to the next item of an array.
func (p argumentPath) next() {
	if len(p) > 0 {
		p[len(p)-1].index++
	}
}

// setKey records a key of the innermost object.
func (p argumentPath) setKey(key string) {
	if len(p) > 0 {
		p[len(p)-1].key = key
	}
}

// name returns the key of the value at which the scan is. An item of an array has the key of the array.
func (p argumentPath) name() string {
	if len(p) == 0 {
		return ""
	}
	return p[len(p)-1].key
}

// carrierFormats are the formats of JSON schemas for texts that the receiver interprets.
var carrierFormats = []string{
	"uri", "uri-reference", "iri", "iri-reference", "uri-template", "url", "hostname", "idn-hostname",
	"regex", "json-pointer",
}

// inputSchema says what a tool's JSON schema tells of its arguments.
type inputSchema struct{ root any }

func readSchema(schema json.RawMessage) (s inputSchema) {
	if len(schema) > 0 {
		_ = json.Unmarshal(schema, &s.root) // of what is not JSON nothing is known
	}
	return s
}

// isCarrier reports whether the value at p has one of carrierFormats.
func (s inputSchema) isCarrier(p argumentPath) bool {
	return slices.ContainsFunc(s.schemasAt(p), func(schema map[string]any) bool {
		format, ok := schema["format"].(string)
		return ok && slices.Contains(carrierFormats, format)
	})
}

// schemasAt returns the schemas that may apply to the value at p. They are kept with the open objects and arrays.
func (s inputSchema) schemasAt(p argumentPath) []map[string]any {
	if len(p) == 0 {
		return s.expand(nil, s.root)
	}
	step := &p[len(p)-1]
	if !step.known {
		step.schemas, step.known = s.schemasAt(p[:len(p)-1]), true
	}
	var all []map[string]any
	for _, schema := range step.schemas {
		for _, part := range childSchemas(schema, step) {
			all = s.expand(all, part)
		}
	}
	return all
}

// childSchemas returns what a schema says of the member or item at which a step is.
func childSchemas(schema map[string]any, step *argumentStep) []any {
	if step.array {
		first, _ := schema["prefixItems"].([]any)
		if tuple, ok := schema["items"].([]any); ok { // in drafts before 2020-12
			first = append(first[:len(first):len(first)], tuple...)
		}
		if step.index < len(first) {
			return []any{first[step.index]}
		}
		return []any{schema["items"], schema["additionalItems"]}
	}
	properties, _ := schema["properties"].(map[string]any)
	if property, ok := properties[step.key]; ok {
		return []any{property}
	}
	patterns, _ := schema["patternProperties"].(map[string]any)
	all := []any{schema["additionalProperties"]}
	for pattern, property := range patterns {
		if ok, err := regexp.MatchString(pattern, step.key); ok || err != nil {
			all = append(all, property)
		}
	}
	return all
}

// maxSchemas bounds how many schemas are looked at for one value, because references can form cycles.
const maxSchemas = 100

// expand appends a schema, and those that it combines or refers to.
func (s inputSchema) expand(all []map[string]any, schema any) []map[string]any {
	part, ok := schema.(map[string]any)
	if !ok || len(all) >= maxSchemas {
		return all
	}
	all = append(all, part)
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		branches, _ := part[keyword].([]any)
		for _, branch := range branches {
			all = s.expand(all, branch)
		}
	}
	for _, keyword := range []string{"then", "else"} {
		all = s.expand(all, part[keyword])
	}
	if ref, ok := part["$ref"].(string); ok {
		all = s.expand(all, s.resolve(ref))
	}
	return all
}

// resolve returns the schema that a reference inside the same document names, or nil.
func (s inputSchema) resolve(ref string) any {
	way, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	at := s.root
	for step := range strings.SplitSeq(strings.TrimPrefix(way, "/"), "/") {
		if way == "" {
			break
		}
		part, _ := at.(map[string]any)
		at = part[pointerEscapes.Replace(step)]
	}
	return at
}

var pointerEscapes = strings.NewReplacer("~1", "/", "~0", "~")
