package client

import (
	"context"
	"errors"
	"sync"
	"time"

	"retort/internal/core"
)

// acquireSession returns the current session or a new one. The caller must call leaveUse after using it. Concurrent
// callers wait for the same connection attempt, which continues even if one of the callers gives up.
func (s *serverConn) acquireSession(ctx context.Context) (*serverSession, *core.Error) {
	for {
		sess, d, err := s.currentSession()
		if err != nil {
			return nil, err
		}
		if sess != nil {
			return sess, nil
		}
		select {
		case <-d.done:
		case <-ctx.Done():
			return nil, errCancelled(ctx, "while the server was being started")
		}
		if d.err != nil {
			return nil, d.err
		}
	}
}

// currentSession returns the current session, counted as in use, or the connection attempt to wait for. It starts an
// attempt if necessary.
func (s *serverConn) currentSession() (*serverSession, *pendingDial, *core.Error) {
	if err := s.configError(); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != nil && s.session.link.isDown() {
		s.noteLost(s.session)
	}
	switch {
	case s.closed:
		return nil, nil, closedError(s.why)
	case s.session != nil && s.session.enterUse():
		return s.session, nil, nil
	case s.dialing != nil:
		return nil, s.dialing, nil
	case s.breaker.IsOpen(time.Now()):
		return nil, nil, s.errOpen()
	}
	s.dialing = &pendingDial{done: make(chan struct{})}
	s.setState(StateConnecting)
	s.wg.Go(s.dialSession)
	return nil, s.dialing, nil
}

// dialSession establishes a session for the callers of acquireSession that wait for it.
func (s *serverConn) dialSession() {
	s.mu.Lock()
	d, e, wait, again := s.dialing, s.era, time.Until(s.breaker.RetryAt), s.connects > 0
	s.mu.Unlock()
	if !sleepContext(s.base, wait) {
		d.err = errClosed()
	} else {
		began := time.Now()
		ctx, cancel := context.WithTimeout(s.base, s.spec.ConnectTimeout)
		d.session, d.err = s.connect.connectServer(ctx, e)
		cancel()
		s.finishDial(d, time.Since(began))
	}
	s.mu.Lock()
	s.dialing = nil
	s.mu.Unlock()
	close(d.done)
	if d.err == nil && again {
		s.changes.restartTimer() // a restarted server may have other tools
	}
}

// finishDial processes the result of a connection attempt.
func (s *serverConn) finishDial(d *pendingDial, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		if d.err == nil {
			s.wg.Go(d.session.close)
		}
		d.err = closedError(s.why)
		return
	}
	if d.err != nil {
		d.err = s.withStderr(d.err)
		s.era = firstEra(s.spec)
		s.noteFailure(d.err)
		return
	}
	s.session, s.era, s.connectDuration = d.session, d.session.era, took
	s.last = d.session.listingOf()
	s.connects++
	s.lastErr = nil
	s.setState(StateReady)
	s.called = time.Now()
	s.awaitRest(s.idle)
	s.log.Info("connected", "name", s.last.Name, "version", s.last.Version, "protocol", s.last.Protocol, "took", took.Round(time.Millisecond))
	s.wg.Go(func() { s.watchSession(d.session) })
	s.wg.Go(func() { s.rewatchAll(d.session) })
}

// watchSession waits until a session has ended and closes it. If clients are subscribed to the server's resources, it
// then restarts the server.
func (s *serverConn) watchSession(sess *serverSession) {
	<-sess.link.ctx.Done()
	s.mu.Lock()
	s.noteLost(sess)
	s.mu.Unlock()
	sess.close()
	s.reviveServer()
}

// noteLost records that the connection of sess broke. It does so only once. The caller must hold mu.
func (s *serverConn) noteLost(sess *serverSession) {
	if s.session != sess {
		return
	}
	s.session = nil
	if !s.closed {
		s.noteFailure(s.withStderr(sess.link.cause))
	}
}

// discardSession stops using a session that the server no longer knows. Calls that use the session may still finish.
func (s *serverConn) discardSession(sess *serverSession) {
	s.mu.Lock()
	if s.session == sess {
		s.session = nil
		s.setState(StateIdle)
	}
	s.mu.Unlock()
	sess.retireWhenIdle()
}

// noteUse records the time of the last use of the server.
func (s *serverConn) noteUse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.called = time.Now()
}

// awaitRest starts a timer that calls restIfIdle after the given time, or restarts that timer. It does nothing if the
// session never ends for being idle. The caller must hold mu.
func (s *serverConn) awaitRest(after time.Duration) {
	switch {
	case s.idle == 0:
	case s.rest == nil:
		s.rest = time.AfterFunc(after, s.restIfIdle)
	default:
		s.rest.Reset(after)
	}
}

// restIfIdle ends the session if it has been idle (without a call) for the configured time. The next use of the
// server establishes a new session.
func (s *serverConn) restIfIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.session == nil {
		return
	}
	if left := s.idle - time.Since(s.called); left > 0 || s.session.isBusy() || len(s.watched.allURIs()) > 0 {
		s.awaitRest(max(left, s.idle/10))
		return
	}
	sess := s.session
	s.session = nil
	s.setState(StateIdle)
	s.log.Info("stopped, because it was idle")
	sess.retireWhenIdle()
}

// noteFailure counts a failure, unless a login would fix it. The caller must hold mu.
func (s *serverConn) noteFailure(err *core.Error) {
	known := false
	if errors.Is(err, core.ErrLogin) {
		known = s.lastErr != nil && s.lastErr.Message == err.Message
	} else {
		s.breaker.NoteFailure(time.Now(), randomJitter())
	}
	s.lastErr = err.AtTool(s.spec.Name, "")
	s.setState(StateFailing)
	if s.breaker.IsTripped() {
		s.setState(StateOpen)
	}
	if known {
		return // it was said
	}
	s.log.Warn("failed", "failures", s.breaker.Failures, "error", err.Message)
}

func (s *serverConn) setState(state ServerState) { s.state, s.since = state, time.Now() }

// close ends the session. It returns when the server's process and connections are gone.
func (s *serverConn) close() {
	s.mu.Lock()
	s.closed = true
	if s.rest != nil {
		s.rest.Stop()
	}
	s.setState(StateClosed)
	if s.session != nil {
		s.session.link.failAll(errClosed())
	}
	s.mu.Unlock()
	s.wg.Wait()
	s.changes.close()
}

// sleepContext waits for the duration d. It returns false if ctx ends first.
func sleepContext(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// debouncer calls the function f once after several triggers in a row. It waits until no trigger has come for the
// time delay.
type debouncer struct {
	delay time.Duration
	f     func()

	mu     sync.Mutex
	timer  *time.Timer
	closed bool
	wg     sync.WaitGroup
}

func newDebounce(delay time.Duration, f func()) *debouncer { return &debouncer{delay: delay, f: f} }

func (d *debouncer) restartTimer() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	if d.timer == nil {
		d.timer = time.AfterFunc(d.delay, d.runCallback)
	} else {
		d.timer.Reset(d.delay)
	}
}

func (d *debouncer) runCallback() {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return
	}
	d.wg.Add(1)
	d.mu.Unlock()
	defer d.wg.Done()
	d.f()
}

// close cancels a pending call and waits for one in progress.
func (d *debouncer) close() {
	d.mu.Lock()
	d.closed = true
	if d.timer != nil {
		d.timer.Stop()
	}
	d.mu.Unlock()
	d.wg.Wait()
}
