package audit

import (
	"cmp"
	"slices"
	"time"

	"retort/internal/core"
)

// placeOf returns the position of a row in the order of all rows of all chains.
func placeOf(r *LogRow) RowPosition { return RowPosition{At: r.At, Chain: r.Chain, Seq: r.Seq} }

// compareTo returns a negative number if p is before q, 0 if they are equal, and a positive number if p is after q.
func (p RowPosition) compareTo(q RowPosition) int {
	return cmp.Or(cmp.Compare(p.At, q.At), cmp.Compare(p.Chain, q.Chain), cmp.Compare(p.Seq, q.Seq))
}

// matchesRow reports whether a row matches the filter, by the same rules as LogStore.Find.
func (f *Filter) matchesRow(r *LogRow) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	among := func(want []string, have string) bool { return len(want) == 0 || slices.Contains(want, have) }
	return is(f.Chain, r.Chain) && is(f.Session, r.Session) && is(f.Principal, r.Principal) && is(f.Server, r.Server) && is(f.Tool, r.Tool) &&
		among(f.Kinds, r.Kind) && among(f.Executions, r.Execution) && among(f.AllStatuses(), r.Status) &&
		(f.MinRisk == 0 || r.Risk >= f.MinRisk) && f.containsTime(r.At) && (f.Before == nil || placeOf(r).compareTo(*f.Before) < 0)
}

// AllStatuses returns Statuses, with both names of an anomaly that was renamed if one of them is among them.
func (f *Filter) AllStatuses() []string { return core.AnomalyAliases(f.Statuses) }

func (f *Filter) containsTime(at int64) bool {
	t := time.Unix(0, at)
	return (f.From.IsZero() || !t.Before(f.From)) && (f.To.IsZero() || t.Before(f.To))
}

// sizeOf estimates how many bytes a row takes in a store.
func sizeOf(r *LogRow) int64 {
	return int64(rowOverhead + len(r.Execution) + len(r.Session) + len(r.Principal) + len(r.Server) + len(r.Tool) + len(r.Facts) + len(r.Body))
}
