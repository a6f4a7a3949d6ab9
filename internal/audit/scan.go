package audit

import (
	"context"
	"iter"
	"slices"
	"time"
)

// IndexChecker is a LogStore that uses indexes for Find and Groups.
type IndexChecker interface {
	// Indexes returns an error if the store's indexes do not match its entries.
	Indexes(ctx context.Context) error
}

// soundStores returns the stores that queries may use. In place of a store with unreliable indexes, it returns a
// scannedStore, which reads all entries of that store instead of using its indexes.
func (r *LogReader) soundStores(ctx context.Context) []LogStore {
	r.checked.Do(func() {
		for _, s := range r.Stores {
			if i, ok := s.(IndexChecker); ok {
				if err := i.Indexes(ctx); err != nil && ctx.Err() == nil {
					r.LeaveOut(err)
					s = scannedStore{s}
				}
			}
			r.trusted = append(r.trusted, s)
		}
	})
	return r.trusted
}

// scannedStore wraps a store whose indexes are unreliable, and reads all of its entries for each query.
type scannedStore struct{ LogStore }

func (s scannedStore) scanRows(ctx context.Context, f Filter) iter.Seq2[LogRow, error] {
	return func(yield func(LogRow, error) bool) {
		chains, err := s.Chains(ctx)
		if err != nil {
			yield(LogRow{}, err)
			return
		}
		for _, c := range chains {
			if f.Chain != "" && f.Chain != c.Chain {
				continue
			}
			for r, err := range s.Walk(ctx, c.Chain, 1) {
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
	}
}

func (s scannedStore) Find(ctx context.Context, f Filter) iter.Seq2[LogRow, error] {
	return newestFirst(s.scanRows(ctx, f), f)
}

func (s scannedStore) Groups(ctx context.Context, f Filter) ([]UsageGroup, error) {
	sums := map[UsageGroup]*UsageGroup{}
	for r, err := range s.scanRows(ctx, f) {
		if err != nil {
			return nil, err
		}
		if !f.matchesRow(&r) {
			continue
		}
		key := UsageGroup{Day: time.Unix(0, r.At).UTC().Format(time.DateOnly), Kind: r.Kind, Server: r.Server, Tool: r.Tool, Status: r.Status}
		g := sums[key]
		if g == nil {
			first := key
			g = &first
			g.MaxRisk = r.Risk
			sums[key] = g
		}
		g.Count++
		g.Micros, g.Bytes = g.Micros+r.Micros, g.Bytes+r.Bytes
		g.Returned, g.Avoided = g.Returned+r.Returned, g.Avoided+r.Avoided
		g.MaxRisk = max(g.MaxRisk, r.Risk)
	}
	var all []UsageGroup
	for _, g := range sums {
		all = append(all, *g)
	}
	return all, nil
}

// newestFirst yields those of the given rows that match the filter, sorted newest first. The given rows may be in
// any order.
func newestFirst(rows iter.Seq2[LogRow, error], f Filter) iter.Seq2[LogRow, error] {
	return func(yield func(LogRow, error) bool) {
		order := func(a, b LogRow) int { return placeOf(&b).compareTo(placeOf(&a)) }
		var all []LogRow
		for r, err := range rows {
			if err != nil {
				yield(LogRow{}, err)
				return
			}
			if !f.matchesRow(&r) {
				continue
			}
			if f.Bare {
				r.Facts, r.Body = nil, nil
			}
			if all = append(all, r); f.Limit > 0 && len(all) >= 2*f.Limit+1000 {
				slices.SortFunc(all, order)
				all = slices.Delete(all, f.Limit, len(all))
			}
		}
		slices.SortFunc(all, order)
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
}
