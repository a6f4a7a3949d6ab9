package pipeline

import (
	"context"
	"testing"

	"retort/internal/core"
)

// Whoever is not followed pays nothing for it.
func TestUnfollowedStepsAreFree(t *testing.T) {
	r, ctx := &record{}, context.Background()
	if n := testing.AllocsPerRun(100, func() {
		_, end := r.step(ctx, core.StepSandbox, r.event(core.EventVerdict))
		end(core.Event{Status: "ok"})
	}); n != 0 {
		t.Errorf("a step makes %v allocations", n)
	}
}

func BenchmarkUnfollowedStep(b *testing.B) {
	r, ctx := &record{}, context.Background()
	for b.Loop() {
		_, end := r.step(ctx, core.StepSandbox, r.event(core.EventVerdict))
		end(core.Event{Status: "ok"})
	}
}
