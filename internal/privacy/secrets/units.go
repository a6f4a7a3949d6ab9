package secrets

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"retort/internal/core"
)

// What counts of a text are letters and digits, in any script; the rest separates. Bytes that are
// no UTF-8 count, too.

// kept marks the bytes that count when secrets are compared: ASCII letters and digits, and bytes of other characters.
// folded maps capital letters to lower case. begins marks the bytes at which something may have to be decoded: an
// escape, a tag, or a character that may be a separator or stand for another character.
var kept, begins, folded = characterClasses()

func characterClasses() (kept, begins [256]bool, folded [256]byte) {
	for i := range 256 {
		c := byte(i)
		kept[i], folded[i] = isAlnum(c) || c >= 0x80, c
		begins[i] = strings.IndexByte("\\%&<", c) >= 0 || mayMark(c)
		if 'A' <= c && c <= 'Z' {
			folded[i] = c | 0x20
		}
	}
	return kept, begins, folded
}

// mayMark reports whether a byte can begin a non-ASCII character that is a separator or stands for an ASCII
// character. It returns false for the blocks of Latin, Greek, Cyrillic, Armenian, Korean and Chinese letters.
func mayMark(c byte) bool {
	switch {
	case c < 0xc2 || c > 0xf4:
		return false
	case 0xc3 <= c && c <= 0xcb, 0xce <= c && c <= 0xd1, 0xd3 <= c && c <= 0xd5, 0xe4 <= c && c <= 0xe9, 0xeb <= c && c <= 0xed:
		return false
	}
	return true
}

// isSeparator reports whether a non-ASCII character is neither a letter nor a digit.
func isSeparator(r rune) bool {
	if 0x3400 <= r && r < 0xa000 || 0xac00 <= r && r < 0xd7a4 {
		return false
	}
	return core.IsInvisible(r) || !unicode.IsLetter(r) && !unicode.IsNumber(r)
}

// foldToASCII returns the ASCII letter or digit that a wide, styled or circled one stands for, or 0 for other
// characters.
func foldToASCII(r rune) byte {
	switch {
	case 0xff01 <= r && r <= 0xff5e:
		return byte(r - 0xfee0)
	case 0x1d400 <= r && r <= 0x1d6a3:
		return "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[(r-0x1d400)%52]
	case 0x1d7ce <= r && r <= 0x1d7ff:
		return '0' + byte((r-0x1d7ce)%10)
	case 0x24b6 <= r && r <= 0x24cf:
		return byte(r-0x24b6) + 'A'
	case 0x24d0 <= r && r <= 0x24e9:
		return byte(r-0x24d0) + 'a'
	}
	return 0
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isAlnum(c byte) bool { return unicode.IsDigit(rune(c)) || isLower(c) || isUpper(c) }

// escapeUnit represents what one character, escape or separator of a text is decoded to: n bytes in the field text.
// For a separator, n is 0.
type escapeUnit struct {
	text [utf8.UTFMax]byte
	n    int
	end  int // behind the escape, or the byte
}

func unitOf(r rune, end int) (u escapeUnit) {
	if r < utf8.RuneSelf {
		return singleUnit(byte(r), end)
	}
	if c := foldToASCII(r); c != 0 {
		return singleUnit(c, end)
	}
	if u.end = end; !isSeparator(r) {
		u.n = utf8.EncodeRune(u.text[:], r)
	}
	return u
}

// movedBy returns the unit with its end offset increased by n.
func (u escapeUnit) movedBy(n int) escapeUnit {
	u.end += n
	return u
}

// characterAt decodes the non-ASCII character at i.
func characterAt(text []byte, i int) escapeUnit {
	r, size := utf8.DecodeRune(text[i:])
	if r == utf8.RuneError && size == 1 {
		return singleUnit(text[i], i+1)
	}
	return unitOf(r, i+size)
}

func singleUnit(c byte, end int) (u escapeUnit) {
	if u.end = end; kept[c] {
		u.text[0], u.n = c, 1
	}
	return u
}

// unitAt decodes the character, escape or HTML tag that begins at i.
func unitAt(text []byte, i int) escapeUnit {
	switch text[i] {
	case '\\':
		return backslashAt(text, i)
	case '%':
		return readPercent(text, i)
	case '&':
		return readEntity(text, i)
	case '<':
		return tagAt(text, i)
	}
	if mayMark(text[i]) {
		return characterAt(text, i)
	}
	return singleUnit(text[i], i+1)
}

// tags lists the HTML tags that may stand between the characters of a secret, because a browser does not show the
// tags themselves.
var tags = []string{
	"a", "b", "br", "code", "del", "div", "em", "font", "i", "ins", "mark", "p", "q", "s", "small", "span", "strong",
	"sub", "sup", "tt", "u", "wbr",
}

// maxComment bounds the length of an HTML comment that is skipped, in bytes.
const maxComment = 64

// tagAt skips an HTML comment, or a tag without attributes such as <b>, </b> or <br/>.
func tagAt(text []byte, i int) escapeUnit {
	if bytes.HasPrefix(text[i:], []byte("<!--")) {
		if end := bytes.Index(text[i+4:min(len(text), i+4+maxComment)], []byte("-->")); end >= 0 {
			return escapeUnit{end: i + 4 + end + 3}
		}
	}
	end := bytes.IndexByte(text[i:min(len(text), i+11)], '>')
	if end < 2 {
		return escapeUnit{end: i + 1}
	}
	name := bytes.Trim(text[i+1:i+end], "/ ")
	for _, t := range tags {
		if strings.EqualFold(t, string(name)) {
			return escapeUnit{end: i + end + 1}
		}
	}
	return escapeUnit{end: i + 1}
}

// backslashAt decodes a backslash escape: \u0041, \u{41}, \U00000041, \x41, \x{41}, \101 or \n. There may be several
// backslashes, because JSON nested in JSON has two.
func backslashAt(text []byte, i int) escapeUnit {
	j := i
	for j < len(text) && text[j] == '\\' && j-i < 8 {
		j++
	}
	if j == len(text) {
		return escapeUnit{end: j}
	}
	switch text[j] {
	case 'u':
		return codeUnit(text, i, j)
	case 'U':
		if r, ok := parseHex(text, j+3, 6); ok && text[j+1] == '0' && text[j+2] == '0' && utf8.ValidRune(r) {
			return unitOf(r, j+9)
		}
	case 'x':
		if r, ok := parseHex(text, j+1, 2); ok {
			return readOctets(byte(r), j+3, func(k int) (byte, int) {
				for k < len(text) && text[k] == '\\' {
					k++
				}
				if k == len(text) || text[k] != 'x' {
					return 0, 0
				}
				r, ok := parseHex(text, k+1, 2)
				return byte(r), onlyIf(ok, k+3)
			})
		}
		return readBraced(text, j)
	case 'o':
		if r, end := decodeNumber(text, j+1, "{", 8); end > 0 {
			return unitOf(r, end)
		}
	case 'N':
		if r, end := decodeNumber(text, j+1, "{U+", 16); end > 0 {
			return unitOf(r, end)
		}
	case '0', '1', '2', '3':
		if r, ok := parseHex(text, j, 6); ok && bytes.HasPrefix(text[j:], []byte("0000")) { // of style sheets
			return unitOf(r, j+6)
		}
		if c, end := readOctal(text, j); end > 0 {
			return readOctets(c, end, func(k int) (byte, int) {
				for k < len(text) && text[k] == '\\' {
					k++
				}
				return readOctal(text, k)
			})
		}
	case 'n', 'r', 't', 'b', 'f', '"', '/', '\'':
		return escapeUnit{end: j + 1}
	}
	return escapeUnit{end: j}
}

// codeUnit decodes \u0041 or a surrogate pair. i is the offset of the first backslash, and j is the offset of the u.
func codeUnit(text []byte, i, j int) escapeUnit {
	r, ok := parseHex(text, j+1, 4)
	if !ok {
		return readBraced(text, j)
	}
	end := j + 5
	if !utf16.IsSurrogate(r) {
		return unitOf(r, end)
	}
	if k := end + (j - i) + 1; k < len(text) && text[end] == '\\' && text[k-1] == 'u' {
		if low, ok := parseHex(text, k, 4); ok {
			return unitOf(utf16.DecodeRune(r, low), k+4)
		}
	}
	return escapeUnit{end: end}
}

// readBraced decodes the escapes \u{41} and \x{41}. j is the offset of the u or x.
func readBraced(text []byte, j int) escapeUnit {
	end := bytes.IndexByte(text[j:min(len(text), j+9)], '}')
	if end < 3 || text[j+1] != '{' {
		return escapeUnit{end: j}
	}
	if r, ok := parseHex(text, j+2, end-2); ok && utf8.ValidRune(r) {
		return unitOf(r, j+end+1)
	}
	return escapeUnit{end: j}
}

// decodeNumber decodes an escape at offset i. The escape begins with the prefix opens, followed by a number in the
// given base and a closing brace. The result end is 0 if there is no such escape.
func decodeNumber(text []byte, i int, opens string, base int) (r rune, end int) {
	if !bytes.HasPrefix(text[i:], []byte(opens)) {
		return 0, 0
	}
	i += len(opens)
	n := bytes.IndexByte(text[i:min(len(text), i+9)], '}')
	if n < 1 {
		return 0, 0
	}
	v, err := strconv.ParseUint(string(text[i:i+n]), base, 32)
	if err != nil || !utf8.ValidRune(rune(v)) {
		return 0, 0
	}
	return rune(v), i + n + 1
}

// readOctal parses three octal digits at i. end is 0 if none is found.
func readOctal(text []byte, i int) (c byte, end int) {
	if i+3 > len(text) || text[i] > '3' {
		return 0, 0
	}
	for _, d := range text[i : i+3] {
		if d < '0' || d > '7' {
			return 0, 0
		}
		c = c<<3 | (d - '0')
	}
	return c, i + 3
}

// readOctets decodes a UTF-8 character whose bytes are escaped one by one. The argument first is its first byte. The
// function next decodes the escaped byte at an offset. It also returns the offset after that byte, or 0 if the offset
// holds no escaped byte.
func readOctets(first byte, end int, next func(i int) (byte, int)) escapeUnit {
	if first < 0xc2 {
		return singleUnit(first, end)
	}
	raw := [utf8.UTFMax]byte{first}
	at := end
	for n := 1; n < len(raw); n++ {
		c, to := next(at)
		if to == 0 {
			break
		}
		raw[n], at = c, to
		if r, size := utf8.DecodeRune(raw[:n+1]); r != utf8.RuneError && size == n+1 {
			return unitOf(r, at)
		}
	}
	return singleUnit(first, end)
}

func onlyIf(ok bool, end int) int {
	if !ok {
		return 0
	}
	return end
}

// readPercent decodes the percent escape at i: %41, %2541 or %u0041.
func readPercent(text []byte, i int) escapeUnit {
	c, end := percentByte(text, i)
	if end > 0 {
		return readOctets(c, end, func(k int) (byte, int) { return percentByte(text, k) })
	}
	if i+1 < len(text) && text[i+1] == 'u' {
		if r, ok := parseHex(text, i+2, 4); ok && utf8.ValidRune(r) {
			return unitOf(r, i+6)
		}
	}
	return escapeUnit{end: i + 1}
}

// percentByte decodes a percent-encoded byte at i. end is 0 if none is found.
func percentByte(text []byte, i int) (c byte, end int) {
	if i >= len(text) || text[i] != '%' {
		return 0, 0
	}
	j := i + 1
	for j+1 < len(text) && text[j] == '2' && text[j+1] == '5' {
		j += 2
	}
	r, ok := parseHex(text, j, 2)
	return byte(r), onlyIf(ok, j+2)
}

// maxEntity bounds the length of the name or number in an HTML entity, in bytes.
const maxEntity = 24

// blanks lists the names of HTML entities for characters that count as separators: invisible characters and
// punctuation.
var blanks = []string{"quot", "apos", "lt", "gt", "nbsp", "shy", "zwj", "zwnj", "ensp", "emsp", "thinsp", "hairsp", "numsp", "puncsp", "lrm", "rlm", "af", "it", "ic",
	"NoBreak", "ZeroWidthSpace", "NonBreakingSpace", "NegativeThinSpace", "NegativeVeryThinSpace", "ApplyFunction",
	"InvisibleTimes", "InvisibleComma", "Tab", "NewLine"}

// readEntity decodes HTML entities such as &#65;, &#x41; and &quot;, even if their & is itself written as &amp;.
func readEntity(text []byte, i int) escapeUnit {
	j := i + 1
	for bytes.HasPrefix(text[j:], []byte("amp;")) {
		j += 4
	}
	end := bytes.IndexByte(text[j:min(len(text), j+maxEntity)], ';')
	if end < 0 {
		return escapeUnit{end: max(j, i+1)}
	}
	name := text[j : j+end]
	if len(name) < 2 || name[0] != '#' {
		if slices.Contains(blanks, string(name)) {
			return escapeUnit{end: j + end + 1}
		}
		return escapeUnit{end: j}
	}
	r, ok := rune(0), false
	if name[1]|0x20 == 'x' {
		digits := bytes.TrimLeft(name[2:], "0")
		r, ok = parseHex(digits, 0, len(digits))
	} else {
		r, ok = parseDecimal(name[1:])
	}
	if !ok || !utf8.ValidRune(r) {
		return escapeUnit{end: j}
	}
	return unitOf(r, j+end+1)
}

func parseHex(text []byte, i, n int) (r rune, ok bool) {
	if n < 1 || n > 6 || i+n > len(text) {
		return 0, false
	}
	for _, c := range text[i : i+n] {
		switch {
		case unicode.IsDigit(rune(c)):
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

func parseDecimal(text []byte) (r rune, ok bool) {
	for _, c := range text {
		if !unicode.IsDigit(rune(c)) || r > utf8.MaxRune {
			return 0, false
		}
		r = r*10 + rune(c-'0')
	}
	return r, len(text) > 0
}
