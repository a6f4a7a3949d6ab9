package guest

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"retort/internal/wire"
)

// port is a connection over one file, which whoever waits for a frame reads itself: to
// have another goroutine read costs changes of threads, and those cost an emulated
// processor more than all else in a call.
//
// What the other side says must be read while it does not listen, or both wait for each
// other: so whoever cannot write reads.
type port struct {
	conn *wire.Conn
	fd   int

	mu      sync.Mutex // guards reading
	stash   []wire.Frame
	started bool // the program has come
	gone    bool
}

// maxStash is how many frames are read by who cannot write.
const maxStash = 256

// openPort gives the connection and the inbox of a guest whose input and output are one
// file, or ok is false.
func openPort(in io.Reader, out io.Writer) (p *port, ok bool) {
	from, ok1 := in.(*os.File)
	to, ok2 := out.(*os.File)
	if !ok1 || !ok2 {
		return nil, false
	}
	fd, other := int(from.Fd()), int(to.Fd())
	var a, b unix.Stat_t
	if unix.Fstat(fd, &a) != nil || unix.Fstat(other, &b) != nil || a.Rdev != b.Rdev || a.Ino != b.Ino || a.Dev != b.Dev || a.Mode&unix.S_IFMT != unix.S_IFCHR {
		return nil, false
	}
	if unix.SetNonblock(fd, true) != nil || unix.SetNonblock(other, true) != nil {
		return nil, false
	}
	return newPort(fd), true
}

// newPort takes a file that is not waited for by reading and writing it.
func newPort(fd int) *port {
	p := &port{fd: fd}
	p.conn = wire.NewConn(p)
	return p
}

// Read implements io.Reader. It waits.
func (p *port) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(p.fd, b)
		switch {
		case err == nil && n == 0 && len(b) > 0:
			return 0, io.EOF
		case err == nil:
			return n, nil
		case err == unix.EAGAIN:
			err = p.poll(unix.POLLIN, time.Time{})
		}
		if err != nil && err != unix.EINTR {
			return 0, err
		}
	}
}

// Write implements io.Writer.
func (p *port) Write(b []byte) (written int, err error) {
	for written < len(b) {
		n, err := unix.Write(p.fd, b[written:])
		switch {
		case err == nil:
			written += n
		case err == unix.EAGAIN:
			if err := p.relieve(); err != nil {
				return written, err
			}
		case err != unix.EINTR:
			return written, err
		}
	}
	return written, nil
}

// Close does nothing: the process ends instead.
func (*port) Close() error { return nil }

var errLate = errors.New("late")

// poll waits for one of events, until deadline unless that is zero.
func (p *port) poll(events int16, deadline time.Time) error {
	fds := []unix.PollFd{{Fd: int32(p.fd), Events: events}}
	for {
		var most *unix.Timespec
		if !deadline.IsZero() {
			left := unix.NsecToTimespec(int64(max(0, time.Until(deadline))))
			most = &left
		}
		n, err := unix.Ppoll(fds, most, nil)
		switch {
		case err == nil && n == 0:
			return errLate
		case err != unix.EINTR:
			return err
		}
	}
}

// relieve waits until something can be written, and meanwhile reads.
func (p *port) relieve() error {
	events := int16(unix.POLLOUT)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.stash) < maxStash && !p.gone {
		events |= unix.POLLIN
	}
	if err := p.poll(events, time.Time{}); err != nil || events&unix.POLLIN == 0 {
		return err
	}
	if err := p.poll(unix.POLLIN, time.Now()); err == nil {
		p.fill()
	} else if err != errLate {
		return err
	}
	return nil
}

// fill reads a frame into the stash. p.mu is held.
func (p *port) fill() {
	f, err := p.conn.Read()
	if err != nil || (f.Kind == wire.KindStart) == p.started {
		p.gone = true
		return
	}
	p.started = true
	p.stash = append(p.stash, f)
}

func (p *port) some() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.stash) > 0 || p.conn.Buffered() || p.poll(unix.POLLIN, time.Now()) == nil
}

func (p *port) take() (f wire.Frame, ok, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.stash) == 0 && !p.gone && p.conn.Buffered() {
		p.fill()
	}
	return p.first()
}

func (p *port) wait(deadline time.Time) (f wire.Frame, ok, open bool) {
	p.conn.Settle() // while somebody else writes, they read as well
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.stash) == 0 && !p.gone {
		switch err := p.await(deadline); {
		case err == nil:
			p.fill()
		case err != errLate:
			p.gone = true
		}
	}
	return p.first()
}

// await returns when a frame has begun to arrive.
func (p *port) await(deadline time.Time) error {
	if p.conn.Buffered() {
		return nil
	}
	return p.poll(unix.POLLIN, deadline)
}

// first takes a frame out of the stash. p.mu is held.
func (p *port) first() (f wire.Frame, ok, open bool) {
	if len(p.stash) == 0 {
		return f, false, !p.gone
	}
	f = p.stash[0]
	p.stash = p.stash[1:]
	return f, true, true
}
