package pii

import (
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// appendFoldedWord appends a word to dst in the form in which known values are compared. This form is in lower case by
// the rules of Unicode, and has no accents and no characters that are not displayed. So spellings that look alike have
// the same form, for example composed and decomposed letters.
func appendFoldedWord(dst, word []byte) []byte {
	for i := 0; i < len(word); {
		if c := word[i]; c < utf8.RuneSelf {
			if c-'A' < 26 {
				c |= 0x20
			}
			dst, i = append(dst, c), i+1
			continue
		}
		r, n := utf8.DecodeRune(word[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			dst = append(dst, word[i])
		case r >= 0x3400 && r < 0xA000: // ideographs
			dst = append(dst, word[i:i+n]...)
		default:
			dst = appendFoldedRune(dst, r, word[i:i+n])
		}
		i += n
	}
	return dst
}

// appendFoldedRune appends a character beyond ASCII in the form of appendFoldedWord. raw is the UTF-8 of the character.
func appendFoldedRune(dst []byte, r rune, raw []byte) []byte {
	if r < tableRunes {
		if folded := runeTable()[r]; folded > slowRune {
			return utf8.AppendRune(dst, rune(folded))
		}
	}
	return appendSlowRune(dst, r, raw)
}

// appendSlowRune works like appendFoldedRune without runeTable.
func appendSlowRune(dst []byte, r rune, raw []byte) []byte {
	switch {
	case r == 'ß' || r == 'ẞ':
		return append(dst, "ss"...)
	case r == 'ı':
		return append(dst, 'i')
	case r == 'ς':
		return utf8.AppendRune(dst, 'σ')
	case isAccent(r) || isIgnorable(r):
		return dst
	case r >= 0xAC00 && r <= 0xD7A3: // Hangul syllables are composed of two or three letters
		s := r - 0xAC00
		dst = utf8.AppendRune(utf8.AppendRune(dst, 0x1100+s/588), 0x1161+s%588/28)
		if s%28 > 0 {
			dst = utf8.AppendRune(dst, 0x11A7+s%28)
		}
		return dst
	}
	d := norm.NFKD.Properties(raw).Decomposition()
	if len(d) == 0 {
		return utf8.AppendRune(dst, unicode.ToLower(unicode.ToUpper(r)))
	}
	for _, r := range string(d) {
		if !isAccent(r) {
			dst = utf8.AppendRune(dst, unicode.ToLower(r))
		}
	}
	return dst
}

// Values of runeTable with a special meaning, and the size of the table.
const (
	noLetter   = 0 // the character belongs to no unit
	slowRune   = 1 // the folded form is not exactly one character: appendSlowRune computes it
	tableRunes = 0x3100
)

// runeTable maps the characters below tableRunes to their folded forms. Looking up their Unicode properties for each
// character of a text would be slow.
var runeTable = sync.OnceValue(func() *[tableRunes]uint16 {
	table := &[tableRunes]uint16{}
	for r := rune(utf8.RuneSelf); r < tableRunes; r++ {
		if !isLetterRune(r) {
			continue
		}
		table[r] = slowRune
		raw := utf8.AppendRune(nil, r)
		if folded := []rune(string(appendSlowRune(nil, r, raw))); len(folded) == 1 {
			table[r] = uint16(min(folded[0], 1<<16-1))
		}
	}
	return table
})

// isAccent reports whether r is an accent that combines with the letter before it.
func isAccent(r rune) bool { return r >= 0x300 && r <= 0x36F }

// isIgnorable reports whether r is not displayed, so that a text with it looks the same as a text without it.
func isIgnorable(r rune) bool {
	switch {
	case r == 0xAD, r == 0x34F, r == 0x61C, r == 0x115F, r == 0x1160, r == 0x17B4, r == 0x17B5, r == 0x3164,
		r == 0xFFA0, r == 0xFEFF:
		return true
	case r >= 0x180B && r <= 0x180F, r >= 0x200B && r <= 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2060 && r <= 0x206F:
		return true
	}
	return r >= 0xFE00 && r <= 0xFE0F || r >= 0xE0000 && r <= 0xE0FFF
}

// isVariant reports whether r is a variant form of a letter or digit, for example a full-width one.
func isVariant(r rune) bool {
	return r >= 0xFF10 && r <= 0xFFDC && (unicode.IsLetter(r) || unicode.IsDigit(r)) ||
		r >= 0xF900 && r <= 0xFDFF || r >= 0xFE70 && r <= 0xFEFC
}

// hasUnplain reports whether a text has characters that withoutUnplain removes or replaces, and that would otherwise
// divide a word. It ignores characters that the scanner counts as letters.
func hasUnplain(text []byte) bool {
	for i, b := range text {
		switch b {
		case 0xC2, 0xE2, 0xEF:
			if r, _ := utf8.DecodeRune(text[i:]); isIgnorable(r) || isVariant(r) {
				return true
			}
		}
	}
	return false
}

// withoutUnplain returns the view without characters that are not displayed, and with ordinary letters and digits in
// place of their variants.
func (v textView) withoutUnplain() textView {
	b := newBuilder(v)
	from := 0
	for i := 0; i < len(v.text); {
		if v.text[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(v.text[i:])
		if variant := isVariant(r); variant || isIgnorable(r) {
			b.copyRange(from, i)
			if variant {
				b.putDecoded(i, norm.NFKD.Bytes(v.text[i:i+n])...)
			}
			from = i + n
		}
		i += n
	}
	b.copyRange(from, len(v.text))
	return b.buildView(v.deep)
}
