package index

import (
	"bytes"
	"encoding/json"
	"strings"
)

const (
	maxDepth  = 32       // of a schema; deeper parts are not searched
	maxParams = 256      // names of parameters that are searched
	maxProse  = 16 << 10 // bytes of their descriptions that are searched
)

// schemaText collects the names and texts of a schema.
type schemaText struct {
	names []string
	prose []string // descriptions, titles and enumerated words
	bytes int      // of prose
}

// readSchema collects the names of all properties of a JSON Schema, nested ones too, and the text that describes
// them. Of an invalid schema it returns what it could read. Errors are reported elsewhere.
func readSchema(schema []byte) schemaText {
	r := schemaReader{in: schema}
	r.readValue(0, plain)
	return r.found
}

// schemaRole is the meaning of a value within its schema.
type schemaRole int

const (
	plain      schemaRole = iota // a schema, or a list of schemas
	properties                   // an object whose keys are names of parameters
	prose                        // a string that describes
	words                        // a list of strings that may be given
	data                         // a value that is no schema: default, const, examples
)

type schemaReader struct {
	in    []byte
	at    int
	found schemaText
}

// readValue reads one JSON value and reports whether there was one.
func (r *schemaReader) readValue(depth int, as schemaRole) bool {
	r.skipSpace()
	if r.at >= len(r.in) || depth > maxDepth {
		return false
	}
	switch c := r.in[r.at]; c {
	case '{':
		return r.readObject(depth, as)
	case '[':
		return r.readArray(depth, as)
	case '"':
		text, ok := r.readText()
		if ok && (as == prose || as == words) {
			r.addText(text)
		}
		return ok
	default:
		return r.skipLiteral()
	}
}

func (r *schemaReader) readObject(depth int, as schemaRole) bool {
	r.at++ // {
	for first := true; ; first = false {
		r.skipSpace()
		if r.takeByte('}') {
			return true
		}
		if !first && !r.takeByte(',') {
			return false
		}
		r.skipSpace()
		key, ok := r.readText()
		if !ok {
			return false
		}
		if as == properties && len(r.found.names) < maxParams {
			r.found.names = append(r.found.names, decodeString(key))
		}
		r.skipSpace()
		if !r.takeByte(':') || !r.readValue(depth+1, memberRole(as, string(key))) {
			return false
		}
	}
}

// memberRole returns the role of an object's member.
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

func (r *schemaReader) readArray(depth int, as schemaRole) bool {
	r.at++ // [
	for first := true; ; first = false {
		r.skipSpace()
		if r.takeByte(']') {
			return true
		}
		if !first && !r.takeByte(',') {
			return false
		}
		if !r.readValue(depth+1, as) {
			return false
		}
	}
}

// readText reads a string and returns the bytes between its quotes.
func (r *schemaReader) readText() ([]byte, bool) {
	if !r.takeByte('"') {
		return nil, false
	}
	for start := r.at; r.at < len(r.in); r.at++ {
		switch r.in[r.at] {
		case '\\':
			r.at++
		case '"':
			r.at++
			return r.in[start : r.at-1], true
		}
	}
	return nil, false
}

func (r *schemaReader) skipLiteral() bool {
	start := r.at
	for r.at < len(r.in) && strings.IndexByte(",]}{[\":", r.in[r.at]) < 0 {
		r.at++
	}
	return r.at > start
}

func (r *schemaReader) addText(text []byte) {
	if room := maxProse - r.found.bytes; room > 0 {
		said := decodeString(text[:min(len(text), room)])
		r.found.prose = append(r.found.prose, said)
		r.found.bytes += len(said) + 1
	}
}

func (r *schemaReader) skipSpace() {
	for r.at < len(r.in) && r.in[r.at] <= ' ' {
		r.at++
	}
}

func (r *schemaReader) takeByte(c byte) bool {
	if r.at < len(r.in) && r.in[r.at] == c {
		r.at++
		return true
	}
	return false
}

// decodeString decodes the contents of a JSON string. A truncated or invalid string is used as it is.
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
