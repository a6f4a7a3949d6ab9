package search

import (
	"cmp"
	"slices"

	"retort/internal/core"
	"retort/internal/pipeline/search/index"
)

const (
	maxCandidates = 100 // of each ranking
	// rankOffset is the constant in reciprocal rank fusion. The authors of the method (Cormack, Clarke, Büttcher
	// 2009) recommend 60.
	rankOffset = 60
	// surelyMeant is the number of hits by meaning that are returned although they match badly by words.
	surelyMeant = 10
)

// fuseRankings merges two rankings by reciprocal rank fusion. Tools whose name is spelled out in the query stay
// first, whatever the ranking by meaning is.
func fuseRankings(words []index.SearchHit, meaning []*core.Tool) []ToolHit {
	if len(meaning) == 0 {
		return toHits(words)
	}
	type fused struct {
		ToolHit
		exact bool
	}
	var all []fused
	at := map[*core.Tool]int{}
	add := func(t *core.Tool, rank int, exact bool) {
		i, ok := at[t]
		if !ok {
			i = len(all)
			at[t] = i
			all = append(all, fused{ToolHit{Tool: t}, exact})
		}
		all[i].Score += 1 / float64(rankOffset+rank+1)
	}
	for rank, h := range words {
		add(h.Tool, rank, h.Exact)
	}
	for rank, t := range meaning {
		add(t, rank, false)
	}
	exact := slices.IndexFunc(all, func(f fused) bool { return !f.exact })
	if exact < 0 {
		exact = len(all)
	}
	slices.SortStableFunc(all[exact:], func(a, b fused) int { return cmp.Compare(b.Score, a.Score) })
	out := make([]ToolHit, len(all))
	for i, f := range all {
		out[i] = f.ToolHit
	}
	return out
}
