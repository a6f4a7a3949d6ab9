package bindings

import (
	"fmt"
	"strings"
)

// balanced returns an error if a string, comment or bracket in TypeScript source is not closed.
func balanced(src string) error {
	var open []byte
	for i := 0; i < len(src); {
		switch c := src[i]; {
		case strings.HasPrefix(src[i:], "/*"):
			end := strings.Index(src[i+2:], "*/")
			if end < 0 {
				return fmt.Errorf("comment without an end: %.80q", src[i:])
			}
			i += end + 4
		case strings.HasPrefix(src[i:], "//"):
			end := strings.IndexByte(src[i:], '\n')
			if end < 0 {
				return nil
			}
			i += end
		case c == '"':
			n, err := stringEnd(src[i:])
			if err != nil {
				return err
			}
			i += n
		case c == '\'', c == '`', c == '\\', c == '#':
			return fmt.Errorf("%q outside of strings and comments: %.80q", c, src[i:])
		default:
			if err := bracket(&open, c); err != nil {
				return fmt.Errorf("%w at %.80q", err, src[i:])
			}
			i++
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%q not closed", open)
	}
	return nil
}

// stringEnd returns the length of the string literal at the start of src.
func stringEnd(src string) (int, error) {
	for i := 1; i < len(src); i++ {
		switch src[i] {
		case '\\':
			i++
		case '"':
			return i + 1, nil
		case '\n', '\r':
			return 0, fmt.Errorf("string over the end of a line: %.80q", src)
		}
	}
	return 0, fmt.Errorf("string without an end: %.80q", src)
}

func bracket(open *[]byte, c byte) error {
	pairs := map[byte]byte{'}': '{', ')': '(', ']': '['}
	switch c {
	case '{', '(', '[':
		*open = append(*open, c)
	case '}', ')', ']':
		if n := len(*open); n == 0 || (*open)[n-1] != pairs[c] {
			return fmt.Errorf("unexpected %q", c)
		}
		*open = (*open)[:len(*open)-1]
	}
	return nil
}

// balancedPython returns an error if a string, docstring or bracket in Python source is not closed.
func balancedPython(src string) error {
	var open []byte
	for i := 0; i < len(src); {
		switch c := src[i]; {
		case strings.HasPrefix(src[i:], `"""`):
			n := docstringEnd(src[i:])
			if n < 0 {
				return fmt.Errorf("docstring without an end: %.80q", src[i:])
			}
			i += n
		case c == '"':
			n, err := stringEnd(src[i:])
			if err != nil {
				return err
			}
			i += n
		case c == '#':
			end := strings.IndexByte(src[i:], '\n')
			if end < 0 {
				return nil
			}
			i += end
		case c == '\'', c == '`', c == '\\', c == ';', c == '\t', c == '\r', c == '\f':
			return fmt.Errorf("%q outside of strings and comments: %.80q", c, src[i:])
		default:
			if err := bracket(&open, c); err != nil {
				return fmt.Errorf("%w at %.80q", err, src[i:])
			}
			i++
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%q not closed", open)
	}
	return nil
}

func docstringEnd(src string) int {
	for i := 3; i < len(src); i++ {
		if src[i] == '\\' {
			i++
		} else if strings.HasPrefix(src[i:], `"""`) {
			return i + 3
		}
	}
	return -1
}

// visible returns an error if a text contains an invisible character or an unusual line separator.
func visible(src string) error {
	for i, r := range src {
		if r != '\n' && isHidden(r) || r == '\u2028' || r == '\u2029' {
			return fmt.Errorf("%U at %.80q", r, src[max(0, i-40):])
		}
	}
	return nil
}
