package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"retort/internal/core"
)

// SpoolOptions configures the folder for messages that are too large for memory.
type SpoolOptions struct {
	Dir   string // folder; its old content is removed, and its new files have no names where the system allows that
	Above int64  // size in bytes from which on a message is stored there; default 16 MiB
	Bytes int64  // maximum size of all messages in the folder together, and of a single one
}

const (
	defaultAbove  = 16 << 20
	mostSkeletons = 2 << 20 // maximum size of the outline of a message, in bytes
)

// spoolDir is the folder for messages that are too large for memory, shared by all servers. A nil spoolDir stores
// nothing.
type spoolDir struct {
	SpoolOptions
	room *spoolRoom
}

// newSpool returns the folder for messages that are too large for memory, or nil if the settings name none. It
// removes files that an earlier engine left there. Files of other running engines are not affected: on Unix they have
// no name any more, and Windows does not remove open files.
func newSpool(o SpoolOptions) *spoolDir {
	if o.Dir == "" || o.Bytes <= 0 {
		return nil
	}
	left, _ := filepath.Glob(filepath.Join(o.Dir, "*.message"))
	for _, path := range left {
		_ = os.Remove(path)
	}
	if o.Above <= 0 {
		o.Above = defaultAbove
	}
	return &spoolDir{SpoolOptions: o, room: newSpoolRoom(o.Bytes, o.Above)}
}

// fitsSpool reports whether a message of n bytes belongs into the spool (the folder for large messages), because it
// is too large for memory.
func (s *spoolDir) fitsSpool(n int64) bool { return s != nil && n > s.Above }

// spooledMessage represents a message that was stored on disk because it is too large for memory. Functions that read
// messages return it as an error.
type spooledMessage struct {
	envelopeReader
	spool          *spoolDir
	held           *spoolHold // disk space of the message
	file           *os.File
	size           int64
	closed         sync.Once
	outlineGivenUp bool     // the outline became too large, so ids continues without it
	ids            idFinder // finds the id of the message once the outline is given up

	broken  error // reason why the rest of the message did not arrive; nil if the message is complete
	full    error // reason why the message is not stored; nil if it is
	skipped int64 // number of bytes that were read but not stored
}

func (m *spooledMessage) Error() string { return fmt.Sprintf("a message of %d bytes", m.size) }

// createFile creates the file for a message.
func (s *spoolDir) createFile() (*os.File, error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(s.Dir, "*.message")
	if err == nil {
		_ = os.Remove(f.Name()) // what has no name is gone with the process
	}
	return f, err
}

var (
	errSpoolFull = errors.New("the storage for large answers is full")
	errEndless   = errors.New("it does not end")
	errBrokenOff = errors.New("broken off")
)

// Write adds bytes to the message. Their space on disk must be reserved.
func (m *spooledMessage) Write(p []byte) (int, error) {
	m.size += int64(len(p))
	if rest := m.envelopeReader.writeBytes(p); errors.Is(m.err, errBulky) {
		if !m.outlineGivenUp {
			m.outlineGivenUp = true
			m.ids.scanBytes(m.skeleton)
		}
		m.ids.scanBytes(rest)
	}
	return m.file.Write(p)
}

// writePiece writes a piece of the message to the file. It waits for the piece's turn in the account a, and while the
// folder is full, for room. If the message cannot be stored, the piece is only counted.
func (m *spooledMessage) writePiece(ctx context.Context, a memoryAccount, p []byte) {
	if m.full == nil && !m.held.growTo(ctx, m.size+int64(len(p))) {
		m.full = errSpoolFull
		_ = m.Close()
	}
	if m.full != nil {
		m.skipped += int64(len(p))
		return
	}
	defer a.waitForTurn(ctx)()
	if _, err := m.Write(p); err != nil {
		m.full = err
		_ = m.Close()
	}
}

// breakOff records that the rest of the message will not arrive.
func (m *spooledMessage) breakOff(cause error) {
	m.broken = cause
	_ = m.Close()
}

// Close frees the message's space on disk.
func (m *spooledMessage) Close() (err error) {
	m.closed.Do(func() {
		m.held.Free()
		if m.file == nil {
			return
		}
		name := m.file.Name()
		err = m.file.Close()
		_ = os.Remove(name) // gone already, but on systems where what is open stays
	})
	return err
}

// readMessage reads a message that begins with head into a file. next returns the following bytes, and io.EOF at the
// end; any other error means that the rest will not arrive. A message that cannot be stored is read and discarded, up
// to limit times skipFactor bytes.
//
// While the folder is full, readMessage waits for room; see spoolRoom.takeFirst and spoolHold.growTo.
func (s *spoolDir) readMessage(
	ctx context.Context, a memoryAccount, head []byte, next func() ([]byte, error), limit int64,
) *spooledMessage {
	m := &spooledMessage{
		envelopeReader: envelopeReader{limit: int(min(s.Above, mostSkeletons)), keep: int(min(keptInline, s.Above/2))},
		spool:          s,
	}
	if m.held, m.full = s.room.takeFirst(ctx, a.server, s.Above); m.full == nil {
		m.file, m.full = s.createFile()
	}
	part, err := head, error(nil)
	for ; err == nil; part, err = next() {
		m.writePiece(ctx, a, part)
		if m.skipped > max(skipFactor*limit, leastSkip) {
			m.breakOff(errEndless)
			return m
		}
	}
	if !errors.Is(err, io.EOF) {
		m.breakOff(err)
	}
	if m.broken == nil && m.full == nil {
		m.held.finish(m.size)
	}
	return m
}

// asResponse returns the message as the answer to a call. ok is false if the message is not a complete answer.
func (m *spooledMessage) asResponse() (*jsonrpc.Response, bool) {
	if m.checkEnd() != nil {
		return nil, false
	}
	msg, ok := decodeMessage(m.skeleton)
	resp, is := msg.(*jsonrpc.Response)
	return resp, ok && is
}

// messageID returns the id of the message, if it was read so far.
func (m *spooledMessage) messageID() jsonrpc.ID {
	if m.outlineGivenUp {
		return m.ids.foundID()
	}
	var id idFinder
	id.scanBytes(m.skeleton)
	return id.foundID()
}

// loadMessage loads the whole message into memory.
func (m *spooledMessage) loadMessage() ([]byte, error) {
	data := make([]byte, m.size)
	_, err := m.file.ReadAt(data, 0)
	return data, err
}

// asAnswer returns the message in the form that callers of the pool get.
func (m *spooledMessage) asAnswer(resp *jsonrpc.Response) *core.SpooledAnswer {
	return &core.SpooledAnswer{Result: resp.Result, Parts: m.parts, Bytes: m.size, ReaderAt: m.file, Closer: m}
}

// sizeError returns the error for a message that is too large to be handled.
func (m *spooledMessage) sizeError(limit int64) *core.Error {
	switch {
	case errors.Is(m.full, errSpoolFull) && m.size+m.skipped > m.spool.Bytes:
		return errTooLong(m.spool.Bytes)
	case errors.Is(m.full, errSpoolFull):
		return core.Errorf(
			core.KindLimit, opReceive,
			"the server's answer cannot be stored on disk: other large answers use up the shared limit of %s",
			bytesText(m.spool.Bytes),
		).
			WithHint("call again when other calls have finished, request less data, or raise resourceLimits.disk in the settings")
	case m.full != nil:
		return core.Errorf(core.KindLimit, opReceive, "the server's answer is too large for memory and could not be stored on disk: %w", m.full).
			WithHint("free some disk space, or request less data, with a filter, a page size or a range")
	case m.checkEnd() != nil:
		return core.Errorf(core.KindToolError, opReceive, "the server's answer of %d bytes cannot be read: %w", m.size, m.checkEnd()).
			WithHint("request less data, with a filter, a page size or a range")
	}
	return errTooLong(limit)
}

// brokenOff returns the error of a call whose answer is incomplete.
func (m *spooledMessage) brokenOff(cause *core.Error) *core.Error {
	e := *cause
	e.Message = fmt.Sprintf("the answer broke off after %d bytes: %s", m.size, cause.Message)
	e.Err = errors.Join(cause.Err, errBrokenOff)
	return &e
}

// handleSpooled handles a message that was stored on disk because of its size. If the message answers no call and is
// small enough for memory, handleSpooled loads it and returns its content as again. Then the caller must handle this
// content like any other message, and afterwards release held, the memory that was reserved for it.
func (l *serverLink) handleSpooled(m *spooledMessage, limit int64) (again []byte, held core.HeldMemory) {
	id := m.messageID()
	switch {
	case m.full != nil:
		l.failLost(id, m.sizeError(limit))
		return nil, nil
	case l.settleSpooled(id, m) || l.parkAnswer(id, m, limit):
		return nil, nil
	}
	defer m.Close()
	if m.isReadable() || !id.IsValid() {
		if again, held := l.rereadMessage(l.ctx, m, limit); again != nil {
			return again, held
		}
	}
	l.failLost(id, m.sizeError(limit))
	return nil, nil
}

// isReadable reports whether the message may be loaded into memory as a whole. That is the case if the message is
// complete and valid, and also if its outline is so large that this could not be checked (errBulky).
func (m *spooledMessage) isReadable() bool {
	wrong := m.checkEnd()
	return wrong == nil || errors.Is(wrong, errBulky)
}

// rereadMessage loads a message that answers no call into memory, if it is small enough.
func (l *serverLink) rereadMessage(ctx context.Context, m *spooledMessage, limit int64) ([]byte, core.HeldMemory) {
	if m.size > limit {
		return nil, nil
	}
	held, err := l.account.reserveForLoad(ctx, m.size)
	if err != nil {
		return nil, nil
	}
	data, err := m.loadMessage()
	if err != nil {
		releaseHeld(held)
		return nil, nil
	}
	return data, held
}

func releaseHeld(held core.HeldMemory) {
	if held != nil {
		held.Free()
	}
}

// settleSpooled completes a call with an answer that stays on disk, if the caller accepts such answers. It reports
// whether it has completed the call.
func (l *serverLink) settleSpooled(id jsonrpc.ID, m *spooledMessage) bool {
	resp, ok := m.asResponse()
	if !ok || !m.spool.fitsSpool(m.size) || resp.Error != nil || len(m.parts) == 0 {
		return false
	}
	return l.settleFrom(id, func(x *pendingCall) bool {
		if !x.spools {
			return false
		}
		x.result, x.spooled, x.unadmittedMemory = resp.Result, m.asAnswer(resp), l.account.holdAnswer(resp)
		return true
	})
}

// parkAnswer completes a call with a message that stays on disk until there is memory for it. It reports whether it
// has completed the call.
func (l *serverLink) parkAnswer(id jsonrpc.ID, m *spooledMessage, limit int64) bool {
	if m.size > limit || !m.isReadable() {
		return false
	}
	return l.settleFrom(id, func(x *pendingCall) bool {
		m.envelopeReader, m.ids = envelopeReader{}, idFinder{} // what it read is read again
		x.parked = m
		return true
	})
}

// settleFrom passes the pending call with this id to the function answer, which stores the answer in the call. If
// answer returns false, the call stays pending, otherwise settleFrom completes it. Calls of the SDK are ignored.
func (l *serverLink) settleFrom(id jsonrpc.ID, answer func(*pendingCall) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	x, ok := l.pending[id]
	if !ok || x.answered == nil || !answer(x) {
		return false
	}
	delete(l.pending, id)
	l.answered = true
	close(x.answered)
	return true
}
