package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"retort/internal/core"
)

// stream represents the wire over a pair of byte streams: one JSON text per line.
type stream struct {
	in    io.Reader
	out   io.WriteCloser
	limit int64
	spool *spool
	// account is that of the server.
	account account
	ended   func(err error) *core.Error // why nothing more can arrive; called once
	finish  func()                      // ends what is behind the streams

	link  *link
	queue chan outgoing
	wg    sync.WaitGroup
}

func (s *stream) start(l *link) {
	s.link, s.queue = l, make(chan outgoing)
	s.wg.Go(s.receive)
	s.wg.Go(s.transmit)
}

// send hands m to the goroutine that writes: whole, or not at all if ctx ends
// before. A server that does not read its input makes senders wait.
func (s *stream) send(ctx context.Context, m outgoing) error {
	select {
	case s.queue <- m:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.link.ctx.Done():
		return s.link.cause
	}
}

func (s *stream) close() {
	s.link.fail(core.Errorf(core.KindUpstreamGone, "upstream", "the connection was closed"))
	_ = s.out.Close()
	s.finish()
	s.wg.Wait()
}

// transmit writes messages until the link is down. A failure to write is not
// reported here: the reader learns, with a better reason, that the server is
// gone.
func (s *stream) transmit() {
	for {
		select {
		case m := <-s.queue:
			if m.call != nil {
				m.call.sent.Store(true)
			}
			n, err := s.out.Write(append(m.data, '\n'))
			if err != nil && n == 0 && m.call != nil {
				m.call.sent.Store(false)
			}
			if err != nil {
				s.link.fail(s.ended(err))
				return
			}
		case <-s.link.ctx.Done():
			return
		}
	}
}

func (s *stream) receive() {
	lines := newFrames(s.link.ctx, counted{s.in, &s.link.received}, s.limit, s.account, s.spool)
	defer lines.free()
	for {
		line, err := lines.next()
		var long *tooLong
		var large *spooled
		switch {
		case err == nil:
			s.take(line)
		case errors.As(err, &large):
			if !s.spooled(large) {
				return
			}
		case errors.As(err, &long) && long.endless:
			s.link.fail(errTooLong(long.limit))
			return
		case errors.As(err, &long):
			s.link.lose(long.id, errTooLong(long.limit))
		default:
			s.link.fail(s.ended(err))
			return
		}
	}
}

// spooled handles a line that is on disk. It reports whether more lines can come.
func (s *stream) spooled(m *spooled) bool {
	switch {
	case errors.Is(m.broken, errEndless):
		s.link.fail(m.why(s.limit))
		return false
	case m.broken != nil:
		cause := s.ended(m.broken)
		s.link.lose(m.id(), m.brokenOff(cause))
		s.link.fail(cause)
		return false
	}
	if line, held := s.link.spooled(m, s.limit); line != nil {
		s.take(line)
		free(held)
	}
	return true
}

// take delivers the messages of one line. It skips other text: many servers, and the tools that start them, print to
// standard output. A line may begin with such text and go on with a message.
func (s *stream) take(line []byte) {
	msgs, ok := decode(line)
	if !ok {
		if _, batch := s.link.refuseBatch(line); batch {
			return
		}
	}
	if at := bytes.Index(line, []byte(`{"jsonrpc"`)); !ok && at > 0 {
		s.link.rubbish.line(line[:at])
		line = line[at:]
		msgs, ok = decode(line)
	}
	if !ok {
		s.link.refuse(line)
		return
	}
	for _, msg := range msgs {
		s.link.deliver(msg)
	}
}

// errTooLong returns the error of the call whose answer was over the limit.
func errTooLong(limit int64) *core.Error {
	return core.Errorf(core.KindLimit, opReceive, "the server sent a message over the limit of %s", bytesText(limit)).
		WithHint("ask for less: a filter, a page size, a range")
}
