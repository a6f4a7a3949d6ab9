package cel

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

type celTokenKind uint8

const (
	endToken celTokenKind = iota
	nameToken
	numberToken
	textToken
	signToken
)

type exprToken struct {
	kind celTokenKind
	text string // of a textToken, what it stands for
	at   int
}

var signs = []string{"&&", "||", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",", "(", ")", "[", "]"}

// lexTokens splits an expression into tokens. The last one is an endToken.
func lexTokens(text string) ([]exprToken, error) {
	var tokens []exprToken
	for at := 0; at < len(text); {
		t, next, err := scanToken(text, at)
		if err != nil {
			return nil, err
		}
		if t.kind != endToken {
			tokens = append(tokens, t)
		}
		at = next
	}
	return append(tokens, exprToken{kind: endToken, at: len(text)}), nil
}

// scanToken reads the token at an offset. For white space and comments it returns an endToken, which the caller
// skips.
func scanToken(s string, at int) (t exprToken, next int, err error) {
	c := s[at]
	switch {
	case strings.IndexByte(" \t\r\n\f", c) >= 0:
		return exprToken{}, at + 1, nil
	case strings.HasPrefix(s[at:], "//"):
		if n := strings.IndexByte(s[at:], '\n'); n >= 0 {
			return exprToken{}, at + n, nil
		}
		return exprToken{}, len(s), nil
	case c == '"' || c == '\'' || (c == 'r' || c == 'R') && at+1 < len(s) && (s[at+1] == '"' || s[at+1] == '\''):
		return scanText(s, at)
	case isDigit(c) || c == '.' && at+1 < len(s) && isDigit(s[at+1]):
		return scanNumber(s, at)
	case isLetter(c):
		next = at
		for next < len(s) && (isLetter(s[next]) || isDigit(s[next])) {
			next++
		}
		return exprToken{nameToken, s[at:next], at}, next, nil
	}
	for _, sign := range signs {
		if strings.HasPrefix(s[at:], sign) {
			return exprToken{signToken, sign, at}, at + len(sign), nil
		}
	}
	r, _ := utf8.DecodeRuneInString(s[at:])
	e := &Error{At: at, Message: fmt.Sprintf("%q is not valid here", r)}
	switch r {
	case '=':
		e.Hint = "equality is =="
	case '&', '|':
		e.Hint = "and is &&, or is ||"
	case '{', '}':
		e.Hint = "literal maps are left out of CEL here"
	}
	return exprToken{}, 0, e
}

func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isHex(c byte) bool    { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

func scanNumber(s string, at int) (exprToken, int, error) {
	next := at
	take := func(is func(byte) bool) bool {
		from := next
		for next < len(s) && is(s[next]) {
			next++
		}
		return next > from
	}
	if strings.HasPrefix(s[at:], "0x") {
		next += 2
		take(isHex)
	} else {
		take(isDigit)
		if next+1 < len(s) && s[next] == '.' && isDigit(s[next+1]) {
			next++
			take(isDigit)
		}
		if mark := next; next < len(s) && s[next]|0x20 == 'e' {
			next++
			if next < len(s) && (s[next] == '+' || s[next] == '-') {
				next++
			}
			if !take(isDigit) {
				next = mark
			}
		}
	}
	if next < len(s) && (isLetter(s[next]) || s[next] == '.' && next+1 < len(s) && isDigit(s[next+1])) {
		return exprToken{}, 0, &Error{At: at, Message: "this is not a number", Hint: "numbers are 1000, 0x3e8, 0.5 and 1e3"}
	}
	return exprToken{numberToken, s[at:next], at}, next, nil
}

// scanText reads a string literal such as 'a', "a", """a""" or r"a".
func scanText(s string, at int) (exprToken, int, error) {
	open, raw := at, false
	if s[at]|0x20 == 'r' {
		open, raw = at+1, true
	}
	quote := s[open : open+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(s[open:], triple) {
		quote = triple
	}
	var b strings.Builder
	for i := open + len(quote); i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], quote):
			return exprToken{textToken, b.String(), at}, i + len(quote), nil
		case len(quote) == 1 && (s[i] == '\n' || s[i] == '\r'):
			return exprToken{}, 0, &Error{At: at, Message: "the text is not closed on its line"}
		case s[i] == '\\' && !raw:
			r, n, ok := readEscape(s[i+1:])
			if !ok {
				return exprToken{}, 0, &Error{
					At: i, Message: "this escape is unknown",
					Hint: `write \\ for a backslash, or r"..." for a text without escapes`,
				}
			}
			b.WriteRune(r)
			i += 1 + n
		default:
			b.WriteByte(s[i])
			i++
		}
	}
	return exprToken{}, 0, &Error{At: at, Message: "the text is not closed"}
}

// readEscape decodes the escape sequence at the beginning of s, which follows a backslash. n is its length in bytes.
func readEscape(s string) (r rune, n int, ok bool) {
	if s == "" {
		return 0, 0, false
	}
	if i := strings.IndexByte(`abfnrtv`, s[0]); i >= 0 {
		return rune("\a\b\f\n\r\t\v"[i]), 1, true
	}
	if strings.IndexByte("\\?\"'`", s[0]) >= 0 {
		return rune(s[0]), 1, true
	}
	digits, base, skip := map[byte]int{'x': 2, 'X': 2, 'u': 4, 'U': 8}[s[0]], 16, 1
	if s[0] >= '0' && s[0] <= '3' {
		digits, base, skip = 3, 8, 0
	}
	if digits == 0 || len(s) < skip+digits {
		return 0, 0, false
	}
	v, err := strconv.ParseUint(s[skip:skip+digits], base, 32)
	return rune(v), skip + digits, err == nil && utf8.ValidRune(rune(v))
}
