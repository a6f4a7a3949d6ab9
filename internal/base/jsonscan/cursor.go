package jsonscan

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Cursor reads JSON that is in memory. It finds the ends of values, but does not check the values. For text that is
// not valid JSON its results are arbitrary, but it never reads outside of Text. Use a Scanner to check JSON.
type Cursor struct {
	Text []byte
	At   int // offset in Text of the next byte to read
}

// Next skips white space and returns the byte after it. It does not move past that byte. It returns 0 at the end of
// the text.
func (c *Cursor) Next() byte {
	for c.At < len(c.Text) {
		switch b := c.Text[c.At]; b {
		case ' ', '\t', '\n', '\r':
			c.At++
		default:
			return b
		}
	}
	return 0
}

// Accept skips white space. If the next byte is b, Accept reads it and returns true. Otherwise it returns false.
func (c *Cursor) Accept(b byte) bool {
	if c.Next() != b || c.At >= len(c.Text) {
		return false
	}
	c.At++
	return true
}

// ReadString reads the string that begins at offset At, and returns it with its quotes. escaped reports whether the
// string contains escapes. ok is false if no string begins at At or if the string does not end.
func (c *Cursor) ReadString() (quoted []byte, escaped, ok bool) {
	start := c.At
	if start >= len(c.Text) || c.Text[start] != '"' {
		return nil, false, false
	}
	end, escaped := StringEnd(c.Text, start+1)
	if end == len(c.Text) {
		c.At = end
		return c.Text[start:], escaped, false
	}
	c.At = end + 1
	return c.Text[start:c.At], escaped, true
}

// ReadWord reads and returns a number, true, false or null. It takes all bytes up to a comma, a closing bracket or
// white space.
func (c *Cursor) ReadWord() []byte {
	start := c.At
	for c.At < len(c.Text) {
		switch c.Text[c.At] {
		case ',', ']', '}', ' ', '\t', '\n', '\r':
			return c.Text[start:c.At]
		}
		c.At++
	}
	return c.Text[start:]
}

// SkipValue skips white space and the value after it. It returns false if there is no value or if the value does not
// end.
func (c *Cursor) SkipValue() bool {
	switch c.Next() {
	case '{', '[':
		c.At++
		return c.SkipOpen()
	case '"':
		_, _, ok := c.ReadString()
		return ok
	case 0, ',', ']', '}', ':':
		return false
	}
	c.ReadWord()
	return true
}

// SkipOpen skips the rest of the innermost open object or array, including its closing bracket. It returns false if
// the closing bracket is missing.
func (c *Cursor) SkipOpen() bool {
	for open := 1; c.At < len(c.Text); {
		switch c.Text[c.At] {
		case '"':
			if _, _, ok := c.ReadString(); !ok {
				return false
			}
			continue
		case '{', '[':
			open++
		case '}', ']':
			open--
		}
		if c.At++; open == 0 {
			return true
		}
	}
	return false
}

// StringEnd returns the offset of the closing quote of a string whose contents begin at i. It returns len(text) if the
// string does not end. escaped reports whether the string contains escapes.
func StringEnd(text []byte, i int) (end int, escaped bool) {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for {
		for i+8 <= len(text) {
			x := binary.LittleEndian.Uint64(text[i:])
			q, b := x^ones*'"', x^ones*'\\'
			if hit := ((q-ones)&^q | (b-ones)&^b) & highs; hit != 0 {
				i += bits.TrailingZeros64(hit) / 8
				break
			}
			i += 8
		}
		for i < len(text) && text[i] != '"' && text[i] != '\\' {
			i++
		}
		if i >= len(text) || text[i] == '"' {
			return i, escaped
		}
		escaped = true
		i = min(i+2, len(text))
	}
}

// Items returns an iterator over the items of an array. Each item is the part of the text that contains it. array must
// be valid JSON.
func Items(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		c := Cursor{Text: array}
		for open := c.Accept('['); open && c.Next() != ']'; c.Accept(',') {
			start := c.At
			if !c.SkipValue() || !yield(array[start:c.At]) {
				return
			}
		}
	}
}

// Members returns an iterator over the members of an object, in the order of the text. It yields the key, quoted as in
// the text, and the value. object must be valid JSON.
func Members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		c := Cursor{Text: object}
		for open := c.Accept('{'); open && c.Next() == '"'; c.Accept(',') {
			key, _, _ := c.ReadString()
			c.Accept(':')
			c.Next()
			start := c.At
			if !c.SkipValue() || !yield(key, object[start:c.At]) {
				return
			}
		}
	}
}

// IsNumber reports whether s is a JSON number.
func IsNumber(s string) bool {
	n := begin
	for i := range len(s) {
		if n = n.nextState(s[i]); n == none {
			return false
		}
	}
	return n.isComplete()
}

// Unquote decodes a quoted JSON string as encoding/json does. Unpaired surrogates and invalid UTF-8 become U+FFFD. ok
// is false if the string is not valid. The result may share memory with quoted.
func Unquote(quoted string) (text string, ok bool) {
	if len(quoted) < 2 || quoted[0] != '"' || quoted[len(quoted)-1] != '"' {
		return "", false
	}
	s := quoted[1 : len(quoted)-1]
	if plainLength([]byte(s)) < len(s) {
		return unquoteEscaped(s)
	}
	return toValidUTF8(s), true
}

// unquoteEscaped decodes the contents of a string that may have escapes.
func unquoteEscaped(s string) (text string, ok bool) {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c < ' ' || c == '"':
			return "", false
		case c != '\\':
			b = append(b, c)
			i++
		default:
			r, n := decodeEscape(s[i:])
			if n == 0 {
				return "", false
			}
			b = utf8.AppendRune(b, r)
			i += n
		}
	}
	return toValidUTF8(string(b)), true
}

func toValidUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.Map(func(r rune) rune { return r }, s)
}

// decodeEscape decodes the escape sequence at the start of s, or the two sequences of a surrogate pair. n is the
// number of bytes that it has decoded, or 0 if the sequence is invalid.
func decodeEscape(s string) (r rune, n int) {
	if len(s) < 2 {
		return 0, 0
	}
	if s[1] != 'u' {
		at := strings.IndexByte(`"\/bfnrt`, s[1])
		if at < 0 {
			return 0, 0
		}
		return rune("\"\\/\b\f\n\r\t"[at]), 2
	}
	const width = 6
	r, ok := decodeHex(s)
	switch {
	case !ok:
		return 0, 0
	case !utf16.IsSurrogate(r):
		return r, width
	}
	if low, ok := decodeHex(s[width:]); ok {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, 2 * width
		}
	}
	return utf8.RuneError, width
}

// decodeHex decodes an escape sequence with four hexadecimal digits, such as \u00e9, at the start of s. Its second
// result is false if s does not begin with such a sequence.
func decodeHex(s string) (r rune, ok bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	for _, c := range []byte(s[2:6]) {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
