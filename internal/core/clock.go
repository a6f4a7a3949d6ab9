package core

import "context"

type pauseKey struct{}

// WithPause returns a context in which PauseClock calls pause. The function resume that pause returns is called once.
func WithPause(ctx context.Context, pause func() (resume func())) context.Context {
	return context.WithValue(ctx, pauseKey{}, pause)
}

// PauseClock stops the clock of the execution until resume is called, because time spent waiting for a person does
// not count. It does nothing if ctx has no clock.
func PauseClock(ctx context.Context) (resume func()) {
	if pause, ok := ctx.Value(pauseKey{}).(func() func()); ok {
		return pause()
	}
	return func() {}
}
