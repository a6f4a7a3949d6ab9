package sqlstore

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"retort/internal/audit"
)

// generator creates rows like those of an engine. A few executions run at the same time, each with a few calls.
type generator struct {
	r    *rand.Rand
	head audit.ChainHead
	at   time.Time
	runs []running
}

type running struct {
	execution, session, principal string
	left                          int
}

const sessionRuns = 50 // executions per session

func newGenerator(h audit.ChainHead) *generator {
	return &generator{r: rand.New(rand.NewPCG(1, uint64(h.Seq))), head: h, at: time.Unix(1.7e9, 0), runs: make([]running, 8)}
}

func (g *generator) batch(n int) (b audit.WriteBatch) {
	for range n {
		run := &g.runs[g.r.IntN(len(g.runs))]
		if run.left == 0 {
			e := int(g.head.Seq)
			*run = running{fmt.Sprintf("x%012d", g.r.Int64N(1e12)), fmt.Sprintf("session-%d", e/sessionRuns/10), fmt.Sprintf("person-%d", g.r.IntN(20)*g.r.IntN(2)), 2 + g.r.IntN(16)}
			b.Opened = append(b.Opened, run.execution)
			b.Keys = append(b.Keys, audit.BodyKey{ID: run.execution, Session: run.session, Principal: run.principal, Wrapped: make([]byte, 60)})
		}
		run.left--
		b.Rows = append(b.Rows, g.row(run))
		if run.left == 0 {
			b.Closed = append(b.Closed, run.execution)
		}
	}
	return b
}

func (g *generator) row(run *running) audit.LogRow {
	g.at = g.at.Add(time.Duration(g.r.IntN(2e9)))
	g.head.Seq++
	hash := sha256.Sum256(g.head.Hash)
	g.head.Hash = hash[:]
	r := audit.LogRow{Chain: g.head.Chain, Seq: g.head.Seq, At: g.at.UnixNano(), Execution: run.execution, Session: run.session, Principal: run.principal,
		Kind: "call", Status: "ok", Risk: -1, Micros: g.r.Int64N(1e6), Bytes: g.r.Int64N(1e5), Hash: g.head.Hash, Code: hash[:16],
		Facts: []byte(`{"connection":"stdio","effect":"read","attempt":1,"cached":false,"arguments":3}`), Body: make([]byte, 250+g.r.IntN(200))}
	switch g.r.IntN(10) {
	case 0:
		r.Kind, r.Risk = "verdict", int64(g.r.IntN(60)*g.r.IntN(2))
		if g.r.IntN(1000) == 0 {
			r.Risk += 40
		}
	case 1:
		r.Kind = "request"
	case 2:
		r.Kind, r.Status = "end", "success"
	default:
		r.Server = fmt.Sprintf("server-%d", g.r.IntN(10))
		r.Tool = fmt.Sprintf("tool-%d", g.r.IntN(100))
		if g.r.IntN(50) == 0 {
			r.Status = "tool_error"
		}
		if g.r.IntN(5000) == 0 {
			r.Kind, r.Status = "refusal", "policy"
		}
	}
	return r
}

func fill(b testing.TB, s audit.LogStore, n int) *generator {
	h, err := s.Head(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	g := newGenerator(h)
	for i := 0; i < n; i += 2000 {
		if err := s.Append(context.Background(), g.batch(min(2000, n-i))); err != nil {
			b.Fatal(err)
		}
	}
	return g
}

func openBench(b testing.TB, path string) audit.LogStore {
	s, err := Open(context.Background(), path, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

func benchmarkAppend(b *testing.B, s audit.LogStore, n int) {
	g := fill(b, s, 20000)
	var took []time.Duration
	for b.Loop() {
		batch := g.batch(n)
		start := b.Elapsed()
		if err := s.Append(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
		took = append(took, b.Elapsed()-start)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(n*len(took))/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkAppend1(b *testing.B)  { benchmarkAppends(b, 1) }
func BenchmarkAppend64(b *testing.B) { benchmarkAppends(b, 64) }

func benchmarkAppends(b *testing.B, n int) {
	for name, place := range newStores {
		b.Run(name, func(b *testing.B) { benchmarkAppend(b, openBench(b, place(b)), n) })
	}
}

const million = 1_000_000

// BenchmarkMillion measures queries of a store with 1,000,000 entries, for each database.
func BenchmarkMillion(b *testing.B) {
	for name, place := range newStores {
		b.Run(name, func(b *testing.B) { benchmarkMillion(b, place(b)) })
	}
}

func benchmarkMillion(b *testing.B, url string) {
	s := openBench(b, url)
	start := b.Elapsed()
	fill(b, s, million)
	if _, ok := s.(*sqlStore).databaseEngine.(*postgresEngine); ok { // as its server does by itself after a minute
		_, err := s.(*sqlStore).db.Exec("VACUUM ANALYZE entries")
		must(b, err)
	}
	size, _ := s.Size(context.Background())
	b.Logf("1,000,000 rows in %v, %d MB", b.Elapsed()-start, size>>20)
	for _, f := range filters() {
		f.Limit = 50
		b.Run("Find/"+f.name, func(b *testing.B) { benchmarkFind(b, s, f.Filter) })
	}
	b.Run("Walk", func(b *testing.B) {
		h, _ := s.Head(context.Background())
		n := 0
		for b.Loop() {
			for _, err := range s.Walk(context.Background(), h.Chain, 1) {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
		}
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
	})
	b.Run("Groups", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Groups(context.Background(), audit.Filter{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func benchmarkFind(b *testing.B, s audit.LogStore, f audit.Filter) {
	n := 0
	for b.Loop() {
		n = 0
		for _, err := range s.Find(context.Background(), f) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
	}
	b.ReportMetric(float64(n), "rows")
}

type named struct {
	name string
	audit.Filter
}

// filters returns the filters to measure: each field alone, values that are rare or missing, and combinations that
// are difficult for an index.
func filters() []named {
	middle := time.Unix(1.7e9, 0).Add(million / 2 * time.Second)
	return []named{
		{"all", audit.Filter{}},
		{"time", audit.Filter{From: middle, To: middle.Add(time.Hour)}},
		{"before", audit.Filter{Before: &audit.RowPosition{At: middle.UnixNano()}}},
		{"session", audit.Filter{Session: "session-700"}},
		{"session-none", audit.Filter{Session: "nobody"}},
		{"principal", audit.Filter{Principal: "person-0"}},
		{"principal-rare", audit.Filter{Principal: "person-7"}},
		{"server", audit.Filter{Server: "server-3"}},
		{"tool", audit.Filter{Tool: "tool-3"}},
		{"kind", audit.Filter{Kinds: []string{"call"}}},
		{"kinds-rare", audit.Filter{Kinds: []string{"refusal", "verdict"}}},
		{"status", audit.Filter{Statuses: []string{"policy"}}},
		{"risk-1", audit.Filter{MinRisk: 1}},
		{"risk-90", audit.Filter{MinRisk: 90}},
		{"risk-100", audit.Filter{MinRisk: 100}},
		{"execution", audit.Filter{Executions: []string{"nothing"}}},
		{"verdict-of-server", audit.Filter{Kinds: []string{"verdict"}, Server: "server-3"}},
		{"end-of-person", audit.Filter{Kinds: []string{"end"}, Principal: "person-7", Statuses: []string{"ok"}}},
		{"end-of-most", audit.Filter{Kinds: []string{"end"}, Principal: "person-0", Statuses: []string{"ok"}}},
		{"calls-ok-risk", audit.Filter{Kinds: []string{"call"}, Statuses: []string{"ok"}, Principal: "person-0", MinRisk: 1}},
		{"calls-ok-server-tool", audit.Filter{Kinds: []string{"call"}, Statuses: []string{"ok"}, Principal: "person-0", Server: "server-1", Tool: "tool-9"}},
		{"session-and-other", audit.Filter{Session: "session-700", Principal: "person-0", Server: "server-1"}},
		{"time-and-verdict-of-server", audit.Filter{From: middle, To: middle.Add(100 * time.Hour), Kinds: []string{"verdict"}, Server: "server-3"}},
	}
}
