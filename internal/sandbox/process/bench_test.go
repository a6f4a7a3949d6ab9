//go:build linux

package process

import (
	"context"
	"slices"
	"testing"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox"
)

var spec = sandbox.SandboxSpec{Runtime: "quickjs", Limits: core.DefaultLimits()}

func runOnce(b *testing.B, s sandbox.Sandbox, code string) {
	r, err := s.Run(context.Background(), core.CheckedProgram{Code: code}, echo)
	if err != nil || r.Status != core.StatusOK {
		b.Fatal(err, r.Status, r.Error)
	}
	_ = s.Close()
}

func prepare(b *testing.B, backend *Backend) sandbox.Sandbox {
	s, err := backend.Prepare(context.Background(), spec)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkRunReturn1 measures how long a program that only returns 1 takes if a child process already waits for it.
// A child usually waits, unless programs arrive faster than children start.
func BenchmarkRunReturn1(b *testing.B) {
	backend := New(Options{})
	defer backend.Close()
	var took []time.Duration
	for b.Loop() {
		b.StopTimer()
		testenv.WaitUntil(b, "a child waits", func() bool { return len(backend.ReadyGuests(quickjs)) > 0 })
		b.StartTimer()
		started := time.Now()
		runOnce(b, prepare(b, backend), "return 1")
		took = append(took, time.Since(started))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "median-µs")
}

func BenchmarkRunCold(b *testing.B) {
	backend := New(Options{Warm: -1})
	defer backend.Close()
	for b.Loop() {
		runOnce(b, prepare(b, backend), "return 1")
	}
}

// BenchmarkRunBackToBack measures minimal programs that run one after the other without a pause in between.
func BenchmarkRunBackToBack(b *testing.B) {
	backend := New(Options{})
	defer backend.Close()
	for b.Loop() {
		runOnce(b, prepare(b, backend), "return 1")
	}
}

func benchmarkCalls(b *testing.B, code string) {
	backend := New(Options{})
	defer backend.Close()
	for b.Loop() {
		b.StopTimer()
		s := prepare(b, backend)
		testenv.FallsAsleep(childOf(s).cmd.Process.Pid)
		b.StartTimer()
		runOnce(b, s, code)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "µs/call")
}

func Benchmark1000CallsSequential(b *testing.B) {
	benchmarkCalls(b, "for (let i = 0; i < 1000; i++) await callMCPTool('a__b', {i})")
}

func Benchmark1000CallsConcurrent(b *testing.B) {
	benchmarkCalls(b, "await Promise.all(Array.from({length: 1000}, (_, i) => callMCPTool('a__b', {i})))")
}
