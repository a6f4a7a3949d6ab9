package report

import (
	"bytes"
	"encoding/json"
	"iter"
)

// What follows goes through JSON that is known to be valid without decoding it: values
// can have tens of megabytes.

func skipSpace(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\t' || raw[i] == '\r') {
		i++
	}
	return i
}

// valueEnd returns the offset of the first byte after the JSON value that begins at i.
func valueEnd(raw []byte, i int) int {
	switch raw[i] {
	case '"':
		return stringEnd(raw, i)
	case '{', '[':
		return nestEnd(raw, i)
	}
	for i < len(raw) && !bytes.ContainsRune([]byte(",]} \n\t\r"), rune(raw[i])) {
		i++
	}
	return i
}

func stringEnd(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

func nestEnd(raw []byte, i int) int {
	for depth := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = stringEnd(raw, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(raw)
}

// arrayItems yields the items of a JSON array without decoding them.
func arrayItems(raw []byte) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		for i := skipSpace(raw, skipSpace(raw, 0)+1); i < len(raw) && raw[i] != ']'; {
			next := valueEnd(raw, i)
			if !yield(raw[i:next]) {
				return
			}
			if i = skipSpace(raw, next); i < len(raw) && raw[i] == ',' {
				i = skipSpace(raw, i+1)
			}
		}
	}
}

// objectMembers yields an object's members in the order they are written.
func objectMembers(raw []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		for i := skipSpace(raw, skipSpace(raw, 0)+1); i < len(raw) && raw[i] == '"'; {
			next := stringEnd(raw, i)
			key := stringText(raw[i:next])
			i = skipSpace(raw, skipSpace(raw, next)+1)
			next = valueEnd(raw, i)
			if !yield(key, raw[i:next]) {
				return
			}
			if i = skipSpace(raw, next); i < len(raw) && raw[i] == ',' {
				i = skipSpace(raw, i+1)
			}
		}
	}
}

// stringText returns the decoded text of a JSON string.
func stringText(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

func kindOf(value []byte) string {
	switch value[skipSpace(value, 0)] {
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
