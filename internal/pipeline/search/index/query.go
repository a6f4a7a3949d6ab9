package index

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"retort/internal/core"
)

const (
	maxQuery      = 4 << 10 // bytes of a query that are read
	maxTerms      = 64      // terms of a query that are looked up
	maxAlike      = 3       // words that replace one that no tool has
	minAlike      = 4       // letters of a word that may be mistyped
	minPrefix     = 3
	oneEdit       = 0.6 // weight of a word one edit away
	twoEdits      = 0.4
	asPrefix      = 0.5
	asCompound    = 0.7
	minCompound   = 3 // letters of each half
	twoEditLength = 8
)

// wantedTerm holds a term to search for, and its weight.
type wantedTerm struct {
	term   termID
	weight float64 // idf, less what the query makes of it
}

// parseQuery returns the terms to search for, each only once, with their weights. They are the terms of the words in
// the query, and of similar words and synonyms.
func (s *indexSnapshot) parseQuery(query string) []wantedTerm {
	words := s.splitQuery(query)
	var found []wantedTerm
	add := func(t termID, weight float64) {
		if s.documentCount(t) == 0 {
			return
		}
		weight *= s.inverseFrequency(t)
		for i := range found {
			if found[i].term == t {
				found[i].weight = max(found[i].weight, weight)
				return
			}
		}
		if len(found) < maxTerms {
			found = append(found, wantedTerm{t, weight})
		}
	}
	for i, w := range words {
		s.lookUp(w, add)
		if i > 0 {
			s.addJoined(words[i-1], w, add)
		}
	}
	for _, w := range words {
		for _, other := range synonymTable[w] {
			if t, ok := s.words.findTerm(other); ok {
				add(t, s.tuning.synonym)
			}
		}
	}
	return found
}

// splitQuery returns the words of a query without stop words, or all words if there are no others.
func (s *indexSnapshot) splitQuery(query string) []string {
	if len(query) > maxQuery {
		query = query[:maxQuery]
	}
	var all, words []string
	eachToken(query, func(text string) {
		all = append(all, text)
		if _, stop := stopWords[text]; !stop {
			words = append(words, text)
		}
	})
	if len(words) == 0 || !s.tuning.stop {
		return all
	}
	return words
}

func (s *indexSnapshot) inverseFrequency(t termID) float64 {
	n, all := float64(s.documentCount(t)), float64(len(s.entries))
	return math.Log(1 + (all-n+0.5)/(n+0.5))
}

func (s *indexSnapshot) lookUp(text string, add func(termID, float64)) {
	if t, ok := s.words.findTerm(text); ok && s.documentCount(t) > 0 {
		weight := 1.0
		if isNumber(text) {
			weight = s.tuning.number
		}
		add(t, weight)
		return
	}
	if s.tuning.fuzzy && !isNumber(text) {
		s.addSimilar(text, add)
	}
}

// addJoined handles two neighbouring words of the query that tools write as one, such as webhook for "web hook". It
// adds the term of the joined word to the search.
func (s *indexSnapshot) addJoined(a, b string, add func(termID, float64)) {
	if i, ok := s.words.index[a+b]; ok {
		add(s.words.words[i].term, asCompound)
	}
}

// addSimilar handles a word of the query that no tool contains. It adds the terms of similar words to the search,
// because the word may be two words written as one, a prefix, or mistyped.
func (s *indexSnapshot) addSimilar(text string, add func(termID, float64)) {
	if s.addHalves(text, add) {
		return
	}
	var found []wordLikeness
	runes, letters := utf8.RuneCountInString(text), letterSet(text)
	for i := range s.words.words {
		w := &s.words.words[i]
		if l, ok := compareWord(text, runes, letters, w); ok && s.documentCount(w.term) > 0 {
			found = append(found, l)
		}
	}
	slices.SortFunc(found, func(a, b wordLikeness) int {
		return cmp.Or(
			cmp.Compare(b.weight, a.weight), cmp.Compare(s.documentCount(b.word.term), s.documentCount(a.word.term)),
			cmp.Compare(a.word.text, b.word.text),
		)
	})
	for _, l := range found[:min(len(found), maxAlike)] {
		add(l.word.term, l.weight)
	}
}

// addHalves handles a word of the query that consists of two known words, and adds the terms of both to the search.
// It returns false if the word does not consist of two known words.
func (s *indexSnapshot) addHalves(text string, add func(termID, float64)) bool {
	for i := minCompound; i <= len(text)-minCompound; i++ {
		a, okA := s.words.index[text[:i]]
		b, okB := s.words.index[text[i:]]
		if okA && okB {
			add(s.words.words[a].term, asCompound)
			add(s.words.words[b].term, asCompound)
			return true
		}
	}
	return false
}

type wordLikeness struct {
	word   *indexedWord
	weight float64
}

// compareWord compares a word of the query (text) with the indexed word w, and returns in which way they are similar.
// It returns false if they are not. Words with different first letters never count as similar, because the first
// letter is rarely mistyped.
func compareWord(text string, runes int, letters uint32, w *indexedWord) (wordLikeness, bool) {
	if w.stop || w.text[0] != text[0] {
		return wordLikeness{}, false
	}
	if runes >= minPrefix && len(w.text) > len(text) && strings.HasPrefix(w.text, text) {
		return wordLikeness{w, asPrefix}, true
	}
	edits := toleratedEdits(runes)
	if edits == 0 || !mayBeWithin(letters, w.letters, edits) {
		return wordLikeness{}, false
	}
	switch core.EditDistance([]byte(text), []byte(w.text), edits) {
	case 1:
		return wordLikeness{w, oneEdit}, true
	case 2:
		if edits >= 2 {
			return wordLikeness{w, twoEdits}, true
		}
	}
	return wordLikeness{}, false
}

func toleratedEdits(runes int) int {
	switch {
	case runes < minAlike:
		return 0
	case runes < twoEditLength:
		return 1
	}
	return 2
}

func isNumber(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}
