// Package search finds the tools that match a question: by the words in their definitions and, if an embeddings
// endpoint is configured, by meaning.
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

// indexTimeout bounds how long a search waits until the index has been updated to the current toolset. After that, it
// uses the index as it is.
const indexTimeout = 100 * time.Millisecond

// ToolCatalog provides the current toolset. It must return the same pointer until the tools change.
type ToolCatalog interface {
	Toolset() *core.Toolset
}

// Options configures the search. The zero value searches by words only.
type Options struct {
	Embedder TextEmbedder // nil: by words only
	Dir      string       // where vectors are stored; empty: in memory only
}

// SearchQuery describes a search for tools.
type SearchQuery struct {
	Tools    *core.Toolset // those that may be found, of the catalogue's; nil: all
	Text     string        // empty, or without a letter or digit: all tools, in their order
	Server   string        // in any spelling; empty: all
	Category string        // empty: all
	Limit    int           // the most hits; 10 if not positive
	Settled  bool          // however long it takes until all tools of now can be found
	Weak     bool          // hits that match much less well than others are returned, too
}

// SearchResult holds the result of a search.
type SearchResult struct {
	Hits     []ToolHit // best first
	Total    int       // how many tools fit, at least len(Hits)
	Warnings []string
	Cached   bool // true if a hit's server has not answered yet in this run
}

// ToolHit describes one tool that was found.
type ToolHit struct {
	Tool  *core.Tool
	Score float64 // comparable within one Answer only; 0 in a list without question
}

// Searcher finds tools. It is safe for concurrent use.
type Searcher struct {
	catalog  ToolCatalog
	index    *index.ToolIndex
	semantic *semanticSearch // nil: by words only

	mu       sync.Mutex
	building chan struct{} // closed when the build that goes on is done; nil if none does
	closed   bool
	builds   sync.WaitGroup
}

// New returns a Searcher, which the caller must close.
func New(c ToolCatalog, o Options) (*Searcher, error) {
	d := &Searcher{catalog: c, index: index.New()}
	if o.Embedder != nil {
		s, err := newSemantic(o.Embedder, o.Dir)
		if err != nil {
			return nil, err
		}
		d.semantic = s
	}
	return d, nil
}

// StartIndexing updates the index in the background, so that the next search need not wait for it.
func (d *Searcher) StartIndexing() { d.buildIndex() }

// Close stops all background work and waits for its end.
func (d *Searcher) Close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.builds.Wait()
	if d.semantic == nil {
		return nil
	}
	return d.semantic.closeStores()
}

// Search finds tools. For an unknown server or category, the error is a *core.Error that names the most similar ones.
// Problems with the embeddings endpoint are returned as warnings.
func (d *Searcher) Search(ctx context.Context, q SearchQuery) (SearchResult, error) {
	tools := d.refreshIndex(ctx)
	for q.Settled && ctx.Err() == nil && tools != d.index.Toolset() && !d.isClosed() {
		select { // the build that was under way knew less
		case <-d.buildIndex():
		case <-ctx.Done():
		}
		tools = d.catalog.Toolset()
	}
	if q.Tools != nil {
		tools = q.Tools
	}
	filter, err := newFilter(tools, q)
	if err != nil {
		return SearchResult{}, err
	}
	if q.Tools != nil && q.Tools != d.index.Toolset() {
		filter.Hidden = q.Tools.IsHidden
	}
	if q.Limit <= 0 {
		q.Limit = core.DefaultSearchLimit
	}
	var a SearchResult
	if strings.IndexFunc(q.Text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) < 0 {
		a = listTools(tools, filter, q.Limit)
	} else {
		a = d.findTools(ctx, tools, filter, q)
	}
	for _, h := range a.Hits {
		s, ok := tools.FindServer(h.Tool.Server)
		a.Cached = a.Cached || ok && s.Cached
	}
	return a, nil
}

// refreshIndex returns the current toolset. It waits until the index is up to date, at most for indexTimeout. Only
// the first search waits without a limit.
func (d *Searcher) refreshIndex(ctx context.Context) *core.Toolset {
	tools := d.catalog.Toolset()
	known := d.index.Toolset()
	if known == tools {
		return tools
	}
	var late <-chan time.Time
	if len(known.Servers) > 0 {
		timer := time.NewTimer(indexTimeout)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-d.buildIndex():
	case <-late:
	case <-ctx.Done():
	}
	return tools
}

func (d *Searcher) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// buildIndex updates the index in the background, one update at a time. The returned channel is closed when the
// update is done.
func (d *Searcher) buildIndex() <-chan struct{} {
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
		d.index.UpdateTools(tools)
		if d.semantic != nil {
			d.semantic.updatePlan(tools)
		}
		d.mu.Lock()
		d.building = nil
		d.mu.Unlock()
		close(done)
	})
	return done
}

// listTools returns the tools that pass the filter, in the order of the toolset. It returns at most limit tools, but
// counts all of them.
func listTools(tools *core.Toolset, f index.SearchFilter, limit int) SearchResult {
	var a SearchResult
	for _, s := range tools.Servers {
		for _, t := range s.Tools {
			if !f.IsMatch(t) {
				continue
			}
			if a.Total++; a.Total <= limit {
				a.Hits = append(a.Hits, ToolHit{Tool: t})
			}
		}
	}
	return a
}

// findTools ranks tools by words, and also by meaning if possible.
func (d *Searcher) findTools(ctx context.Context, tools *core.Toolset, f index.SearchFilter, q SearchQuery) SearchResult {
	before := d.index.Toolset()
	words, total := d.index.Search(q.Text, f, max(q.Limit, maxCandidates))
	a := SearchResult{Total: total}
	weak := map[*core.Tool]bool{}
	if before != tools || d.index.Toolset() != tools {
		gone := 0
		words, gone = dropMissing(tools, words)
		a.Total -= gone
	}
	for _, h := range words {
		weak[h.Tool] = h.Weak && !q.Weak
	}
	if d.semantic == nil {
		a.Hits = toHits(words)
	} else {
		meaning, warnings := d.semantic.searchMeaning(ctx, tools, f, q.Text)
		a.Hits, a.Warnings = fuseRankings(words, meaning), warnings
		for _, t := range meaning[:min(len(meaning), surelyMeant)] {
			weak[t] = false
		}
	}
	a.Total = max(a.Total, len(a.Hits))
	a.Hits = a.Hits[:min(len(a.Hits), q.Limit)]
	a.Hits = slices.DeleteFunc(a.Hits, func(h ToolHit) bool { return weak[h.Tool] })
	return a
}

// dropMissing removes hits that are not in the toolset and returns how many there were. Such hits occur when the
// index is older than the toolset.
func dropMissing(tools *core.Toolset, found []index.SearchHit) ([]index.SearchHit, int) {
	kept := found[:0]
	for _, h := range found {
		if t, ok := currentTool(tools, h.Tool); ok {
			h.Tool = t
			kept = append(kept, h)
		}
	}
	return kept, len(found) - len(kept)
}

// currentTool returns the tool in tools that has the same server and name as t.
func currentTool(tools *core.Toolset, t *core.Tool) (*core.Tool, bool) {
	s, ok := tools.FindServer(t.Server)
	if !ok || s.Name != t.Server {
		return nil, false
	}
	at := slices.IndexFunc(s.Tools, func(other *core.Tool) bool { return other == t || other.Name == t.Name })
	if at < 0 {
		return nil, false
	}
	return s.Tools[at], true
}

func toHits(found []index.SearchHit) []ToolHit {
	all := make([]ToolHit, len(found))
	for i, h := range found {
		all[i] = ToolHit{h.Tool, h.Score}
	}
	return all
}
