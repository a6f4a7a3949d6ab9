package wire

import (
	"context"
	"sync"
	"time"
)

// wakeTimer sends the wake frames that a guest requests, each after a delay. It uses one timer and one goroutine,
// even for a guest that requests many wake frames and never reads them.
type wakeTimer struct {
	timer *time.Timer
	due   chan struct{} // holds a token while a wake frame is waiting to be sent
	// waits is called when the guest begins to wait. The function that it returns is called when the waiting ends.
	waits func() (resume func())

	mu     sync.Mutex
	resume func() // ends the guest's current wait; does nothing if the guest does not wait
}

// newWaker returns a wakeTimer whose goroutine ends with ctx. conn must be closed when ctx ends.
func newWaker(ctx context.Context, conn *FrameConn, waits func() (resume func())) *wakeTimer {
	w := &wakeTimer{due: make(chan struct{}, 1), waits: waits, resume: noResume}
	w.timer = time.AfterFunc(time.Hour, w.sendWake)
	go func() {
		defer w.timer.Stop()
		for {
			select {
			case <-w.due:
				_ = conn.SendFrame(Frame{Kind: KindWake})
			case <-ctx.Done():
				return
			}
		}
	}()
	return w
}

// noResume is a resume function that does nothing.
func noResume() {}

func (w *wakeTimer) sendWake() {
	w.beginWait(noResume)
	select {
	case w.due <- struct{}{}:
	default: // the pending frame also answers the new request
	}
}

// wakeAfter schedules a wake frame that is sent when the time in the argument span has passed. It replaces a wake
// frame that is still scheduled.
func (w *wakeTimer) wakeAfter(span time.Duration) {
	w.beginWait(w.waits())
	w.timer.Reset(span)
}

// beginWait records that the guest now waits, so that its computing time does not grow. The function resume ends the
// wait. beginWait first ends the previous wait, if there is one.
func (w *wakeTimer) beginWait(resume func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.resume()
	w.resume = resume
}
