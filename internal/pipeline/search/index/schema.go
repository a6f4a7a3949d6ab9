package index

import (
	"bytes"
	"encoding/json"

	"retort/internal/base/jsonscan"
)

const (
	maxDepth  = 32       // of a schema; deeper parts are not searched
	maxParams = 256      // names of parameters that are searched
	maxProse  = 16 << 10 // bytes of their descriptions that are searched
)

// schemaText holds the names of the properties in a schema, and the texts that describe them.
type schemaText struct {
	names []string
	prose []string // descriptions, titles and enumerated words
	bytes int      // of prose
}

// readSchema returns the names of all properties in a JSON Schema, including nested ones, and the texts that describe
// them. For an invalid schema, it returns what it could read.
func readSchema(schema []byte) schemaText {
	var r schemaReader
	for len(schema) > 0 {
		kind, n, err := r.scan.Next(schema)
		if err != nil || r.scan.InString() || !r.readPiece(kind, schema[:n]) {
			break
		}
		schema = schema[n:]
	}
	return r.found
}

// schemaRole says what a value in a schema is: an object of properties, a text, a subschema, or plain data.
type schemaRole int

const (
	plain      schemaRole = iota // a schema, or a list of schemas
	properties                   // an object whose keys are names of parameters
	prose                        // a string that describes
	words                        // a list of strings that may be given
	data                         // a value that is no schema: default, const, examples
)

// openValue describes an object or an array whose end has not been read yet.
type openValue struct {
	role  schemaRole
	array bool
}

type schemaReader struct {
	scan  jsonscan.Scanner
	open  []openValue // the containers that are not closed yet
	next  schemaRole  // of the member whose key was read last
	found schemaText
}

// readPiece processes one token of the schema. It returns false if the schema is nested too deeply.
func (r *schemaReader) readPiece(kind jsonscan.Kind, p []byte) bool {
	switch kind {
	case jsonscan.Key:
		r.readKey(p[1 : len(p)-1])
	case jsonscan.Open:
		r.open = append(r.open, openValue{r.valueRole(r.scan.NestingDepth() - 1), p[0] == '['})
		return r.scan.NestingDepth() <= maxDepth
	case jsonscan.Close:
		r.open = r.open[:r.scan.NestingDepth()]
	case jsonscan.String:
		if role := r.valueRole(r.scan.NestingDepth()); role == prose || role == words {
			r.addText(p[1 : len(p)-1])
		}
	}
	return true
}

func (r *schemaReader) readKey(key []byte) {
	object := r.open[len(r.open)-1].role
	if object == properties && len(r.found.names) < maxParams {
		r.found.names = append(r.found.names, decodeString(key))
	}
	r.next = memberRole(object, string(key))
}

// valueRole returns the role of the value that is read next. The argument is the nesting depth of that value. An item
// of an array has the same role as the array.
func (r *schemaReader) valueRole(depth int) schemaRole {
	switch {
	case depth == 0:
		return plain
	case r.open[depth-1].array:
		return r.open[depth-1].role
	}
	return r.next
}

// memberRole returns the role of a member's value, given the role of the object and the member's key.
func memberRole(object schemaRole, key string) schemaRole {
	switch object {
	case properties:
		return plain
	case prose, words, data:
		return data
	}
	switch key {
	case "properties", "patternProperties":
		return properties
	case "description", "title":
		return prose
	case "enum":
		return words
	case "default", "const", "examples", "example", "required", "type", "$ref", "pattern", "format":
		return data
	}
	return plain
}

func (r *schemaReader) addText(text []byte) {
	if room := maxProse - r.found.bytes; room > 0 {
		said := decodeString(text[:min(len(text), room)])
		r.found.prose = append(r.found.prose, said)
		r.found.bytes += len(said) + 1
	}
}

// decodeString decodes the content of a JSON string. If the content is invalid or was cut off, it is returned
// unchanged.
func decodeString(inside []byte) string {
	if bytes.IndexByte(inside, '\\') < 0 {
		return string(inside)
	}
	var s string
	if json.Unmarshal([]byte(`"`+string(inside)+`"`), &s) != nil {
		return string(inside)
	}
	return s
}
