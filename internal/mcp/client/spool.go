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

	"retort/internal/base/memory"
	"retort/internal/core"
)

// Spool describes where messages go that are too large for memory.
type Spool struct {
	Dir   string // its files have no name where the system lets them go without; what is in it is removed
	Above int64  // bytes of a message from which on it goes there; default 16 MiB
	Bytes int64  // of all messages there at once, and of one
}

const (
	defaultAbove  = 16 << 20
	mostSkeletons = 2 << 20 // bytes of the skeleton of a message
)

// spool represents the place, shared by all servers. A nil spool takes nothing.
type spool struct {
	Spool
	room *memory.Pool // of Bytes

	mu    sync.Mutex
	whole int           // messages that are there to their end and not closed yet
	freed chan struct{} // closed, and another one made, whenever a message gives place back
}

// newSpool empties the folder. What another engine has in it has no name, or cannot be
// removed while it is open.
func newSpool(o Spool) *spool {
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
	return &spool{Spool: o, room: memory.NewPool(o.Bytes, max(o.Bytes/4, o.Above)), freed: make(chan struct{})}
}

// changed notes that a message has given place back, and how many more are there to their end.
func (s *spool) changed(more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whole += more
	close(s.freed)
	s.freed = make(chan struct{})
}

// awaited returns a channel that is closed when a complete message frees its space, or nil if no message is complete.
// Messages that are still being read may all wait for room, so callers do not wait for them.
func (s *spool) awaited() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.whole == 0 {
		return nil
	}
	return s.freed
}

// takes reports whether a message of n bytes goes to the spool.
func (s *spool) takes(n int64) bool { return s != nil && n > s.Above }

// spooled represents the error of a message that is not in memory: it has been read, and is here.
type spooled struct {
	envelope
	spool  *spool
	held   *memory.Hold // of the spool; reserved bytes
	kept   int64        // reserved so far
	file   *os.File
	size   int64
	closed sync.Once
	whole  bool     // counted as whole
	bulky  bool     // ids has taken over from the envelope
	ids    idFinder // finds the id where the envelope has given up

	broken  error // why there is nothing more of the message, which is not whole
	full    error // why it is not kept
	skipped int64 // bytes that were not
}

func (m *spooled) Error() string { return fmt.Sprintf("a message of %d bytes", m.size) }

// open makes the file of a message.
func (s *spool) open() (*os.File, error) {
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
	errSpoolFull = errors.New("the place for large answers is full")
	errEndless   = errors.New("it does not end")
	errBrokenOff = errors.New("broken off")
)

// Write takes more of the message.
func (m *spooled) Write(p []byte) (int, error) {
	if !m.extend(int64(len(p))) {
		return 0, errSpoolFull
	}
	m.size += int64(len(p))
	if rest := m.envelope.write(p); errors.Is(m.err, errBulky) {
		if !m.bulky {
			m.bulky = true
			m.ids.write(m.skeleton)
		}
		m.ids.write(rest)
	}
	return m.file.Write(p)
}

// extend reports whether there is room for n more bytes, and reserves it.
func (m *spooled) extend(n int64) bool {
	more := m.size + n - m.kept
	if more <= 0 {
		return true
	}
	if !m.held.Extend(more) {
		return false
	}
	m.kept += more
	return true
}

// await waits until there is room for n more bytes of a message that can fit at all, as long as other messages
// are about to give room back, and ctx lasts.
func (m *spooled) await(ctx context.Context, n int64) {
	for m.full == nil && m.size+n <= m.spool.Bytes {
		freed := m.spool.awaited()
		if m.extend(n) || freed == nil {
			return
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return
		}
	}
}

// lay puts a piece into the file, or throws it away where that is not to be had.
func (m *spooled) lay(p []byte) {
	if m.full != nil {
		m.skipped += int64(len(p))
		return
	}
	if _, err := m.Write(p); err != nil {
		m.full = err
		if errors.Is(err, errSpoolFull) {
			m.skipped += int64(len(p))
		}
		_ = m.Close()
	}
}

// breakOff records that the rest of the message does not come.
func (m *spooled) breakOff(cause error) {
	m.broken = cause
	_ = m.Close()
}

// Close gives the place back.
func (m *spooled) Close() (err error) {
	m.closed.Do(func() {
		m.held.Free()
		if m.whole {
			m.spool.changed(-1)
		} else {
			m.spool.changed(0)
		}
		if m.file == nil {
			return
		}
		name := m.file.Name()
		err = m.file.Close()
		_ = os.Remove(name) // gone already, but on systems where what is open stays
	})
	return err
}

// take reads a message that began with head. next yields the rest, up to io.EOF; another
// error says that the rest will not come. What can't be kept is read and thrown away, limit
// times skipFactor at most.
//
// While the spool is full of other messages, take waits until there is room for one that would fit
// into memory, or until ctx ends. For more it waits as long as there are messages whose place will be free. Of what is not read yet it holds nothing then that others wait for.
func (s *spool) take(ctx context.Context, a account, head []byte, next func() ([]byte, error), limit int64) *spooled {
	m := &spooled{envelope: envelope{limit: int(min(s.Above, mostSkeletons)), keep: int(min(keptInline, s.Above/2))}, spool: s}
	if m.held, m.full = s.room.Take(ctx, a.server, s.Above); m.full == nil {
		m.kept = min(s.Above, s.Bytes)
		m.file, m.full = s.open()
	}
	part, err := head, error(nil)
	for ; err == nil; part, err = next() {
		m.await(ctx, int64(len(part)))
		done := a.turn(ctx)
		m.lay(part)
		done()
		if m.skipped > max(skipFactor*limit, leastSkip) {
			m.breakOff(errEndless)
			return m
		}
	}
	if !errors.Is(err, io.EOF) {
		m.breakOff(err)
	}
	m.held.Shrink(m.size)
	if m.whole = m.broken == nil && m.full == nil; m.whole {
		s.changed(1)
	}
	return m
}

// response returns the message as the answer to a call. It returns false if it is not a complete answer.
func (m *spooled) response() (*jsonrpc.Response, bool) {
	if m.end() != nil {
		return nil, false
	}
	msg, ok := decodeMessage(m.skeleton)
	resp, is := msg.(*jsonrpc.Response)
	return resp, ok && is
}

// id returns that of the message as far as it was seen.
func (m *spooled) id() jsonrpc.ID {
	if m.bulky {
		return m.ids.id()
	}
	var id idFinder
	id.write(m.skeleton)
	return id.id()
}

// load returns the message in memory.
func (m *spooled) load() ([]byte, error) {
	data := make([]byte, m.size)
	_, err := m.file.ReadAt(data, 0)
	return data, err
}

// answer returns the message in the form that callers get.
func (m *spooled) answer(resp *jsonrpc.Response) *core.Spooled {
	return &core.Spooled{Result: resp.Result, Parts: m.parts, Bytes: m.size, ReaderAt: m.file, Closer: m}
}

// why returns the error for a message that answers no call.
func (m *spooled) why(limit int64) *core.Error {
	switch {
	case errors.Is(m.full, errSpoolFull) && m.size+m.skipped > m.spool.Bytes:
		return errTooLong(m.spool.Bytes)
	case errors.Is(m.full, errSpoolFull):
		return core.Errorf(core.KindLimit, opReceive, "there is no room on disk for the server's answer: other large answers have used up the shared limit of %s", bytesText(m.spool.Bytes)).
			WithHint("call again when other calls have finished, ask for less, or raise resourceLimits.disk in the settings")
	case m.full != nil:
		return core.Errorf(core.KindLimit, opReceive, "the server's answer is too large for memory and could not be kept on disk: %w", m.full).
			WithHint("free some disk space, or ask for less: a filter, a page size, a range")
	case m.end() != nil:
		return core.Errorf(core.KindToolError, opReceive, "the server's answer of %d bytes can't be read: %w", m.size, m.end()).
			WithHint("ask for less: a filter, a page size, a range")
	}
	return errTooLong(limit)
}

// brokenOff returns the error of a call whose answer was cut off.
func (m *spooled) brokenOff(cause *core.Error) *core.Error {
	e := *cause
	e.Message = fmt.Sprintf("the answer broke off after %d bytes: %s", m.size, cause.Message)
	e.Err = errors.Join(cause.Err, errBrokenOff)
	return &e
}

// spooled handles a message that is on disk. again is the message in memory if it answers no call and is small enough
// to be handled like any other; held is released afterwards.
func (l *link) spooled(m *spooled, limit int64) (again []byte, held core.Held) {
	id := m.id()
	switch {
	case m.full != nil:
		l.lose(id, m.why(limit))
		return nil, nil
	case l.settleSpooled(id, m) || l.park(id, m, limit):
		return nil, nil
	}
	defer m.Close()
	if m.readable() || !id.IsValid() {
		if again, held := l.again(l.ctx, m, limit); again != nil {
			return again, held
		}
	}
	l.lose(id, m.why(limit))
	return nil, nil
}

// readable reports whether a message may be one that is read as a whole.
func (m *spooled) readable() bool {
	wrong := m.end()
	return wrong == nil || errors.Is(wrong, errBulky)
}

// again reads a message that answers no call into memory, if it is small enough.
func (l *link) again(ctx context.Context, m *spooled, limit int64) ([]byte, core.Held) {
	if m.size > limit {
		return nil, nil
	}
	held, err := l.account.load(ctx, m.size)
	if err != nil {
		return nil, nil
	}
	data, err := m.load()
	if err != nil {
		free(held)
		return nil, nil
	}
	return data, held
}

func free(held core.Held) {
	if held != nil {
		held.Free()
	}
}

// settleSpooled answers a call that takes answers which are not in memory.
func (l *link) settleSpooled(id jsonrpc.ID, m *spooled) bool {
	resp, ok := m.response()
	if !ok || !m.spool.takes(m.size) || resp.Error != nil || len(m.parts) == 0 {
		return false
	}
	return l.settleFrom(id, func(x *exchange) bool {
		if !x.spools {
			return false
		}
		x.result, x.spooled, x.fresh = resp.Result, m.answer(resp), l.account.delivered(resp)
		return true
	})
}

// park answers a call with a message that stays on disk until there is memory for it.
func (l *link) park(id jsonrpc.ID, m *spooled, limit int64) bool {
	if m.size > limit || !m.readable() {
		return false
	}
	return l.settleFrom(id, func(x *exchange) bool {
		m.envelope, m.ids = envelope{}, idFinder{} // what it read is read again
		x.parked = m
		return true
	})
}

// settleFrom answers a call that is not the SDK's, if answer does.
func (l *link) settleFrom(id jsonrpc.ID, answer func(*exchange) bool) bool {
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
