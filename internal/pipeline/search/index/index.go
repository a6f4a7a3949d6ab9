// Package index finds tools by their names and descriptions. It uses BM25F over server, name, title, description and
// parameters, with stemming, bonuses for coverage, and a small tolerance for typing errors. It does no I/O and reads
// no clock.
package index

import (
	"slices"
	"sync"
	"sync/atomic"

	"retort/internal/core"
)

// ToolIndex is an inverted index over a toolset. Searches never wait for updates: they read an immutable snapshot,
// which UpdateTools replaces.
type ToolIndex struct {
	tuning  rankingTuning
	updates sync.Mutex
	current atomic.Pointer[indexSnapshot]
}

// New returns an empty index.
func New() *ToolIndex { return newTuned(defaultTuning()) }

func newTuned(t rankingTuning) *ToolIndex {
	x := &ToolIndex{tuning: t}
	x.current.Store(&indexSnapshot{tuning: &x.tuning, tools: core.NewToolset(nil), words: newVocabulary(t.stem), starts: []uint32{0}})
	return x
}

// Toolset returns the indexed toolset.
func (x *ToolIndex) Toolset() *core.Toolset { return x.current.Load().tools }

// UpdateTools makes the index contain the toolset ts. It analyses only new and changed tools. For a tool with the
// same server, name and pin (hash of the definition) as before, it reuses the terms.
func (x *ToolIndex) UpdateTools(ts *core.Toolset) {
	x.updates.Lock()
	defer x.updates.Unlock()
	old := x.current.Load()
	if old.tools != ts {
		x.current.Store(old.withToolset(ts))
	}
}

// indexSnapshot holds one immutable state of an index. Each tool is a document with a number. The postings of term t
// are the elements starts[t] to starts[t+1] of docs and impacts.
type indexSnapshot struct {
	tuning  *rankingTuning
	tools   *core.Toolset
	words   *termVocabulary
	entries []documentEntry // by document
	exact   []nameHash      // sorted by hash

	starts  []uint32
	docs    []uint32
	impacts []termImpact

	pool sync.Pool // of *scores
}

// documentEntry holds one tool as a document.
type documentEntry struct {
	tool *core.Tool
	name uint32 // distinct terms of its name
}

// documentChange says which documents an update keeps and which it adds.
type documentChange struct {
	kept  []documentEntry // of the old documents, in their order
	moved []int64         // old document → new one, or -1
	fresh []*core.Tool    // to be read
}

func (s *indexSnapshot) withToolset(ts *core.Toolset) *indexSnapshot {
	c := s.compareToolset(ts)
	next := &indexSnapshot{tuning: s.tuning, tools: ts, words: s.words, entries: c.kept}
	batch := next.readFresh(c.fresh)
	next.mergePostings(s, c.moved, batch)
	if len(c.kept) < len(s.entries) {
		next.dropUnused()
	}
	next.exact = hashNames(next.entries)
	return next
}

type documentKey struct{ server, name string }

// compareToolset determines which documents an update can keep. It keeps no tool without a pin, which is the hash of
// the tool's definition. If a server has two tools with the same name, it keeps only the first.
func (s *indexSnapshot) compareToolset(ts *core.Toolset) documentChange {
	old := make(map[documentKey]int, len(s.entries))
	for d, e := range s.entries {
		old[documentKey{e.tool.Server, e.tool.Name}] = d
	}
	stays := make([]*core.Tool, len(s.entries))
	var c documentChange
	for _, server := range ts.Servers {
		for _, t := range server.Tools {
			d, known := old[documentKey{t.Server, t.Name}]
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
			c.kept = append(c.kept, documentEntry{t, s.entries[d].name})
		}
	}
	return c
}

// termBatch holds the terms of all new documents, one document after the other.
type termBatch struct {
	toolDocument
	ends []int // of each fresh document in terms
}

// readFresh analyses the tools that are new, adds them to the snapshot as documents, and returns their terms. It
// copies the vocabulary before changing it, because searches still use the old one.
func (s *indexSnapshot) readFresh(fresh []*core.Tool) termBatch {
	var b termBatch
	if len(fresh) == 0 {
		return b
	}
	s.words = s.words.cloneVocabulary()
	a := toolAnalyzer{tuning: s.tuning, words: s.words}
	s.entries = slices.Grow(s.entries, len(fresh))
	for _, t := range fresh {
		a.readTool(t, &b.toolDocument)
		s.entries = append(s.entries, documentEntry{t, uint32(b.name)})
		b.ends = append(b.ends, len(b.terms))
	}
	return b
}

// mergePostings builds the postings of a snapshot, the lists of the documents that contain each term. It merges the
// old postings of the kept documents with those of the new documents, which get the highest numbers. It sorts by term
// with a counting sort.
func (s *indexSnapshot) mergePostings(old *indexSnapshot, moved []int64, b termBatch) {
	starts := make([]uint32, s.words.count+1)
	for t := range old.termCount() {
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
	s.starts, s.docs, s.impacts = starts, make([]uint32, starts[s.words.count]), make([]termImpact, starts[s.words.count])
	next := slices.Clone(starts)
	put := func(t termID, d uint32, i termImpact) {
		s.docs[next[t]], s.impacts[next[t]] = d, i
		next[t]++
	}
	for t := range old.termCount() {
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

func (s *indexSnapshot) termCount() termID { return termID(len(s.starts) - 1) }

// documentCount returns how many documents contain the term t.
func (s *indexSnapshot) documentCount(t termID) int { return int(s.starts[t+1] - s.starts[t]) }

// dropUnused drops words that no document contains any more.
func (s *indexSnapshot) dropUnused() {
	words, _ := s.words.withoutUnused(func(t termID) bool { return s.documentCount(t) > 0 })
	starts := make([]uint32, 1, words.count+1)
	for t := range s.termCount() {
		if s.documentCount(t) > 0 {
			starts = append(starts, s.starts[t+1])
		}
	}
	s.words, s.starts = words, starts
}
