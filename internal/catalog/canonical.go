package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
)

// maxDepth bounds the nesting of a definition, so that code that walks it later may recurse. Real schemas stay below
// 30.
const maxDepth = 256

// node holds one value of a JSON text. Its bytes are a slice of that text.
type node struct {
	raw     []byte
	items   []node   // of an array or object
	keys    [][]byte // of an object, as written, parallel to items
	tooDeep bool     // something inside was passed over
}

// parse parses JSON that is known to be valid. It skips arrays and objects that are nested more than depth deep. For
// invalid text the result is undefined, but it does not panic.
func parse(text []byte, depth int) node {
	p := parser{text: text}
	return p.value(depth)
}

type parser struct {
	text []byte
	at   int
}

func (p *parser) value(depth int) node {
	p.space()
	start := p.at
	n := node{}
	switch p.peek() {
	case '{', '[':
		if depth <= 0 {
			p.skip()
			n.tooDeep = true
		} else {
			p.members(&n, depth)
		}
	case '"':
		p.string()
	default:
		p.literal()
	}
	n.raw = p.text[start:p.at]
	return n
}

// members parses an object or array.
func (p *parser) members(n *node, depth int) {
	object := p.next() == '{'
	for {
		p.space()
		switch p.peek() {
		case '}', ']', 0:
			p.next()
			return
		case ',':
			p.next()
			p.space()
		}
		if object {
			n.keys = append(n.keys, p.string())
			p.space()
			p.next() // :
		}
		item := p.value(depth - 1)
		n.tooDeep = n.tooDeep || item.tooDeep
		n.items = append(n.items, item)
	}
}

// string parses a string, quotes included.
func (p *parser) string() []byte {
	start := p.at
	for p.next(); ; {
		switch p.next() {
		case '\\':
			p.next()
		case '"', 0:
			return p.text[start:p.at]
		}
	}
}

func (p *parser) literal() {
	for {
		switch p.peek() {
		case ',', ']', '}', ' ', '\t', '\r', '\n', 0:
			return
		}
		p.next()
	}
}

// skip skips an object or array without parsing it.
func (p *parser) skip() {
	for open := 0; ; {
		switch p.peek() {
		case '"':
			p.string()
			continue
		case '{', '[':
			open++
		case '}', ']':
			open--
		case 0:
			return
		}
		p.next()
		if open == 0 {
			return
		}
	}
}

// peek returns the current byte without consuming it, or 0 at the end.
func (p *parser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *parser) next() byte {
	c := p.peek()
	if p.at < len(p.text) {
		p.at++
	}
	return c
}

func (p *parser) space() {
	for p.at < len(p.text) && p.text[p.at] <= ' ' {
		p.at++
	}
}

// member returns the value of an object's key, the last one if there are several. It returns false for null.
func (n node) member(key string) (node, bool) {
	for i := len(n.keys) - 1; i >= 0; i-- {
		if text, ok := unquote(n.keys[i]); ok && text == key {
			return n.items[i], string(n.items[i].raw) != "null"
		}
	}
	return node{}, false
}

// kind returns the first byte of the value, which determines its JSON type.
func (n node) kind() byte {
	if len(n.raw) == 0 {
		return 0
	}
	return n.raw[0]
}

func (n node) isObject() bool { return n.kind() == '{' }

// unquote decodes a JSON string.
func unquote(quoted []byte) (string, bool) {
	if len(quoted) < 2 || quoted[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1]), true
	}
	var s string
	return s, json.Unmarshal(quoted, &s) == nil
}

// pinned returns the members of a definition that its pin covers: what models and programs rely on, and what clients
// of exposed servers get. Other members are never passed on.
func pinned() []string {
	return []string{"_meta", "annotations", "description", "execution", "icons", "inputSchema", "name", "outputSchema", "title"}
}

// pinnedBefore returns the members that pins of format 1 covered.
func pinnedBefore() []string {
	return []string{"annotations", "description", "inputSchema", "name", "outputSchema", "title"}
}

// pin returns the hex SHA-256 of a definition's canonical form. That is a JSON object with the pinned members that
// are present and not null. It has no white space, keys in byte order, strings with the fewest possible escapes and
// numbers as written. A repeated key is hashed each time, in the given order.
func pin(definition node) string { return pinOver(definition, pinned()) }

// pinOver returns the pin that covers these members, which must be sorted.
func pinOver(definition node, members []string) string {
	form := []byte{'{'}
	for _, key := range members {
		if value, ok := definition.member(key); ok {
			form = append(appendString(form, key), ':')
			form = append(value.appendCanonical(form), ',')
		}
	}
	sum := sha256.Sum256(end(form, '}'))
	return hex.EncodeToString(sum[:])
}

func (n node) appendCanonical(dst []byte) []byte {
	switch n.kind() {
	case '{':
		return n.appendObject(dst)
	case '[':
		dst = append(dst, '[')
		for _, item := range n.items {
			dst = append(item.appendCanonical(dst), ',')
		}
		return end(dst, ']')
	case '"':
		return appendCanonicalString(dst, n.raw)
	}
	return append(dst, n.raw...)
}

func (n node) appendObject(dst []byte) []byte {
	type member struct {
		key   string
		value node
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
	return end(dst, '}')
}

// end closes an array or object. The bracket replaces the last comma.
func end(dst []byte, bracket byte) []byte {
	if last := len(dst) - 1; dst[last] == ',' {
		dst = dst[:last]
	}
	return append(dst, bracket)
}

func appendCanonicalString(dst, quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return append(dst, quoted...)
	}
	text, _ := unquote(quoted)
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
