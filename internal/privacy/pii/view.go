package pii

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// textView represents a decoded text together with the offset of each byte in the original document.
type textView struct {
	text []byte
	base int     // of a text without escapes
	at   []int32 // of each byte and the end, if there were escapes
	deep uint8   // in how many JSON strings the text stands
}

func plainView(text []byte) textView { return textView{text: text} }

// rawRange converts a range of the decoded text to the corresponding range of the original document.
func (v textView) rawRange(start, end int) (int, int) {
	if v.at == nil {
		return v.base + start, v.base + end
	}
	return int(v.at[start]), int(v.at[end])
}

func (v textView) subView(start, end int) textView {
	if v.at == nil {
		return textView{text: v.text[start:end], base: v.base + start, deep: v.deep}
	}
	return textView{text: v.text[start:end], at: v.at[start : end+1], deep: v.deep}
}

// viewBuilder builds a textView while a text is decoded.
type viewBuilder struct {
	from textView
	text []byte
	at   []int32
}

func newBuilder(v textView) viewBuilder {
	return viewBuilder{v, make([]byte, 0, len(v.text)), make([]int32, 0, len(v.text)+1)}
}

// putDecoded appends the decoded bytes of the escape at i to the view. Each of these bytes gets the offset at which
// the escape begins in the original document.
func (b *viewBuilder) putDecoded(i int, decoded ...byte) {
	start, _ := b.from.rawRange(i, i)
	for _, c := range decoded {
		b.text, b.at = append(b.text, c), append(b.at, int32(start))
	}
}

// copyRange appends the bytes from i to j unchanged.
func (b *viewBuilder) copyRange(i, j int) {
	b.text = append(b.text, b.from.text[i:j]...)
	if b.from.at != nil {
		b.at = append(b.at, b.from.at[i:j]...)
		return
	}
	for ; i < j; i++ {
		b.at = append(b.at, int32(b.from.base+i))
	}
}

func (b *viewBuilder) putRune(i int, r rune) {
	var buf [utf8.UTFMax]byte
	b.putDecoded(i, buf[:utf8.EncodeRune(buf[:], r)]...)
}

func (b *viewBuilder) buildView(deep uint8) textView {
	end, _ := b.from.rawRange(len(b.from.text), len(b.from.text))
	return textView{text: b.text, at: append(b.at, int32(end)), deep: deep}
}

// decodeQuoted decodes the escapes in the content of a JSON string. Invalid escapes stay unchanged.
func (v textView) decodeQuoted() textView {
	b := newBuilder(v)
	for i := 0; i < len(v.text); {
		end := indexFrom(v.text, i, '\\')
		if end+1 == len(v.text) { // nothing follows the backslash
			end++
		}
		b.copyRange(i, end)
		if i = end; i < len(v.text) {
			i += b.readEscape(i)
		}
	}
	return b.buildView(v.deep + 1)
}

// readEscape decodes the JSON escape at i and returns its length.
func (b *viewBuilder) readEscape(i int) int {
	text := b.from.text
	c := text[i+1]
	if j := bytes.IndexByte([]byte(`"\/bfnrt`), c); j >= 0 {
		b.putDecoded(i, "\"\\/\b\f\n\r\t"[j])
		return 2
	}
	r, ok := parseHex4(text, i)
	if !ok {
		b.putDecoded(i, '\\')
		return 1
	}
	if utf16.IsSurrogate(r) {
		if low, ok := parseHex4(text, i+6); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				b.putRune(i, pair)
				return 12
			}
		}
	}
	b.putRune(i, r)
	return 6
}

func parseHex4(text []byte, i int) (rune, bool) {
	if i+6 > len(text) || text[i] != '\\' || text[i+1] != 'u' || !isHexText(text[i+2:i+6]) {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[i+2:i+6]), 16, 32)
	return rune(n), err == nil
}

// decodeEscapes decodes percent and HTML escapes. It returns false if the text has none.
func (v textView) decodeEscapes() (textView, bool) {
	e := escapeFinder{text: v.text, percent: -1, and: -1}
	i := e.nextEscape(0)
	if i < 0 {
		return v, false
	}
	b := newBuilder(v)
	for from := 0; ; {
		next := i
		if next < 0 {
			next = len(v.text)
		}
		b.copyRange(from, next)
		if i < 0 {
			return b.buildView(v.deep), true
		}
		r, n := decodeEscape(v.text, i)
		if v.text[i] == '%' {
			b.putDecoded(i, byte(r))
		} else {
			b.putRune(i, r)
		}
		from = i + n
		i = e.nextEscape(from)
	}
}

// escapeFinder finds the percent and HTML escapes of a text, one after another.
type escapeFinder struct {
	text         []byte
	percent, and int // the next of each
}

// nextEscape returns the offset of the next escape at i or later, or -1.
func (e *escapeFinder) nextEscape(i int) int {
	for {
		if e.percent < i {
			e.percent = indexFrom(e.text, i, '%')
		}
		if e.and < i {
			e.and = indexFrom(e.text, i, '&')
		}
		if i = min(e.percent, e.and); i == len(e.text) {
			return -1
		}
		if _, n := decodeEscape(e.text, i); n > 0 {
			return i
		}
		i++
	}
}

func indexFrom(text []byte, i int, b byte) int {
	if j := bytes.IndexByte(text[i:], b); j >= 0 {
		return i + j
	}
	return len(text)
}

// entities lists the HTML entities that may occur in or next to personal data.
var entities = []struct {
	name string
	r    rune
}{{"amp;", '&'}, {"lt;", '<'}, {"gt;", '>'}, {"quot;", '"'}, {"apos;", '\''}, {"nbsp;", ' '}, {
	"commat;", '@',
}, {"period;", '.'}, {"plus;", '+'}, {"lpar;", '('}, {"rpar;", ')'}, {"hyphen;", '-'},
	{"auml;", 'ä'}, {"ouml;", 'ö'}, {"uuml;", 'ü'}, {"Auml;", 'Ä'}, {"Ouml;", 'Ö'}, {"Uuml;", 'Ü'}, {"szlig;", 'ß'},
	{"eacute;", 'é'}, {"egrave;", 'è'}, {"aacute;", 'á'}, {"iacute;", 'í'},
	{"oacute;", 'ó'}, {"uacute;", 'ú'}, {"ntilde;", 'ñ'}, {"ccedil;", 'ç'}, {"oslash;", 'ø'}, {"aring;", 'å'}}

// decodeEscape decodes the percent or HTML escape at i, such as %40, &#64;, &#x40; or &commat;. n is the length of
// the escape, or 0 if none is found.
func decodeEscape(text []byte, i int) (r rune, n int) {
	rest := text[i:min(len(text), i+12)]
	if rest[0] == '%' {
		if len(rest) < 3 || !isHexText(rest[1:3]) {
			return 0, 0
		}
		b, _ := strconv.ParseUint(string(rest[1:3]), 16, 8)
		return rune(b), 3
	}
	rest = rest[1:]
	if len(rest) > 2 && rest[0] == '#' {
		end := bytes.IndexByte(rest, ';')
		if end < 2 {
			return 0, 0
		}
		digits, base := rest[1:end], 10
		if digits[0]|0x20 == 'x' {
			digits, base = digits[1:], 16
		}
		c, err := strconv.ParseUint(string(digits), base, 21)
		if err != nil || c == 0 {
			return 0, 0
		}
		return rune(c), end + 2
	}
	for _, e := range entities {
		if bytes.HasPrefix(rest, []byte(e.name)) {
			return e.r, len(e.name) + 1
		}
	}
	return 0, 0
}
