package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"retort/internal/ledger"
)

// preview says in at most limit tokens what a value is: its shape, its counts,
// its first and last items.
func preview(value json.RawMessage, limit int) string {
	value = bytes.TrimSpace(value)
	var text string
	switch value[0] {
	case '[':
		text = previewArray(value, limit)
	case '{':
		text = previewObject(value, limit)
	case '"':
		var s string
		_ = json.Unmarshal(value, &s)
		text = fmt.Sprintf("text of %d characters, %d lines\n%s", len([]rune(s)), strings.Count(s, "\n")+1, ends(s, limit-20))
	default:
		text = string(value)
	}
	return ledger.Prefix(text, limit)
}

func previewArray(value json.RawMessage, limit int) string {
	var items []json.RawMessage
	if json.Unmarshal(value, &items) != nil || len(items) == 0 {
		return "array"
	}
	each := limit / 3
	return fmt.Sprintf("array of %d items: %s\nfirst: %s\nlast: %s", len(items), ledger.Prefix(shapeOf(items), each),
		ledger.Prefix(string(items[0]), each), ledger.Prefix(string(items[len(items)-1]), each))
}

func previewObject(value json.RawMessage, limit int) string {
	var b strings.Builder
	n := 0
	for key, item := range members(value) {
		if n++; n <= maxKeys {
			fmt.Fprintf(&b, "%s: %s\n", key, describe(item))
		}
	}
	return fmt.Sprintf("object with %d keys\n%s", n, ledger.Prefix(b.String(), limit-10))
}

const (
	maxKeys  = 40  // of an object that are shown
	maxItems = 200 // of an array that are looked at for its shape
)

// shapeOf describes the items of an array: the keys of its objects with their
// types, a question mark on those that some items lack.
func shapeOf(items []json.RawMessage) string {
	looked := items[:min(len(items), maxItems)]
	var order []string
	kinds, counts := map[string]string{}, map[string]int{}
	for _, item := range looked {
		if k := kindOf(item); k != "object" {
			return k
		}
		for key, member := range members(item) {
			if counts[key]++; counts[key] == 1 {
				order = append(order, key)
			}
			if k := kindOf(member); kinds[key] == "" || kinds[key] == "null" {
				kinds[key] = k
			}
		}
	}
	fields := make([]string, 0, len(order))
	for _, key := range order[:min(len(order), maxKeys)] {
		mark := ""
		if counts[key] < len(looked) {
			mark = "?"
		}
		fields = append(fields, key+mark+": "+kinds[key])
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func describe(value json.RawMessage) string {
	switch kind := kindOf(value); kind {
	case "array":
		var items []json.RawMessage
		_ = json.Unmarshal(value, &items)
		if len(items) == 0 {
			return "[]"
		}
		return fmt.Sprintf("array of %d: %s", len(items), shapeOf(items))
	case "object", "string":
		if len(value) > 80 {
			return fmt.Sprintf("%s of %d bytes", kind, len(value))
		}
	}
	return string(value)
}

func kindOf(value json.RawMessage) string {
	switch value = bytes.TrimSpace(value); value[0] {
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

// members yields an object's members in the order they are written.
func members(object json.RawMessage) func(yield func(string, json.RawMessage) bool) {
	return func(yield func(string, json.RawMessage) bool) {
		dec := json.NewDecoder(bytes.NewReader(object))
		if _, err := dec.Token(); err != nil {
			return
		}
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return
			}
			var value json.RawMessage
			if dec.Decode(&value) != nil || !yield(fmt.Sprint(key), value) {
				return
			}
		}
	}
}
