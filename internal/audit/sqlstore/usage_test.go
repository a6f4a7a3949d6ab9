//go:build unix

package sqlstore

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"retort/internal/audit"
	"retort/internal/core"
)

// cpuTime returns the CPU time that this process has used. Other processes on the machine do not affect it.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkUsage measures SumUsageOf with a million entries, which should take at most two seconds. Writing the
// entries takes a minute, so the benchmark runs only if RETORT_BENCH_RECORD names a folder for them.
func BenchmarkUsage(b *testing.B) {
	dir := os.Getenv("RETORT_BENCH_RECORD")
	if dir == "" {
		b.Skip("RETORT_BENCH_RECORD names no folder")
	}
	path := filepath.Join(dir, "million.db")
	s, err := Open(b.Context(), path, Options{})
	if err != nil {
		b.Fatal(err)
	}
	h, err := s.Head(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for g := newGenerator(h); g.head.Seq < 1_000_000; {
		if err := s.Append(b.Context(), g.batch(2000)); err != nil {
			b.Fatal(err)
		}
	}
	_ = s.Close()
	for b.Loop() {
		s, err := Open(b.Context(), path, Options{ReadOnly: true})
		if err != nil {
			b.Fatal(err)
		}
		began := cpuTime()
		u, err := audit.SumUsageOf(b.Context(), []audit.LogStore{s}, audit.UsageSpan{}, false)
		if err != nil || u.Entries < 1_000_000 {
			b.Fatal(u.Entries, err)
		}
		b.ReportMetric((cpuTime() - began).Seconds(), "groups-cpu-s")
		began = cpuTime()
		if _, err := audit.SumUsageOf(b.Context(), []audit.LogStore{s}, audit.UsageSpan{}, true); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric((cpuTime() - began).Seconds(), "all-cpu-s")
		_ = s.Close()
	}
}

// recordTwoDays records a known history of two days, and returns the log, its store and the usage that must
// result.
func recordTwoDays(t *testing.T) (*audit.Log, audit.LogStore, audit.Usage, []int64) {
	t.Helper()
	store, err := Open(t.Context(), filepath.Join(t.TempDir(), "record.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	key := func() ([]byte, error) { return bytes.Repeat([]byte{7}, 32), nil }
	at := time.Date(2026, 1, 1, 23, 59, 0, 0, time.UTC)
	l, err := audit.Open(t.Context(), store, audit.Options{Keys: audit.LogKeys{Bodies: key, Codes: key}, Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	add := func(e core.AuditEvent) {
		if e.At.IsZero() {
			e.At = at
		}
		if err := l.Record(e, true); err != nil {
			t.Fatal(err)
		}
	}
	var took []int64
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 200 {
		at = at.Add(time.Second)
		id := string(rune('a'+i%26)) + time.Duration(i).String()
		add(core.AuditEvent{Kind: core.EventRequest, Execution: id})
		add(core.AuditEvent{Kind: core.EventCall, Execution: id, Server: "crm", Tool: "get", Status: "ok", Duration: 2 * time.Millisecond, Bytes: 10})
		if i%10 == 0 {
			add(core.AuditEvent{Kind: core.EventCall, Execution: id, Server: "mail", Tool: "send"})
			add(core.AuditEvent{Kind: core.EventAnswer, Execution: id, Server: "mail", Tool: "send", Status: "tool_error", Duration: 6 * time.Millisecond})
			add(core.AuditEvent{Kind: core.EventRefusal, Execution: id, Server: "crm", Tool: "drop", Status: "policy"})
			add(core.AuditEvent{Kind: core.EventDecision, Execution: id, Status: "approved"})
		}
		micros := r.Int64N(1e6)
		took = append(took, micros)
		status := core.StatusOK
		if i%4 == 0 {
			status = core.StatusError
		}
		add(core.AuditEvent{Kind: core.EventEnd, Execution: id, Status: string(status), Duration: time.Duration(micros) * time.Microsecond, Tokens: &core.TokenStats{Returned: 3, Avoided: 50}, Facts: map[string]any{"cache_hits": 2}})
	}
	add(core.AuditEvent{Kind: core.EventEnd, Execution: "lost", Status: string(core.StatusOutcomeUnknown)})
	return l, store, audit.Usage{
		Executions: 201, ByStatus: map[string]int64{"ok": 150, "error": 50, "outcome_unknown": 1}, Calls: 220, Errors: 20, Refusals: 20, CacheHits: 400, Returned: 600, Avoided: 10_000,
		Approvals: map[string]int64{"approved": 20}, Entries: 200*3 + 20*4 + 1,
		Days:       []audit.DayUsage{{Day: "2026-01-01", Executions: 59, Calls: 65, Errors: 6, Returned: 177, Avoided: 2950}, {Day: "2026-01-02", Executions: 142, Calls: 155, Errors: 14, Returned: 423, Avoided: 7050}},
		Tools:      []audit.ToolUsage{{Server: "crm", Tool: "get", Calls: 200, MeanMS: 2, Bytes: 2000}, {Server: "mail", Tool: "send", Calls: 20, Errors: 20, MeanMS: 6}},
		Servers:    []audit.ToolUsage{{Server: "crm", Calls: 200, MeanMS: 2, Bytes: 2000}, {Server: "mail", Calls: 20, Errors: 20, MeanMS: 6}},
		Principals: []audit.PersonUsage{{Executions: 201, Failed: 51, Returned: 600, Avoided: 10_000}},
	}, took
}

func TestUsageOfAKnownHistory(t *testing.T) {
	l, store, want, took := recordTwoDays(t)
	defer l.Close()
	got, err := audit.SumUsageOf(t.Context(), []audit.LogStore{store}, audit.UsageSpan{}, true)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(took)
	for p, have := range map[float64]float64{0.5: got.Duration.P50, 0.9: got.Duration.P90, 0.99: got.Duration.P99, 1: got.Duration.Max} {
		rank := int(math.Round(p * float64(len(took)-1)))
		if have != float64(took[rank])/1000 {
			t.Errorf("p%v: %v, want %v", p, have, float64(took[rank])/1000)
		}
	}
	got.Duration = nil
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(audit.ToolUsage{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	some, err := audit.SumUsageOf(t.Context(), []audit.LogStore{store}, audit.UsageSpan{From: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}, false)
	if err != nil || some.Executions != 142 || some.Duration != nil || len(some.Days) != 1 {
		t.Error(some, err)
	}
	twice, err := audit.SumUsageOf(t.Context(), []audit.LogStore{store, store}, audit.UsageSpan{}, true)
	if err != nil || twice.Executions != 402 || twice.CacheHits != 800 || twice.Tools[0].MeanMS != 2 {
		t.Error(twice, err)
	}
}
