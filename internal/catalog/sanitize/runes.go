package sanitize

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"retort/internal/core"
)

// isInvisible reports whether a character is invisible.
func isInvisible(r rune) bool { return r >= 0xad && core.IsInvisible(r) }

// isSuspicious reports whether a non-ASCII character may be part of a finding. Most letters and punctuation are not.
func isSuspicious(r rune) bool {
	return r == utf8.RuneError || r < 0xa0 || r == 0x2028 || r == 0x2029 || r == '’' || r == '【' || isInvisible(r) || foldLetter(r) != 0 ||
		unicode.Is(unicode.Mn, r)
}

func changesDirection(r rune) bool {
	return r == 0x61c || r == 0x200e || r == 0x200f || 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069
}

// findCharacters finds invisible characters and words of mixed scripts.
func findCharacters(text string) (found []TextFinding) {
	add := func(id string, start, end int) {
		if n := len(found); n > 0 && found[n-1].Rule == id && found[n-1].End == start {
			found[n-1].End = end
			return
		}
		found = append(found, newFinding(signRule(id), start, end))
	}
	before := rune(0)
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '\n', r == '\t', r == '\r' && strings.HasPrefix(text[i+1:], "\n"), ' ' <= r && r < 0x7f:
		case r == 0x1b:
			size = sequenceLength(text[i:])
			add(controlRule, i, i+size)
		case r == utf8.RuneError && size == 1, unicode.Is(unicode.Cc, r), r == 0x2028, r == 0x2029:
			add(controlRule, i, i+size)
		case changesDirection(r):
			add(bidiRule, i, i+size)
		case isInvisible(r) && !belongsBetween(before, r, text[i+size:]):
			add(invisibleRule, i, i+size)
		}
		before = r
		i += size
	}
	return append(found, findMixedScripts(text)...)
}

// belongsBetween reports whether an invisible character is legitimate between its neighbours: a joiner in emoji or in
// a script that needs it, a single variation selector, or a soft hyphen between letters.
func belongsBetween(before, r rune, after string) bool {
	next, _ := utf8.DecodeRuneInString(after)
	switch {
	case r == 0x200d || r == 0x200c:
		return hasJoiners(before) && (hasJoiners(next) || next == ' ' || after == "")
	case 0xfe0e <= r && r <= 0xfe0f:
		return before > 0x200 && !isInvisible(before) && !isInvisible(next) || before > 0x200 && !isInvisible(before) && next == 0x200d ||
			('0' <= before && before <= '9' || before == '#' || before == '*') && next == 0x20e3
	case r == 0xad:
		return unicode.IsLetter(before) && before >= 0x80 && unicode.IsLetter(next)
	}
	return false
}

// hasJoiners reports whether invisible joiners are usual next to a character, because of its script or because it is
// an emoji or a symbol.
func hasJoiners(r rune) bool {
	return r == 0xfe0f || 0x1f000 <= r && r <= 0x1faff || 0x2190 <= r && r <= 0x2bff ||
		unicode.In(
			r, unicode.Arabic, unicode.Devanagari, unicode.Bengali, unicode.Tamil, unicode.Telugu, unicode.Malayalam,
			unicode.Kannada, unicode.Gujarati, unicode.Gurmukhi, unicode.Sinhala, unicode.Khmer, unicode.Syriac,
			unicode.Mongolian, unicode.Oriya,
		)
}

// sequenceLength returns the length of the terminal escape sequence at the start of text.
func sequenceLength(text string) int {
	if len(text) < 2 {
		return 1
	}
	switch text[1] {
	case '[':
		for i := 2; i < len(text); i++ {
			if text[i] < 0x20 || text[i] > 0x7e {
				return i
			}
			if text[i] >= '@' {
				return i + 1
			}
		}
		return len(text)
	case ']', 'P', 'X', '^', '_':
		for i := 2; i < len(text); i++ {
			switch {
			case text[i] == 7:
				return i + 1
			case text[i] == 0x1b && i+1 < len(text) && text[i+1] == '\\':
				return i + 2
			case text[i] == '\n':
				return i
			}
		}
		return len(text)
	}
	if text[1] < 0x20 || text[1] > 0x7e {
		return 1
	}
	return 2
}

// findMixedScripts finds Latin words that contain letters of Cyrillic, Greek or another script that only look Latin.
// Single letters, such as units, do not count.
func findMixedScripts(text string) (found []TextFinding) {
	start, latin, alike := -1, 0, 0
	end := func(at int) {
		if start >= 0 && latin >= 2 && alike >= 1 {
			found = append(found, newFinding(signRule(homoglyphRule), start, at))
		}
		start, latin, alike = -1, 0, 0
	}
	for i, r := range text {
		switch {
		case r < utf8.RuneSelf && isLetter(byte(r)), unicode.Is(unicode.Latin, r):
			latin++
		case lookalikeOf(r) != 0:
			alike++
		case isInvisible(r) && start >= 0:
			continue
		default:
			end(i)
			continue
		}
		if start < 0 {
			start = i
		}
	}
	end(len(text))
	return found
}

// Letters that look like Latin ones, and the Latin letters in the same order.
const (
	lookalikeLetters = "аеорсухіјѕһԁԛԝԍгкмтвпнАВЕКМНОРСТУХІЈЅԌԜοαινρτυκεχγημΑΒΕΖΗΙΚΜΝΟΡΤΥΧօսոհցզա"
	resembledLetters = "aeopcyxijshdqwgrkmtbnhABEKMHOPCTYXIJSGWoaivptukexynmABEZHIKMNOPTYXounhgqw"
)

func lookalikeOf(r rune) byte {
	if r < 0x370 || r > 0x58f {
		return 0
	}
	at := 0
	for _, a := range lookalikeLetters {
		if a == r {
			return resembledLetters[at]
		}
		at++
	}
	return 0
}

// foldLetter returns the lower-case Latin letter that a character resembles, or 0.
func foldLetter(r rune) byte {
	if r < 0xa0 {
		return 0
	}
	if c := lookalikeOf(r); c != 0 {
		return lowerASCII(c)
	}
	return resembles(r)
}

// foldWord returns a word with lookalike letters replaced by the Latin letters that they resemble, in the same case.
func foldWord(word string) string {
	return strings.Map(func(r rune) rune {
		if isInvisible(r) {
			return -1
		}
		if c := lookalikeOf(r); c != 0 {
			return rune(c)
		}
		return r
	}, word)
}
