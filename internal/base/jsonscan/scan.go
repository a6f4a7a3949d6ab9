// Package jsonscan splits JSON into tokens while it is being received. The input may be split into pieces of any size.
// The scanner does not store the input. It accepts the same documents as encoding/json, up to a nesting depth of
// MaxDepth.
package jsonscan

import (
	"bytes"
	"fmt"
)

// Kind is the type of a piece of JSON, such as a string or the start of an object.
type Kind uint8

// Kinds of pieces that Scanner.Next returns.
const (
	Space Kind = iota
	Open       // "{" or "["
	Close      // "}" or "]"
	Colon
	Comma
	Key     // part of a key of an object, including its quotes
	String  // part of a string that is not a key, including its quotes
	Literal // part of a number or of true, false or null
)

// MaxDepth bounds the nesting depth of objects and arrays. The scanner rejects deeper input.
const MaxDepth = 1000

// Error describes why the input is not valid JSON. At is the position of the error.
type Error struct {
	At       int64 // number of bytes before the error
	What     string
	Trailing bool // whether the error is data after a complete value
}

func (e *Error) Error() string { return fmt.Sprintf("%s at byte %d", e.What, e.At) }

type scanState uint8

const (
	wantValue   scanState = iota
	wantElement           // value or the end of an array
	wantMember            // key or the end of an object
	wantKey
	wantColon
	wantComma // comma, or the end of a container or of the document
)

// Scanner reads one JSON value, which may have white space around it. The zero value is ready to use.
type Scanner struct {
	stack  []byte // the open containers, outermost first: '{' or '['
	state  scanState
	at     int64
	quoted bool        // whether the scanner is inside a string
	key    bool        // whether that string is a key
	escape int8        // state of an escape: -1 after the backslash, otherwise the number of digits that must follow
	number numberState // state of the current number; none outside of numbers
	word   string      // bytes of true, false or null that must follow
	failed *Error
}

// NestingDepth returns the number of open objects and arrays. Such a container is open after Next has returned its
// Open piece and until Next returns its Close piece.
func (s *Scanner) NestingDepth() int { return len(s.stack) }

// InObject reports whether the innermost open container is an object and not an array.
func (s *Scanner) InObject() bool { return len(s.stack) > 0 && s.stack[len(s.stack)-1] == '{' }

// InString reports whether the scanner is inside a string because the last piece did not contain the end of the
// string.
func (s *Scanner) InString() bool { return s.quoted }

// ByteOffset returns the number of bytes read so far.
func (s *Scanner) ByteOffset() int64 { return s.at }

// Next reads the first piece of JSON in p, which must not be empty. It returns the kind and the length of the piece.
// It returns a string or literal that continues after p in several pieces. The error is an *Error. After an error,
// every later call returns the same error.
func (s *Scanner) Next(p []byte) (kind Kind, n int, err error) {
	if s.failed != nil {
		return 0, 0, s.failed
	}
	kind, n = s.nextPiece(p)
	s.at += int64(n)
	if s.failed != nil {
		return kind, n, s.failed
	}
	return kind, n, nil
}

// CheckEnd returns an error if the value is incomplete. Call it when there is no more input.
func (s *Scanner) CheckEnd() error {
	if s.failed == nil && (s.quoted || s.word != "" || !s.number.isComplete() || len(s.stack) > 0 || s.state != wantComma) {
		s.setError("the JSON ends in the middle")
	}
	if s.failed != nil {
		return s.failed
	}
	return nil
}

func (s *Scanner) setError(format string, args ...any) {
	s.failed = &Error{At: s.at, What: fmt.Sprintf(format, args...)}
}

func (s *Scanner) nextPiece(p []byte) (Kind, int) {
	if s.quoted {
		return s.readText(p, 0)
	}
	if s.word != "" || s.number != none {
		if n := s.readLiteral(p); n > 0 || s.failed != nil {
			return Literal, n
		}
	}
	c := p[0]
	switch {
	case c == ' ' || c == '\n' || c == '\t' || c == '\r':
		n := 1
		for n < len(p) && (p[n] == ' ' || p[n] == '\n' || p[n] == '\t' || p[n] == '\r') {
			n++
		}
		return Space, n
	case c == '"' && (s.state == wantMember || s.state == wantKey):
		s.state, s.quoted, s.key = wantColon, true, true
		return s.readText(p, 1)
	case c == ':' && s.state == wantColon:
		s.state = wantValue
		return Colon, 1
	case c == ',' && s.state == wantComma && len(s.stack) > 0:
		if s.state = wantValue; s.InObject() {
			s.state = wantKey
		}
		return Comma, 1
	case c == '}' && (s.state == wantMember || s.state == wantComma && s.InObject()),
		c == ']' && (s.state == wantElement || s.state == wantComma && len(s.stack) > 0 && !s.InObject()):
		s.stack, s.state = s.stack[:len(s.stack)-1], wantComma
		return Close, 1
	case s.state == wantValue || s.state == wantElement:
		return s.readValue(p)
	}
	s.setError("unexpected %q", c)
	s.failed.Trailing = s.state == wantComma && len(s.stack) == 0
	return Space, 0
}

func (s *Scanner) readValue(p []byte) (Kind, int) {
	switch c := p[0]; {
	case c == '{' || c == '[':
		if len(s.stack) == MaxDepth {
			s.setError("nested deeper than %d", MaxDepth)
			return Open, 0
		}
		s.stack = append(s.stack, c)
		if s.state = wantElement; c == '{' {
			s.state = wantMember
		}
		return Open, 1
	case c == '"':
		s.state, s.quoted, s.key = wantComma, true, false
		return s.readText(p, 1)
	case c == 't':
		s.word = "true"
	case c == 'f':
		s.word = "false"
	case c == 'n':
		s.word = "null"
	case c == '-' || '0' <= c && c <= '9':
		s.number = begin
	default:
		s.setError("unexpected %q", c)
		return Space, 0
	}
	s.state = wantComma
	return Literal, s.readLiteral(p)
}

// readText reads the rest of a string or key, starting at p[i]. It returns the kind, and the index after the closing
// quote. If the string continues in the next piece of input, it returns len(p) as the index.
func (s *Scanner) readText(p []byte, i int) (Kind, int) {
	kind := String
	if s.key {
		kind = Key
	}
	for i < len(p) {
		c := p[i]
		switch {
		case s.escape != 0:
			s.readEscaped(c)
		case c == '"':
			s.quoted = false
			return kind, i + 1
		case c == '\\':
			s.escape = -1
		case c < ' ':
			s.setError("a string with an unescaped %q", c)
		default:
			i += plainLength(p[i+1:])
		}
		if s.failed != nil {
			s.failed.At += int64(i)
			return kind, i
		}
		i++
	}
	return kind, len(p)
}

// plainLength returns the number of bytes at the start of p that neither end the string nor need to be validated.
func plainLength(p []byte) int {
	for i, c := range p {
		if c == '"' || c == '\\' || c < ' ' {
			return i
		}
	}
	return len(p)
}

func (s *Scanner) readEscaped(c byte) {
	switch {
	case s.escape > 0 && ('0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'):
		s.escape--
	case s.escape < 0 && c == 'u':
		s.escape = 4
	case s.escape < 0 && bytes.IndexByte([]byte(`"\/bfnrt`), c) >= 0:
		s.escape = 0
	default:
		s.setError("an invalid escape")
	}
}

// readLiteral continues to read a number or a word such as true. It returns n == 0 if the literal ends where p begins.
func (s *Scanner) readLiteral(p []byte) (n int) {
	for n < len(p) && s.word != "" {
		if p[n] != s.word[0] {
			s.setError("an invalid literal")
			return n
		}
		s.word = s.word[1:]
		n++
	}
	for ; n < len(p) && s.number != none; n++ {
		next := s.number.nextState(p[n])
		if next == none && !s.number.isComplete() {
			s.setError("an invalid number")
			return n
		}
		if s.number = next; next == none {
			return n
		}
	}
	return n
}

// numberState represents a state of the finite automaton that recognizes JSON numbers.
type numberState uint8

const (
	none numberState = iota
	begin
	minus
	zero
	digits
	point
	fraction
	exponent
	signed
	power
)

func (n numberState) isComplete() bool {
	return n == none || n == zero || n == digits || n == fraction || n == power
}

// nextState returns the state after one more byte. It returns the state none if the byte is not part of the number.
func (n numberState) nextState(c byte) numberState {
	digit := '0' <= c && c <= '9'
	switch {
	case n == begin && c == '-':
		return minus
	case (n == begin || n == minus) && c == '0':
		return zero
	case (n == begin || n == minus || n == digits) && digit:
		return digits
	case (n == zero || n == digits) && c == '.':
		return point
	case (n == point || n == fraction) && digit:
		return fraction
	case (n == zero || n == digits || n == fraction) && c|0x20 == 'e':
		return exponent
	case n == exponent && (c == '+' || c == '-'):
		return signed
	case (n == exponent || n == signed || n == power) && digit:
		return power
	}
	return none
}
