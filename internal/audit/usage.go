package audit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"time"

	"retort/internal/core"
)

// UsageSpan selects the entries from which usage is counted. A field that is zero does not restrict the selection.
type UsageSpan struct {
	From, To           time.Time
	Session, Principal string
}

// Usage holds the totals of an audit log. Durations are in milliseconds. Days are in UTC.
type Usage struct {
	Executions int64            `json:"executions"`
	ByStatus   map[string]int64 `json:"by_status"`
	Duration   *Quantiles       `json:"duration_ms,omitempty"`
	Calls      int64            `json:"tool_calls"`
	Errors     int64            `json:"tool_errors"`
	Refusals   int64            `json:"refusals,omitempty"` // calls that Retort refused and did not send
	CacheHits  int64            `json:"cache_hits,omitempty"`
	Returned   int64            `json:"tokens_returned"`
	Avoided    int64            `json:"tokens_avoided"`
	Approvals  map[string]int64 `json:"approvals,omitempty"` // number of questions to people, by their outcome
	Days       []DayUsage       `json:"by_day"`
	Tools      []ToolUsage      `json:"by_tool"`                // the most called first
	Servers    []ToolUsage      `json:"by_server"`              // the most called first; Tool is empty
	Principals []PersonUsage    `json:"by_principal,omitempty"` // of the newest executions
	Entries    int64            `json:"entries"`
	// Sampled is the number of executions from which Duration and Principals were computed. These are the newest
	// executions; 0 means all. HitsOf is the corresponding number for CacheHits.
	Sampled int `json:"sampled,omitempty"`
	HitsOf  int `json:"cache_hits_of,omitempty"`
}

// Quantiles holds the distribution of execution times, including the time spent waiting for people.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// DayUsage holds the totals of one day.
type DayUsage struct {
	Day        string `json:"day"`
	Executions int64  `json:"executions"`
	Calls      int64  `json:"tool_calls"`
	Errors     int64  `json:"tool_errors"`
	Returned   int64  `json:"tokens_returned"`
	Avoided    int64  `json:"tokens_avoided"`
}

// ToolUsage holds the totals of one tool, or of one server if Tool is empty.
type ToolUsage struct {
	Server string  `json:"server"`
	Tool   string  `json:"tool,omitempty"`
	Calls  int64   `json:"calls"`
	Errors int64   `json:"errors"`
	MeanMS float64 `json:"mean_ms"` // mean duration of calls that returned
	Bytes  int64   `json:"bytes"`   // total size of the returned values
	back   int64
	micros int64
}

// PersonUsage holds the totals of one principal.
type PersonUsage struct {
	Principal  string `json:"principal"`
	Executions int64  `json:"executions"`
	Failed     int64  `json:"failed"`
	Returned   int64  `json:"tokens_returned"`
	Avoided    int64  `json:"tokens_avoided"`
}

const (
	newestEnds  = 100_000 // executions whose end entries are read
	newestFacts = 10_000  // executions whose facts are read
)

// SumUsageOf adds up the usage in the given stores. If ends is true, it also reads the end entries of the newest
// executions, from which it computes Duration, Principals and CacheHits.
func SumUsageOf(ctx context.Context, stores []LogStore, s UsageSpan, ends bool) (Usage, error) {
	a := usageSum{
		uncounted: map[rowPlace]bool{}, usage: Usage{ByStatus: map[string]int64{}, Approvals: map[string]int64{}},
		days: map[string]*DayUsage{}, tools: map[[2]string]*ToolUsage{}, servers: map[string]*ToolUsage{},
	}
	f := Filter{From: s.From, To: s.To, Session: s.Session, Principal: s.Principal}
	for _, store := range stores {
		groups, err := store.Groups(ctx, f)
		if err != nil {
			return Usage{}, err
		}
		for _, g := range groups {
			a.addGroup(g)
		}
	}
	twice, err := doubledRows(ctx, stores, f)
	if err != nil {
		return Usage{}, err
	}
	for i := range twice {
		a.addGroup(negatedGroup(&twice[i]))
		a.uncounted[rowPlace{twice[i].At, twice[i].Seq}] = true
	}
	if ends {
		if err := a.addNewestEnds(ctx, stores, f); err != nil {
			return Usage{}, err
		}
	}
	return a.totalUsage(), nil
}

// rowPlace identifies a row by its time and its sequence number, both of which BriefFinder.Brief returns.
type rowPlace struct{ at, seq int64 }

// usageSum computes a Usage from groups of rows.
type usageSum struct {
	uncounted map[rowPlace]bool // rows that must not be counted, because another chain contains the same events
	usage     Usage
	days      map[string]*DayUsage
	tools     map[[2]string]*ToolUsage
	servers   map[string]*ToolUsage
	facts     int // number of executions whose facts were read
}

func (a *usageSum) addGroup(g UsageGroup) {
	u, day := &a.usage, entryOf(a.days, g.Day, DayUsage{Day: g.Day})
	u.Entries += g.Count
	switch kind := core.EventKind(g.Kind); kind {
	case core.EventEnd:
		u.Executions += g.Count
		u.ByStatus[g.Status] += g.Count
		u.Returned, u.Avoided = u.Returned+g.Returned, u.Avoided+g.Avoided
		day.Executions, day.Returned, day.Avoided = day.Executions+g.Count, day.Returned+g.Returned, day.Avoided+g.Avoided
	case core.EventCall, core.EventAnswer:
		a.addCall(g, day)
	case core.EventRefusal:
		u.Refusals += g.Count
	case core.EventDecision:
		if g.Status != "automatic" { // nobody was asked
			u.Approvals[g.Status] += g.Count
		}
	}
}

// addCall adds the calls of a UsageGroup to the totals. A call that only reads has one entry, of kind call, with
// its status. A call with effects has a call entry and an answer entry, and the status is in the answer entry.
func (a *usageSum) addCall(g UsageGroup, day *DayUsage) {
	entryOf(a.tools, [2]string{g.Server, g.Tool}, ToolUsage{Server: g.Server, Tool: g.Tool}).addGroup(g)
	entryOf(a.servers, g.Server, ToolUsage{Server: g.Server}).addGroup(g)
	if g.Kind == string(core.EventCall) {
		a.usage.Calls, day.Calls = a.usage.Calls+g.Count, day.Calls+g.Count
	}
	if isFailed(g) {
		a.usage.Errors, day.Errors = a.usage.Errors+g.Count, day.Errors+g.Count
	}
}

// isFailed reports whether the calls of a UsageGroup returned errors. Calls without a status are still running.
func isFailed(g UsageGroup) bool { return g.Status != "" && g.Status != string(core.StatusOK) }

func (t *ToolUsage) addGroup(g UsageGroup) {
	if g.Kind == string(core.EventCall) {
		t.Calls += g.Count
	}
	if g.Status != "" {
		t.back, t.micros, t.Bytes = t.back+g.Count, t.micros+g.Micros, t.Bytes+g.Bytes
	}
	if isFailed(g) {
		t.Errors += g.Count
	}
}

func entryOf[K comparable, V any](m map[K]*V, key K, empty V) *V {
	if m[key] == nil {
		m[key] = &empty
	}
	return m[key]
}

// addNewestEnds reads the end entries of the newest executions. From these it computes the totals that other entries
// do not provide: Duration, Principals and CacheHits.
func (a *usageSum) addNewestEnds(ctx context.Context, stores []LogStore, f Filter) error {
	f.Kinds, f.Limit = []string{string(core.EventEnd)}, newestEnds
	var all []LogRow
	for _, store := range stores {
		rows, err := briefRows(ctx, store, f)
		if err != nil {
			return err
		}
		all = append(all, slices.DeleteFunc(rows, func(r LogRow) bool { return a.uncounted[rowPlace{r.At, r.Seq}] })...)
		if err := a.addCacheHits(ctx, store, f); err != nil {
			return err
		}
	}
	if len(all) > newestEnds {
		slices.SortFunc(all, func(p, q LogRow) int { return placeOf(&q).compareTo(placeOf(&p)) })
		all = all[:newestEnds]
	}
	if int64(len(all)) < a.usage.Executions {
		a.usage.Sampled = len(all)
	}
	if int64(a.facts) < a.usage.Executions {
		a.usage.HitsOf = a.facts
	}
	a.addEachEnd(all)
	return nil
}

// briefRows returns the rows that match f, if possible with only the columns that usage needs.
func briefRows(ctx context.Context, store LogStore, f Filter) ([]LogRow, error) {
	if b, ok := store.(BriefFinder); ok {
		return b.Brief(ctx, f)
	}
	f.Bare = true
	var all []LogRow
	for r, err := range store.Find(ctx, f) {
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// addCacheHits adds the cache hits of the newest executions.
func (a *usageSum) addCacheHits(ctx context.Context, store LogStore, f Filter) error {
	f.Limit = newestFacts
	n := 0
	for r, err := range store.Find(ctx, f) {
		if err != nil {
			return err
		}
		if a.uncounted[rowPlace{r.At, r.Seq}] {
			continue
		}
		n++
		a.usage.CacheHits += hitsOf(r.Facts)
	}
	a.facts += n
	return nil
}

func (a *usageSum) addEachEnd(ends []LogRow) {
	persons := map[string]*PersonUsage{}
	var took []int64
	for _, r := range ends {
		if r.Status != string(core.StatusOutcomeUnknown) { // when it ended is not known
			took = append(took, r.Micros)
		}
		p := entryOf(persons, r.Principal, PersonUsage{Principal: r.Principal})
		p.Executions, p.Returned, p.Avoided = p.Executions+1, p.Returned+r.Returned, p.Avoided+r.Avoided
		if r.Status != string(core.StatusOK) {
			p.Failed++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(persons)) {
		a.usage.Principals = append(a.usage.Principals, *persons[name])
	}
	a.usage.Duration = computeQuantiles(took)
}

func hitsOf(facts []byte) int64 {
	var f struct {
		Hits int64 `json:"cache_hits"`
	}
	if !bytes.Contains(facts, []byte("cache_hits")) || json.Unmarshal(facts, &f) != nil {
		return 0
	}
	return f.Hits
}

func computeQuantiles(micros []int64) *Quantiles {
	if len(micros) == 0 {
		return nil
	}
	slices.Sort(micros)
	at := func(p float64) float64 { return float64(micros[int(p*float64(len(micros)-1)+0.5)]) / 1000 }
	return &Quantiles{P50: at(0.5), P90: at(0.9), P99: at(0.99), Max: at(1)}
}

// totalUsage returns the totals, with days sorted by date and tools by number of calls.
func (a *usageSum) totalUsage() Usage {
	u := a.usage
	for _, counts := range []map[string]int64{u.ByStatus, u.Approvals} {
		maps.DeleteFunc(counts, func(_ string, n int64) bool { return n == 0 })
	}
	u.Days, u.Tools, u.Servers = []DayUsage{}, busiestTools(maps.Values(a.tools)), busiestTools(maps.Values(a.servers))
	for _, day := range slices.Sorted(maps.Keys(a.days)) {
		u.Days = append(u.Days, *a.days[day])
	}
	return u
}

// busiestTools returns the tools sorted by number of calls, the most frequent first.
func busiestTools(usage iter.Seq[*ToolUsage]) []ToolUsage {
	all := []ToolUsage{}
	for t := range usage {
		if t.back > 0 {
			t.MeanMS = float64(t.micros/t.back) / 1000
		}
		all = append(all, *t)
	}
	slices.SortFunc(all, func(p, q ToolUsage) int {
		return cmp.Or(cmp.Compare(q.Calls, p.Calls), cmp.Compare(p.Server, q.Server), cmp.Compare(p.Tool, q.Tool))
	})
	return all
}
