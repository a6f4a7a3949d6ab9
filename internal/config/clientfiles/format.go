package clientfiles

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// format reads and edits files of one kind. Its functions are pure.
type format interface {
	// members are the servers in the object below the keys at, in the order of the
	// file. A file without that object has none.
	members(src []byte, at []string) ([]member, error)
	// edit takes members out of that object and puts others in, where the first one
	// that goes was, else behind the last. All other bytes stay as they are.
	edit(src []byte, at, out []string, in []member) ([]byte, error)
	// decode is the whole file.
	decode(src []byte) (map[string]any, error)
}

// member represents one entry of an object of servers.
type member struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
	// Text is how the file writes it; empty for one that is new.
	Text string `json:"text,omitempty"`
}

const (
	maxFile  = 64 << 20 // bytes of a client's file; some keep their history in it
	maxDepth = 200      // of brackets
)

// change describes what goes out of one object of servers, and what goes in.
type change struct {
	at, out []string
	in      []member
}

// edited returns what edit makes of src, if reading it back shows that the right members went and came, and that
// nothing else did.
func edited(f format, src []byte, at, out []string, in []member) ([]byte, error) {
	return editedAll(f, src, []change{{at, out, in}})
}

// editedAll is edited for several objects at once.
func editedAll(f format, src []byte, changes []change) (_ []byte, err error) {
	changes = slices.DeleteFunc(slices.Clone(changes), func(c change) bool { return len(c.out) == 0 && len(c.in) == 0 })
	if len(changes) == 0 {
		return src, nil
	}
	want, err := f.decode(src)
	if err != nil {
		return nil, err
	}
	result := src
	for _, c := range changes {
		if result, err = f.edit(result, c.at, c.out, c.in); err != nil {
			return nil, err
		}
		if want, err = replaced(want, c); err != nil {
			return nil, err
		}
	}
	after, err := f.decode(result)
	if err != nil {
		return nil, fmt.Errorf("it cannot be edited safely: %w", err)
	}
	for _, c := range changes {
		want, after = prune(want, c.at), prune(after, c.at)
	}
	if !sameJSON(want, after) {
		return nil, fmt.Errorf("it is written in a way that cannot be edited safely")
	}
	return result, nil
}

// replaced is edit on what a file says instead of on its text. whole stays as it is.
func replaced(whole map[string]any, c change) (map[string]any, error) {
	whole, object := within(whole, c.at)
	for _, name := range c.out {
		delete(object, name)
	}
	for _, m := range c.in {
		dec := json.NewDecoder(bytes.NewReader(m.Value))
		dec.UseNumber()
		var value any
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		object[m.Name] = value
	}
	return whole, nil
}

// within returns a copy of whole of which the object below the keys at, which is there then, may be changed.
func within(whole map[string]any, at []string) (all, object map[string]any) {
	all = maps.Clone(whole)
	if all == nil {
		all = map[string]any{}
	}
	object = all
	for _, key := range at {
		next, _ := object[key].(map[string]any)
		if next = maps.Clone(next); next == nil {
			next = map[string]any{}
		}
		object[key] = next
		object = next
	}
	return all, object
}

// prune is whole without the object below the keys at if that is empty: it is the same as none.
func prune(whole map[string]any, at []string) map[string]any {
	last := at[len(at)-1]
	parent, err := object(whole, at[:len(at)-1])
	if err != nil || parent == nil {
		return whole
	}
	if o, ok := parent[last].(map[string]any); ok && len(o) == 0 || parent[last] == nil {
		all, copied := within(whole, at[:len(at)-1])
		delete(copied, last)
		return all
	}
	return whole
}

// sameJSON compares what two values say. Numbers of different formats are the same
// if JSON writes them the same.
func sameJSON(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && len(x) == len(y) && maps.EqualFunc(x, y, sameJSON)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, sameJSON)
	case string:
		if y, ok := b.(string); ok {
			return x == y
		}
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// object returns the object below the keys at of a decoded file, nil if there is none.
func object(whole map[string]any, at []string) (map[string]any, error) {
	for i, key := range at {
		value, there := whole[key]
		if !there || value == nil {
			return nil, nil
		}
		next, ok := value.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s is not an object", strings.Join(at[:i+1], "."))
		}
		whole = next
	}
	return whole, nil
}

// tooDeep guards parsers that recurse: it counts brackets outside of texts on one line.
func tooDeep(src []byte) error {
	depth, quoted := 0, false
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case c == '\n':
			quoted = false
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return fmt.Errorf("it is nested more than %d deep", maxDepth)
			}
		case (c == '}' || c == ']') && depth > 0:
			depth--
		}
	}
	return nil
}

// newline returns how a file ends its lines.
func newline(src []byte) string {
	if bytes.Contains(src, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// compact returns a value as JSON in one line, without escapes that only HTML needs.
func compact(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// ordered returns an object as JSON, its keys as people write them: a command first.
func ordered(o map[string]any) (json.RawMessage, error) {
	b := []byte("{")
	for i, key := range sortedKeys(o) {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := compact(key)
		if err != nil {
			return nil, err
		}
		value, err := compact(o[key])
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

// lineStart returns where the line with the byte at offset begins.
func lineStart(src []byte, offset int) int {
	return bytes.LastIndexByte(src[:offset], '\n') + 1
}

// lineEnd returns where the line after the one with the byte at offset begins.
func lineEnd(src []byte, offset int) int {
	if i := bytes.IndexByte(src[offset:], '\n'); i >= 0 {
		return offset + i + 1
	}
	return len(src)
}

// span represents a part of a file: src[from:to].
type span struct{ from, to int }

// cut takes spans out of src and puts text in at an offset that lies in none of them.
func cut(src []byte, spans []span, at int, text string) []byte {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	var b bytes.Buffer
	done, written := 0, false
	put := func(upTo int) {
		if !written && at <= upTo {
			b.Write(src[done:at])
			b.WriteString(text)
			done, written = at, true
		}
		b.Write(src[done:upTo])
	}
	for _, s := range spans {
		put(s.from)
		done = s.to
	}
	put(len(src))
	return b.Bytes()
}

func names(members []member) []string {
	list := make([]string, len(members))
	for i, m := range members {
		list[i] = m.Name
	}
	return list
}
