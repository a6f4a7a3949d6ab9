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
	maxFetchers  = 2      // batches under way at once
	maxEmbedded  = 20_000 // tools that have vectors
	maxText      = 4 << 10
	maxAsked     = 128 // queries whose vectors are remembered
)

// semanticSearch finds tools by meaning. It fetches the tools' vectors in the background and stores them. A tool that
// has no vector yet is not found by meaning.
type semanticSearch struct {
	embedder TextEmbedder
	kept     *vectorStore
	breaker  *circuitBreaker
	ctx      context.Context
	cancel   context.CancelFunc
	wake     chan struct{} // holds one item when there may be something to fetch
	ended    sync.WaitGroup
	patience time.Duration // how long a search waits for the vector of its query

	mu    sync.Mutex
	plan  []plannedVector
	asked map[string][]float32
}

// plannedVector holds a tool that needs a vector, and the key under which the vector is stored.
type plannedVector struct {
	tool *core.Tool
	key  vectorKey
}

func newSemantic(e TextEmbedder, dir string) (*semanticSearch, error) {
	kept, err := openVectors(dir, e.Model())
	if err != nil {
		return nil, core.Errorf(
			core.KindInternal, "discover.open", "cannot store embeddings: %w", err,
		).WithHint("make %s writable, or leave out search.embeddings", dir)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &semanticSearch{
		embedder: e, kept: kept, breaker: newCircuitBreaker(time.Now), ctx: ctx, cancel: cancel,
		wake: make(chan struct{}, 1), patience: queryTimeout, asked: map[string][]float32{},
	}
	s.ended.Go(s.fetchLoop)
	return s, nil
}

func (s *semanticSearch) closeStores() error {
	s.cancel()
	s.ended.Wait()
	err := s.kept.closeFile()
	if c, ok := s.embedder.(io.Closer); ok {
		err = cmp.Or(err, c.Close())
	}
	return err
}

// updatePlan makes a new plan, which is the list of tools that need vectors, and starts fetching the vectors that are
// missing.
func (s *semanticSearch) updatePlan(tools *core.Toolset) {
	var plan []plannedVector
	for _, server := range tools.Servers {
		for _, t := range server.Tools {
			if len(plan) < maxEmbedded && t.Pin != "" {
				plan = append(plan, plannedVector{t, keyOf(t.Server, t.Pin)})
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

func (s *semanticSearch) plannedVectors() []plannedVector {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.plan
}

// fetchLoop fetches missing vectors until ctx is done.
func (s *semanticSearch) fetchLoop() {
	for s.ctx.Err() == nil {
		pause := time.Duration(0)
		if err := s.fetchMissing(); err != nil {
			pause = max(s.breaker.remainingPause(), time.Second)
		}
		s.waitForWork(pause)
	}
}

// waitForWork waits before the next attempt to fetch vectors. If pause is positive, it waits for that duration.
// Otherwise it waits until there may be tools whose vectors are missing.
func (s *semanticSearch) waitForWork(pause time.Duration) {
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

// missingVectors returns the tools whose vectors must still be fetched. It leaves out tools whose vectors the store
// has no room for. If stored vectors that no tool needs take up much space, it removes them.
func (s *semanticSearch) missingVectors() ([]plannedVector, error) {
	plan := s.plannedVectors()
	plan = plan[:min(len(plan), s.kept.vectorCapacity())]
	wanted := make(map[vectorKey]bool, len(plan))
	var missing []plannedVector
	for _, p := range plan {
		if s.kept.getVector(p.key) == nil && !wanted[p.key] {
			missing = append(missing, p)
		}
		wanted[p.key] = true
	}
	if len(wanted) == 0 { // nothing is known of the tools yet
		return nil, nil
	}
	return missing, s.kept.retainWanted(wanted)
}

// fetchMissing fetches vectors in batches, several at the same time. It stops at the first failure.
func (s *semanticSearch) fetchMissing() error {
	missing, err := s.missingVectors()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(s.ctx)
	defer stop(nil)
	var fetching sync.WaitGroup
	slots := make(chan struct{}, maxFetchers)
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

func (s *semanticSearch) fetchBatch(ctx context.Context, batch []plannedVector) error {
	texts := make([]string, len(batch))
	keys := make([]vectorKey, len(batch))
	for i, p := range batch {
		texts[i], keys[i] = embeddedText(p.tool), p.key
	}
	vectors, err := s.embedTexts(ctx, texts, batchTimeout)
	if err != nil {
		return err
	}
	return s.kept.putVectors(keys, vectors)
}

// embedTexts requests the vectors of texts and scales them to length 1. It returns an error without a request if the
// circuit breaker blocks the endpoint.
func (s *semanticSearch) embedTexts(ctx context.Context, texts []string, timeout time.Duration) (vectors [][]float32, err error) {
	if ok, why := s.breaker.allowAttempt(); !ok {
		return nil, why
	}
	defer func() {
		if ctx.Err() == nil { // else it is not the endpoint's fault
			s.breaker.finishAttempt(err)
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
		if err := s.checkVector(v); err != nil {
			return nil, err
		}
	}
	return vectors, nil
}

func (s *semanticSearch) checkVector(v []float32) error {
	if dims := s.kept.vectorLength(); dims != 0 && len(v) != dims {
		return s.kept.otherDimensions(len(v))
	}
	return normalizeVector(v)
}

// embeddedText returns the text from which a tool's vector is made.
func embeddedText(t *core.Tool) string {
	var b strings.Builder
	for _, part := range []string{t.Server, t.Name, t.Title, t.Description} {
		if part != "" && b.Len() < maxText {
			b.WriteString(part)
			b.WriteByte('\n')
		}
	}
	return clipText(b.String(), maxText)
}

// clipText cuts a text to at most limit bytes without splitting a character, and replaces invalid UTF-8.
func clipText(text string, limit int) string {
	if len(text) > limit {
		for limit > 0 && !utf8.RuneStart(text[limit]) {
			limit--
		}
		text = text[:limit]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// searchMeaning returns the tools whose meaning is nearest to the query, best first. It also returns a warning if
// some or all tools could not be compared with the query, for example because their vectors are still missing.
func (s *semanticSearch) searchMeaning(
	ctx context.Context, tools *core.Toolset, f index.SearchFilter, query string,
) ([]*core.Tool, []string) {
	plan, have := s.plannedVectors(), 0
	for _, p := range plan {
		if s.kept.getVector(p.key) != nil {
			have++
		}
	}
	if have == 0 {
		if err := s.breaker.lastFailure(); err != nil {
			return nil, []string{byWordsOnly(err)}
		}
		return nil, []string{"searched by keywords only: the tools' embeddings are still being fetched"}
	}
	vector, err := s.queryVector(ctx, clipText(query, maxText))
	if err != nil {
		return nil, []string{byWordsOnly(err)}
	}
	var warnings []string
	if all := tools.CountTools(); have < all {
		warnings = append(warnings, fmt.Sprintf("%d of %d tools have embeddings so far; the others are found by keywords only", have, all))
	}
	return nearestTools(s.kept, tools, plan, f, vector), warnings
}

func byWordsOnly(err error) string {
	return "searched by keywords only: the embeddings endpoint failed: " + err.Error()
}

// queryVector returns the vector of a query, from the cache or the endpoint.
func (s *semanticSearch) queryVector(ctx context.Context, query string) ([]float32, error) {
	s.mu.Lock()
	vector, ok := s.asked[query]
	s.mu.Unlock()
	if ok {
		return vector, nil
	}
	vectors, err := s.embedTexts(ctx, []string{query}, s.patience)
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

// nearestTools returns the tools whose vectors are most similar to the vector of a query, best first. It returns at
// most maxCandidates tools.
func nearestTools(kept *vectorStore, tools *core.Toolset, plan []plannedVector, f index.SearchFilter, vector []float32) []*core.Tool {
	type scored struct {
		tool  *core.Tool
		score float32
	}
	var all []scored
	for _, p := range plan {
		if numbers := kept.getVector(p.key); len(numbers) == len(vector) && f.IsMatch(p.tool) {
			all = append(all, scored{p.tool, cosineSimilarity(vector, numbers)})
		}
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	var best []*core.Tool
	for _, a := range all {
		if len(best) == maxCandidates {
			break
		}
		if t, ok := currentTool(tools, a.tool); ok {
			best = append(best, t)
		}
	}
	return best
}
