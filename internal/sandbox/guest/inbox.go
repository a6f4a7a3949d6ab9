package guest

import (
	"time"

	"retort/internal/sandbox/wire"
)

// inbox receives the program and then the results of calls.
type inbox interface {
	// some reports whether a frame has arrived.
	some() bool
	// take returns the first frame that has arrived; ok is false if there is none. open is false if the other side
	// has closed the connection.
	take() (f wire.Frame, ok, open bool)
	// wait works like take, but waits for a frame until deadline, or without a bound if deadline is zero. The guest
	// must have flushed its output before.
	wait(deadline time.Time) (f wire.Frame, ok, open bool)
}

// channel is an inbox that another goroutine fills.
type channel <-chan wire.Frame

func (c channel) some() bool { return len(c) > 0 }

func (c channel) take() (f wire.Frame, ok, open bool) {
	select {
	case f, open = <-c:
		return f, open, open
	default:
		return f, false, true
	}
}

func (c channel) wait(deadline time.Time) (f wire.Frame, ok, open bool) {
	if deadline.IsZero() {
		f, open = <-c
		return f, open, open
	}
	wake := time.NewTimer(time.Until(deadline))
	defer wake.Stop()
	select {
	case f, open = <-c:
		return f, open, open
	case <-wake.C:
		return f, false, true
	}
}
