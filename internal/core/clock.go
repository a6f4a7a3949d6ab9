package core

import "context"

type pauseKey struct{}

// WithPause returns a context in which PauseClock calls pause to stop the clock. The function that pause returns
// starts it again and is called once.
func WithPause(ctx context.Context, pause func() (resume func())) context.Context {
	return context.WithValue(ctx, pauseKey{}, pause)
}

// PauseClock stops the clock of the execution until resume is called. It is used while a person is asked, because
// that time does not count towards the timeout. It does nothing if ctx has no clock.
func PauseClock(ctx context.Context) (resume func()) {
	if pause, ok := ctx.Value(pauseKey{}).(func() func()); ok {
		return pause()
	}
	return func() {}
}
