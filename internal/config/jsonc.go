package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

const (
	maxDepth = 200     // nested values
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

// textPosition represents a position in a text. It moves forward only.
type textPosition struct {
	src          []byte
	offset       int // in bytes
	line, column int // both begin with 1; column counts characters
}

func startOf(src []byte) *textPosition { return &textPosition{src: src, line: 1, column: 1} }

// moveTo moves forward to an offset, which must be the beginning of a character.
func (p *textPosition) moveTo(offset int) *textPosition {
	passed := p.src[p.offset:offset]
	if i := bytes.LastIndexByte(passed, '\n'); i >= 0 {
		p.line += bytes.Count(passed, []byte("\n"))
		p.column = 1
		passed = passed[i+1:]
	}
	p.column += utf8.RuneCount(passed)
	p.offset = offset
	return p
}

func (p *textPosition) fail(format string, args ...any) *syntaxError {
	return &syntaxError{p.line, p.column, fmt.Sprintf(format, args...)}
}

// parseJSON parses JSON as the editors of clients' files accept it: with // and /* */ comments, trailing commas, and
// a byte order mark. It keeps positions and repeated keys. Its error is a *syntaxError.
func parseJSON(src []byte) (*valueNode, error) {
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	open, failed := scanJSON(src)
	if failed != nil {
		return nil, failed
	}
	src = append(bytes.Clone(src), '\n') // ends a line comment, which hujson requires
	v, err := hujson.Parse(src)
	if err != nil {
		return nil, explainJSON(src, open, err)
	}
	return jsonNode(v, startOf(src)), nil
}

// scanJSON checks that a text is UTF-8 and within bounds before it is parsed, because the parser is recursive and
// unbounded. It returns the offset of the innermost bracket, string or comment that has no end, or -1.
func scanJSON(src []byte) (open int, err *syntaxError) {
	if valid := validUTF8(src); valid < len(src) {
		return -1, startOf(src).moveTo(valid).fail("the file is not UTF-8")
	}
	var brackets []int
	values := 1
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '"', '/':
			length := stringOrCommentLength(src[i:])
			if length < 0 {
				return i, nil
			}
			i += length - 1
		case '{', '[':
			brackets = append(brackets, i)
			values++
		case '}', ']':
			brackets = brackets[:max(0, len(brackets)-1)]
		case ',':
			values++
		}
		if len(brackets) > maxDepth+1 {
			return -1, startOf(src).moveTo(i).fail("values are nested more than %d deep", maxDepth)
		}
		if values > maxNodes {
			return -1, startOf(src).moveTo(i).fail("the file has more than %d values", maxNodes)
		}
	}
	if len(brackets) > 0 {
		return brackets[len(brackets)-1], nil
	}
	return -1, nil
}

// validUTF8 returns the number of bytes at the beginning of src that are valid UTF-8.
func validUTF8(src []byte) (length int) {
	for length < len(src) {
		r, size := utf8.DecodeRune(src[length:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		length += size
	}
	return length
}

// stringOrCommentLength returns the length of the string or comment that src begins with. It returns -1 if the
// string or comment has no end, and 1 if src begins with a slash that begins no comment.
func stringOrCommentLength(src []byte) int {
	lengthTo := func(start int, end string) int {
		if i := bytes.Index(src[start:], []byte(end)); i >= 0 {
			return start + i + len(end)
		}
		return -1
	}
	switch {
	case bytes.HasPrefix(src, []byte("//")):
		if length := lengthTo(2, "\n"); length > 0 {
			return length
		}
		return len(src)
	case bytes.HasPrefix(src, []byte("/*")):
		return lengthTo(2, "*/")
	case src[0] == '/':
		return 1
	}
	for i := 1; i < len(src); i++ {
		switch src[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// jsonNode converts a parsed JSON value to a node with its position in the file. When it is called, the argument at
// is a position before the value. jsonNode moves it forward while it converts.
func jsonNode(v hujson.Value, at *textPosition) *valueNode {
	at.moveTo(v.StartOffset)
	n := &valueNode{line: at.line, column: at.column}
	switch value := v.Value.(type) {
	case *hujson.Object:
		n.kind = objectKind
		for _, m := range value.Members {
			n.entries = append(n.entries, nodeEntry{jsonNode(m.Name, at), jsonNode(m.Value, at)})
		}
	case *hujson.Array:
		n.kind = listKind
		for _, item := range value.Elements {
			n.items = append(n.items, jsonNode(item, at))
		}
	case hujson.Literal:
		n.text = value.String()
		switch value.Kind() {
		case '"':
			n.kind = textKind
		case '0':
			n.kind = numberKind
		case 't', 'f':
			n.kind = boolKind
		}
	}
	return n
}

// expectedJSON maps the end of an error message of the JSON parser hujson to a text for people, which says what was
// expected there.
var expectedJSON = map[string]string{
	"at start of value":                         "expected a value, found ",
	"at start of object name":                   "expected a key in double quotes or }, found ",
	"after object name":                         "expected : after the key, found ",
	"after object value (expecting ',' or '}')": "expected a comma or }, found ",
	"after array value (expecting ',' or ']')":  "expected a comma or ], found ",
	"after top-level value":                     "unexpected text after the end of the value: ",
}

// explainJSON converts an error of the JSON parser hujson to one in plain words for people who edit the file, with
// the position in characters. The argument open is the offset of a bracket, string or comment that has no end, or -1.
func explainJSON(src []byte, open int, err error) *syntaxError {
	var line, column int
	_, message, _ := strings.Cut(strings.TrimPrefix(err.Error(), "hujson: "), ": ")
	if _, bad := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); bad != nil {
		return &syntaxError{1, 1, err.Error()}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return unendedJSON(src, open)
	}
	at := startOf(src).moveTo(offsetOf(src, line, column))
	if literal, ok := strings.CutPrefix(message, "invalid literal: "); ok {
		return explainLiteral(at, literal)
	}
	if found, ok := strings.CutPrefix(message, "invalid character "); ok {
		for where, expected := range expectedJSON {
			if character, ok := strings.CutSuffix(found, " "+where); ok {
				message = expected + character
			}
		}
		if strings.HasPrefix(found, `'\''`) {
			message += "; strings need double quotes"
		}
	}
	return at.fail("%s", message)
}

// offsetOf returns the offset of a position in src. line and column begin with 1; column counts bytes.
func offsetOf(src []byte, line, column int) int {
	offset := 0
	for range line - 1 {
		offset += bytes.IndexByte(src[offset:], '\n') + 1
	}
	return min(offset+column-1, len(src))
}

func unendedJSON(src []byte, open int) *syntaxError {
	if open < 0 {
		return startOf(src).fail("the file is empty; it must contain at least {}")
	}
	at := startOf(src).moveTo(open)
	switch src[open] {
	case '"':
		return at.fail("the string that begins here lacks its closing quote")
	case '/':
		return at.fail("the comment that begins here is not closed")
	case '{':
		return at.fail("the bracket that opens here lacks its }")
	}
	return at.fail("the bracket that opens here lacks its ]")
}

// explainLiteral returns an error for an invalid number, string or word in JSON. The error says what is wrong with
// it, and where.
func explainLiteral(at *textPosition, literal string) *syntaxError {
	if strings.ContainsRune("-0123456789", rune(literal[0])) {
		return at.fail("%s is not a number", shortenText(literal))
	}
	if literal[0] != '"' {
		return at.fail("expected a value, found %s; strings need double quotes", shortenText(literal))
	}
	start := at.offset
	for i := 0; i < len(literal); i++ {
		switch c := literal[i]; {
		case c == '\n':
			return at.moveTo(start + i).fail("the line ends inside a string; write \\n for a line break")
		case c < ' ':
			return at.moveTo(start+i).fail("control character %q inside a string; write it as an escape", c)
		case c == '\\':
			length := 2
			if strings.HasPrefix(literal[i:], `\u`) {
				length = min(6, len(literal)-i)
			}
			if !json.Valid([]byte(`"` + literal[i:i+length] + `"`)) {
				return at.moveTo(start + i).fail("unknown escape in a string; a backslash itself is written \\\\")
			}
			i += length - 1
		}
	}
	return at.fail("%s is not a string", shortenText(literal))
}
