package pipeline

import (
	"context"
	"testing"

	"retort/internal/core"
)

// TestUnfollowedStepsAreFree checks that a step allocates no memory when no tracer is configured.
func TestUnfollowedStepsAreFree(t *testing.T) {
	r, ctx := &executionRecord{}, context.Background()
	if n := testing.AllocsPerRun(100, func() {
		_, end := r.beginStep(ctx, core.StepSandbox, r.newEvent(core.EventVerdict))
		end(core.AuditEvent{Status: "ok"})
	}); n != 0 {
		t.Errorf("a step makes %v allocations", n)
	}
}

func BenchmarkUnfollowedStep(b *testing.B) {
	r, ctx := &executionRecord{}, context.Background()
	for b.Loop() {
		_, end := r.beginStep(ctx, core.StepSandbox, r.newEvent(core.EventVerdict))
		end(core.AuditEvent{Status: "ok"})
	}
}
