package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"retort/internal/core"
)

// stdioWire represents a wire over two byte streams, with one JSON text per line.
type stdioWire struct {
	in    io.Reader
	out   io.WriteCloser
	limit int64
	spool *spoolDir
	// account counts the memory of the server's messages.
	account memoryAccount
	ended   func(err error) *core.Error // called once when nothing more can arrive; returns the reason
	finish  func()                      // ends the process or connection to which the streams belong

	link  *serverLink
	queue chan outgoingMessage
	wg    sync.WaitGroup
}

func (s *stdioWire) start(l *serverLink) {
	s.link, s.queue = l, make(chan outgoingMessage)
	s.wg.Go(s.readMessages)
	s.wg.Go(s.writeMessages)
}

// sendMessage passes m to the writing goroutine. If ctx ends before that, nothing of m is sent. If the server does
// not read its input, sendMessage blocks.
func (s *stdioWire) sendMessage(ctx context.Context, m outgoingMessage) error {
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

// writeMessages writes messages until the link is down. It does not report write errors, because the reading side
// reports the end of the server with a better reason.
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

// deliverSpooled handles a line that is on disk. It reports whether more lines can arrive.
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

// deliverLine delivers the messages of one line. It skips other text, because many servers, and the tools that start
// them, print to standard output. Such text may also precede a message in the same line.
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

// errTooLong returns the error of the call whose answer exceeded the size limit.
func errTooLong(limit int64) *core.Error {
	return core.Errorf(core.KindLimit, opReceive, "the server sent a message that exceeds the limit of %s", bytesText(limit)).
		WithHint("request less data, with a filter, a page size or a range")
}
