package pipeline

import (
	"context"
	"testing"

	"retort/internal/core"
	"retort/internal/policy"
)

// TestUnfollowedStepsAreFree checks that a step allocates no memory when no tracer is configured.
func TestUnfollowedStepsAreFree(t *testing.T) {
	x, ctx := &execution{pipeline: &Pipeline{Policy: &policy.PrincipalView{}}}, context.Background()
	if n := testing.AllocsPerRun(100, func() {
		_, end := x.beginStep(ctx, core.StepSandbox, x.newEvent(core.EventVerdict))
		end(core.AuditEvent{Status: "ok"})
	}); n != 0 {
		t.Errorf("a step makes %v allocations", n)
	}
}

func BenchmarkUnfollowedStep(b *testing.B) {
	x, ctx := &execution{pipeline: &Pipeline{Policy: &policy.PrincipalView{}}}, context.Background()
	for b.Loop() {
		_, end := x.beginStep(ctx, core.StepSandbox, x.newEvent(core.EventVerdict))
		end(core.AuditEvent{Status: "ok"})
	}
}
