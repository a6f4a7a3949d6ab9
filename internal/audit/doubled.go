package audit

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"retort/internal/core"
)

// abandonedChain represents a chain whose file became unreliable, so that the engine stopped writing to it and
// continued in another chain.
type abandonedChain struct {
	continuationFacts
	next string // name of the chain that continues it
}

// doubledRows returns the rows of abandoned chains that must not be counted, because a later chain contains the
// same events. An abandoned chain is one that the engine stopped writing to, because its file became unreliable.
// Events are doubled for two reasons. If an engine opened the old chain again, it added end entries for executions
// that in fact continued in the later chain. If the disk failed during a write, the batch that was being written
// may be in both chains.
func doubledRows(ctx context.Context, stores []LogStore, f Filter) ([]LogRow, error) {
	lost, err := listAbandoned(ctx, stores)
	if err != nil || len(lost) == 0 {
		return nil, err
	}
	var all []LogRow
	for _, g := range lost {
		ends, err := doubledEnds(ctx, stores, g, successorChains(lost, g))
		if err != nil {
			return nil, err
		}
		moved, err := doubledBatch(ctx, stores, g)
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

// listAbandoned returns the chains that were abandoned because their files became unreliable. It finds them
// through the chains that continue them, because the first entry of each such chain names the chain before it. Few
// audit logs have abandoned chains.
func listAbandoned(ctx context.Context, stores []LogStore) ([]abandonedChain, error) {
	var all []abandonedChain
	for _, store := range stores {
		for r, err := range store.Find(ctx, Filter{Kinds: []string{string(core.EventGap)}, Statuses: []string{StatusLost}}) {
			if err != nil {
				return nil, err
			}
			g := abandonedChain{next: r.Chain}
			if json.Unmarshal(r.Facts, &g.continuationFacts) == nil && g.Chain != "" {
				all = append(all, g)
			}
		}
	}
	return all, nil
}

// successorChains returns the chain that continues the abandoned chain g, then the chain that continues that one,
// and so on.
func successorChains(lost []abandonedChain, g abandonedChain) []string {
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

// doubledEnds returns those end entries of an abandoned chain whose executions also have an end entry in one of
// the later chains. An engine that opened the abandoned chain again has added them.
func doubledEnds(ctx context.Context, stores []LogStore, g abandonedChain, later []string) ([]LogRow, error) {
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

// doubledBatch returns the rows of the batch that an abandoned chain contains although its write was reported as
// failed. The chain that continues it contains the same events.
func doubledBatch(ctx context.Context, stores []LogStore, g abandonedChain) ([]LogRow, error) {
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

// batchOf returns the rows of a chain that may have been written as one batch, beginning at sequence number from.
// It returns at most one row more than a batch can have. The additional row is the gap entry, the first entry of a
// chain that continues another one.
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

// negatedGroup returns the figures of one row with negative signs. Adding it to usage totals subtracts a row that
// must not be counted.
func negatedGroup(r *LogRow) UsageGroup {
	return UsageGroup{
		Day: time.Unix(0, r.At).UTC().Format(time.DateOnly), Kind: r.Kind, Server: r.Server, Tool: r.Tool, Status: r.Status,
		Count: -1, Micros: -r.Micros, Bytes: -r.Bytes, Returned: -r.Returned, Avoided: -r.Avoided,
	}
}
