package index

import (
	"unicode"
	"unicode/utf8"
)

const (
	maxWord     = 40 // bytes; longer ones are cut, so that digests and blobs stay one word each
	shortPrefix = 3  // letters before digits that are a word of their own: sha256 is also sha
)

// eachToken calls yield for every word of text, in lower case and in order. A run of letters and digits is split
// where its case changes (listIssues, HTTPServer). If it has two parts, the whole is a word too, because GitHub and
// YouTube are written both ways. Letters before digits are also a word: oauth2 yields oauth, too. Scripts without
// spaces yield overlapping pairs of characters.
func eachToken(text string, yield func(word string)) {
	var t textTokenizer
	for i := 0; i < len(text); {
		start := i
		for i < len(text) && 'a' <= text[i] && text[i] <= 'z' {
			i++
		}
		r, size := rune(0), 0
		if i < len(text) {
			r, size = decodeRune(text[i:])
		}
		switch {
		case isWord(r):
			i = start + runEnd(text[start:])
			t.splitRun(text[start:i], yield)
		case i > start: // the common case: nothing but small letters
			yield(cutWord(text[start:i]))
			i += size
		default:
			i += size
		}
	}
}

// runEnd returns the length of the letters and digits at the start of text, in bytes.
func runEnd(text string) int {
	for i := 0; i < len(text); {
		r, size := decodeRune(text[i:])
		if !isWord(r) {
			return i
		}
		i += size
	}
	return len(text)
}

type textTokenizer struct {
	word, whole []byte
}

// splitRun splits a run of letters and digits into words and yields them. If there are exactly two parts, it also
// yields the whole run.
func (t *textTokenizer) splitRun(text string, yield func(string)) {
	t.whole = t.whole[:0]
	parts := 0
	for start := 0; start < len(text); parts++ {
		end := start + partEnd(text[start:])
		t.splitPart(text[start:end], yield)
		start = end
	}
	if parts == 2 && len(t.whole) <= maxWord {
		yield(string(t.whole))
	}
}

func (t *textTokenizer) splitPart(text string, yield func(string)) {
	t.word = appendLower(t.word[:0], text)
	if len(t.whole) <= maxWord {
		t.whole = append(t.whole, t.word...)
	}
	word := string(t.word)
	if first, _ := decodeRune(word); isDense(first) {
		eachPair(word, yield)
		return
	}
	yield(cutWord(word))
	if n := countLetters(word); n >= shortPrefix && n < len(word) {
		yield(cutWord(word[:n]))
	}
}

// partEnd returns the length of the first part of a run. A part ends before a capital that follows a lower-case
// letter or digit, before the last of several capitals if a lower-case letter follows, and where a script without
// spaces begins or ends.
func partEnd(text string) int {
	const none = unicode.MaxRune + 1
	var before, last rune = none, none
	lastAt := 0
	for i := 0; i < len(text); {
		r, size := decodeRune(text[i:])
		switch {
		case last == none:
		case isDense(r) != isDense(last), unicode.IsUpper(r) && !unicode.IsUpper(last):
			return i
		case before != none && unicode.IsLower(r) && unicode.IsUpper(last) && unicode.IsUpper(before):
			return lastAt
		}
		before, last, lastAt = last, r, i
		i += size
	}
	return len(text)
}

// eachPair yields all pairs of neighbouring characters in a word. A word of one character is yielded unchanged.
func eachPair(word string, yield func(string)) {
	_, size := decodeRune(word)
	if size == len(word) {
		yield(word)
		return
	}
	for size < len(word) {
		_, next := decodeRune(word[size:])
		yield(word[:size+next])
		word, size = word[size:], next
	}
}

// countLetters returns the number of letters a-z at the start of word.
func countLetters(word string) int {
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return i
		}
	}
	return len(word)
}

// cutWord shortens a word to at most maxWord bytes, between two characters.
func cutWord(word string) string {
	if len(word) <= maxWord {
		return word
	}
	n := maxWord
	for n > 0 && !utf8.RuneStart(word[n]) {
		n--
	}
	return word[:n]
}

func appendLower(dst []byte, text string) []byte {
	for i := 0; i < len(text); {
		r, size := decodeRune(text[i:])
		if r < utf8.RuneSelf {
			dst = append(dst, lowerASCII(byte(r)))
		} else {
			dst = utf8.AppendRune(dst, unicode.ToLower(r))
		}
		i += size
	}
	return dst
}

func lowerASCII(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// decodeRune works like utf8.DecodeRuneInString, but is faster for ASCII.
func decodeRune(text string) (rune, int) {
	if c := text[0]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRuneInString(text)
}

func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r))
}

// isDense reports whether r belongs to a script without spaces between words.
func isDense(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}
