package core

import "context"

type pauseKey struct{}

// WithPause returns a context of which Pause calls pause. The resume that
// pause returns is called once.
func WithPause(ctx context.Context, pause func() (resume func())) context.Context {
	return context.WithValue(ctx, pauseKey{}, pause)
}

// Pause stops the clock of the execution that ctx belongs to, until resume is
// called: time in which a person is waited for is not the program's. Where no
// clock runs, it does nothing.
func Pause(ctx context.Context) (resume func()) {
	if pause, ok := ctx.Value(pauseKey{}).(func() func()); ok {
		return pause()
	}
	return func() {}
}
