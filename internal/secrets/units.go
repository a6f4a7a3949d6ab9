package secrets

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// What counts of a text are letters, digits and bytes beyond ASCII; the rest separates.

// kept says which bytes count, folded has them in lower case.
var kept, folded = classes()

func classes() (kept [256]bool, folded [256]byte) {
	for i := range 256 {
		c := byte(i)
		kept[i], folded[i] = isAlnum(c) || c >= 0x80, c
		if 'A' <= c && c <= 'Z' {
			folded[i] = c | 0x20
		}
	}
	return kept, folded
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isAlnum(c byte) bool { return isDigit(c) || isLower(c) || isUpper(c) }

// unit is what an escape stands for, up to four bytes of which n are there.
type unit struct {
	text [utf8.UTFMax]byte
	n    int
	end  int // behind the escape, or the byte
}

func of(r rune, end int) (u unit) {
	if r < utf8.RuneSelf {
		return single(byte(r), end)
	}
	u.n, u.end = utf8.EncodeRune(u.text[:], r), end
	return u
}

func single(c byte, end int) (u unit) {
	if u.end = end; kept[c] {
		u.text[0], u.n = c, 1
	}
	return u
}

// unitAt is what begins at i.
func unitAt(text []byte, i int) unit {
	switch text[i] {
	case '\\':
		return backslash(text, i)
	case '%':
		return percent(text, i)
	case '&':
		return entity(text, i)
	}
	return single(text[i], i+1)
}

// backslash reads \u0041, \x41, and \n, with one or more backslashes: JSON in JSON has two.
func backslash(text []byte, i int) unit {
	j := i
	for j < len(text) && text[j] == '\\' && j-i < 8 {
		j++
	}
	if j == len(text) {
		return unit{end: j}
	}
	switch text[j] {
	case 'u':
		r, ok := hexadecimal(text, j+1, 4)
		if !ok {
			break
		}
		end := j + 5
		if utf16.IsSurrogate(r) {
			if k := end + (j - i) + 1; k < len(text) && text[end] == '\\' && text[k-1] == 'u' {
				if low, ok := hexadecimal(text, k, 4); ok {
					return of(utf16.DecodeRune(r, low), k+4)
				}
			}
			return unit{end: end}
		}
		return of(r, end)
	case 'x':
		if r, ok := hexadecimal(text, j+1, 2); ok {
			return single(byte(r), j+3)
		}
	case 'n', 'r', 't', 'b', 'f', '"', '/', '\'':
		return unit{end: j + 1}
	}
	return unit{end: j}
}

// percent reads %41, and %2541.
func percent(text []byte, i int) unit {
	j := i + 1
	for j+1 < len(text) && text[j] == '2' && text[j+1] == '5' {
		j += 2
	}
	if r, ok := hexadecimal(text, j, 2); ok {
		return single(byte(r), j+2)
	}
	return unit{end: i + 1}
}

// entity reads &#65; &#x41; &quot; and their like, also behind &amp;.
func entity(text []byte, i int) unit {
	j := i + 1
	for bytes.HasPrefix(text[j:], []byte("amp;")) {
		j += 4
	}
	end := bytes.IndexByte(text[j:min(len(text), j+10)], ';')
	if end < 0 {
		return unit{end: max(j, i+1)}
	}
	name := text[j : j+end]
	if len(name) < 2 || name[0] != '#' {
		for _, known := range [...]string{"quot", "apos", "lt", "gt", "nbsp"} {
			if string(name) == known {
				return unit{end: j + end + 1}
			}
		}
		return unit{end: j}
	}
	r, ok := rune(0), false
	if name[1]|0x20 == 'x' {
		r, ok = hexadecimal(name, 2, len(name)-2)
	} else {
		r, ok = decimal(name[1:])
	}
	if !ok || !utf8.ValidRune(r) {
		return unit{end: j}
	}
	return of(r, j+end+1)
}

func hexadecimal(text []byte, i, n int) (r rune, ok bool) {
	if n < 1 || n > 6 || i+n > len(text) {
		return 0, false
	}
	for _, c := range text[i : i+n] {
		switch {
		case isDigit(c):
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

func decimal(text []byte) (r rune, ok bool) {
	for _, c := range text {
		if !isDigit(c) || r > utf8.MaxRune {
			return 0, false
		}
		r = r*10 + rune(c-'0')
	}
	return r, len(text) > 0
}
