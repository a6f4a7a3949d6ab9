package pii

import (
	"hash/maphash"
	"unicode"
	"unicode/utf8"
)

// A unit is what known values are compared by: a run of letters and digits, or one character of a script without
// spaces between words.

// unitEnd returns the end of the unit at i, or i itself if there is none. No unit begins with an accent or with a
// character that is not displayed.
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

// decodeLetter decodes the letter, digit or combining mark beyond ASCII with which a text begins. n is 0 if the
// character is none of these. Invalid bytes count as letters.
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

// isDense reports whether r is a letter of a script without spaces between words, or of Korean, where particles follow
// a word without a space.
func isDense(r rune) bool {
	switch {
	case r < 0xE00:
		return false
	case r < 0x3400:
		return r < 0xF00 || r >= 0x1000 && r < 0x10A0 || r >= 0x1100 && r < 0x1160 || r >= 0x1780 && r < 0x17D4 || r >= 0x3005
	}
	return r < 0xA000 || r >= 0xAC00 && r < 0xD7A4 || r >= 0x20000 && r < 0x40000
}

// denseEnd returns the end of the combining marks and letters at i, which belong to the letter before them.
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

// markEnd returns the end of the character at i, which is not part of a unit.
func markEnd(text []byte, i int) int {
	if text[i] < utf8.RuneSelf {
		return i + 1
	}
	_, n := utf8.DecodeRune(text[i:])
	return i + n
}

// maxBetween bounds the number of blanks and marks between two units of a known value.
const maxBetween = 4

// nextUnit returns the next unit at i. start is -1 if more than maxBetween blanks and marks stand before it.
func nextUnit(text []byte, i int) (start, end int) {
	for n := 0; n <= maxBetween && i < len(text); n++ {
		if end := unitEnd(text, i); end > i {
			return i, end
		}
		i = markEnd(text, i)
	}
	return -1, i
}

// textUnit represents a unit of a value.
type textUnit struct{ start, end int }

// appendUnits appends all units of a value, however many marks stand between them.
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

// hashUnit returns a keyed hash of a unit in the form of appendFoldedWord.
func hashUnit(unit []byte) uint64 {
	var room [64]byte
	return maphash.Bytes(wordSeed, appendFoldedWord(room[:0], unit))
}

// filterHash returns the wordHash of a unit in the form of appendFoldedWord.
func filterHash(unit []byte) uint64 {
	var room [64]byte
	folded := appendFoldedWord(room[:0], unit)
	return wordHash(folded, 0, len(folded))
}

// chainHash returns the hash of a value's first units from the hash of all but the last of them and the hash of the
// last unit.
func chainHash(before, unit uint64) uint64 {
	return (before*0x9E3779B97F4A7C15 + 0x7F4A7C15 ^ unit) * 0xD6E8FEB86659FD93
}
