package bindings

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonKind is the type of a JSON value.
type jsonKind uint8

const (
	jsonNull jsonKind = iota
	jsonBool
	jsonNumber
	jsonString
	jsonArray
	jsonObject
	jsonDeep // nested deeper than maxDepth; its contents are unknown
)

// jsonValue holds a JSON value and keeps the order of an object's members and the digits of a number.
type jsonValue struct {
	kind  jsonKind
	text  string   // of a string; as written: true, false, a number
	raw   string   // as written
	keys  []string // of an object; items are the members' values
	items []*jsonValue
	index map[string]int // from key to item, for large objects
}

// get returns a member of an object, or nil. v may be nil.
func (v *jsonValue) get(key string) *jsonValue {
	if v == nil || v.kind != jsonObject {
		return nil
	}
	if v.index != nil {
		if i, ok := v.index[key]; ok {
			return v.items[i]
		}
		return nil
	}
	for i, k := range v.keys {
		if k == key {
			return v.items[i]
		}
	}
	return nil
}

func (v *jsonValue) hasKind(kind jsonKind) bool { return v != nil && v.kind == kind }

func (v *jsonValue) isTrue() bool  { return v.hasKind(jsonBool) && v.text == "true" }
func (v *jsonValue) isFalse() bool { return v.hasKind(jsonBool) && v.text == "false" }

// stringText returns the text of a string, or "".
func (v *jsonValue) stringText() string {
	if v.hasKind(jsonString) {
		return v.text
	}
	return ""
}

// setMember adds a member. A repeated name replaces the earlier value in its place, as in JSON.parse.
func (v *jsonValue) setMember(key string, item *jsonValue) {
	if i, ok := v.findMember(key); ok {
		v.items[i] = item
		return
	}
	if v.keys == nil {
		const usual = 4
		v.keys, v.items = make([]string, 0, usual), make([]*jsonValue, 0, usual)
	}
	v.keys = append(v.keys, key)
	v.items = append(v.items, item)
	if v.index != nil {
		v.index[key] = len(v.keys) - 1
	} else if len(v.keys) > 16 {
		v.index = make(map[string]int, 64)
		for i, k := range v.keys {
			v.index[k] = i
		}
	}
}

func (v *jsonValue) findMember(key string) (int, bool) {
	if v.index != nil {
		i, ok := v.index[key]
		return i, ok
	}
	for i, k := range v.keys {
		if k == key {
			return i, true
		}
	}
	return 0, false
}

// Bounds on the JSON of one schema: its nesting, its number of values, and its size in bytes.
const (
	maxDepth  = 200
	maxValues = 200_000
	maxBytes  = 16 << 20
)

var (
	errJSON    = errors.New("not valid JSON")
	errTooLong = errors.New("too large")
)

// parseJSON parses raw, which must be exactly one JSON value.
func parseJSON(raw []byte) (*jsonValue, error) {
	if len(raw) > maxBytes {
		return nil, errTooLong
	}
	p := jsonParser{s: string(raw)}
	v, err := p.parseValue(0)
	if err != nil {
		return nil, err
	}
	p.skipSpace()
	if p.i < len(p.s) {
		return nil, errJSON
	}
	return v, nil
}

type jsonParser struct {
	s      string
	i      int
	values int
	slab   []jsonValue // allocated together, not yet used
}

func (p *jsonParser) newValue() *jsonValue {
	const most = 64
	if len(p.slab) == 0 {
		p.slab = make([]jsonValue, min(most, 1+(len(p.s)-p.i)/24))
	}
	v := &p.slab[0]
	p.slab = p.slab[1:]
	return v
}

func (p *jsonParser) skipSpace() {
	for p.i < len(p.s) {
		switch p.s[p.i] {
		case ' ', '\t', '\n', '\r':
			p.i++
		default:
			return
		}
	}
}

// nextByte skips white space and returns the following byte, or 0 at the end.
func (p *jsonParser) nextByte() byte {
	p.skipSpace()
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

func (p *jsonParser) parseValue(depth int) (*jsonValue, error) {
	c := p.nextByte()
	start := p.i
	if p.values++; p.values > maxValues {
		return nil, errTooLong
	}
	v := p.newValue()
	var err error
	switch {
	case (c == '{' || c == '[') && depth >= maxDepth:
		v.kind, err = jsonDeep, p.skipNested()
	case c == '{':
		v.kind, err = jsonObject, p.parseMembers(v, depth)
	case c == '[':
		v.kind, err = jsonArray, p.parseElements(v, depth)
	case c == '"':
		v.kind = jsonString
		v.text, err = p.parseString()
	default:
		err = p.parseScalar(v)
	}
	v.raw = p.s[start:p.i]
	return v, err
}

func (p *jsonParser) parseScalar(v *jsonValue) error {
	start := p.i
	for p.i < len(p.s) && strings.IndexByte("+-.0123456789Eabcdefghijklmnopqrstuvwxyz", p.s[p.i]) >= 0 {
		p.i++
	}
	v.text = p.s[start:p.i]
	switch {
	case v.text == "null":
		v.kind = jsonNull
	case v.text == "true", v.text == "false":
		v.kind = jsonBool
	case isNumber(v.text):
		v.kind = jsonNumber
	default:
		return errJSON
	}
	return nil
}

func (p *jsonParser) parseMembers(v *jsonValue, depth int) error {
	p.i++
	if p.nextByte() == '}' {
		p.i++
		return nil
	}
	for {
		if p.nextByte() != '"' {
			return errJSON
		}
		key, err := p.parseString()
		if err != nil {
			return err
		}
		if p.nextByte() != ':' {
			return errJSON
		}
		p.i++
		item, err := p.parseValue(depth + 1)
		if err != nil {
			return err
		}
		v.setMember(key, item)
		if done, err := p.parseSeparator('}'); done || err != nil {
			return err
		}
	}
}

func (p *jsonParser) parseElements(v *jsonValue, depth int) error {
	p.i++
	if p.nextByte() == ']' {
		p.i++
		return nil
	}
	for {
		item, err := p.parseValue(depth + 1)
		if err != nil {
			return err
		}
		v.items = append(v.items, item)
		if done, err := p.parseSeparator(']'); done || err != nil {
			return err
		}
	}
}

// parseSeparator reads the comma or closing bracket after an item.
func (p *jsonParser) parseSeparator(closing byte) (done bool, err error) {
	switch p.nextByte() {
	case ',':
		p.i++
		return false, nil
	case closing:
		p.i++
		return true, nil
	}
	return false, errJSON
}

// skipNested skips an object or array without recursion.
func (p *jsonParser) skipNested() error {
	for depth := 0; p.i < len(p.s); {
		switch p.s[p.i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			if _, err := p.parseString(); err != nil {
				return err
			}
			continue
		}
		p.i++
		if depth == 0 {
			return nil
		}
	}
	return errJSON
}

// parseString reads a string. Lone surrogates and invalid UTF-8 become U+FFFD.
func (p *jsonParser) parseString() (string, error) {
	p.i++
	start := p.i
	for p.i < len(p.s) {
		switch c := p.s[p.i]; {
		case c == '"':
			p.i++
			return toValidUTF8(p.s[start : p.i-1]), nil
		case c == '\\':
			return p.parseEscaped(start)
		case c < ' ':
			return "", errJSON
		}
		p.i++
	}
	return "", errJSON
}

// parseEscaped reads the rest of a string that has escapes.
func (p *jsonParser) parseEscaped(start int) (string, error) {
	b := []byte(p.s[start:p.i])
	for p.i < len(p.s) {
		c := p.s[p.i]
		p.i++
		switch {
		case c == '"':
			return toValidUTF8(string(b)), nil
		case c < ' ':
			return "", errJSON
		case c != '\\':
			b = append(b, c)
		default:
			r, ok := p.parseEscape()
			if !ok {
				return "", errJSON
			}
			b = utf8.AppendRune(b, r)
		}
	}
	return "", errJSON
}

// toValidUTF8 replaces invalid UTF-8.
func toValidUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.Map(func(r rune) rune { return r }, s)
}

const escapeLetters = `"\/bfnrt`

// parseEscape reads the escape after a backslash.
func (p *jsonParser) parseEscape() (rune, bool) {
	if p.i >= len(p.s) {
		return 0, false
	}
	c := p.s[p.i]
	p.i++
	if c != 'u' {
		at := strings.IndexByte(escapeLetters, c)
		if at < 0 {
			return 0, false
		}
		return rune("\"\\/\b\f\n\r\t"[at]), true
	}
	r, ok := p.parseHex()
	if !ok || !utf16.IsSurrogate(r) {
		return r, ok
	}
	if strings.HasPrefix(p.s[p.i:], `\u`) {
		back := p.i
		p.i += 2
		if low, ok := p.parseHex(); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, true
			}
		}
		p.i = back
	}
	return utf8.RuneError, true
}

func (p *jsonParser) parseHex() (rune, bool) {
	if p.i+4 > len(p.s) {
		return 0, false
	}
	n, err := strconv.ParseUint(p.s[p.i:p.i+4], 16, 16)
	if err != nil {
		return 0, false
	}
	p.i += 4
	return rune(n), true
}

// isNumber reports whether s is a JSON number.
func isNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	whole, s := splitDigits(s)
	if whole == "" || len(whole) > 1 && whole[0] == '0' {
		return false
	}
	if rest, ok := strings.CutPrefix(s, "."); ok {
		var fraction string
		if fraction, s = splitDigits(rest); fraction == "" {
			return false
		}
	}
	if s == "" {
		return true
	}
	if s[0] != 'e' && s[0] != 'E' {
		return false
	}
	s = s[1:]
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	exponent, rest := splitDigits(s)
	return exponent != "" && rest == ""
}

func splitDigits(s string) (head, rest string) {
	i := 0
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	return s[:i], s[i:]
}
