package index

import (
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/kljensen/snowball/english"
)

// termID is the number of a word stem. Documents and queries use the same numbers.
type termID = uint32

// indexedWord holds a word in lower case and the term to which it belongs.
type indexedWord struct {
	text    string
	term    termID
	letters uint32 // the set of its letters a-z, for a cheap look at likeness
	stop    bool
}

// termVocabulary maps words to terms. Searches use it without a lock, so updates change only copies.
type termVocabulary struct {
	words []indexedWord
	index map[string]uint32 // text → position in words
	stems map[string]termID
	count termID // terms given out
	stem  func(string) string
}

func newVocabulary(stem func(string) string) *termVocabulary {
	return &termVocabulary{index: map[string]uint32{}, stems: map[string]termID{}, stem: stem}
}

func (v *termVocabulary) cloneVocabulary() *termVocabulary {
	return &termVocabulary{words: slices.Clone(v.words), index: maps.Clone(v.index), stems: maps.Clone(v.stems), count: v.count, stem: v.stem}
}

// addWord returns the entry of a word. A new word is stemmed and added.
func (v *termVocabulary) addWord(text string) *indexedWord {
	if i, ok := v.index[text]; ok {
		return &v.words[i]
	}
	w := indexedWord{text: strings.Clone(text), letters: letterSet(text)}
	_, w.stop = stopWords[w.text]
	stem := v.stem(w.text)
	t, ok := v.stems[stem]
	if !ok {
		t = v.count
		v.stems[stem] = t
		v.count++
	}
	w.term = t
	v.index[w.text] = uint32(len(v.words))
	v.words = append(v.words, w)
	return &v.words[len(v.words)-1]
}

// findTerm returns the term of a word. For an unknown word, it returns the term of the word's stem.
func (v *termVocabulary) findTerm(text string) (termID, bool) {
	if i, ok := v.index[text]; ok {
		return v.words[i].term, true
	}
	t, ok := v.stems[v.stem(text)]
	return t, ok
}

// withoutUnused returns a copy without the terms for which used returns false. The other terms get new numbers;
// renumbered maps old numbers to new ones.
func (v *termVocabulary) withoutUnused(used func(termID) bool) (kept *termVocabulary, renumbered []termID) {
	kept, renumbered = newVocabulary(v.stem), make([]termID, v.count)
	for t := range v.count {
		if used(t) {
			renumbered[t] = kept.count
			kept.count++
		}
	}
	for stem, t := range v.stems {
		if used(t) {
			kept.stems[stem] = renumbered[t]
		}
	}
	for _, w := range v.words {
		if used(w.term) {
			w.term = renumbered[w.term]
			kept.index[w.text] = uint32(len(kept.words))
			kept.words = append(kept.words, w)
		}
	}
	return kept, renumbered
}

func letterSet(text string) uint32 {
	var set uint32
	for i := range len(text) {
		if c := text[i]; 'a' <= c && c <= 'z' {
			set |= 1 << (c - 'a')
		}
	}
	return set
}

// mayBeWithin reports whether two words may be at most n edits apart, judged by the sets of letters that they
// contain. One edit changes the set of a word by at most two letters.
func mayBeWithin(a, b uint32, n int) bool { return bits.OnesCount32(a^b) <= 2*n }

// stemWord returns the Snowball stem of an English word. Words with non-English letters are not changed.
func stemWord(text string) string { return english.Stem(text, false) }
