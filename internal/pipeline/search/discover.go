// Package search finds the tools that match a question: by their words, and by meaning if an embeddings endpoint is
// configured.
package search

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"retort/internal/core"
	"retort/internal/pipeline/search/index"
)

const (
	defaultLimit = 10
	// patience bounds how long a search waits for the index to catch up with the toolset. After that it answers from
	// the index as it is.
	patience = 100 * time.Millisecond
)

// Catalog provides the tools. An unchanged toolset must be the same pointer.
type Catalog interface {
	Toolset() *core.Toolset
}

// Options configures the search. The zero value searches by words only.
type Options struct {
	Embedder Embedder // nil: by words only
	Dir      string   // where vectors are stored; empty: in memory only
}

// Query describes a search for tools.
type Query struct {
	Tools    *core.Toolset // those that may be found, of the catalogue's; nil: all
	Text     string        // empty, or without a letter or digit: all tools, in their order
	Server   string        // in any spelling; empty: all
	Category string        // empty: all
	Limit    int           // 10 if not positive
	Settled  bool          // however long it takes until all tools of now can be found
}

// Answer holds the result of a search.
type Answer struct {
	Hits     []Hit // best first
	Total    int   // how many tools fit, at least len(Hits)
	Warnings []string
	Cached   bool // true if a hit's server has not answered yet in this run
}

// Hit describes one tool that was found.
type Hit struct {
	Tool  *core.Tool
	Score float64 // comparable within one Answer only; 0 in a list without question
}

// Discoverer finds tools. It is safe for concurrent use.
type Discoverer struct {
	catalog  Catalog
	index    *index.Index
	semantic *semantic // nil: by words only

	mu       sync.Mutex
	building chan struct{} // closed when the build that goes on is done; nil if none does
	closed   bool
	builds   sync.WaitGroup
}

// New returns a Discoverer. Call Close to end it.
func New(c Catalog, o Options) (*Discoverer, error) {
	d := &Discoverer{catalog: c, index: index.New()}
	if o.Embedder != nil {
		s, err := newSemantic(o.Embedder, o.Dir)
		if err != nil {
			return nil, err
		}
		d.semantic = s
	}
	return d, nil
}

// Warm updates the index in the background, so that the next search need not wait for it.
func (d *Discoverer) Warm() { d.build() }

// Close stops all background work and waits for its end.
func (d *Discoverer) Close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.builds.Wait()
	if d.semantic == nil {
		return nil
	}
	return d.semantic.close()
}

// Search finds tools. An unknown server or category is a *core.Error that names the nearest ones. Problems with the
// embeddings endpoint are warnings.
func (d *Discoverer) Search(ctx context.Context, q Query) (Answer, error) {
	tools := d.refresh(ctx)
	for q.Settled && ctx.Err() == nil && tools != d.index.Toolset() && !d.isClosed() {
		select { // the build that was under way knew less
		case <-d.build():
		case <-ctx.Done():
		}
		tools = d.catalog.Toolset()
	}
	if q.Tools != nil {
		tools = q.Tools
	}
	filter, err := scope(tools, q)
	if err != nil {
		return Answer{}, err
	}
	if q.Tools != nil && q.Tools != d.index.Toolset() {
		filter.Hidden = q.Tools.Hides
	}
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	var a Answer
	if strings.IndexFunc(q.Text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) < 0 {
		a = list(tools, filter, q.Limit)
	} else {
		a = d.find(ctx, tools, filter, q)
	}
	for _, h := range a.Hits {
		s, ok := tools.Server(h.Tool.Server)
		a.Cached = a.Cached || ok && s.Cached
	}
	return a, nil
}

// refresh returns the current toolset and waits, for a bounded time, until the index is up to date. Only the first
// search waits without bound.
func (d *Discoverer) refresh(ctx context.Context) *core.Toolset {
	tools := d.catalog.Toolset()
	known := d.index.Toolset()
	if known == tools {
		return tools
	}
	var late <-chan time.Time
	if len(known.Servers) > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-d.build():
	case <-late:
	case <-ctx.Done():
	}
	return tools
}

func (d *Discoverer) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// build updates the index in the background, one update at a time. The channel is closed when it is done.
func (d *Discoverer) build() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.building != nil {
		return d.building
	}
	done := make(chan struct{})
	if d.closed {
		close(done)
		return done
	}
	d.building = done
	d.builds.Go(func() {
		tools := d.catalog.Toolset()
		d.index.Update(tools)
		if d.semantic != nil {
			d.semantic.update(tools)
		}
		d.mu.Lock()
		d.building = nil
		d.mu.Unlock()
		close(done)
	})
	return done
}

// list returns all tools that pass the filter, in their order.
func list(tools *core.Toolset, f index.Filter, limit int) Answer {
	var a Answer
	for _, s := range tools.Servers {
		for _, t := range s.Tools {
			if !f.Passes(t) {
				continue
			}
			if a.Total++; a.Total <= limit {
				a.Hits = append(a.Hits, Hit{Tool: t})
			}
		}
	}
	return a
}

// find ranks tools by words, and also by meaning if possible.
func (d *Discoverer) find(ctx context.Context, tools *core.Toolset, f index.Filter, q Query) Answer {
	before := d.index.Toolset()
	words, total := d.index.Search(q.Text, f, max(q.Limit, candidates))
	a := Answer{Total: total}
	if before != tools || d.index.Toolset() != tools {
		gone := 0
		words, gone = present(tools, words)
		a.Total -= gone
	}
	if d.semantic == nil {
		a.Hits = hits(words)
	} else {
		meaning, warnings := d.semantic.search(ctx, tools, f, q.Text)
		a.Hits, a.Warnings = fuse(words, meaning), warnings
	}
	a.Total = max(a.Total, len(a.Hits))
	a.Hits = a.Hits[:min(len(a.Hits), q.Limit)]
	return a
}

// present removes hits that are not in the toolset, because the index may be older. It returns their number.
func present(tools *core.Toolset, found []index.Hit) ([]index.Hit, int) {
	kept := found[:0]
	for _, h := range found {
		if t, ok := current(tools, h.Tool); ok {
			h.Tool = t
			kept = append(kept, h)
		}
	}
	return kept, len(found) - len(kept)
}

// current returns the toolset's tool with the same server and name as t.
func current(tools *core.Toolset, t *core.Tool) (*core.Tool, bool) {
	s, ok := tools.Server(t.Server)
	if !ok || s.Name != t.Server {
		return nil, false
	}
	at := slices.IndexFunc(s.Tools, func(other *core.Tool) bool { return other == t || other.Name == t.Name })
	if at < 0 {
		return nil, false
	}
	return s.Tools[at], true
}

func hits(found []index.Hit) []Hit {
	all := make([]Hit, len(found))
	for i, h := range found {
		all[i] = Hit{h.Tool, h.Score}
	}
	return all
}
