package index

import (
	"cmp"
	"slices"

	"retort/internal/core"
)

// SearchFilter restricts a search. An empty field restricts nothing.
type SearchFilter struct {
	Server   string // as configured
	Category string
	Hidden   func(*core.Tool) bool
}

// IsMatch reports whether a tool matches the filter.
func (f SearchFilter) IsMatch(t *core.Tool) bool {
	return (f.Server == "" || f.Server == t.Server) && (f.Category == "" || f.Category == t.Category) && (f.Hidden == nil || !f.Hidden(t))
}

// SearchHit describes one tool that was found.
type SearchHit struct {
	Tool  *core.Tool
	Score float64 // comparable within one search only
	Exact bool    // the query spells out the tool's name
	Weak  bool    // it matches much less well than better hits, and has hardly a word of the query that they lack
}

// Search finds the tools that contain words of the query, best first, and returns how many there are in total. It
// returns at most limit hits, or all if limit is not positive. If the query consists of the name of a tool, alone or
// after the name of its server, that tool comes first. Tools with equal scores are ordered by name. An empty query
// finds nothing.
func (x *ToolIndex) Search(query string, f SearchFilter, limit int) (hits []SearchHit, total int) {
	s := x.current.Load()
	terms := s.parseQuery(query)
	found := s.scoreDocuments(terms)
	defer s.pool.Put(found)
	spelled := s.findSpelled(query)
	for d, r := range spelled {
		found.touchCell(d).rank = r
	}
	best := topRanking{limit: limit}
	for _, d := range found.touched {
		t := s.entries[d].tool
		if f.IsMatch(t) {
			total++
			c := &found.cells[d]
			best.offerHit(rankedDocument{SearchHit{Tool: t, Score: found.weighDocument(s, d), Exact: c.rank != byWords}, c.rank, c.terms})
		}
	}
	return best.sortedHits(newWeakness(query, terms)), total
}

// scoreDocuments returns the score of each document that contains terms of the query.
func (s *indexSnapshot) scoreDocuments(terms []wantedTerm) *scoreTable {
	found := s.newScores()
	for at, w := range terms {
		found.wanted += float32(w.weight)
		docs := s.docs[s.starts[w.term]:s.starts[w.term+1]]
		impacts := s.impacts[s.starts[w.term]:s.starts[w.term+1]]
		for i, d := range docs {
			c := found.touchCell(d)
			c.score += float32(w.weight) * impacts[i].toFloat()
			c.covered += float32(w.weight)
			c.terms |= 1 << at // there are at most maxTerms
			if impacts[i]&nameFlag != 0 {
				c.named += float32(w.weight)
				c.name++
			}
		}
	}
	return found
}

// scoreTable holds the scores of documents during one search.
type scoreTable struct {
	cells   []scoreCell
	touched []uint32
	wanted  float32 // the weight of all terms
}

type scoreCell struct {
	score   float32
	covered float32 // weight of the terms that the document has
	named   float32 // weight of the terms that its name has
	terms   uint64  // that the document has, one bit for each, in the order of the query
	name    uint16  // number of the terms that its name has
	touched bool
	rank    nameRank
}

func (s *indexSnapshot) newScores() *scoreTable {
	if found, ok := s.pool.Get().(*scoreTable); ok {
		for _, d := range found.touched {
			found.cells[d] = scoreCell{}
		}
		found.touched, found.wanted = found.touched[:0], 0
		return found
	}
	return &scoreTable{cells: make([]scoreCell, len(s.entries))}
}

func (f *scoreTable) touchCell(d uint32) *scoreCell {
	c := &f.cells[d]
	if !c.touched {
		c.touched = true
		f.touched = append(f.touched, d)
	}
	return c
}

// weighDocument returns the score of one document. The score is higher the more words of the query the document
// contains, and the larger the part of the tool's name that the query contains.
func (f *scoreTable) weighDocument(s *indexSnapshot, d uint32) float64 {
	c := &f.cells[d]
	score := float64(c.score)
	if f.wanted == 0 {
		return score
	}
	score *= 1 + s.tuning.coverage*float64(c.covered/f.wanted)
	if c.name > 0 {
		score *= 1 + s.tuning.naming*float64(c.name)/float64(s.entries[d].name)*float64(c.named/f.wanted)
	}
	return score
}

type rankedDocument struct {
	SearchHit
	rank  nameRank
	terms uint64
}

// compareRanked orders hits by rank and score, best first. Hits with equal ranks and scores are ordered by name.
func compareRanked(a, b rankedDocument) int {
	if a.rank != b.rank {
		return cmp.Compare(b.rank, a.rank)
	}
	if a.Score != b.Score {
		return cmp.Compare(b.Score, a.Score)
	}
	return cmp.Or(cmp.Compare(a.Tool.Server, b.Tool.Server), cmp.Compare(a.Tool.Name, b.Tool.Name))
}

// topRanking keeps the best hits in a heap. The root of the heap is the worst of these hits.
type topRanking struct {
	limit int
	heap  []rankedDocument
}

func (r *topRanking) offerHit(h rankedDocument) {
	if r.limit <= 0 || len(r.heap) < r.limit {
		r.heap = append(r.heap, h)
		if len(r.heap) == r.limit {
			slices.SortFunc(r.heap, func(a, b rankedDocument) int { return compareRanked(b, a) })
		}
		return
	}
	if compareRanked(h, r.heap[0]) < 0 {
		r.heap[0] = h
		r.sinkRoot(0)
	}
}

func (r *topRanking) sinkRoot(i int) {
	for {
		child := 2*i + 1
		if child >= len(r.heap) {
			return
		}
		if next := child + 1; next < len(r.heap) && compareRanked(r.heap[next], r.heap[child]) > 0 {
			child = next
		}
		if compareRanked(r.heap[i], r.heap[child]) >= 0 {
			return
		}
		r.heap[i], r.heap[child] = r.heap[child], r.heap[i]
		i = child
	}
}

func (r *topRanking) sortedHits(w weakness) []SearchHit {
	slices.SortFunc(r.heap, compareRanked)
	w.markHits(r.heap)
	hits := make([]SearchHit, len(r.heap))
	for i, h := range r.heap {
		hits[i] = h.SearchHit
	}
	return hits
}
