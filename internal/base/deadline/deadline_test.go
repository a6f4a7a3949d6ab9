package deadline_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"retort/internal/base/deadline"
	"retort/internal/core"
)

func TestWaitingIsNotCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, stopOuter := deadline.With(t.Context(), 3*time.Second)
		defer stopOuter()
		ctx, stop := deadline.With(outer, 2*time.Second)
		defer stop()
		began := time.Now()
		time.Sleep(time.Second)
		first, second := core.PauseClock(ctx), core.PauseClock(ctx)
		time.Sleep(time.Hour)
		first()
		time.Sleep(time.Hour)
		if ctx.Err() != nil || outer.Err() != nil {
			t.Fatal("the clock went on")
		}
		second()
		<-ctx.Done()
		if got := time.Since(began); got != 2*time.Hour+2*time.Second || !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			t.Error(got, context.Cause(ctx))
		}
		<-outer.Done()
		if got := time.Since(began); got != 2*time.Hour+3*time.Second {
			t.Error(got)
		}
	})
}

func TestEndedBefore(t *testing.T) {
	ctx, stop := deadline.With(t.Context(), time.Minute)
	stop()
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		t.Error(context.Cause(ctx))
	}
	core.PauseClock(ctx)() // is late, and does nothing
}
