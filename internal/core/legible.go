package core

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsInvisible reports whether a character is invisible. Invisible are characters that Unicode calls default
// ignorable, blank letters and symbols, and private-use characters.
func IsInvisible(r rune) bool {
	switch {
	case r < 0xad:
		return false
	case r == 0xad, r == 0x34f, r == 0x61c, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x2800,
		r == 0x3164, r == 0xfeff, r == 0xffa0, r == 0x1d159, r == 0x13441, r == 0x13442:
		return true
	case 0x180b <= r && r <= 0x180f, 0x200b <= r && r <= 0x200f, 0x202a <= r && r <= 0x202e,
		0x2060 <= r && r <= 0x206f, 0xfe00 <= r && r <= 0xfe0f, 0xfff0 <= r && r <= 0xfffb:
		return true
	case 0x1bca0 <= r && r <= 0x1bca3, 0x1d173 <= r && r <= 0x1d17a, 0xe0000 <= r && r <= 0xe0fff:
		return true
	}
	return unicode.Is(unicode.Co, r)
}

// LegibleLine escapes a text for display on one line. It escapes everything that EscapeIllegible escapes, and also
// line breaks and tabs.
func LegibleLine(s string) string {
	return strings.NewReplacer("\n", `\u000a`, "\t", `\u0009`).Replace(EscapeIllegible(s))
}

// EscapeIllegible escapes characters that a person would not see or would mistake for others: control characters,
// blanks other than U+0020, invisible characters (see IsInvisible), marks on letters, invalid UTF-8, and lookalikes.
// A lookalike is a letter of another script in a word with Latin letters, a word made only of letters that look Latin
// in a line without other letters of its script, or a sign or digit that looks like an ASCII one next to it. Line
// breaks and tabs stay.
func EscapeIllegible(s string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	for line := range strings.SplitAfterSeq(s, "\n") {
		w := legibleWriter{Builder: &b, other: hasOtherLetters(line)}
		w.writeLine(line)
	}
	return b.String()
}

func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' && c != '\n' && c != '\t') || c >= 0x7f {
			return false
		}
	}
	return true
}

// legibleWriter writes one line with illegible characters escaped.
type legibleWriter struct {
	*strings.Builder
	other bool // the line has letters of another script that look like no Latin ones
}

func (w *legibleWriter) writeLine(line string) {
	before := byte(' ')
	for len(line) > 0 {
		if n := wordLength(line); n > 0 {
			w.writeWord(line[:n])
			before, line = line[n-1], line[n:]
			continue
		}
		r, size := utf8.DecodeRuneInString(line)
		after := byte(' ')
		if size < len(line) {
			after = line[size]
		}
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(w, "\\x%02x", line[0])
		case r == '\n' || r == '\t' || r == ' ':
			w.WriteRune(r)
		case !isLegible(r), strings.ContainsRune(alikeSigns, r) && (isASCIIWord(before) || isASCIIWord(after)):
			w.writeEscaped(r)
		default:
			w.WriteRune(r)
		}
		before, line = line[size-1], line[size:]
	}
}

// isLegible reports whether a character is visible, is no mark on a letter, and does not duplicate another character
// that looks the same.
func isLegible(r rune) bool {
	switch {
	case !unicode.IsGraphic(r), unicode.IsSpace(r), r == unicode.ReplacementChar, IsInvisible(r):
		return false
	case 0x1d400 <= r && r <= 0x1d7ff, 0xf900 <= r && r <= 0xfaff, 0x2f800 <= r && r <= 0x2fa1f: // styled letters; doubles of ideographs
		return false
	case strings.ContainsRune("\u2126\u212a\u212b\u0374\u037e\u0387\u1fef\u1ffd\u2329\u232a", r): // doubles
		return false
	}
	return !marksLetters(r)
}

// marksLetters reports whether r is a combining mark that can be added to any letter. Such marks are escaped, because
// many letters with a mark also exist as a single character.
func marksLetters(r rune) bool {
	return 0x300 <= r && r <= 0x36f || 0x483 <= r && r <= 0x489 || 0x1ab0 <= r && r <= 0x1aff || 0x1dc0 <= r && r <= 0x1dff ||
		0x20d0 <= r && r <= 0x20ff ||
		0xfe20 <= r && r <= 0xfe2f
}

func (w *legibleWriter) writeEscaped(r rune) {
	if r > 0xffff {
		fmt.Fprintf(w, "\\U%08x", r)
		return
	}
	fmt.Fprintf(w, "\\u%04x", r)
}

// wordLength returns the length in bytes of the word at the beginning of line. Invisible characters do not end the
// word.
func wordLength(line string) int {
	for i, r := range line {
		if r == utf8.RuneError || r != '_' && !unicode.In(r, unicode.L, unicode.M, unicode.Nd) && !IsInvisible(r) {
			return i
		}
	}
	return len(line)
}

// writeWord writes a word and escapes its invisible and misleading characters.
func (w *legibleWriter) writeWord(word string) {
	letters, digits, alike := false, false, true
	for _, r := range word {
		letters = letters || r < utf8.RuneSelf && isASCIIWord(byte(r)) && r > '9'
		digits = digits || '0' <= r && r <= '9'
		alike = alike && (strings.ContainsRune(alikeLetters, r) || IsInvisible(r) || r == '_' || '0' <= r && r <= '9')
	}
	for _, r := range word {
		imitates := letters && isForeignLetter(r) || (letters || digits) && r >= utf8.RuneSelf && unicode.Is(unicode.Nd, r) ||
			alike && !w.other && r >= utf8.RuneSelf
		if imitates || !isLegible(r) {
			w.writeEscaped(r)
		} else {
			w.WriteRune(r)
		}
	}
}

// isForeignLetter reports whether a letter is suspicious in a word with Latin letters. It returns false for scripts
// that do not resemble Latin, because people often write such text next to Latin letters without a blank.
func isForeignLetter(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return false
	case 0xff00 <= r && r <= 0xffef, 0x1d00 <= r && r <= 0x1dbf, 0xa720 <= r && r <= 0xa7ff: // wide, small and turned Latin letters
		return true
	case unicode.In(
		r, unicode.Cyrillic, unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Lisu, unicode.Deseret,
		unicode.Gothic, unicode.Old_Italic, unicode.Osage, unicode.Vai, unicode.Nko, unicode.Warang_Citi,
	):
		return true
	}
	return strings.ContainsRune(alikeLetters, r) || strings.ContainsRune("ɑɡɩɪʟǀǃıȷ", r)
}

// Characters that look like ASCII ones. alikeLetters has Cyrillic, Greek and Armenian letters; alikeSigns has signs.
const (
	alikeLetters = "аеорсухіјѕһԁԛԝӏАВЕКМНОРСТУХІЈЅԌԜӀαγικνορτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧօսոհցզ"
	alikeSigns   = "‐‑‒⁃−⁄∕⧸․꞉∶＂＇－．／＠＼＿｜﹒﹣﹨﹫∖∣∼∗⁎"
)

// hasOtherLetters reports whether a line has a Cyrillic, Greek or Armenian letter that resembles no Latin letter.
// Such a letter shows the reader which script the line is in.
func hasOtherLetters(line string) bool {
	for _, r := range line {
		if r >= utf8.RuneSelf && unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian) && unicode.IsLetter(r) &&
			!strings.ContainsRune(alikeLetters, r) {
			return true
		}
	}
	return false
}

func isASCIIWord(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}
