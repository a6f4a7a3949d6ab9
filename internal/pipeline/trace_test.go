package pipeline

import (
	"context"
	"testing"

	"retort/internal/run"
)

// Whoever is not followed pays nothing for it.
func TestUnfollowedStepsAreFree(t *testing.T) {
	r, ctx := &record{}, context.Background()
	if n := testing.AllocsPerRun(100, func() {
		_, end := r.step(ctx, run.StepSandbox, r.event(run.EventVerdict))
		end(run.Event{Status: "ok"})
	}); n != 0 {
		t.Errorf("a step makes %v allocations", n)
	}
}

func BenchmarkUnfollowedStep(b *testing.B) {
	r, ctx := &record{}, context.Background()
	for b.Loop() {
		_, end := r.step(ctx, run.StepSandbox, r.event(run.EventVerdict))
		end(run.Event{Status: "ok"})
	}
}
