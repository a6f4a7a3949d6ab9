package clientfiles

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// fileFormat reads and edits files of one syntax: JSON, TOML or YAML. Its methods work on the text of a file and
// do not access the disk.
type fileFormat interface {
	// readMembers returns the servers that a file lists, in their order. The argument at holds the keys that lead to
	// the object with the servers. A file without that object has no servers.
	readMembers(src []byte, at []string) ([]objectMember, error)
	// editMembers edits one object in a file, namely the object to which the keys in the argument at lead. It removes
	// the members whose names the argument out lists, and inserts the members in the argument in: in the place of the
	// first removed member, or after the last member if none is removed. All other bytes of the file stay unchanged.
	editMembers(src []byte, at, out []string, in []objectMember) ([]byte, error)
	// decodeAll returns the content of the whole file as decoded values.
	decodeAll(src []byte) (map[string]any, error)
}

// objectMember holds one member of the object that lists a client's servers: a server's name and its entry.
type objectMember struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
	// Text is the entry as the file spells it. It is empty for a new entry.
	Text string `json:"text,omitempty"`
}

const (
	maxFile  = 64 << 20 // size of a client's file, in bytes; some clients store their history in it
	maxDepth = 200      // nested brackets
)

// memberChange describes an edit of one object of servers: the names to remove and the members to insert.
type memberChange struct {
	at, out []string
	in      []objectMember
}

// editOnce edits one object of servers in a file, as editMembers does, and returns the new content of the file. It
// then decodes the new content, and returns an error unless exactly the named members were removed and inserted.
func editOnce(f fileFormat, src []byte, at, out []string, in []objectMember) ([]byte, error) {
	return applyChanges(f, src, []memberChange{{at, out, in}})
}

// applyChanges edits several objects of servers in a file and returns the new content of the file. It checks the new
// content as editOnce does.
func applyChanges(f fileFormat, src []byte, changes []memberChange) (_ []byte, err error) {
	changes = slices.DeleteFunc(slices.Clone(changes), func(c memberChange) bool { return len(c.out) == 0 && len(c.in) == 0 })
	if len(changes) == 0 {
		return src, nil
	}
	want, err := f.decodeAll(src)
	if err != nil {
		return nil, err
	}
	result := src
	for _, c := range changes {
		if result, err = f.editMembers(result, c.at, c.out, c.in); err != nil {
			return nil, err
		}
		if want, err = replaceMembers(want, c); err != nil {
			return nil, err
		}
	}
	after, err := f.decodeAll(result)
	if err != nil {
		return nil, fmt.Errorf("it cannot be edited safely: %w", err)
	}
	for _, c := range changes {
		want, after = pruneEmpty(want, c.at), pruneEmpty(after, c.at)
	}
	if !sameJSON(want, after) {
		return nil, fmt.Errorf("it is written in a way that cannot be edited safely")
	}
	return result, nil
}

// replaceMembers returns the decoded content of a file after a change of one object in it: members are removed and
// inserted. It does not modify its argument whole, the content before the change.
func replaceMembers(whole map[string]any, c memberChange) (map[string]any, error) {
	whole, object := clonePath(whole, c.at)
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

// clonePath copies whole, the decoded content of a file, so that the caller may modify one object in the copy. The
// keys in the argument at lead to this object. clonePath returns the copy and the object. Missing objects on the way
// are created.
func clonePath(whole map[string]any, at []string) (all, object map[string]any) {
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

// pruneEmpty returns the decoded content of a file without the object to which the keys in the argument at lead, if
// that object is empty. Two files can then be compared in which an empty object means the same as a missing one.
func pruneEmpty(whole map[string]any, at []string) map[string]any {
	last := at[len(at)-1]
	parent, err := objectAt(whole, at[:len(at)-1])
	if err != nil || parent == nil {
		return whole
	}
	if o, ok := parent[last].(map[string]any); ok && len(o) == 0 || parent[last] == nil {
		all, copied := clonePath(whole, at[:len(at)-1])
		delete(copied, last)
		return all
	}
	return whole
}

// sameJSON reports whether two decoded values are equal. Numbers that come from files of different formats are equal
// if they are written in the same way in JSON.
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

// objectAt returns the object at the key path at in a decoded file, or nil.
func objectAt(whole map[string]any, at []string) (map[string]any, error) {
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

// tooDeep returns an error if the brackets in src are nested so deeply that a recursive parser could fail. Brackets
// in double quotes do not count. A quoted text is assumed to end with its line at the latest.
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

// lineBreak returns the line ending of a file.
func lineBreak(src []byte) string {
	if bytes.Contains(src, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// marshalCompact returns a value as JSON on one line, without the escapes for HTML.
func marshalCompact(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// marshalSorted returns an object as JSON with its keys in the usual order: the command comes before its arguments.
func marshalSorted(o map[string]any) (json.RawMessage, error) {
	b := []byte("{")
	for i, key := range sortedKeys(o) {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := marshalCompact(key)
		if err != nil {
			return nil, err
		}
		value, err := marshalCompact(o[key])
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

// lineStart returns the offset at which the line begins that contains the byte at the given offset.
func lineStart(src []byte, offset int) int {
	return bytes.LastIndexByte(src[:offset], '\n') + 1
}

// lineEnd returns the offset of the first byte after the line that contains the byte at the given offset.
func lineEnd(src []byte, offset int) int {
	if i := bytes.IndexByte(src[offset:], '\n'); i >= 0 {
		return offset + i + 1
	}
	return len(src)
}

// byteSpan marks a part of a file: src[from:to].
type byteSpan struct{ from, to int }

// cutSpans returns src without the given spans and with text inserted. The argument at is the offset in src at which
// text is inserted. It must not be inside a span.
func cutSpans(src []byte, spans []byteSpan, at int, text string) []byte {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b byteSpan) int { return a.from - b.from })
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

func memberNames(members []objectMember) []string {
	list := make([]string, len(members))
	for i, m := range members {
		list[i] = m.Name
	}
	return list
}
