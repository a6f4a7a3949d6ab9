package pii

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// reachOf returns the flag that says where a complete value is found. Most values get asWord and are found anywhere.
// The following values also occur in ordinary texts and are found only in some places. In this list, "whole text" also
// means a whole line, and any first character other than a small letter counts as a capital.
//   - Several words that are all common, for example "Open Door", must begin with a capital or be the whole text.
//   - A single common word, or a single letter, must begin with a capital and be the whole text.
//   - A word of two or three letters must begin with a capital or be the whole text.
//   - Digits must be the whole text. A number of up to four digits is never found, and reachOf returns 0.
//   - A few characters of a script without spaces must have no letters beside them. enoughWeight says how few.
func reachOf(text []byte, units []textUnit) wordEntry {
	digits, common, weight := true, true, 0
	for _, u := range units {
		word := text[u.start:u.end]
		if r, _ := utf8.DecodeRune(word); isDense(r) {
			weight += weightOf(r)
			digits = false
			continue
		}
		if hasOnlyDigits(word) {
			continue
		}
		digits = false
		common = common && (isStopWord(word) || isCommonWord(word))
	}
	first := text[units[0].start:units[0].end]
	switch {
	case digits && len(units) == 1 && len(first) < 5:
		return 0
	case digits:
		return asWhole
	case weight >= enoughWeight || !common && len(units) > 1:
		return asWord
	case weight > 0 || len(units) > 1:
		return asName
	case common:
		return asWhole
	}
	switch n := utf8.RuneCount(first); {
	case n >= 4:
		return asWord
	case n >= 2:
		return asName
	}
	return asWhole
}

// sealedReach returns the flag that says where a value of AddSealed is found. A value with letters is found anywhere. A
// few digits also occur in dates, prices and ids. So digits are found anywhere only if there are at least nine of them.
// A number of seven or eight digits is also found, except in ids and amounts: see isAllowed. Other digits are found
// where reachOf says.
func sealedReach(text []byte, units []textUnit) wordEntry {
	digits := 0
	for _, u := range units {
		if !hasOnlyDigits(text[u.start:u.end]) {
			return asWord
		}
		digits += u.end - u.start
	}
	if digits >= leastOpaque || len(units) == 1 && digits >= leastDigits {
		return asWord
	}
	return reachOf(text, units)
}

// enoughWeight is the sum of weightOf from which on the characters of a script without spaces identify a value, so that
// it is found even with letters beside it. Two ideographs or syllables, three kana, or four other letters reach it.
const enoughWeight = 8

// weightOf returns how much a character of a script without spaces contributes to identifying a value.
func weightOf(r rune) int {
	switch {
	case r >= 0x3400 || r >= 0x1100 && r < 0x1160:
		return 4
	case r >= 0x3040:
		return 3
	}
	return 2
}

// putParts stores the words of a person's name that are also found alone. If no word is in the lists of names, it
// stores nothing, because the value may not be a person, for example "GitHub Actions". Otherwise it stores the listed
// words and those for which isDistinctive returns true. It never stores common words.
func (g *KnownValues) putParts(text []byte, units []textUnit, k typeNumber) {
	person := false
	for _, u := range units {
		person = person || isListedName(text[u.start:u.end])
	}
	for _, u := range units {
		word := text[u.start:u.end]
		if !person || isStopWord(word) || isCommonWord(word) || !isListedName(word) && !isDistinctive(string(word)) {
			continue
		}
		flags := asPart
		if isSmallLetter(word) {
			flags |= isSmall
		}
		g.words.add(hashUnit(word), flags|countBit(1), k)
		g.indexFirst(word)
	}
}

// isListedName reports whether a word is in the lists of given names and family names, in any letter case.
func isListedName(word []byte) bool {
	h := wordHash(word, 0, len(word))
	role, end := people().longestMatch(word, 0, h)
	if end == len(word) && role&(roleGiven|roleSurname) != 0 {
		return true
	}
	var room [64]byte
	return wordLists().names[string(appendFoldedWord(room[:0], word))]
}

func isSmallLetter(word []byte) bool {
	r, _ := utf8.DecodeRune(word)
	return unicode.IsLower(r)
}

func hasOnlyDigits(word []byte) bool { return spanEnd(word, 0, isDigit) == len(word) }

// isDistinctive reports whether the single word w may be searched for on its own. It must have at least four
// characters, begin with a capital, contain no digit, point, @, slash or underscore, and not be a common word.
func isDistinctive(w string) bool {
	if utf8.RuneCountInString(w) < 4 || !isCapitalised([]byte(w), 0) || strings.ContainsAny(w, "0123456789.@/_") {
		return false
	}
	return !isStopWord([]byte(w)) && !isCommonWord([]byte(w))
}

// isStopWord reports whether w is a word of grammar, or a word that often stands beside names, for example "Mr" or
// "GmbH".
func isStopWord(w []byte) bool {
	h := wordHash(w, 0, len(w))
	if words, end := vouchers().longestMatch(w, 0, h); end == len(w) && words != 0 {
		return true
	}
	role, end := people().longestMatch(w, 0, h)
	return end == len(w) && role&(roleStop|roleTitle|roleGreeting|roleCompany|roleSignoff|roleParticle) != 0
}

// isCommonWord reports whether w is in the list of common words that also occur in names, for example "Rose". On its
// own, such a word does not identify a person.
func isCommonWord(w []byte) bool {
	var room [64]byte
	return wordLists().common[string(appendFoldedWord(room[:0], w))]
}

// wordLists returns the common words, and the names that are used only to recognise the words of a known name. All
// words are in the form that appendFoldedWord returns.
var wordLists = sync.OnceValue(func() (lists struct{ common, names map[string]bool }) {
	lists.common, lists.names = map[string]bool{}, map[string]bool{}
	for w := range strings.FieldsSeq(commonWords) {
		lists.common[string(appendFoldedWord(nil, []byte(w)))] = true
	}
	for w := range strings.FieldsSeq(otherNames) {
		if w := string(appendFoldedWord(nil, []byte(w))); !lists.common[w] {
			lists.names[w] = true
		}
	}
	return lists
})

//go:embed common.txt
var commonWords string

//go:embed othernames.txt
var otherNames string
