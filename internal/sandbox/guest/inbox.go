package guest

import (
	"time"

	"retort/internal/sandbox/wire"
)

// inbox is where the results of calls arrive, and before them the program.
type inbox interface {
	// some says whether something has arrived.
	some() bool
	// take is the first frame that has arrived, if ok. The other side is gone if not open.
	take() (f wire.Frame, ok, open bool)
	// wait is take, but waits until deadline, or without end if that is zero. What the
	// guest has to say must have been flushed.
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
