package core

import "context"

// WithPause returns a context in which PauseClock calls pause to stop the execution's clock. The function that pause
// returns is called once, to start the clock again.
func WithPause(ctx context.Context, pause func() (resume func())) context.Context {
	return WithBounds(ctx, WorkBounds{Pause: pause})
}

// PauseClock stops the clock of the execution until resume is called. It is used while a person is asked, because
// that time does not count towards the timeout. It does nothing if ctx has no clock.
func PauseClock(ctx context.Context) (resume func()) {
	if pause := findBounds(ctx, func(b *WorkBounds) bool { return b.Pause != nil }).Pause; pause != nil {
		return pause()
	}
	return func() {}
}
