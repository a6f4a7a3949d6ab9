package demo

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

type tokenKind int

const (
	endToken    tokenKind = iota
	wordToken             // a name or a keyword
	nameToken             // a name in double quotes
	valueToken            // a string or a number
	symbolToken           // an operator or punctuation
	paramToken            // ?
)

type sqlToken struct {
	kind  tokenKind
	text  string // as written; without quotes for names
	value any    // of a valueToken
	pos   int    // 1-based, in bytes
}

func (t sqlToken) String() string {
	if t.kind == endToken {
		return "end of input"
	}
	return strconv.Quote(t.text)
}

// lexSQL splits a statement into tokens. The last one is endToken.
func lexSQL(sql string) ([]sqlToken, error) {
	var tokens []sqlToken
	for i := 0; ; {
		i += len(sql[i:]) - len(strings.TrimLeft(sql[i:], " \t\r\n"))
		if strings.HasPrefix(sql[i:], "--") {
			_, rest, _ := strings.Cut(sql[i:], "\n")
			i = len(sql) - len(rest)
			continue
		}
		if i == len(sql) {
			return append(tokens, sqlToken{kind: endToken, pos: i + 1}), nil
		}
		t, length, err := lexOne(sql[i:])
		if err != nil {
			return nil, fmt.Errorf("%w at position %d", err, i+1)
		}
		t.pos = i + 1
		tokens = append(tokens, t)
		i += length
	}
}

// lexOne reads the token that s begins with. s is not empty.
func lexOne(s string) (t sqlToken, length int, err error) {
	c := s[0]
	switch {
	case c == '\'' || c == '"':
		return lexQuoted(s, c)
	case isDigit(c) || c == '.' && len(s) > 1 && isDigit(s[1]):
		return lexNumber(s)
	case isLetter(c):
		n := 1
		for n < len(s) && (isLetter(s[n]) || isDigit(s[n])) {
			n++
		}
		return sqlToken{kind: wordToken, text: s[:n]}, n, nil
	case c == '?':
		return sqlToken{kind: paramToken, text: "?"}, 1, nil
	}
	for _, symbol := range []string{"<=", ">=", "<>", "!=", "=", "<", ">", "(", ")", ",", "*", ";", "-"} {
		if strings.HasPrefix(s, symbol) {
			return sqlToken{kind: symbolToken, text: symbol}, len(symbol), nil
		}
	}
	r, _ := utf8.DecodeRuneInString(s)
	return sqlToken{}, 0, fmt.Errorf("syntax error: unexpected character %q", r)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' }

// lexQuoted reads a string or a quoted name. A doubled quote in it stands for one.
func lexQuoted(s string, quote byte) (sqlToken, int, error) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != quote {
			b.WriteByte(s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == quote {
			b.WriteByte(quote)
			i++
			continue
		}
		if quote == '"' {
			return sqlToken{kind: nameToken, text: b.String()}, i + 1, nil
		}
		return sqlToken{kind: valueToken, text: s[:i+1], value: b.String()}, i + 1, nil
	}
	return sqlToken{}, 0, fmt.Errorf("syntax error: unterminated quote")
}

func lexNumber(s string) (sqlToken, int, error) {
	n := 0
	for n < len(s) && (isDigit(s[n]) || s[n] == '.') {
		n++
	}
	if n < len(s) && isLetter(s[n]) {
		return sqlToken{}, 0, fmt.Errorf("syntax error: %q follows a number", s[n])
	}
	v, err := sqlNumber(s[:n])
	return sqlToken{kind: valueToken, text: s[:n], value: v}, n, err
}

// sqlNumber returns an int64 if the text has no decimal point, else a float64.
func sqlNumber(text string) (any, error) {
	if !strings.ContainsAny(text, ".eE") {
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the number %.30s is out of range", text)
		}
		return v, nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("%.30q is not a number", text)
	}
	return v, nil
}
