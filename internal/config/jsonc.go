package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	maxDepth = 200     // of nesting
	maxNodes = 1 << 20 // values in one file
)

// syntaxError reports a file that is not valid JSON or YAML.
type syntaxError struct {
	line, column int
	message      string
}

func (e *syntaxError) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.line, e.column, e.message)
}

// parseJSON parses JSON as the editors of clients' files accept it: with // and /* */ comments, trailing commas, and
// a byte order mark. It keeps positions and repeated keys. Its error is a *syntaxError.
func parseJSON(src []byte) (*node, error) {
	p := &jsonParser{src: strings.TrimPrefix(string(src), "\ufeff"), line: 1, column: 1}
	n, err := p.document()
	if err != nil {
		return nil, err
	}
	return n, nil
}

type jsonParser struct {
	src          string
	pos          int // next byte
	line, column int // of the next character
	nodes        int
}

// fail reports a syntax error at the next character.
func (p *jsonParser) fail(format string, args ...any) *syntaxError {
	return &syntaxError{p.line, p.column, fmt.Sprintf(format, args...)}
}

func (p *jsonParser) document() (*node, *syntaxError) {
	if err := p.space(); err != nil {
		return nil, err
	}
	if p.pos == len(p.src) {
		return nil, p.fail("the file is empty; the least is {}")
	}
	n, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if err := p.space(); err != nil {
		return nil, err
	}
	if p.pos < len(p.src) {
		return nil, p.fail("there is more after the end of the value: %s", p.peeked())
	}
	return n, nil
}

// peek returns the next byte, or 0 at the end.
func (p *jsonParser) peek() byte {
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

// peeked describes the next character for an error message.
func (p *jsonParser) peeked() string {
	if p.pos == len(p.src) {
		return "the end of the file"
	}
	r, _ := utf8.DecodeRuneInString(p.src[p.pos:])
	return fmt.Sprintf("%q", r)
}

// advance skips n bytes, which must end at the end of a character.
func (p *jsonParser) advance(n int) {
	for _, r := range p.src[p.pos : p.pos+n] {
		if r == '\n' {
			p.line, p.column = p.line+1, 1
		} else {
			p.column++
		}
	}
	p.pos += n
}

// space skips white space and comments.
func (p *jsonParser) space() *syntaxError {
	for p.pos < len(p.src) {
		rest := p.src[p.pos:]
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			p.advance(1)
		case strings.HasPrefix(rest, "//"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			p.advance(end)
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return p.fail("the comment that begins here has no end")
			}
			p.advance(end + 4)
		default:
			return nil
		}
	}
	return nil
}

func (p *jsonParser) value(depth int) (*node, *syntaxError) {
	if p.nodes++; p.nodes > maxNodes {
		return nil, p.fail("the file has more than %d values", maxNodes)
	}
	if depth > maxDepth {
		return nil, p.fail("values are nested more than %d deep", maxDepth)
	}
	n := &node{line: p.line, column: p.column}
	var err *syntaxError
	switch c := p.peek(); {
	case c == '{':
		n.kind = objectKind
		err = p.object(n, depth)
	case c == '[':
		n.kind = listKind
		err = p.list(n, depth)
	case c == '"':
		n.kind = textKind
		n.text, err = p.text()
	case c == '-' || '0' <= c && c <= '9':
		n.kind = numberKind
		n.text, err = p.number()
	default:
		err = p.word(n)
	}
	return n, err
}

func (p *jsonParser) object(n *node, depth int) *syntaxError {
	return p.sequence('}', func() *syntaxError {
		key := &node{kind: textKind, line: p.line, column: p.column}
		if p.peek() != '"' {
			return p.fail("expected a key in double quotes or }, found %s", p.peeked())
		}
		var err *syntaxError
		if key.text, err = p.text(); err != nil {
			return err
		}
		if err := p.space(); err != nil {
			return err
		}
		if p.peek() != ':' {
			return p.fail("expected : after the key %q, found %s", shorten(key.text), p.peeked())
		}
		p.advance(1)
		if err := p.space(); err != nil {
			return err
		}
		value, err := p.value(depth + 1)
		n.entries = append(n.entries, entry{key, value})
		return err
	})
}

func (p *jsonParser) list(n *node, depth int) *syntaxError {
	return p.sequence(']', func() *syntaxError {
		item, err := p.value(depth + 1)
		n.items = append(n.items, item)
		return err
	})
}

// sequence parses the elements between two brackets, up to and including the closing one.
func (p *jsonParser) sequence(closing byte, element func() *syntaxError) *syntaxError {
	line, column := p.line, p.column
	p.advance(1)
	for {
		if err := p.space(); err != nil {
			return err
		}
		if p.pos == len(p.src) {
			return &syntaxError{line, column, fmt.Sprintf("the bracket that begins here has no %c", closing)}
		}
		if p.peek() == closing {
			p.advance(1)
			return nil
		}
		if err := element(); err != nil {
			return err
		}
		if err := p.space(); err != nil {
			return err
		}
		switch {
		case p.peek() == ',':
			p.advance(1)
		case p.peek() != closing && p.pos < len(p.src):
			return p.fail("expected a comma or %c, found %s", closing, p.peeked())
		}
	}
}

// word parses true, false or null.
func (p *jsonParser) word(n *node) *syntaxError {
	end := p.pos
	for end < len(p.src) && ('a' <= p.src[end] && p.src[end] <= 'z' || 'A' <= p.src[end] && p.src[end] <= 'Z') {
		end++
	}
	switch n.text = p.src[p.pos:end]; n.text {
	case "true", "false":
		n.kind = boolKind
	case "null":
		n.kind = nullKind
	case "":
		return p.fail("expected a value, found %s", p.peeked())
	default:
		return p.fail("expected a value, found %s; strings need double quotes", shorten(n.text))
	}
	p.advance(len(n.text))
	return nil
}

func (p *jsonParser) number() (string, *syntaxError) {
	end := p.pos
	for end < len(p.src) && strings.IndexByte("+-.eE0123456789", p.src[end]) >= 0 {
		end++
	}
	s := p.src[p.pos:end]
	if !json.Valid([]byte(s)) {
		return "", p.fail("%s is not a number", shorten(s))
	}
	p.advance(len(s))
	return s, nil
}

// text parses a string in double quotes.
func (p *jsonParser) text() (string, *syntaxError) {
	begin := *p
	p.advance(1)
	var b strings.Builder
	for p.pos < len(p.src) {
		switch c := p.src[p.pos]; {
		case c == '"':
			p.advance(1)
			return b.String(), nil
		case c == '\\':
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
		case c == '\n':
			return "", p.fail("the line ends inside a string; write \\n for a line break")
		case c < ' ':
			return "", p.fail("control character %q inside a string; write it as an escape", c)
		default:
			r, size := utf8.DecodeRuneInString(p.src[p.pos:])
			if r == utf8.RuneError && size == 1 {
				return "", p.fail("the file is not UTF-8")
			}
			b.WriteString(p.src[p.pos : p.pos+size])
			p.advance(size)
		}
	}
	return "", begin.fail("the string that begins here has no closing quote")
}

// escape parses one escape, or two that are the halves of a surrogate pair. A lone half becomes U+FFFD, as in
// encoding/json.
func (p *jsonParser) escape() (rune, *syntaxError) {
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	rest := p.src[p.pos:]
	if len(rest) > 1 {
		if i := strings.IndexByte(from, rest[1]); i >= 0 {
			p.advance(2)
			return rune(to[i]), nil
		}
	}
	high, ok := unicodeEscape(rest)
	if !ok {
		return 0, p.fail("unknown escape in a string; a backslash itself is written \\\\")
	}
	p.advance(6)
	if !utf16.IsSurrogate(high) {
		return high, nil
	}
	low, _ := unicodeEscape(p.src[p.pos:])
	r := utf16.DecodeRune(high, low)
	if r != utf8.RuneError {
		p.advance(6)
	}
	return r, nil
}

// unicodeEscape parses \uXXXX at the beginning of s.
func unicodeEscape(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range []byte(s[2:6]) {
		digit := strings.IndexByte("0123456789abcdef", c|0x20)
		if digit < 0 || c < '0' {
			return 0, false
		}
		r = r<<4 | rune(digit)
	}
	return r, true
}
