package wire

import (
	"context"
	"sync"
	"time"
)

// waker sends wake frames. It has one timer and one goroutine, however many frames a guest requests, even if the
// guest reads none.
type waker struct {
	timer *time.Timer
	due   chan struct{}          // holds a token while a frame is yet to be sent
	waits func() (resume func()) // is called when the guest waits

	mu     sync.Mutex
	resume func() // set while the guest waits
}

// newWaker makes a waker that ends with ctx. conn must be closed when ctx ends.
func newWaker(ctx context.Context, conn *Conn, waits func() (resume func())) *waker {
	w := &waker{due: make(chan struct{}, 1), waits: waits, resume: nothing}
	w.timer = time.AfterFunc(time.Hour, w.ring)
	go func() {
		defer w.timer.Stop()
		for {
			select {
			case <-w.due:
				_ = conn.Send(Frame{Kind: KindWake})
			case <-ctx.Done():
				return
			}
		}
	}()
	return w
}

// nothing is a resume function that does nothing.
func nothing() {}

func (w *waker) ring() {
	w.wait(nothing)
	select {
	case w.due <- struct{}{}:
	default: // the pending frame also answers the new request
	}
}

// after schedules a frame after span. It replaces a frame that is still pending.
func (w *waker) after(span time.Duration) {
	w.wait(w.waits())
	w.timer.Reset(span)
}

// wait ends the previous wait and begins a new one, which resume ends.
func (w *waker) wait(resume func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.resume()
	w.resume = resume
}
