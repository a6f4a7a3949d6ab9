package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync/atomic"

	"retort/internal/core"
)

// maxPings is the number of unanswered pings, without any other sign of life, after which a connection is ended. The
// timeouts of these pings add up to the timeout of a call.
const maxPings = 3

// countingReader is an io.Reader that counts the bytes read.
type countingReader struct {
	io.Reader
	n *atomic.Int64
}

func (c countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// bytesReceived returns a number that grows whenever the server sends something in the session or writes to standard
// error.
func (s *serverConn) bytesReceived(sess *serverSession) int64 {
	return sess.link.received.Load() + s.stderr.written.Load()
}

// pingIfSilent pings a server that has not answered a request in time and has sent nothing since. If called
// concurrently, only one caller pings.
func (s *serverConn) pingIfSilent(sess *serverSession, before int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || sess.pinged || s.bytesReceived(sess) != before || sess.link.isDown() {
		return
	}
	sess.pinged = true
	s.wg.Go(func() {
		silent := s.isSilent(sess, before)
		s.mu.Lock()
		sess.pinged, s.unanswered = false, 0
		s.mu.Unlock()
		if silent {
			sess.link.failAll(errHung())
		}
	})
}

// isSilent pings a server, several times if necessary, and reports whether it gives no sign of life. A server that
// waits for an answer of a person or a model is not silent.
func (s *serverConn) isSilent(sess *serverSession, before int64) (silent bool) {
	patience := s.spec.CallTimeout / maxPings
	for n := range maxPings {
		ctx, cancel := context.WithTimeout(sess.link.ctx, patience)
		_, err := sess.link.callMethod(ctx, &pendingCall{}, methodPing, requestParams(sess.meta, json.RawMessage(`{}`)))
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || s.bytesReceived(sess) != before || sess.link.isAsked() {
			return false
		}
		s.mu.Lock()
		s.unanswered = n + 1
		s.mu.Unlock()
	}
	return true
}

// isAsked reports whether a request of the server waits for the client's answer.
func (l *serverLink) isAsked() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.asks) > 0
}

func errHung() *core.Error {
	return core.Errorf(
		core.KindUpstreamGone, "upstream.ping",
		"the server hung: it answered neither a call in time nor %d pings, so it was ended", maxPings,
	).
		WithHint("the next call starts it again; if it hangs again, find out what it waits for")
}
