package guest

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"retort/internal/sandbox/wire"
	"retort/internal/sandbox/wire/shm"
)

// port is a connection that is read by the goroutine that waits for a frame. A separate reading goroutine would cost
// thread switches and system calls. On an emulated processor, or a kernel in user space, these cost more than
// everything else in a call.
//
// If the other side is blocked because its output is not read, both would wait for each other. Therefore a port that
// cannot write reads.
type port struct {
	conn    *wire.Conn
	in, out int
	ring    *shm.End // nil without shared memory
	blocks  bool     // a read blocks
	idle    func()   // called once when there is time, after a bell without data

	mu      sync.Mutex // guards reading
	stash   []wire.Frame
	quick   bool // the last wait was short
	quiet   bool // Go's scheduler is not told about reads
	started bool // the program has come
	gone    bool
}

// maxStash bounds the frames that are read while the port cannot write.
const maxStash = 256

// silent sets how long a port waits without telling Go's scheduler, which would otherwise look for other work at each
// call. There is none, because the guest has flushed its output. A longer wait is for something slow.
const silent = 2 * time.Millisecond

// openPort returns the connection and inbox of a guest. ok is false unless in and out are pipes, sockets or one
// device of a virtual machine.
func openPort(in io.Reader, out io.Writer) (p *port, ok bool) {
	from, ok1 := in.(*os.File)
	to, ok2 := out.(*os.File)
	if !ok1 || !ok2 {
		return nil, false
	}
	input, output := int(from.Fd()), int(to.Fd())
	var a, b unix.Stat_t
	if unix.Fstat(input, &a) != nil || unix.Fstat(output, &b) != nil || !isPipe(&a, &b) && !isDevice(&a, &b) {
		return nil, false
	}
	p = newPort(input, output)
	p.ring = shm.NewGuest(stream{p}, shm.Descriptor)
	p.blocks = a.Ino != b.Ino || a.Dev != b.Dev
	if unix.SetNonblock(input, !p.blocks) != nil || unix.SetNonblock(output, true) != nil {
		return nil, false
	}
	return p, true
}

func isPipe(files ...*unix.Stat_t) bool {
	for _, f := range files {
		if kind := f.Mode & unix.S_IFMT; kind != unix.S_IFIFO && kind != unix.S_IFSOCK {
			return false
		}
	}
	return true
}

func isDevice(a, b *unix.Stat_t) bool {
	return a.Mode&unix.S_IFMT == unix.S_IFCHR && a.Rdev == b.Rdev && a.Ino == b.Ino && a.Dev == b.Dev
}

// newPort returns a port for descriptors. Waiting for them is separate from reading and writing them.
func newPort(in, out int) *port {
	p := &port{in: in, out: out}
	p.conn = wire.NewConn(p)
	return p
}

// emulated adapts the port to a processor that is most likely emulated.
func (p *port) emulated() {
	if p.ring != nil {
		p.ring.Emulated()
	}
}

// hangUp returns when the other side has closed the connection. A busy program would not notice that.
func (p *port) hangUp() {
	for !p.hungUp(nil) {
	}
}

// hungUp waits until the other side is gone, but no longer than most, and reports whether it is gone.
// If most is nil, it waits without a bound. A signal may make it return false early. Unread data does
// not count as an end.
func (p *port) hungUp(most *unix.Timespec) bool {
	const ended = unix.POLLHUP | unix.POLLERR | unix.POLLNVAL | unix.POLLRDHUP
	fds := []unix.PollFd{{Fd: int32(p.in), Events: unix.POLLRDHUP}}
	_, err := unix.Ppoll(fds, most, nil)
	return err != nil && err != unix.EINTR || fds[0].Revents&ended != 0
}

// stream reads and writes the descriptors of a port.
type stream struct{ p *port }

func (s stream) Read(b []byte) (int, error)  { return s.p.receive(b) }
func (s stream) Write(b []byte) (int, error) { return s.p.send(b) }

// Read implements io.Reader. It blocks until there is input.
func (p *port) Read(b []byte) (int, error) {
	if p.ring != nil {
		return p.ring.Read(b)
	}
	return p.receive(b)
}

// Write implements io.Writer.
func (p *port) Write(b []byte) (int, error) {
	if p.ring != nil {
		return p.ring.Write(b)
	}
	return p.send(b)
}

func (p *port) receive(b []byte) (int, error) {
	for {
		n, err := p.read(b)
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

// read makes one read system call, or a poll and a read if Go's scheduler is not told about it: during a read of
// unknown length the scheduler would send this thread a signal every 10 ms and could collect no garbage.
func (p *port) read(b []byte) (int, error) {
	if !p.quiet || len(b) == 0 || p.blocks && !p.soon() {
		return unix.Read(p.in, b)
	}
	n, _, errno := syscall.RawSyscall(unix.SYS_READ, uintptr(p.in), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// soon waits briefly for input without telling Go's scheduler, and reports whether there is any.
func (p *port) soon() bool {
	n, err := silentPoll([]unix.PollFd{{Fd: int32(p.in), Events: unix.POLLIN}}, silent)
	return n > 0 && err == nil
}

func (p *port) send(b []byte) (written int, err error) {
	for written < len(b) {
		n, err := unix.Write(p.out, b[written:])
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

// Close does nothing, because the process exits instead.
func (*port) Close() error { return nil }

var errLate = errors.New("late")

// poll waits until there is input or, if events has both flags, until output is possible, too. It waits until
// deadline unless that is zero.
func (p *port) poll(events int16, deadline time.Time) error {
	var files []unix.PollFd
	if events&unix.POLLIN != 0 {
		files = append(files, unix.PollFd{Fd: int32(p.in), Events: unix.POLLIN})
	}
	if events&unix.POLLOUT != 0 {
		files = append(files, unix.PollFd{Fd: int32(p.out), Events: unix.POLLOUT})
	}
	for {
		n, err := ppoll(files, deadline)
		switch {
		case err == nil && n == 0:
			return errLate
		case err != unix.EINTR:
			return err
		}
	}
}

// ppoll makes the system call. At first it does so without telling Go's scheduler.
func ppoll(files []unix.PollFd, deadline time.Time) (int, error) {
	first, last := silent, false
	if !deadline.IsZero() {
		first = min(max(0, time.Until(deadline)), silent)
		last = first < silent
	}
	n, err := silentPoll(files, first)
	switch {
	case err != nil || n > 0 || last:
		return n, err
	case deadline.IsZero():
		return unix.Ppoll(files, nil, nil)
	}
	most := unix.NsecToTimespec(int64(max(0, time.Until(deadline))))
	return unix.Ppoll(files, &most, nil)
}

// silentPoll waits at most most without telling Go's scheduler.
func silentPoll(files []unix.PollFd, most time.Duration) (int, error) {
	until := unix.NsecToTimespec(int64(most))
	n, _, errno := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&files[0])), uintptr(len(files)), uintptr(unsafe.Pointer(&until)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// relieve waits until output is possible, and reads input in the meantime.
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
	if p.arrived() {
		p.fill()
	}
	return nil
}

// arrived reports, without waiting, whether a frame has begun to arrive or the input has ended.
func (p *port) arrived() bool {
	for p.ring != nil {
		if ok, err := p.ring.Ready(); ok || err != nil {
			return true
		}
		if p.poll(unix.POLLIN, time.Now()) != nil {
			return false
		}
		if p.ring.Listen() != nil {
			return true
		}
	}
	return p.poll(unix.POLLIN, time.Now()) == nil
}

// fill reads a frame into the stash. p.mu must be held.
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
	return len(p.stash) > 0 || p.conn.Buffered() || p.arrived()
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
	p.conn.Settle() // while another goroutine writes, it also reads
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.stash) == 0 && !p.gone {
		began := time.Now()
		switch err := p.await(deadline); {
		case err == nil:
			p.quiet = p.quick
			p.fill()
			p.quiet, p.quick = false, time.Since(began) < silent
		case err != errLate:
			p.gone = true
		}
	}
	return p.first()
}

// await returns when a frame has begun to arrive, or when a blocking read can wait for it.
func (p *port) await(deadline time.Time) error {
	switch {
	case p.conn.Buffered() || p.blocks && deadline.IsZero():
		return nil
	case p.ring != nil:
		return p.awaitRing(deadline)
	}
	return p.poll(unix.POLLIN, deadline)
}

// awaitRing works like await for a port with a ring.
func (p *port) awaitRing(deadline time.Time) error {
	for !p.arrived() {
		if p.ring.Await(deadline) || p.ring.Sleep() {
			continue
		}
		err := p.poll(unix.POLLIN, deadline)
		p.ring.Wake()
		if err != nil {
			return err
		}
		if idle := p.idle; idle != nil && !p.arrived() {
			p.idle = nil
			idle()
		}
	}
	return nil
}

// first takes a frame out of the stash. p.mu must be held.
func (p *port) first() (f wire.Frame, ok, open bool) {
	if len(p.stash) == 0 {
		return f, false, !p.gone
	}
	f = p.stash[0]
	p.stash = p.stash[1:]
	return f, true, true
}
