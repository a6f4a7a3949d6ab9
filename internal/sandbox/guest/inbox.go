package guest

import (
	"time"

	"retort/internal/sandbox/wire"
)

// frameInbox provides the frames for a guest: first the program, then the results of its calls.
type frameInbox interface {
	// hasFrame reports, without waiting, whether a frame has arrived.
	hasFrame() bool
	// takeFrame returns the next frame that has arrived, without waiting. If no frame has arrived, ok is false. If
	// the host has closed the connection, open is false.
	takeFrame() (f wire.Frame, ok, open bool)
	// waitFrame works like takeFrame, but waits for a frame until deadline, or without limit if deadline is zero. The
	// guest must have flushed its own frames before.
	waitFrame(deadline time.Time) (f wire.Frame, ok, open bool)
}

// channelInbox implements frameInbox with a channel that another goroutine fills.
type channelInbox <-chan wire.Frame

func (c channelInbox) hasFrame() bool { return len(c) > 0 }

func (c channelInbox) takeFrame() (f wire.Frame, ok, open bool) {
	select {
	case f, open = <-c:
		return f, open, open
	default:
		return f, false, true
	}
}

func (c channelInbox) waitFrame(deadline time.Time) (f wire.Frame, ok, open bool) {
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
