package redact

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// argumentPath holds the place in the arguments of a call that is being read. Its elements are the objects and arrays
// that are open there, the outermost first.
type argumentPath []argumentStep

// argumentStep represents an object or array that is open, and the member or item of it that is being read.
type argumentStep struct {
	array   bool
	key     string           // the last key of the object, or the key of the member that contains the array
	index   int              // index of the current item of an array
	schemas []map[string]any // schemas of the object or array; see schemasAt
	known   bool             // reports that schemas was computed
}

// open appends an object or an array that begins.
func (p *argumentPath) open(array bool) { *p = append(*p, argumentStep{array: array, key: p.name()}) }

// close removes the innermost object or array.
func (p *argumentPath) close() { *p = (*p)[:max(0, len(*p)-1)] }

// next counts a comma, after which the next item of an array begins. In an object, the count has no meaning.
func (p argumentPath) next() {
	if len(p) > 0 {
		p[len(p)-1].index++
	}
}

// setKey sets the key of the current member of the innermost object.
func (p argumentPath) setKey(key string) {
	if len(p) > 0 {
		p[len(p)-1].key = key
	}
}

// name returns the key of the value that is being read, or "" outside of objects. An item of an array has the key of
// the member that contains the array.
func (p argumentPath) name() string {
	if len(p) == 0 {
		return ""
	}
	return p[len(p)-1].key
}

// carrierFormats lists the formats in JSON schemas for texts that the receiver interprets, for example as a URL.
var carrierFormats = []string{
	"uri", "uri-reference", "iri", "iri-reference", "uri-template", "url", "hostname", "idn-hostname",
	"regex", "json-pointer",
}

// inputSchema holds the JSON schema of a tool's arguments. If root is nil, there is no schema.
type inputSchema struct{ root any }

func readSchema(schema json.RawMessage) (s inputSchema) {
	if len(schema) > 0 {
		_ = json.Unmarshal(schema, &s.root) // a schema that is not JSON says nothing about the arguments
	}
	return s
}

// isCarrier reports whether a schema of the value at p requires one of carrierFormats.
func (s inputSchema) isCarrier(p argumentPath) bool {
	return slices.ContainsFunc(s.schemasAt(p), func(schema map[string]any) bool {
		format, ok := schema["format"].(string)
		return ok && slices.Contains(carrierFormats, format)
	})
}

// schemasAt returns the schemas that may apply to the value at p. It stores the schemas of the open objects and arrays
// in p, so that they are computed only once.
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

// childSchemas returns the schemas that a schema contains for the current member or item of step.
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

// maxSchemas bounds the number of schemas that are collected for one value, because references can form cycles.
const maxSchemas = 100

// expand appends a schema, the schemas that it combines, for example with anyOf, and the schema that it refers to.
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

// resolve returns the schema to which a reference inside the same document points, or nil.
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
