package audit

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"retort/internal/core"
)

// givenUp represents a chain that was continued by another chain.
type givenUp struct {
	continuationFacts
	next string // the chain that goes on
}

// doubledRows returns the rows of a period that report what a later chain reports, too. They are in chains that were
// given up: ends of executions that went on in the later chain and were closed by an engine that opened the old chain
// afterwards, and the batch that was being written when the disk failed.
func doubledRows(ctx context.Context, stores []Store, f Filter) ([]Row, error) {
	lost, err := givenUpIn(ctx, stores)
	if err != nil || len(lost) == 0 {
		return nil, err
	}
	var all []Row
	for _, g := range lost {
		ends, err := endedLater(ctx, stores, g, successorChains(lost, g))
		if err != nil {
			return nil, err
		}
		moved, err := writtenTwice(ctx, stores, g)
		if err != nil {
			return nil, err
		}
		all = append(all, ends...)
		for _, r := range moved {
			if !slices.ContainsFunc(ends, func(end Row) bool { return end.Seq == r.Seq }) {
				all = append(all, r)
			}
		}
	}
	return slices.DeleteFunc(all, func(r Row) bool { return !inSpan(f, &r) }), nil
}

// givenUpIn finds the chains that were given up. Most audit logs have none.
func givenUpIn(ctx context.Context, stores []Store) ([]givenUp, error) {
	var all []givenUp
	for _, store := range stores {
		for r, err := range store.Find(ctx, Filter{Kinds: []string{string(core.EventGap)}, Statuses: []string{StatusLost}}) {
			if err != nil {
				return nil, err
			}
			g := givenUp{next: r.Chain}
			if json.Unmarshal(r.Facts, &g.continuationFacts) == nil && g.Chain != "" {
				all = append(all, g)
			}
		}
	}
	return all, nil
}

// successorChains lists the chains that go on in the place of a chain, each in the place of the one before.
func successorChains(lost []givenUp, g givenUp) []string {
	later := []string{g.next}
	for i := 0; i < len(later); i++ {
		for _, other := range lost {
			if other.Chain == later[i] && other.next != g.Chain && !slices.Contains(later, other.next) {
				later = append(later, other.next)
			}
		}
	}
	return later
}

// endedLater returns the ends in a chain that was given up, of executions that went on and ended
// in a later chain.
func endedLater(ctx context.Context, stores []Store, g givenUp, later []string) ([]Row, error) {
	if len(g.Executions) == 0 {
		return nil, nil
	}
	var here []Row
	ended := map[string]bool{}
	f := Filter{Kinds: []string{string(core.EventEnd)}, Executions: g.Executions, Bare: true}
	for _, store := range stores {
		for r, err := range store.Find(ctx, f) {
			switch {
			case err != nil:
				return nil, err
			case r.Chain == g.Chain && r.Seq > g.Entries:
				here = append(here, r)
			case slices.Contains(later, r.Chain):
				ended[r.Execution] = true
			}
		}
	}
	return slices.DeleteFunc(here, func(r Row) bool { return !ended[r.Execution] }), nil
}

// eventIdentity identifies what an entry reports, wherever the entry is stored.
type eventIdentity struct {
	at                                             int64
	kind, execution, session, server, tool, status string
}

func happeningOf(r *Row) eventIdentity {
	return eventIdentity{r.At, r.Kind, r.Execution, r.Session, r.Server, r.Tool, r.Status}
}

// writtenTwice returns the rows of the failed batch that were written to the old chain nevertheless and are in the
// new chain, too.
func writtenTwice(ctx context.Context, stores []Store, g givenUp) ([]Row, error) {
	old, err := batchOf(ctx, stores, g.Chain, g.Entries+1)
	if err != nil || len(old) == 0 {
		return nil, err
	}
	first, err := batchOf(ctx, stores, g.next, 1)
	if err != nil {
		return nil, err
	}
	known := map[eventIdentity]bool{}
	for _, r := range first {
		known[happeningOf(&r)] = true
	}
	return slices.DeleteFunc(old, func(r Row) bool { return !known[happeningOf(&r)] }), nil
}

// batchOf returns as many rows of a chain as a batch has, and the gap before it, from a place on.
func batchOf(ctx context.Context, stores []Store, chain string, from int64) ([]Row, error) {
	var rows []Row
	for _, store := range stores {
		for r, err := range store.Walk(ctx, chain, from) {
			if err != nil {
				return nil, err
			}
			if r.Seq > from+maxBatch {
				break
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// inSpan reports whether a row is one that the filter of a Span finds.
func inSpan(f Filter, r *Row) bool {
	at := time.Unix(0, r.At)
	return (f.From.IsZero() || !at.Before(f.From)) && (f.To.IsZero() || at.Before(f.To)) &&
		(f.Session == "" || r.Session == f.Session) && (f.Principal == "" || r.Principal == f.Principal)
}

// negatedGroup returns a row as the Group that takes it away from a sum.
func negatedGroup(r *Row) Group {
	return Group{
		Day: time.Unix(0, r.At).UTC().Format(time.DateOnly), Kind: r.Kind, Server: r.Server, Tool: r.Tool, Status: r.Status,
		Count: -1, Micros: -r.Micros, Bytes: -r.Bytes, Returned: -r.Returned, Avoided: -r.Avoided,
	}
}
