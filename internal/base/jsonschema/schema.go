// Package jsonschema validates JSON against the JSON Schemas that servers send with their tools. The draft is 2020-12
// unless $schema names 2019-09, draft-07, -06 or -04. The package never loads anything outside the document. It does
// not check schemas against their meta-schemas, and ignores a keyword with an invalid value. In doubt a value counts
// as valid, because the server that sent the schema checks the value again:
//
//   - A format is asserted only if FormatCheckers has a check for it.
//   - A pattern that Go's regexp cannot express matches everything. So does a pattern that exceeds the memory for
//     the patterns of one schema.
//   - A value whose check takes more than maxSteps or maxDepth is valid. This also ends references in a circle.
package jsonschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Bounds on one schema document and on the check of one value. Compile returns an error for a document that exceeds
// maxSchemaBytes, maxNodes or maxNesting. A value whose check exceeds maxSteps or maxDepth is accepted.
const (
	maxSchemaBytes = 4 << 20
	maxNodes       = 200_000 // maximum number of subschemas
	maxNesting     = 1_000   // maximum nesting depth of subschemas
	maxSteps       = 4_000_000
	maxDepth       = 4_000
)

// Schema represents a compiled schema. It is immutable and safe for concurrent use.
type Schema struct {
	root    *schemaNode
	dynamic bool // whether a reference depends on the path on which it was reached
}

// FormatCheckers maps the name of a format to the function that checks strings of that format.
type FormatCheckers map[string]func(string) error

// Compile compiles a schema and asserts no formats. It returns an error if the document is not a schema, is too large,
// or refers to something outside the document.
func Compile(raw []byte) (*Schema, error) { return FormatCheckers(nil).Compile(raw) }

// Compile compiles a schema and asserts the formats in f.
func (f FormatCheckers) Compile(raw []byte) (*Schema, error) {
	if len(raw) > maxSchemaBytes {
		return nil, fmt.Errorf("the schema has %d bytes; at most %d are allowed", len(raw), maxSchemaBytes)
	}
	doc, err := Decode(raw)
	if err != nil {
		return nil, err
	}
	return newCompiler(f).compileDocument(doc)
}

// Decode decodes one JSON value for Validate. Numbers become json.Number and keep all digits.
func Decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is unexpected text after the value")
	}
	return v, nil
}

// Validate returns nil if the value is valid. Otherwise it returns the most specific violation, which is usually the
// most deeply nested one. The value must come from Decode, except that numbers may also be float64.
func (s *Schema) Validate(value any) *Violation {
	all := s.findViolations(value)
	if len(all) == 0 {
		return nil
	}
	best := 0
	for i := range all {
		if all[i].tellsMoreThan(&all[best]) {
			best = i
		}
	}
	return &all[best]
}

// ListViolations returns at most limit violations of a value. They follow the order of the schema's keywords and,
// within an object, the alphabetical order of the property names.
func (s *Schema) ListViolations(value any, limit int) []Violation {
	all := s.findViolations(value)
	return all[:min(len(all), limit)]
}

// findViolations returns all violations. It first checks the value without collecting violations. That is faster, and
// most values are valid.
func (s *Schema) findViolations(value any) []Violation {
	e := evaluator{dynamic: s.dynamic}
	if e.applyNode(s.root, value, nil) || e.exhausted {
		return nil
	}
	e = evaluator{dynamic: s.dynamic, explaining: true}
	e.applyNode(s.root, value, nil)
	if len(e.found) == 0 { // the words took too many steps
		e.found = []Violation{{Keyword: AnyOf}}
	}
	return e.found
}

// PropertyNames returns the sorted names of the properties that the schema of an object defines. It includes those
// that referenced schemas define.
func (s *Schema) PropertyNames() []string {
	var names []string
	n := s.root
	for range maxNesting {
		if n.object != nil {
			names = append(names, n.object.names...)
		}
		if n = n.ref; n == nil {
			break
		}
	}
	return sortedSet(names)
}
