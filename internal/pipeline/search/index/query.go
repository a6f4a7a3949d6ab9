package index

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
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

// wanted holds one term of a query.
type wanted struct {
	term   term
	weight float64 // idf, less what the query makes of it
}

// parse converts a query to the terms to look up, each once.
func (s *snapshot) parse(query string) []wanted {
	words := s.split(query)
	var found []wanted
	add := func(t term, weight float64) {
		if s.documents(t) == 0 {
			return
		}
		weight *= s.idf(t)
		for i := range found {
			if found[i].term == t {
				found[i].weight = max(found[i].weight, weight)
				return
			}
		}
		if len(found) < maxTerms {
			found = append(found, wanted{t, weight})
		}
	}
	for i, w := range words {
		s.lookUp(w, add)
		if i > 0 {
			s.joined(words[i-1], w, add)
		}
	}
	for _, w := range words {
		for _, other := range synonyms[w] {
			if t, ok := s.words.find(other); ok {
				add(t, s.tuning.synonym)
			}
		}
	}
	return found
}

// split returns the words of a query without stop words, or all words if there are no others.
func (s *snapshot) split(query string) []string {
	if len(query) > maxQuery {
		query = query[:maxQuery]
	}
	var all, words []string
	tokens(query, func(text string) {
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

func (s *snapshot) idf(t term) float64 {
	n, all := float64(s.documents(t)), float64(len(s.entries))
	return math.Log(1 + (all-n+0.5)/(n+0.5))
}

func (s *snapshot) lookUp(text string, add func(term, float64)) {
	if t, ok := s.words.find(text); ok && s.documents(t) > 0 {
		weight := 1.0
		if isNumber(text) {
			weight = s.tuning.number
		}
		add(t, weight)
		return
	}
	if s.tuning.fuzzy && !isNumber(text) {
		s.alike(text, add)
	}
}

// joined looks up two words as one: webhook for web hook.
func (s *snapshot) joined(a, b string, add func(term, float64)) {
	if i, ok := s.words.index[a+b]; ok {
		add(s.words.words[i].term, asCompound)
	}
}

// alike looks up candidates for a word that no tool has: two words written as one, a prefix, a typing error.
func (s *snapshot) alike(text string, add func(term, float64)) {
	if s.halves(text, add) {
		return
	}
	var found []likeness
	runes, letters := utf8.RuneCountInString(text), letterSet(text)
	for i := range s.words.words {
		w := &s.words.words[i]
		if l, ok := compare(text, runes, letters, w); ok && s.documents(w.term) > 0 {
			found = append(found, l)
		}
	}
	slices.SortFunc(found, func(a, b likeness) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(s.documents(b.word.term), s.documents(a.word.term)), cmp.Compare(a.word.text, b.word.text))
	})
	for _, l := range found[:min(len(found), maxAlike)] {
		add(l.word.term, l.weight)
	}
}

// halves looks up a word as two known words that form it.
func (s *snapshot) halves(text string, add func(term, float64)) bool {
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

type likeness struct {
	word   *word
	weight float64
}

// compare returns how similar w is to text, if it is similar at all. Words with different first letters never are,
// because the first letter is rarely mistyped.
func compare(text string, runes int, letters uint32, w *word) (likeness, bool) {
	if w.stop || w.text[0] != text[0] {
		return likeness{}, false
	}
	if runes >= minPrefix && len(w.text) > len(text) && strings.HasPrefix(w.text, text) {
		return likeness{w, asPrefix}, true
	}
	edits := tolerated(runes)
	if edits == 0 || !mayBeWithin(letters, w.letters, edits) {
		return likeness{}, false
	}
	switch distance(text, w.text, edits) {
	case 1:
		return likeness{w, oneEdit}, true
	case 2:
		if edits >= 2 {
			return likeness{w, twoEdits}, true
		}
	}
	return likeness{}, false
}

func tolerated(runes int) int {
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
