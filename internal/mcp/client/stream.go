package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"retort/internal/core"
)

// stdioWire represents the wire over a pair of byte streams: one JSON text per line.
type stdioWire struct {
	in    io.Reader
	out   io.WriteCloser
	limit int64
	spool *spoolDir
	// account is that of the server.
	account memoryAccount
	ended   func(err error) *core.Error // why nothing more can arrive; called once
	finish  func()                      // ends what is behind the streams

	link  *serverLink
	queue chan outgoingMessage
	wg    sync.WaitGroup
}

func (s *stdioWire) start(l *serverLink) {
	s.link, s.queue = l, make(chan outgoingMessage)
	s.wg.Go(s.readMessages)
	s.wg.Go(s.writeMessages)
}

// send hands m to the goroutine that writes: whole, or not at all if ctx ends
// before. A server that does not read its input makes senders wait.
func (s *stdioWire) send(ctx context.Context, m outgoingMessage) error {
	select {
	case s.queue <- m:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.link.ctx.Done():
		return s.link.cause
	}
}

func (s *stdioWire) close() {
	s.link.failAll(core.Errorf(core.KindUpstreamGone, "upstream", "the connection was closed"))
	_ = s.out.Close()
	s.finish()
	s.wg.Wait()
}

// writeMessages writes messages until the link is down. A failure to write is not
// reported here: the reader learns, with a better reason, that the server is
// gone.
func (s *stdioWire) writeMessages() {
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
				s.link.failAll(s.ended(err))
				return
			}
		case <-s.link.ctx.Done():
			return
		}
	}
}

func (s *stdioWire) readMessages() {
	lines := newFrames(s.link.ctx, countingReader{s.in, &s.link.received}, s.limit, s.account, s.spool)
	defer lines.releaseBytes()
	for {
		line, err := lines.nextLine()
		var long *tooLong
		var large *spooledMessage
		switch {
		case err == nil:
			s.deliverLine(line)
		case errors.As(err, &large):
			if !s.deliverSpooled(large) {
				return
			}
		case errors.As(err, &long) && long.endless:
			s.link.failAll(errTooLong(long.limit))
			return
		case errors.As(err, &long):
			s.link.failLost(long.id, errTooLong(long.limit))
		default:
			s.link.failAll(s.ended(err))
			return
		}
	}
}

// deliverSpooled handles a line that is on disk. It reports whether more lines can come.
func (s *stdioWire) deliverSpooled(m *spooledMessage) bool {
	switch {
	case errors.Is(m.broken, errEndless):
		s.link.failAll(m.sizeError(s.limit))
		return false
	case m.broken != nil:
		cause := s.ended(m.broken)
		s.link.failLost(m.messageID(), m.brokenOff(cause))
		s.link.failAll(cause)
		return false
	}
	if line, held := s.link.handleSpooled(m, s.limit); line != nil {
		s.deliverLine(line)
		releaseHeld(held)
	}
	return true
}

// deliverLine delivers the messages of one line. It skips other text: many servers, and the tools that start them, print to
// standard output. A line may begin with such text and go on with a message.
func (s *stdioWire) deliverLine(line []byte) {
	msgs, ok := decodeMessages(line)
	if !ok {
		if _, batch := s.link.refuseBatch(line); batch {
			return
		}
	}
	if at := bytes.Index(line, []byte(`{"jsonrpc"`)); !ok && at > 0 {
		s.link.rubbish.noteLine(line[:at])
		line = line[at:]
		msgs, ok = decodeMessages(line)
	}
	if !ok {
		s.link.refuseText(line)
		return
	}
	for _, msg := range msgs {
		s.link.deliverMessage(msg)
	}
}

// errTooLong returns the error of the call whose answer was over the limit.
func errTooLong(limit int64) *core.Error {
	return core.Errorf(core.KindLimit, opReceive, "the server sent a message over the limit of %s", bytesText(limit)).
		WithHint("ask for less: a filter, a page size, a range")
}
