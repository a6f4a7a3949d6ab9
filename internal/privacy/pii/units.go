package pii

import (
	"hash/maphash"
	"unicode"
	"unicode/utf8"
)

// Known values are compared unit by unit. The search for them uses these terms:
//   - A unit is a run of letters and digits, for example "Mensah3". In a script without spaces between words, each
//     character is a unit, for example "王".
//   - A part of a word is its digits, or its letters up to the next capital. "KwameMensah3" has the parts "Kwame",
//     "Mensah" and "3". See partEnd.
//   - A piece is a part of a long value: at most maxUnits units.
//   - A mark is a character that belongs to no unit and is not a blank, for example a hyphen.

// unitEnd returns the end of the unit that begins at i, or i if no unit begins there. A unit does not begin with an
// accent or with a character that is not displayed.
func unitEnd(text []byte, i int) int {
	for j := i; ; {
		if j == len(text) {
			return j
		}
		c := text[j]
		if c < utf8.RuneSelf {
			if class[c]&isAlnum == 0 {
				return j
			}
			j++
			continue
		}
		r, n := decodeLetter(text[j:])
		switch {
		case n == 0 || j == i && (isAccent(r) || isIgnorable(r)):
			return j
		case !isDense(r):
			j += n
		case j > i:
			return j
		default:
			return denseEnd(text, j+n)
		}
	}
}

// decodeLetter decodes the character at the beginning of a text and returns its length n in bytes. If the character is
// not a letter, a digit or a combining mark, n is 0. Invalid bytes count as letters. Most characters that are not
// displayed count, too, so that they do not divide a unit.
func decodeLetter(text []byte) (r rune, n int) {
	if class[text[0]]&isAlnum == 0 {
		return 0, 0
	}
	r, n = utf8.DecodeRune(text)
	switch {
	case r < tableRunes:
		if runeTable()[r] == noLetter {
			return 0, 0
		}
	case r >= 0x3400 && r < 0xA000, r == utf8.RuneError:
	case !isLetterRune(r):
		return 0, 0
	}
	return r, n
}

func isLetterRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) || isIgnorable(r)
}

// isDense reports whether r is a letter of a script that is written without spaces between words, for example Chinese
// or Thai. It is also true for Korean, where particles follow a word without a space.
func isDense(r rune) bool {
	switch {
	case r < 0xE00:
		return false
	case r < 0x3400:
		return r < 0xF00 || r >= 0x1000 && r < 0x10A0 || r >= 0x1100 && r < 0x1160 || r >= 0x1780 && r < 0x17D4 || r >= 0x3005
	}
	return r < 0xA000 || r >= 0xAC00 && r < 0xD7A4 || r >= 0x20000 && r < 0x40000
}

// denseEnd returns the end of the combining marks and Korean vowels and finals at i. They belong to the letter before
// i.
func denseEnd(text []byte, i int) int {
	for i < len(text) && text[i] >= utf8.RuneSelf {
		r, n := utf8.DecodeRune(text[i:])
		if !unicode.IsMark(r) && !(r >= 0x1160 && r < 0x1200) {
			break
		}
		i += n
	}
	return i
}

// markEnd returns the end of the character at i.
func markEnd(text []byte, i int) int {
	if text[i] < utf8.RuneSelf {
		return i + 1
	}
	_, n := utf8.DecodeRune(text[i:])
	return i + n
}

// maxBetween bounds the number of blanks and marks between two units of a known value in a text.
const maxBetween = 4

// nextUnit returns the range of the first unit at or after i. If more than maxBetween blanks and marks stand before it,
// or the text ends, start is -1.
func nextUnit(text []byte, i int) (start, end int) {
	for n := 0; n <= maxBetween && i < len(text); n++ {
		if end := unitEnd(text, i); end > i {
			return i, end
		}
		i = markEnd(text, i)
	}
	return -1, i
}

// textUnit holds the byte offsets of a unit in a value.
type textUnit struct{ start, end int }

// appendUnits appends all units of a value to dst. Any number of blanks and marks may stand between them.
func appendUnits(dst []textUnit, value []byte) []textUnit {
	for i := 0; i < len(value); {
		if end := unitEnd(value, i); end > i {
			dst, i = append(dst, textUnit{i, end}), end
			continue
		}
		i = markEnd(value, i)
	}
	return dst
}

// wordSeed is the key of all hashes of known values. It is random, so that nobody can choose words with equal hashes.
var wordSeed = maphash.MakeSeed()

// hashUnit returns the keyed hash of a unit. Units with the same form of appendFoldedWord have the same hash.
func hashUnit(unit []byte) uint64 {
	var room [64]byte
	return maphash.Bytes(wordSeed, appendFoldedWord(room[:0], unit))
}

// filterHash returns the wordHash of a unit in the form of appendFoldedWord. The wordFilter uses this hash.
func filterHash(unit []byte) uint64 {
	var room [64]byte
	folded := appendFoldedWord(room[:0], unit)
	return wordHash(folded, 0, len(folded))
}

// chainHash returns the hash of a value's first units. before is the hash of all of them except the last, and unit is
// the hashUnit of the last.
func chainHash(before, unit uint64) uint64 {
	return (before*0x9E3779B97F4A7C15 + 0x7F4A7C15 ^ unit) * 0xD6E8FEB86659FD93
}
