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

// parameters collects the names and texts of a schema.
type parameters struct {
	names []string
	prose []string // descriptions, titles and enumerated words
	bytes int      // of prose
}

// readSchema collects the names of all properties of a JSON Schema, nested ones too, and the text that describes
// them. Of an invalid schema it returns what it could read. Errors are reported elsewhere.
func readSchema(schema []byte) parameters {
	r := schemaReader{in: schema}
	r.value(0, plain)
	return r.found
}

// role is the meaning of a value within its schema.
type role int

const (
	plain      role = iota // a schema, or a list of schemas
	properties             // an object whose keys are names of parameters
	prose                  // a string that describes
	words                  // a list of strings that may be given
	data                   // a value that is no schema: default, const, examples
)

type schemaReader struct {
	in    []byte
	at    int
	found parameters
}

// value reads one JSON value and reports whether there was one.
func (r *schemaReader) value(depth int, as role) bool {
	r.space()
	if r.at >= len(r.in) || depth > maxDepth {
		return false
	}
	switch c := r.in[r.at]; c {
	case '{':
		return r.object(depth, as)
	case '[':
		return r.array(depth, as)
	case '"':
		text, ok := r.text()
		if ok && (as == prose || as == words) {
			r.say(text)
		}
		return ok
	default:
		return r.literal()
	}
}

func (r *schemaReader) object(depth int, as role) bool {
	r.at++ // {
	for first := true; ; first = false {
		r.space()
		if r.take('}') {
			return true
		}
		if !first && !r.take(',') {
			return false
		}
		r.space()
		key, ok := r.text()
		if !ok {
			return false
		}
		if as == properties && len(r.found.names) < maxParams {
			r.found.names = append(r.found.names, decodeString(key))
		}
		r.space()
		if !r.take(':') || !r.value(depth+1, member(as, string(key))) {
			return false
		}
	}
}

// member returns the role of an object's member.
func member(object role, key string) role {
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

func (r *schemaReader) array(depth int, as role) bool {
	r.at++ // [
	for first := true; ; first = false {
		r.space()
		if r.take(']') {
			return true
		}
		if !first && !r.take(',') {
			return false
		}
		if !r.value(depth+1, as) {
			return false
		}
	}
}

// text reads a string and returns the bytes between its quotes.
func (r *schemaReader) text() ([]byte, bool) {
	if !r.take('"') {
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

func (r *schemaReader) literal() bool {
	start := r.at
	for r.at < len(r.in) && strings.IndexByte(",]}{[\":", r.in[r.at]) < 0 {
		r.at++
	}
	return r.at > start
}

func (r *schemaReader) say(text []byte) {
	if room := maxProse - r.found.bytes; room > 0 {
		said := decodeString(text[:min(len(text), room)])
		r.found.prose = append(r.found.prose, said)
		r.found.bytes += len(said) + 1
	}
}

func (r *schemaReader) space() {
	for r.at < len(r.in) && r.in[r.at] <= ' ' {
		r.at++
	}
}

func (r *schemaReader) take(c byte) bool {
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
