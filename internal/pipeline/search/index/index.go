// Package index finds tools by their names and descriptions. It uses BM25F over server, name, title, description and
// parameters, with stemming, bonuses for coverage, and a small tolerance for typing errors. It is pure: no input or
// output, no clock.
package index

import (
	"slices"
	"sync"
	"sync/atomic"

	"retort/internal/core"
)

// Index is an inverted index over a toolset. Searches never wait: they read an immutable snapshot, which Update
// replaces as a whole.
type Index struct {
	tuning  tuning
	updates sync.Mutex
	current atomic.Pointer[snapshot]
}

// New returns an empty index.
func New() *Index { return newTuned(defaults()) }

func newTuned(t tuning) *Index {
	x := &Index{tuning: t}
	x.current.Store(&snapshot{tuning: &x.tuning, tools: core.NewToolset(nil), words: newVocabulary(t.stem), starts: []uint32{0}})
	return x
}

// Toolset returns the indexed toolset.
func (x *Index) Toolset() *core.Toolset { return x.current.Load().tools }

// Update makes the index hold ts. Tools with the same server, name and pin are reused. The others cost reading them,
// plus one pass over the postings.
func (x *Index) Update(ts *core.Toolset) {
	x.updates.Lock()
	defer x.updates.Unlock()
	old := x.current.Load()
	if old.tools != ts {
		x.current.Store(old.update(ts))
	}
}

// snapshot holds one immutable state of an index. Documents are numbered. The postings of term t are docs and impacts
// [starts[t]:starts[t+1]].
type snapshot struct {
	tuning  *tuning
	tools   *core.Toolset
	words   *vocabulary
	entries []entry // by document
	exact   []exact // sorted by hash

	starts  []uint32
	docs    []uint32
	impacts []impact

	pool sync.Pool // of *scores
}

// entry holds one tool as a document.
type entry struct {
	tool *core.Tool
	name uint32 // distinct terms of its name
}

// change describes what an update does to the documents.
type change struct {
	kept  []entry      // of the old documents, in their order
	moved []int64      // old document → new one, or -1
	fresh []*core.Tool // to be read
}

func (s *snapshot) update(ts *core.Toolset) *snapshot {
	c := s.compare(ts)
	next := &snapshot{tuning: s.tuning, tools: ts, words: s.words, entries: c.kept}
	batch := next.read(c.fresh)
	next.merge(s, c.moved, batch)
	if len(c.kept) < len(s.entries) {
		next.dropUnused()
	}
	next.exact = hashNames(next.entries)
	return next
}

type key struct{ server, name string }

// compare finds the documents that stay. A tool without a pin is always read again, and so is the second of two tools
// with the same name on one server.
func (s *snapshot) compare(ts *core.Toolset) change {
	old := make(map[key]int, len(s.entries))
	for d, e := range s.entries {
		old[key{e.tool.Server, e.tool.Name}] = d
	}
	stays := make([]*core.Tool, len(s.entries))
	var c change
	for _, server := range ts.Servers {
		for _, t := range server.Tools {
			d, known := old[key{t.Server, t.Name}]
			if known && t.Pin != "" && t.Pin == s.entries[d].tool.Pin && stays[d] == nil {
				stays[d] = t
			} else {
				c.fresh = append(c.fresh, t)
			}
		}
	}
	c.moved = make([]int64, len(stays))
	for d, t := range stays {
		c.moved[d] = -1
		if t != nil {
			c.moved[d] = int64(len(c.kept))
			c.kept = append(c.kept, entry{t, s.entries[d].name})
		}
	}
	return c
}

// batch holds the terms of new documents, one after the other.
type batch struct {
	document
	ends []int // of each fresh document in terms
}

// read adds the new documents and returns their terms. It clones the vocabulary, because readers still use the old
// one.
func (s *snapshot) read(fresh []*core.Tool) batch {
	var b batch
	if len(fresh) == 0 {
		return b
	}
	s.words = s.words.clone()
	a := analyzer{tuning: s.tuning, words: s.words}
	s.entries = slices.Grow(s.entries, len(fresh))
	for _, t := range fresh {
		a.read(t, &b.document)
		s.entries = append(s.entries, entry{t, uint32(b.name)})
		b.ends = append(b.ends, len(b.terms))
	}
	return b
}

// merge builds the postings from those of the old documents that stay and those of the batch, whose documents are
// numbered last. It is a counting sort by term.
func (s *snapshot) merge(old *snapshot, moved []int64, b batch) {
	starts := make([]uint32, s.words.count+1)
	for t := range old.terms() {
		for _, d := range old.docs[old.starts[t]:old.starts[t+1]] {
			if moved[d] >= 0 {
				starts[t+1]++
			}
		}
	}
	for _, t := range b.terms {
		starts[t+1]++
	}
	for t := 1; t < len(starts); t++ {
		starts[t] += starts[t-1]
	}
	s.starts, s.docs, s.impacts = starts, make([]uint32, starts[s.words.count]), make([]impact, starts[s.words.count])
	next := slices.Clone(starts)
	put := func(t term, d uint32, i impact) {
		s.docs[next[t]], s.impacts[next[t]] = d, i
		next[t]++
	}
	for t := range old.terms() {
		for p := old.starts[t]; p < old.starts[t+1]; p++ {
			if d := moved[old.docs[p]]; d >= 0 {
				put(t, uint32(d), old.impacts[p])
			}
		}
	}
	at := 0
	for n, end := range b.ends {
		for ; at < end; at++ {
			put(b.terms[at], uint32(len(s.entries)-len(b.ends)+n), b.impacts[at])
		}
	}
}

func (s *snapshot) terms() term { return term(len(s.starts) - 1) }

// documents returns how many documents contain the term.
func (s *snapshot) documents(t term) int { return int(s.starts[t+1] - s.starts[t]) }

// dropUnused drops words that no document contains any more.
func (s *snapshot) dropUnused() {
	words, _ := s.words.without(func(t term) bool { return s.documents(t) > 0 })
	starts := make([]uint32, 1, words.count+1)
	for t := range s.terms() {
		if s.documents(t) > 0 {
			starts = append(starts, s.starts[t+1])
		}
	}
	s.words, s.starts = words, starts
}
