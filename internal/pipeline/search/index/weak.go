package index

import (
	"strings"

	"retort/internal/core"
)

// Bounds below which a hit is weak. They are calibrated with the questions in testdata, and with pairs of them, which
// ask for two tools: see TestWeakHits.
const (
	weakScore = 0.3  // of the best score
	weakNews  = 0.05 // of the weight of all terms; less than this is new in the hit
	surelyGot = 3    // best hits that are never weak, if the query is no tool's name
)

// weakness decides which hits of one query are weak.
type weakness struct {
	names  map[string]bool // words of the query, of which each may be a tool's name
	terms  []wantedTerm
	wanted float64 // the weight of all terms
}

func newWeakness(query string, terms []wantedTerm) weakness {
	w := weakness{names: map[string]bool{}, terms: terms}
	for _, t := range terms {
		w.wanted += t.weight
	}
	for word := range strings.FieldsSeq(query[:min(len(query), maxQuery)]) {
		w.names[string(appendFolded(nil, word))] = true
	}
	return w
}

// markHits marks the weak ones of the hits, which are sorted, best first. A hit is weak if its score is far below the
// best one and the hits before it already have the words of the query that it has. A query that describes two tasks
// keeps the tools of both in this way. A tool that the query names is never weak.
func (w weakness) markHits(hits []rankedDocument) {
	best := 0.0
	for _, h := range hits {
		best = max(best, h.Score)
	}
	var had uint64 // terms of the hits that are not weak
	for i := range hits {
		h := &hits[i]
		surely := i < surelyGot && !hits[0].Exact
		h.Weak = !surely && h.Score < weakScore*best && w.weighTerms(h.terms&^had) < weakNews*w.wanted && !h.Exact && !w.isNamed(h.Tool)
		if !h.Weak {
			had |= h.terms
		}
	}
}

func (w weakness) weighTerms(terms uint64) (weight float64) {
	for i, t := range w.terms {
		if terms&(1<<i) != 0 {
			weight += t.weight
		}
	}
	return weight
}

// isNamed reports whether a word of the query is the tool's name, with or without its server.
func (w weakness) isNamed(t *core.Tool) bool {
	name := string(appendFolded(nil, t.Name))
	return w.names[name] || w.names[string(appendFolded(nil, t.Server))+name]
}
