package search

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"retort/internal/core"
	"retort/internal/pipeline/search/index"
)

const (
	queryTimeout = 1500 * time.Millisecond
	batchTimeout = 30 * time.Second
	batchSize    = 32
	fetchers     = 2      // batches under way at once
	maxEmbedded  = 20_000 // tools that have vectors
	maxText      = 4 << 10
	maxAsked     = 128 // queries whose vectors are remembered
)

// semantic finds tools by meaning. It fetches vectors of tools in the background and stores them. A tool without a
// vector is not found by meaning.
type semantic struct {
	embedder Embedder
	kept     *vectors
	breaker  breaker
	ctx      context.Context
	cancel   context.CancelFunc
	wake     chan struct{} // holds one item when there may be something to fetch
	ended    sync.WaitGroup
	patience time.Duration // how long a search waits for the vector of its query

	mu    sync.Mutex
	plan  []planned
	asked map[string][]float32
}

// planned describes a tool that should have a vector.
type planned struct {
	tool *core.Tool
	key  vectorKey
}

func newSemantic(e Embedder, dir string) (*semantic, error) {
	kept, err := openVectors(dir, e.Model())
	if err != nil {
		return nil, core.Errorf(core.KindInternal, "discover.open", "cannot store embeddings: %w", err).WithHint("make %s writable, or leave out search.embeddings", dir)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &semantic{
		embedder: e, kept: kept, breaker: breaker{now: time.Now}, ctx: ctx, cancel: cancel,
		wake: make(chan struct{}, 1), patience: queryTimeout, asked: map[string][]float32{},
	}
	s.ended.Go(s.fetch)
	return s, nil
}

func (s *semantic) close() error {
	s.cancel()
	s.ended.Wait()
	err := s.kept.close()
	if c, ok := s.embedder.(io.Closer); ok {
		err = cmp.Or(err, c.Close())
	}
	return err
}

// update sets which tools should have vectors.
func (s *semantic) update(tools *core.Toolset) {
	var plan []planned
	for _, server := range tools.Servers {
		for _, t := range server.Tools {
			if len(plan) < maxEmbedded && t.Pin != "" {
				plan = append(plan, planned{t, keyOf(t.Server, t.Pin)})
			}
		}
	}
	s.mu.Lock()
	s.plan = plan
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *semantic) planned() []planned {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.plan
}

// fetch fetches missing vectors whenever there may be some, until ctx is done.
func (s *semantic) fetch() {
	for s.ctx.Err() == nil {
		pause := time.Duration(0)
		if err := s.fetchMissing(); err != nil {
			pause = max(s.breaker.wait(), time.Second)
		}
		s.rest(pause)
	}
}

// rest waits for a pause if it is not zero, else until vectors may be missing.
func (s *semantic) rest(pause time.Duration) {
	wake, over := s.wake, (<-chan time.Time)(nil)
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		wake, over = nil, timer.C
	}
	select {
	case <-s.ctx.Done():
	case <-wake:
	case <-over:
	}
}

// missing returns the tools without vectors, as many as there is room for. From time to time it drops vectors that no
// tool needs.
func (s *semantic) missing() ([]planned, error) {
	plan := s.planned()
	plan = plan[:min(len(plan), s.kept.room())]
	wanted := make(map[vectorKey]bool, len(plan))
	var missing []planned
	for _, p := range plan {
		if s.kept.get(p.key) == nil && !wanted[p.key] {
			missing = append(missing, p)
		}
		wanted[p.key] = true
	}
	if len(wanted) == 0 { // nothing is known of the tools yet
		return nil, nil
	}
	return missing, s.kept.retain(wanted)
}

// fetchMissing fetches vectors in batches, several at once, and stops at the first failure.
func (s *semantic) fetchMissing() error {
	missing, err := s.missing()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(s.ctx)
	defer stop(nil)
	var fetching sync.WaitGroup
	slots := make(chan struct{}, fetchers)
	for batch := range slices.Chunk(missing, batchSize) {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		fetching.Go(func() {
			if err := s.fetchBatch(ctx, batch); err != nil {
				stop(err)
			}
			<-slots
		})
	}
	fetching.Wait()
	return context.Cause(ctx)
}

func (s *semantic) fetchBatch(ctx context.Context, batch []planned) error {
	texts := make([]string, len(batch))
	keys := make([]vectorKey, len(batch))
	for i, p := range batch {
		texts[i], keys[i] = text(p.tool), p.key
	}
	vectors, err := s.embed(ctx, texts, batchTimeout)
	if err != nil {
		return err
	}
	return s.kept.put(keys, vectors)
}

// embed requests vectors of length 1, unless the breaker blocks the endpoint.
func (s *semantic) embed(ctx context.Context, texts []string, timeout time.Duration) (vectors [][]float32, err error) {
	if ok, why := s.breaker.allow(); !ok {
		return nil, why
	}
	defer func() {
		if ctx.Err() == nil { // else it is not the endpoint's fault
			s.breaker.done(err)
		}
	}()
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	vectors, err = s.embedder.Embed(limited, texts)
	switch {
	case err != nil && limited.Err() != nil && ctx.Err() == nil:
		return nil, fmt.Errorf("it did not answer within %v", timeout)
	case err != nil:
		return nil, err
	}
	if len(vectors) != len(texts) {
		return nil, fmt.Errorf("it returned %d vectors for %d texts", len(vectors), len(texts))
	}
	for _, v := range vectors {
		if err := s.check(v); err != nil {
			return nil, err
		}
	}
	return vectors, nil
}

func (s *semantic) check(v []float32) error {
	if dims := s.kept.dimensions(); dims != 0 && len(v) != dims {
		return s.kept.otherDimensions(len(v))
	}
	return unit(v)
}

// text returns the text of a tool that is embedded.
func text(t *core.Tool) string {
	var b strings.Builder
	for _, part := range []string{t.Server, t.Name, t.Title, t.Description} {
		if part != "" && b.Len() < maxText {
			b.WriteString(part)
			b.WriteByte('\n')
		}
	}
	return clip(b.String(), maxText)
}

// clip cuts text at a character boundary and replaces invalid UTF-8.
func clip(text string, limit int) string {
	if len(text) > limit {
		for limit > 0 && !utf8.RuneStart(text[limit]) {
			limit--
		}
		text = text[:limit]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// search ranks tools by meaning, best first. If that fails, it returns a warning.
func (s *semantic) search(ctx context.Context, tools *core.Toolset, f index.Filter, query string) ([]*core.Tool, []string) {
	plan, have := s.planned(), 0
	for _, p := range plan {
		if s.kept.get(p.key) != nil {
			have++
		}
	}
	if have == 0 {
		if err := s.breaker.failure(); err != nil {
			return nil, []string{byWordsOnly(err)}
		}
		return nil, []string{"searched by words only: the tools' embeddings are still being fetched"}
	}
	vector, err := s.queryVector(ctx, clip(query, maxText))
	if err != nil {
		return nil, []string{byWordsOnly(err)}
	}
	var warnings []string
	if all := tools.Count(); have < all {
		warnings = append(warnings, fmt.Sprintf("%d of %d tools have embeddings so far; the others are found by words only", have, all))
	}
	return nearest(s.kept, tools, plan, f, vector), warnings
}

func byWordsOnly(err error) string {
	return "searched by words only: the embeddings endpoint failed: " + err.Error()
}

// queryVector returns the vector of a query, from the cache or the endpoint.
func (s *semantic) queryVector(ctx context.Context, query string) ([]float32, error) {
	s.mu.Lock()
	vector, ok := s.asked[query]
	s.mu.Unlock()
	if ok {
		return vector, nil
	}
	vectors, err := s.embed(ctx, []string{query}, s.patience)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) >= maxAsked {
		clear(s.asked)
	}
	s.asked[query] = vectors[0]
	return vectors[0], nil
}

// nearest returns the tools whose vectors are most similar to vector.
func nearest(kept *vectors, tools *core.Toolset, plan []planned, f index.Filter, vector []float32) []*core.Tool {
	type scored struct {
		tool  *core.Tool
		score float32
	}
	var all []scored
	for _, p := range plan {
		if numbers := kept.get(p.key); len(numbers) == len(vector) && f.Passes(p.tool) {
			all = append(all, scored{p.tool, cosine(vector, numbers)})
		}
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	var best []*core.Tool
	for _, a := range all {
		if len(best) == candidates {
			break
		}
		if t, ok := current(tools, a.tool); ok {
			best = append(best, t)
		}
	}
	return best
}
