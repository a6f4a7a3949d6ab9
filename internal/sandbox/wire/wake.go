package wire

import (
	"context"
	"sync"
	"time"
)

// waker sends wake frames. However many a guest asks for, and even if it reads
// none, there is one timer and one goroutine.
type waker struct {
	timer *time.Timer
	due   chan struct{}          // holds a token while a frame is yet to be sent
	waits func() (resume func()) // is told that the guest waits

	mu     sync.Mutex
	resume func() // once the guest waits
}

// newWaker makes a waker that ends with ctx, at whose end conn must be closed.
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

// nothing is what ends no wait.
func nothing() {}

func (w *waker) ring() {
	w.wait(nothing)
	select {
	case w.due <- struct{}{}:
	default: // the frame that is yet to be sent comes after whatever is asked for now
	}
}

// after sends a frame after a span, and none for spans asked for before that are
// not over.
func (w *waker) after(span time.Duration) {
	w.wait(w.waits())
	w.timer.Reset(span)
}

// wait ends the wait before, and begins one that resume ends.
func (w *waker) wait(resume func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.resume()
	w.resume = resume
}
