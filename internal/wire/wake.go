package wire

import (
	"context"
	"time"
)

// waker sends wake frames. However many a guest asks for, and even if it reads
// none, there is one timer and one goroutine.
type waker struct {
	timer *time.Timer
	due   chan struct{} // holds a token while a frame is yet to be sent
}

// newWaker makes a waker that ends with ctx, at whose end conn must be closed.
func newWaker(ctx context.Context, conn *Conn) *waker {
	w := &waker{due: make(chan struct{}, 1)}
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

func (w *waker) ring() {
	select {
	case w.due <- struct{}{}:
	default: // the frame that is yet to be sent comes after whatever is asked for now
	}
}

// after sends a frame after a span, and none for spans asked for before that are
// not over.
func (w *waker) after(span time.Duration) { w.timer.Reset(span) }
