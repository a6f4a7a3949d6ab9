package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// encodedForm represents one encoding of a secret, such as Base64 or hexadecimal, of which only the letters and
// digits are kept.
type encodedForm struct {
	text  string // significant characters
	label string
	value int
	cased bool    // letter case must match
	coded bool    // in Base64: adjacent characters encode part of it
	plain bool    // not encoded: a partial match must not be ordinary words
	least int     // bytes that must match; len(text) for all
	gap   int     // bytes that may separate two characters
	own   []uint8 // number of the value's own separator bytes before each character; nil if encoded
	step  int     // distance between its indexed windows
}

const (
	indexWindow = 8 // bytes in an indexed window
	longValue   = 16
	// maxGap bounds the number of bytes between two characters of a long secret that was split over several lines. It
	// leaves room for a quote, a comma, a newline and some indentation.
	maxGap = 12
	minGap = 3
)

// formsOf returns the forms of a secret that must be found even if escapes and separators interrupt them: the secret
// itself and its encodings.
func formsOf(value, label string) (all []encodedForm) {
	add := func(f encodedForm) {
		if len(f.text) < indexWindow || f.value < indexWindow && !f.coded {
			return
		}
		f.label = label
		if f.least == 0 {
			f.least = len(f.text)
		}
		all = append(all, f)
	}
	plain := significantText(value)
	n := len(plain)
	f := encodedForm{text: plain, plain: true, own: separatorCounts(value), value: n, cased: n < longValue, gap: minGap, step: 1}
	if n >= longValue || n >= 12 && isMixed(value) {
		f.gap = maxGap
		f.least = max((n+1)/2, indexWindow)
	}
	add(f)
	wide, wider := utf16Text(value), utf32Text(value)
	for shift := range 3 {
		for _, text := range []string{value, wide, wider} {
			core := base64Core(text, shift)
			add(encodedForm{text: core, value: n, cased: true, coded: true, least: requiredLength(core), gap: maxGap, step: 4})
		}
	}
	for _, text := range append(
		numberForms(value), hex.EncodeToString([]byte(value)), hex.EncodeToString([]byte(wide)),
		hex.EncodeToString([]byte(wider)),
	) {
		add(encodedForm{text: text, value: n, least: requiredLength(text), gap: maxGap, step: 4})
	}
	return all
}

// numberForms returns the bytes of a secret as numbers in the usual notations, without separators. The notations are
// decimal, hexadecimal with 0x, U+ codes, four kinds of octal, and binary.
func numberForms(value string) (all []string) {
	for _, format := range []string{"%d", "0x%02x", "U%04X", "%o", "%03o", "0%o", "0o%o", "%08b"} {
		var b strings.Builder
		for i := range len(value) {
			fmt.Fprintf(&b, format, value[i])
		}
		all = append(all, b.String())
	}
	return all
}

// requiredLength returns how many characters of an encoded form must be found in a text for a match: half of them, or
// all if the form is short.
func requiredLength(text string) int {
	if len(text) < 2*longValue {
		return len(text)
	}
	return (len(text) + 1) / 2
}

// utf16Text returns the bytes by which a text is found in both UTF-16 encodings: the little-endian encoding without
// its last byte. For ASCII text, the big-endian encoding contains the same bytes, one position later.
func utf16Text(text string) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		b = append(b, byte(unit), byte(unit>>8))
	}
	return string(b[:max(0, len(b)-1)])
}

// utf32Text returns the bytes by which a text is found in both UTF-32 encodings: the little-endian encoding without
// its last three bytes. For ASCII text, the big-endian encoding contains the same bytes, three positions later.
func utf32Text(text string) string {
	var b []byte
	for _, r := range text {
		b = append(b, byte(r), byte(r>>8), byte(r>>16), 0)
	}
	return string(b[:max(0, len(b)-3)])
}

// invisibleForms returns a secret encoded in invisible Unicode characters: once as tag characters, and once as
// variation selectors.
func invisibleForms(value string) []string {
	var asTags, asSelectors strings.Builder
	for i := range len(value) {
		c := value[i]
		asTags.WriteRune(0xe0000 + rune(c))
		if c < 16 {
			asSelectors.WriteRune(0xfe00 + rune(c))
		} else {
			asSelectors.WriteRune(0xe0100 + rune(c) - 16)
		}
	}
	return []string{asTags.String(), asSelectors.String()}
}

// significantText returns only the letters and digits of a text. It does not decode escapes.
func significantText(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		u := plainAt(text, i)
		b.Write(u.text[:u.n])
		i = u.end
	}
	return b.String()
}

// plainAt returns the character at i of a text, without decoding escapes.
func plainAt(text string, i int) escapeUnit {
	if mayMark(text[i]) {
		return characterAt([]byte(text[i:min(len(text), i+utf8.UTFMax)]), 0).movedBy(i)
	}
	return singleUnit(text[i], i+1)
}

// separatorCounts returns, for each byte of a text that belongs to a letter or digit, how many separator bytes are
// directly before it.
func separatorCounts(text string) (own []uint8) {
	n := uint8(0)
	for i := 0; i < len(text); {
		u := plainAt(text, i)
		if u.n == 0 {
			n = uint8(min(254, int(n)+u.end-i))
		}
		for range u.n {
			own, n = append(own, n), 0
		}
		i = u.end
	}
	return own
}

// maxSeparators returns how many bytes of separators a text may have before character i of the form. The number is
// larger if the secret itself has separators there, because each of these may be escaped and surrounded by others.
func (f *encodedForm) maxSeparators(i int) int {
	if f.own == nil {
		return f.gap
	}
	return f.gap + int(f.own[i])*(f.gap+longestUnit)
}

// longestUnit is the maximum length in bytes of one escaped character, such as &amp;#x2d;.
const longestUnit = 10

// base64Core returns the core of a value's Base64: the characters that depend on the value alone, and not on
// neighbouring bytes. They depend on the value's offset in the encoded text, namely on the remainder shift when this
// offset is divided by 3.
func base64Core(value string, shift int) string {
	coded := base64.RawStdEncoding.EncodeToString([]byte("\x00\x00"[:shift] + value))
	return significantText(coded[(shift*8+5)/6 : (shift+len(value))*8/6])
}

// spellingsOf returns the spellings of a secret that are searched for byte by byte, such as its JSON and URL escapes.
func spellingsOf(value string) []string {
	all := []string{value}
	if quoted, err := json.Marshal(value); err == nil {
		all = append(all, string(quoted[1:len(quoted)-1]))
	}
	all = append(all, invisibleForms(value)...)
	all = append(all, url.QueryEscape(value), url.PathEscape(value), html.EscapeString(value))
	if len(value) < indexWindow {
		all = append(all, base64.StdEncoding.EncodeToString([]byte(value)), hex.EncodeToString([]byte(value)))
	}
	return all
}
