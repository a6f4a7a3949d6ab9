package audit

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"retort/internal/core"
)

// givenUp represents a chain that is no longer written, because its file became unreliable, and that another chain
// continues.
type givenUp struct {
	continuationFacts
	next string // the chain that goes on
}

// doubledRows returns the rows of given-up chains that must not be counted, because a later chain contains the same
// events. These rows have two causes. If an engine opened the old chain again, it added end entries for executions
// that in fact continued in the later chain. If the disk failed during a write, the batch that was being written may
// be in both chains.
func doubledRows(ctx context.Context, stores []LogStore, f Filter) ([]LogRow, error) {
	lost, err := givenUpIn(ctx, stores)
	if err != nil || len(lost) == 0 {
		return nil, err
	}
	var all []LogRow
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
			if !slices.ContainsFunc(ends, func(end LogRow) bool { return end.Seq == r.Seq }) {
				all = append(all, r)
			}
		}
	}
	return slices.DeleteFunc(all, func(r LogRow) bool { return !inSpan(f, &r) }), nil
}

// givenUpIn returns the chains that were given up. It finds them through the chains that continue them, because the
// first entry of each such chain names the chain before it. Few audit logs have given-up chains.
func givenUpIn(ctx context.Context, stores []LogStore) ([]givenUp, error) {
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

// successorChains returns the chain that continues the given-up chain g, the chain that continues that one, and so
// on.
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

// endedLater returns entries of a chain that was given up after an error: those end entries that were written to it
// although the engine no longer counted on them, and whose execution has an end entry in a later chain too.
func endedLater(ctx context.Context, stores []LogStore, g givenUp, later []string) ([]LogRow, error) {
	if len(g.Executions) == 0 {
		return nil, nil
	}
	var here []LogRow
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
	return slices.DeleteFunc(here, func(r LogRow) bool { return !ended[r.Execution] }), nil
}

// eventIdentity holds the fields of an entry by which its event is recognised. Entries in which these fields are
// equal are taken for the same event.
type eventIdentity struct {
	at                                             int64
	kind, execution, session, server, tool, status string
}

func happeningOf(r *LogRow) eventIdentity {
	return eventIdentity{r.At, r.Kind, r.Execution, r.Session, r.Server, r.Tool, r.Status}
}

// writtenTwice returns the rows of a batch that the old chain contains although its write was reported as failed. The
// new chain contains the same events.
func writtenTwice(ctx context.Context, stores []LogStore, g givenUp) ([]LogRow, error) {
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
	return slices.DeleteFunc(old, func(r LogRow) bool { return !known[happeningOf(&r)] }), nil
}

// batchOf returns the rows of a chain that may have been written as one batch, beginning at a sequence number. It
// returns at most as many rows as a batch can have, plus one for the gap entry with which a chain begins that
// continues another one.
func batchOf(ctx context.Context, stores []LogStore, chain string, from int64) ([]LogRow, error) {
	var rows []LogRow
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

// inSpan reports whether a row matches the time range, session and principal of a filter.
func inSpan(f Filter, r *LogRow) bool {
	at := time.Unix(0, r.At)
	return (f.From.IsZero() || !at.Before(f.From)) && (f.To.IsZero() || at.Before(f.To)) &&
		(f.Session == "" || r.Session == f.Session) && (f.Principal == "" || r.Principal == f.Principal)
}

// negatedGroup returns a UsageGroup, the sums over a group of rows, that contains one row with negative numbers.
// Adding it to the totals subtracts the row, which must not be counted.
func negatedGroup(r *LogRow) UsageGroup {
	return UsageGroup{
		Day: time.Unix(0, r.At).UTC().Format(time.DateOnly), Kind: r.Kind, Server: r.Server, Tool: r.Tool, Status: r.Status,
		Count: -1, Micros: -r.Micros, Bytes: -r.Bytes, Returned: -r.Returned, Avoided: -r.Avoided,
	}
}
