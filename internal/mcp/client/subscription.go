package client

import (
	"context"
	"time"
)

// changeSubscription is the subscription with which a server of newer protocol versions reports that its tools,
// prompts or resources have changed. The SDK makes the request for it while connecting. The server reports no changes
// from before its acknowledgement. The mutex of the link guards the fields.
type changeSubscription struct {
	request *pendingCall  // the subscription; nil if the server reports no changes
	began   chan struct{} // closed when the server has acknowledged or refused the subscription for the first time
	known   bool          // the channel began is closed
	late    bool          // connecting has stopped waiting for the acknowledgement
}

// noteSubscription records that the SDK has requested a subscription.
func (l *serverLink) noteSubscription(x *pendingCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subscribed = changeSubscription{request: x, began: make(chan struct{})}
}

// awaitSubscription waits, at most for listenPatience, until the server has acknowledged or refused the subscription,
// so that no change after the next listing goes unnoticed. If the acknowledgement comes later, the tools are listed
// again.
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

// beginSubscription records that the server has acknowledged the subscription x. The tools count as changed if the
// server had acknowledged a subscription before, or if awaitSubscription no longer waits: in both cases the server
// may have left earlier changes unreported.
func (l *serverLink) beginSubscription(x *pendingCall) {
	l.mu.Lock()
	s := &l.subscribed
	if x != s.request {
		l.mu.Unlock()
		return
	}
	missed := s.late
	s.markKnown()
	l.mu.Unlock()
	if missed {
		l.outdated.Store(true)
		l.changed()
	}
}

// endSubscription records that the stream of the subscription x was refused or has ended.
func (l *serverLink) endSubscription(x *pendingCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if x == l.subscribed.request {
		l.subscribed.markKnown()
	}
}

// markKnown wakes awaitSubscription. The caller must hold the link's mutex.
func (s *changeSubscription) markKnown() {
	if s.request != nil && !s.known {
		s.known = true
		close(s.began)
	}
}
