package sanitize

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"retort/internal/core"
)

// unseen reports whether a character is invisible.
func unseen(r rune) bool { return r >= 0xad && core.Unseen(r) }

// suspicious reports whether a character that is not ASCII may be part of a finding. Most punctuation and letters are
// not.
func suspicious(r rune) bool {
	return r == utf8.RuneError || r < 0xa0 || r == 0x2028 || r == 0x2029 || r == '’' || r == '【' || unseen(r) || fold(r) != 0 || unicode.Is(unicode.Mn, r)
}

func turns(r rune) bool {
	return r == 0x61c || r == 0x200e || r == 0x200f || 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069
}

// characters finds invisible characters and words of mixed scripts.
func characters(text string) (found []Finding) {
	add := func(id string, start, end int) {
		if n := len(found); n > 0 && found[n-1].Rule == id && found[n-1].End == start {
			found[n-1].End = end
			return
		}
		found = append(found, finding(sign(id), start, end))
	}
	before := rune(0)
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '\n', r == '\t', r == '\r' && strings.HasPrefix(text[i+1:], "\n"), ' ' <= r && r < 0x7f:
		case r == 0x1b:
			size = sequence(text[i:])
			add(control, i, i+size)
		case r == utf8.RuneError && size == 1, unicode.Is(unicode.Cc, r), r == 0x2028, r == 0x2029:
			add(control, i, i+size)
		case turns(r):
			add(bidi, i, i+size)
		case unseen(r) && !belongs(before, r, text[i+size:]):
			add(invisible, i, i+size)
		}
		before = r
		i += size
	}
	return append(found, mixed(text)...)
}

// belongs reports whether an invisible character is a legitimate part of its neighbours: a joiner in emoji and in
// scripts that need it, one variation selector, one soft hyphen between letters.
func belongs(before, r rune, after string) bool {
	next, _ := utf8.DecodeRuneInString(after)
	switch {
	case r == 0x200d || r == 0x200c:
		return joins(before) && (joins(next) || next == ' ' || after == "")
	case 0xfe0e <= r && r <= 0xfe0f:
		return before > 0x200 && !unseen(before) && !unseen(next) || before > 0x200 && !unseen(before) && next == 0x200d || ('0' <= before && before <= '9' || before == '#' || before == '*') && next == 0x20e3
	case r == 0xad:
		return unicode.IsLetter(before) && before >= 0x80 && unicode.IsLetter(next)
	}
	return false
}

// joins reports whether a character's script or kind uses joiners.
func joins(r rune) bool {
	return r == 0xfe0f || 0x1f000 <= r && r <= 0x1faff || 0x2190 <= r && r <= 0x2bff ||
		unicode.In(r, unicode.Arabic, unicode.Devanagari, unicode.Bengali, unicode.Tamil, unicode.Telugu, unicode.Malayalam, unicode.Kannada, unicode.Gujarati, unicode.Gurmukhi, unicode.Sinhala, unicode.Khmer, unicode.Syriac, unicode.Mongolian, unicode.Oriya)
}

// sequence returns the length of the terminal escape sequence at the start of text.
func sequence(text string) int {
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

// mixed finds Latin words that contain letters of Cyrillic, Greek or another script that only look Latin. Single
// letters, such as units, do not count.
func mixed(text string) (found []Finding) {
	start, latin, alike := -1, 0, 0
	end := func(at int) {
		if start >= 0 && latin >= 2 && alike >= 1 {
			found = append(found, finding(sign(homoglyph), start, at))
		}
		start, latin, alike = -1, 0, 0
	}
	for i, r := range text {
		switch {
		case r < utf8.RuneSelf && isLetter(byte(r)), unicode.Is(unicode.Latin, r):
			latin++
		case lookalike(r) != 0:
			alike++
		case unseen(r) && start >= 0:
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

// Letters that look like Latin ones, and the letters they look like.
const (
	alikes = "аеорсухіјѕһԁԛԝԍгкмтвпнАВЕКМНОРСТУХІЈЅԌԜοαινρτυκεχγημΑΒΕΖΗΙΚΜΝΟΡΤΥΧօսոհցզա"
	latins = "aeopcyxijshdqwgrkmtbnhABEKMHOPCTYXIJSGWoaivptukexynmABEZHIKMNOPTYXounhgqw"
)

func lookalike(r rune) byte {
	if r < 0x370 || r > 0x58f {
		return 0
	}
	at := 0
	for _, a := range alikes {
		if a == r {
			return latins[at]
		}
		at++
	}
	return 0
}

// fold returns the lower-case Latin letter that a character resembles, or 0.
func fold(r rune) byte {
	if c := lookalike(r); c != 0 {
		return lower(c)
	}
	switch {
	case 0xff21 <= r && r <= 0xff3a:
		return byte(r-0xff21) + 'a'
	case 0xff41 <= r && r <= 0xff5a:
		return byte(r-0xff41) + 'a'
	case 0x1d400 <= r && r <= 0x1d6a3: // mathematical letters: alphabets of 26 capitals and 26 small ones
		return byte((r-0x1d400)%26) + 'a'
	case 0x1f130 <= r && r <= 0x1f149:
		return byte(r-0x1f130) + 'a'
	case 0x24b6 <= r && r <= 0x24cf:
		return byte(r-0x24b6) + 'a'
	case 0x24d0 <= r && r <= 0x24e9:
		return byte(r-0x24d0) + 'a'
	}
	return 0
}

// folded returns a word with its letters replaced by the Latin letters they resemble, in the same case.
func folded(word string) string {
	return strings.Map(func(r rune) rune {
		if unseen(r) {
			return -1
		}
		if c := lookalike(r); c != 0 {
			return rune(c)
		}
		return r
	}, word)
}
