package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"

	"retort/internal/base/jsonscan"
)

// maxDepth bounds the nesting depth of a definition, so that recursive code is safe. Real schemas have a depth below
// 30.
const maxDepth = 256

// jsonNode is one value in a JSON text. Its bytes are a slice of that text.
type jsonNode struct {
	raw     []byte
	items   []jsonNode // values of an array or object
	keys    [][]byte   // keys of an object as written, parallel to items
	tooDeep bool       // values nested too deeply were skipped
}

// parseJSON parses JSON that is known to be valid. Arrays and objects nested more than depth deep are skipped. For
// invalid text, the result is undefined, but parseJSON does not panic.
func parseJSON(text []byte, depth int) jsonNode {
	return parseValue(&jsonscan.Cursor{Text: text}, depth)
}

func parseValue(c *jsonscan.Cursor, depth int) (n jsonNode) {
	first := c.Next()
	start := c.At
	switch {
	case first == '"':
		c.ReadString()
	case first != '{' && first != '[':
		c.ReadWord()
	case depth <= 0:
		c.SkipValue()
		n.tooDeep = true
	default:
		parseMembers(c, &n, depth)
	}
	n.raw = c.Text[start:c.At]
	return n
}

// parseMembers parses an object or array.
func parseMembers(c *jsonscan.Cursor, n *jsonNode, depth int) {
	object := c.Accept('{') || !c.Accept('[')
	for !c.Accept('}') && !c.Accept(']') && c.Next() != 0 {
		c.Accept(',')
		if object {
			c.Next()
			key, _, _ := c.ReadString()
			n.keys = append(n.keys, key)
			c.Accept(':')
		}
		before := c.At
		item := parseValue(c, depth-1)
		n.tooDeep = n.tooDeep || item.tooDeep
		n.items = append(n.items, item)
		if c.At == before {
			return // not JSON
		}
	}
}

// findMember returns the value of a key in an object; if the key occurs more than once, the last value. ok is false
// if the key is missing or its value is null.
func (n jsonNode) findMember(key string) (jsonNode, bool) {
	for i := len(n.keys) - 1; i >= 0; i-- {
		if text, ok := unquoteJSON(n.keys[i]); ok && text == key {
			return n.items[i], string(n.items[i].raw) != "null"
		}
	}
	return jsonNode{}, false
}

// firstByte returns the first byte of the value, which determines its JSON type.
func (n jsonNode) firstByte() byte {
	if len(n.raw) == 0 {
		return 0
	}
	return n.raw[0]
}

func (n jsonNode) isObject() bool { return n.firstByte() == '{' }

// unquoteJSON decodes a JSON string.
func unquoteJSON(quoted []byte) (string, bool) {
	if len(quoted) < 2 || quoted[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1]), true
	}
	var s string
	return s, json.Unmarshal(quoted, &s) == nil
}

// pinnedMemberNames returns the names of those members of a definition that its pin (hash) covers: the members that
// models and programs rely on, and those that are sent to clients of exposed servers. Retort passes no other
// member on.
func pinnedMemberNames() []string {
	return []string{"_meta", "annotations", "description", "execution", "icons", "inputSchema", "name", "outputSchema", "title"}
}

// pinnedMemberNamesV1 returns the names of those members of a definition that its pin (hash) covered in format 1
// of the file with trusted definitions.
func pinnedMemberNamesV1() []string {
	return []string{"annotations", "description", "inputSchema", "name", "outputSchema", "title"}
}

// computePin returns the pin of a definition: the SHA-256 of its canonical form, in hex. The canonical form is a JSON
// object with those pinned members that are present and not null. It has no white space, keys in byte order, strings
// with as few escapes as possible, and numbers as written. If a key occurs more than once, all its values are
// included in their order.
func computePin(definition jsonNode) string { return pinOver(definition, pinnedMemberNames()) }

// pinOver returns the pin (hash) of a definition over the given members, which must be sorted.
func pinOver(definition jsonNode, members []string) string {
	form := []byte{'{'}
	for _, key := range members {
		if value, ok := definition.findMember(key); ok {
			form = append(appendString(form, key), ':')
			form = append(value.appendCanonical(form), ',')
		}
	}
	sum := sha256.Sum256(closeBracket(form, '}'))
	return hex.EncodeToString(sum[:])
}

func (n jsonNode) appendCanonical(dst []byte) []byte {
	switch n.firstByte() {
	case '{':
		return n.appendObject(dst)
	case '[':
		dst = append(dst, '[')
		for _, item := range n.items {
			dst = append(item.appendCanonical(dst), ',')
		}
		return closeBracket(dst, ']')
	case '"':
		return appendCanonicalString(dst, n.raw)
	}
	return append(dst, n.raw...)
}

func (n jsonNode) appendObject(dst []byte) []byte {
	type member struct {
		key   string
		value jsonNode
	}
	members := make([]member, len(n.keys))
	for i := range n.keys {
		members[i] = member{string(appendCanonicalString(nil, n.keys[i])), n.items[i]}
	}
	slices.SortStableFunc(members, func(a, b member) int { return bytes.Compare([]byte(a.key), []byte(b.key)) })
	dst = append(dst, '{')
	for _, m := range members {
		dst = append(append(dst, m.key...), ':')
		dst = append(m.value.appendCanonical(dst), ',')
	}
	return closeBracket(dst, '}')
}

// closeBracket ends an array or object in dst: it replaces the comma after the last item by the closing bracket.
func closeBracket(dst []byte, bracket byte) []byte {
	if last := len(dst) - 1; dst[last] == ',' {
		dst = dst[:last]
	}
	return append(dst, bracket)
}

func appendCanonicalString(dst, quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return append(dst, quoted...)
	}
	text, _ := unquoteJSON(quoted)
	return appendString(dst, text)
}

// appendString appends a quoted string with no more escapes than JSON requires.
func appendString(dst []byte, text string) []byte {
	dst = append(dst, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x10:
			dst = strconv.AppendUint(append(dst, `\u000`...), uint64(c), 16)
		case c < 0x20:
			dst = strconv.AppendUint(append(dst, `\u00`...), uint64(c), 16)
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
