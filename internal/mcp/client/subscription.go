package client

import (
	"context"
	"time"
)

// subscription is the stream on which a server of the newer versions reports that its tools, prompts or resources have
// changed. The SDK requests it while it connects. Changes before the server has acknowledged it are not reported. The
// mutex of the link guards it.
type subscription struct {
	request *pendingCall  // nil if the server reports no changes
	began   chan struct{} // closed when the server has acknowledged or refused it for the first time
	known   bool          // began is closed
	late    bool          // connecting does not wait for it any more
}

// noteSubscription notes that the SDK requests a subscription.
func (l *serverLink) noteSubscription(x *pendingCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subscribed = subscription{request: x, began: make(chan struct{})}
}

// awaitSubscription waits until the server has acknowledged or refused the subscription, so that what is listed
// afterwards cannot change without notice. A server that does neither is waited for up to listenPatience. What it
// acknowledges later has the tools listed again.
func (l *serverLink) awaitSubscription(ctx context.Context) {
	l.mu.Lock()
	began := l.subscribed.began
	l.mu.Unlock()
	if began == nil {
		return
	}
	patience := time.NewTimer(listenPatience)
	defer patience.Stop()
	select {
	case <-began:
	case <-patience.C:
	case <-ctx.Done():
	case <-l.ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subscribed.late = true
}

// beginSubscription notes that the server has acknowledged the subscription x. If it is not the first time, or
// nobody waits for it any more, the server may have kept to itself what changed before.
func (l *serverLink) beginSubscription(x *pendingCall) {
	l.mu.Lock()
	s := &l.subscribed
	if x != s.request {
		l.mu.Unlock()
		return
	}
	missed := s.late
	s.tell()
	l.mu.Unlock()
	if missed {
		l.outdated.Store(true)
		l.changed()
	}
}

// endSubscription notes that there is no stream for x any more, or never was.
func (l *serverLink) endSubscription(x *pendingCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if x == l.subscribed.request {
		l.subscribed.tell()
	}
}

// tell wakes awaitSubscription. The caller holds the mutex of the link.
func (s *subscription) tell() {
	if s.request != nil && !s.known {
		s.known = true
		close(s.began)
	}
}
