package pii

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// reachOf returns where a complete value is found. Most values are found anywhere. These are not, because they also
// occur in other texts:
//   - a value of common words only is found where it begins with a capital, or is the whole text;
//   - a common word is found only where it begins with a capital and is the whole text;
//   - a word of two or three letters is found where it begins with a capital, or is the whole text;
//   - digits are found only where they are the whole text;
//   - a few characters of a script without spaces are found only where no letters stand beside them.
func reachOf(t Type, text []byte, units []textUnit) wordEntry {
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

// sealedReach returns where a value that was given to AddSealed is found. That is anywhere, unless it consists of a few
// digits, which also occur in dates, prices and ids. A number of seven digits is found anywhere but in ids and amounts:
// see isAllowed.
func sealedReach(t Type, text []byte, units []textUnit) wordEntry {
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
	return reachOf(t, text, units)
}

// enoughWeight is the weight of characters that identify a value inside of a run of letters: two ideographs or
// syllables, three kana, four letters.
const enoughWeight = 8

func weightOf(r rune) int {
	switch {
	case r >= 0x3400 || r >= 0x1100 && r < 0x1160:
		return 4
	case r >= 0x3040:
		return 3
	}
	return 2
}

// putParts stores the words of a person's name that are found alone: those of the lists of names. If a name has such a
// word, its other words are found too, unless they are short or common. No words are stored of what only stands under
// the key of a name, such as GitHub Actions.
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

// isListedName reports whether a word is in the lists of given and family names.
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

// isDistinctive reports whether the single word w is distinctive enough to be searched for on its own. It must have
// at least four characters, begin with a capital, contain no digits and not be a common word.
func isDistinctive(w string) bool {
	if utf8.RuneCountInString(w) < 4 || !isCapitalised([]byte(w), 0) || strings.ContainsAny(w, "0123456789.@/_") {
		return false
	}
	return !isStopWord([]byte(w)) && !isCommonWord([]byte(w))
}

// isStopWord reports whether w is a word of grammar, or one that commonly stands beside names, such as Mr or GmbH.
func isStopWord(w []byte) bool {
	h := wordHash(w, 0, len(w))
	if words, end := vouchers().longestMatch(w, 0, h); end == len(w) && words != 0 {
		return true
	}
	role, end := people().longestMatch(w, 0, h)
	return end == len(w) && role&(roleStop|roleTitle|roleGreeting|roleCompany|roleSignoff|roleParticle) != 0
}

// isCommonWord reports whether w is a common word that also occurs in names, so that on its own it does not indicate
// a person.
func isCommonWord(w []byte) bool {
	var room [64]byte
	return wordLists().common[string(appendFoldedWord(room[:0], w))]
}

// wordLists returns the common words, and those names that are only used to recognise the words of a known name.
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
