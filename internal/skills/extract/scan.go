package extract

import "strings"

// tokenKind is the type of a token.
type tokenKind int

const (
	mark tokenKind = iota // operator or bracket
	word
	number
	text // string, template string or regular expression
)

// sourceToken holds one token of a program. White space and comments are not tokens.
type sourceToken struct {
	kind       tokenKind
	text       string
	start, end int
	depth      int  // number of open brackets around the token
	closes     bool // whether the token is a closing bracket
}

// tokenScanner splits a program into tokens.
type tokenScanner struct {
	code   string
	python bool
	at     int
	depth  int
	tokens []sourceToken
}

func scanTokens(code string, python bool) []sourceToken {
	s := &tokenScanner{code: code, python: python}
	for s.at < len(s.code) {
		s.scanNext()
	}
	return s.tokens
}

func (s *tokenScanner) hasPrefix(prefix string) bool { return strings.HasPrefix(s.code[s.at:], prefix) }

// skipUntil moves the scanner past the next occurrence of end. If end does not occur, it moves the scanner to the end
// of the program.
func (s *tokenScanner) skipUntil(end string) {
	if i := strings.Index(s.code[s.at:], end); i >= 0 {
		s.at += i + len(end)
		return
	}
	s.at = len(s.code)
}

func (s *tokenScanner) addToken(k tokenKind, start int) {
	s.tokens = append(s.tokens, sourceToken{kind: k, text: s.code[start:s.at], start: start, end: s.at, depth: s.depth})
}

func (s *tokenScanner) scanNext() {
	start, c := s.at, s.code[s.at]
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r' || s.python && c == '\\':
		s.at++
	case s.python && c == '#', !s.python && s.hasPrefix("//"):
		if i := strings.IndexByte(s.code[s.at:], '\n'); i >= 0 {
			s.at += i
		} else {
			s.at = len(s.code)
		}
	case !s.python && s.hasPrefix("/*"):
		s.at += 2
		s.skipUntil("*/")
	case s.python && (s.hasPrefix(`"""`) || s.hasPrefix("'''")):
		s.at += 3
		s.skipUntil(strings.Repeat(string(c), 3))
		s.addToken(text, start)
	case c == '"' || c == '\'':
		s.scanQuoted(c)
		s.addToken(text, start)
	case !s.python && c == '`':
		s.scanTemplate()
		s.addToken(text, start)
	case !s.python && c == '/' && s.isRegexStart():
		s.scanRegex()
		s.addToken(text, start)
	case c >= '0' && c <= '9':
		s.skipWhile(func(c byte) bool { return partOfName(c) || c == '.' })
		s.addToken(number, start)
	case partOfName(c):
		s.skipWhile(partOfName)
		if s.python && s.at < len(s.code) && (s.code[s.at] == '"' || s.code[s.at] == '\'') && len(s.code[start:s.at]) <= 2 {
			s.scanPrefixedText(start)
			return
		}
		s.addToken(word, start)
	default:
		s.scanMark(c)
	}
}

// scanPrefixedText scans a Python string with a prefix, such as f"…". Such a string is never converted to a
// parameter.
func (s *tokenScanner) scanPrefixedText(start int) {
	c := s.code[s.at]
	if triple := strings.Repeat(string(c), 3); s.hasPrefix(triple) {
		s.at += 3
		s.skipUntil(triple)
	} else {
		s.scanQuoted(c)
	}
	s.addToken(text, start)
}

func partOfName(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

func (s *tokenScanner) skipWhile(f func(byte) bool) {
	for s.at < len(s.code) && f(s.code[s.at]) {
		s.at++
	}
}

func (s *tokenScanner) scanQuoted(end byte) {
	for s.at++; s.at < len(s.code); s.at++ {
		switch s.code[s.at] {
		case '\\':
			s.at++
		case end, '\n':
			s.at++
			return
		}
	}
	s.at = len(s.code)
}

// scanTemplate scans a JavaScript template string with embedded expressions.
func (s *tokenScanner) scanTemplate() {
	for s.at++; s.at < len(s.code); s.at++ {
		switch {
		case s.code[s.at] == '\\':
			s.at++
		case s.code[s.at] == '`':
			s.at++
			return
		case s.hasPrefix("${"):
			inside := &tokenScanner{code: s.code, at: s.at + 2}
			for inside.depth >= 0 && inside.at < len(s.code) {
				inside.scanNext()
			}
			s.at = inside.at - 1
		}
	}
	s.at = len(s.code)
}

// isRegexStart reports whether a slash begins a regular expression. A slash after a value is a division.
func (s *tokenScanner) isRegexStart() bool {
	if len(s.tokens) == 0 {
		return true
	}
	last := s.tokens[len(s.tokens)-1]
	switch last.kind {
	case mark:
		return last.text != ")" && last.text != "]" && last.text != "}"
	case word:
		return last.text == "return" || last.text == "typeof" || last.text == "case" || last.text == "in" || last.text == "of"
	}
	return false
}

func (s *tokenScanner) scanRegex() {
	class := false
	for s.at++; s.at < len(s.code) && s.code[s.at] != '\n'; s.at++ {
		switch c := s.code[s.at]; {
		case c == '\\':
			s.at++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			s.at++
			s.skipWhile(partOfName)
			return
		}
	}
	s.at = min(s.at, len(s.code))
}

func (s *tokenScanner) scanMark(c byte) {
	start := s.at
	s.at++
	switch {
	case strings.IndexByte("([{", c) >= 0:
		s.addToken(mark, start)
		s.depth++
		return
	case strings.IndexByte(")]}", c) >= 0:
		s.depth--
		s.addToken(mark, start)
		s.tokens[len(s.tokens)-1].closes = true
		return
	case strings.IndexByte(";,:.", c) < 0:
		s.skipWhile(func(c byte) bool { return strings.IndexByte("=<>!&|+-*%?^~@", c) >= 0 })
	}
	s.addToken(mark, start)
}
