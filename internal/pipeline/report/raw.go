package report

import (
	"bytes"
	"encoding/json"
	"iter"

	"retort/internal/base/jsonscan"
)

// These functions read JSON that is known to be valid. They do not decode it, because values can have tens of
// megabytes.

// trimSpace removes the white space at the start of JSON.
func trimSpace(raw []byte) []byte {
	c := jsonscan.Cursor{Text: raw}
	c.Next()
	return raw[c.At:]
}

// arrayItems yields the items of a JSON array without decoding them.
func arrayItems(raw []byte) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		for item := range jsonscan.Items(raw) {
			if !yield(item) {
				return
			}
		}
	}
}

// objectMembers yields an object's members in the order they are written.
func objectMembers(raw []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		for key, value := range jsonscan.Members(raw) {
			if !yield(stringText(key), value) {
				return
			}
		}
	}
}

// stringText returns the decoded text of a JSON string.
func stringText(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	text, _ := jsonscan.Unquote(string(raw))
	return text
}

func kindOf(value []byte) string {
	switch trimSpace(value)[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}
