package extract

import "strings"

// kind is the type of a token.
type kind int

const (
	mark kind = iota // an operator, or a bracket
	word
	number
	text // also a template, and a regular expression
)

// token represents a piece of a program. Blanks and comments are not tokens.
type token struct {
	kind       kind
	text       string
	start, end int
	depth      int  // of brackets around it
	closes     bool // it is a closing bracket
}

// scanner splits a program into tokens.
type scanner struct {
	code   string
	python bool
	at     int
	depth  int
	tokens []token
}

func scan(code string, python bool) []token {
	s := &scanner{code: code, python: python}
	for s.at < len(s.code) {
		s.next()
	}
	return s.tokens
}

func (s *scanner) has(prefix string) bool { return strings.HasPrefix(s.code[s.at:], prefix) }

// until skips to the end of the next occurrence of end, or to the end of the program.
func (s *scanner) until(end string) {
	if i := strings.Index(s.code[s.at:], end); i >= 0 {
		s.at += i + len(end)
		return
	}
	s.at = len(s.code)
}

func (s *scanner) add(k kind, start int) {
	s.tokens = append(s.tokens, token{kind: k, text: s.code[start:s.at], start: start, end: s.at, depth: s.depth})
}

func (s *scanner) next() {
	start, c := s.at, s.code[s.at]
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r' || s.python && c == '\\':
		s.at++
	case s.python && c == '#', !s.python && s.has("//"):
		if i := strings.IndexByte(s.code[s.at:], '\n'); i >= 0 {
			s.at += i
		} else {
			s.at = len(s.code)
		}
	case !s.python && s.has("/*"):
		s.at += 2
		s.until("*/")
	case s.python && (s.has(`"""`) || s.has("'''")):
		s.at += 3
		s.until(strings.Repeat(string(c), 3))
		s.add(text, start)
	case c == '"' || c == '\'':
		s.quoted(c)
		s.add(text, start)
	case !s.python && c == '`':
		s.template()
		s.add(text, start)
	case !s.python && c == '/' && s.regular():
		s.expression()
		s.add(text, start)
	case c >= '0' && c <= '9':
		s.while(func(c byte) bool { return partOfName(c) || c == '.' })
		s.add(number, start)
	case partOfName(c):
		s.while(partOfName)
		if s.python && s.at < len(s.code) && (s.code[s.at] == '"' || s.code[s.at] == '\'') && len(s.code[start:s.at]) <= 2 {
			s.prefixed(start)
			return
		}
		s.add(word, start)
	default:
		s.mark(c)
	}
}

// prefixed scans a Python string with a prefix, which does not count as a plain literal.
func (s *scanner) prefixed(start int) {
	c := s.code[s.at]
	if triple := strings.Repeat(string(c), 3); s.has(triple) {
		s.at += 3
		s.until(triple)
	} else {
		s.quoted(c)
	}
	s.add(text, start)
}

func partOfName(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

func (s *scanner) while(f func(byte) bool) {
	for s.at < len(s.code) && f(s.code[s.at]) {
		s.at++
	}
}

func (s *scanner) quoted(end byte) {
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

// template scans a JavaScript template string with embedded expressions.
func (s *scanner) template() {
	for s.at++; s.at < len(s.code); s.at++ {
		switch {
		case s.code[s.at] == '\\':
			s.at++
		case s.code[s.at] == '`':
			s.at++
			return
		case s.has("${"):
			inside := &scanner{code: s.code, at: s.at + 2}
			for inside.depth >= 0 && inside.at < len(s.code) {
				inside.next()
			}
			s.at = inside.at - 1
		}
	}
	s.at = len(s.code)
}

// regular reports whether a slash begins a regular expression. After a value it is a division.
func (s *scanner) regular() bool {
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

func (s *scanner) expression() {
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
			s.while(partOfName)
			return
		}
	}
	s.at = min(s.at, len(s.code))
}

func (s *scanner) mark(c byte) {
	start := s.at
	s.at++
	switch {
	case strings.IndexByte("([{", c) >= 0:
		s.add(mark, start)
		s.depth++
		return
	case strings.IndexByte(")]}", c) >= 0:
		s.depth--
		s.add(mark, start)
		s.tokens[len(s.tokens)-1].closes = true
		return
	case strings.IndexByte(";,:.", c) < 0:
		s.while(func(c byte) bool { return strings.IndexByte("=<>!&|+-*%?^~@", c) >= 0 })
	}
	s.add(mark, start)
}
