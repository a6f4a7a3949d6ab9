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

// portConn represents a guest's connection to the host. The goroutine that waits for a frame reads the connection
// itself, because a separate reading goroutine would cost thread switches and system calls. On an emulated processor
// or a user-space kernel these cost more than the rest of a call. If guest and host both wrote without reading, they
// could block each other. Therefore a portConn reads while it cannot write.
type portConn struct {
	conn    *wire.FrameConn
	in, out int
	ring    *shm.RingEnd // nil if the port uses no shared memory
	blocks  bool         // a read without input blocks; set if in and out are different files
	idle    func()       // called once, after a bell (a wake-up without data), when no input is waiting

	mu      sync.Mutex // held while the input is read; guards the fields below
	stash   []wire.Frame
	quick   bool // the last wait was short
	quiet   bool // Go's scheduler is not informed about reads
	started bool // the program has arrived
	gone    bool
}

// maxStash bounds the number of frames that a port stores because they arrived while it could not write.
const maxStash = 256

// silentWait is how long a port blocks in a system call without informing Go's scheduler. If it were informed, the
// scheduler would look for other work at each call, but a waiting guest has none. Longer waits inform the scheduler.
const silentWait = 2 * time.Millisecond

// openPort returns a port for the connection of a guest. ok is false unless in and out are pipes, sockets or a single
// device of a virtual machine.
func openPort(in io.Reader, out io.Writer) (p *portConn, ok bool) {
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
	p.ring = shm.NewGuest(portStream{p}, shm.Descriptor)
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

// newPort returns a port that reads from the descriptor in and writes to the descriptor out.
func newPort(in, out int) *portConn {
	p := &portConn{in: in, out: out}
	p.conn = wire.NewConn(p)
	return p
}

// setEmulated makes the port poll its shared memory for longer, because each check takes longer on an emulated
// processor.
func (p *portConn) setEmulated() {
	if p.ring != nil {
		p.ring.SetEmulated()
	}
}

// hangUp waits until the host closes the connection. The guest uses it to exit even if a busy program reads no input.
func (p *portConn) hangUp() {
	for !p.hungUp(nil) {
	}
}

// hungUp waits until the host has closed the connection, and reports whether that is so. The argument most is the
// longest time to wait; nil means no limit. A signal may make hungUp return false early. A connection with unread
// data does not count as closed for that reason.
func (p *portConn) hungUp(most *unix.Timespec) bool {
	const ended = unix.POLLHUP | unix.POLLERR | unix.POLLNVAL | unix.POLLRDHUP
	fds := []unix.PollFd{{Fd: int32(p.in), Events: unix.POLLRDHUP}}
	_, err := unix.Ppoll(fds, most, nil)
	return err != nil && err != unix.EINTR || fds[0].Revents&ended != 0
}

// portStream reads and writes the descriptors of a port.
type portStream struct{ p *portConn }

func (s portStream) Read(b []byte) (int, error)  { return s.p.receiveBytes(b) }
func (s portStream) Write(b []byte) (int, error) { return s.p.sendBytes(b) }

// Read implements io.Reader. It blocks until there is input.
func (p *portConn) Read(b []byte) (int, error) {
	if p.ring != nil {
		return p.ring.Read(b)
	}
	return p.receiveBytes(b)
}

// Write implements io.Writer.
func (p *portConn) Write(b []byte) (int, error) {
	if p.ring != nil {
		return p.ring.Write(b)
	}
	return p.sendBytes(b)
}

func (p *portConn) receiveBytes(b []byte) (int, error) {
	for {
		n, err := p.readOnce(b)
		switch {
		case err == nil && n == 0 && len(b) > 0:
			return 0, io.EOF
		case err == nil:
			return n, nil
		case err == unix.EAGAIN:
			err = p.pollEvents(unix.POLLIN, time.Time{})
		}
		if err != nil && err != unix.EINTR {
			return 0, err
		}
	}
}

// readOnce makes one read system call. In quiet mode it does not inform Go's scheduler of the call. It then polls for
// a short time before it reads, so that the read does not take long: during a long read, the uninformed scheduler
// would send this thread a signal every 10 ms and could not collect garbage.
func (p *portConn) readOnce(b []byte) (int, error) {
	if !p.quiet || len(b) == 0 || p.blocks && !p.spinForInput() {
		return unix.Read(p.in, b)
	}
	n, _, errno := syscall.RawSyscall(unix.SYS_READ, uintptr(p.in), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// spinForInput waits briefly for input without informing Go's scheduler, and reports whether there is any.
func (p *portConn) spinForInput() bool {
	n, err := silentPoll([]unix.PollFd{{Fd: int32(p.in), Events: unix.POLLIN}}, silentWait)
	return n > 0 && err == nil
}

func (p *portConn) sendBytes(b []byte) (written int, err error) {
	for written < len(b) {
		n, err := unix.Write(p.out, b[written:])
		switch {
		case err == nil:
			written += n
		case err == unix.EAGAIN:
			if err := p.waitWritable(); err != nil {
				return written, err
			}
		case err != unix.EINTR:
			return written, err
		}
	}
	return written, nil
}

// Close does nothing, because the guest ends the conversation by exiting.
func (*portConn) Close() error { return nil }

var errLate = errors.New("late")

// pollEvents waits until one of the events is possible: input (POLLIN), output (POLLOUT) or both. It returns errLate
// at deadline. If deadline is zero, it waits without limit.
func (p *portConn) pollEvents(events int16, deadline time.Time) error {
	var files []unix.PollFd
	if events&unix.POLLIN != 0 {
		files = append(files, unix.PollFd{Fd: int32(p.in), Events: unix.POLLIN})
	}
	if events&unix.POLLOUT != 0 {
		files = append(files, unix.PollFd{Fd: int32(p.out), Events: unix.POLLOUT})
	}
	for {
		n, err := pollFiles(files, deadline)
		switch {
		case err == nil && n == 0:
			return errLate
		case err != unix.EINTR:
			return err
		}
	}
}

// pollFiles polls descriptors until deadline. For the time silentWait it does so without informing Go's scheduler.
func pollFiles(files []unix.PollFd, deadline time.Time) (int, error) {
	first, last := silentWait, false
	if !deadline.IsZero() {
		first = min(max(0, time.Until(deadline)), silentWait)
		last = first < silentWait
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

// silentPoll polls descriptors without informing Go's scheduler. It waits no longer than the argument most says.
func silentPoll(files []unix.PollFd, most time.Duration) (int, error) {
	until := unix.NsecToTimespec(int64(most))
	n, _, errno := syscall.RawSyscall6(
		unix.SYS_PPOLL, uintptr(unsafe.Pointer(&files[0])), uintptr(len(files)), uintptr(unsafe.Pointer(&until)), 0, 0,
		0,
	)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// waitWritable waits until output is possible. If a frame arrives in the meantime, it is read and stored for later.
func (p *portConn) waitWritable() error {
	events := int16(unix.POLLOUT)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.stash) < maxStash && !p.gone {
		events |= unix.POLLIN
	}
	if err := p.pollEvents(events, time.Time{}); err != nil || events&unix.POLLIN == 0 {
		return err
	}
	if p.hasArrived() {
		p.fillStash()
	}
	return nil
}

// hasArrived reports, without waiting, whether a frame has begun to arrive or the input has ended.
func (p *portConn) hasArrived() bool {
	for p.ring != nil {
		if ok, err := p.ring.HasInput(); ok || err != nil {
			return true
		}
		if p.pollEvents(unix.POLLIN, time.Now()) != nil {
			return false
		}
		if p.ring.ReadStream() != nil {
			return true
		}
	}
	return p.pollEvents(unix.POLLIN, time.Now()) == nil
}

// fillStash reads a frame and stores it. The caller must hold p.mu.
func (p *portConn) fillStash() {
	f, err := p.conn.Read()
	if err != nil || (f.Kind == wire.KindStart) == p.started {
		p.gone = true
		return
	}
	p.started = true
	p.stash = append(p.stash, f)
}

func (p *portConn) hasFrame() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.stash) > 0 || p.conn.HasBuffered() || p.hasArrived()
}

func (p *portConn) takeFrame() (f wire.Frame, ok, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.stash) == 0 && !p.gone && p.conn.HasBuffered() {
		p.fillStash()
	}
	return p.firstStashed()
}

func (p *portConn) waitFrame(deadline time.Time) (f wire.Frame, ok, open bool) {
	p.conn.FlushAndWait() // while another goroutine writes, it also reads
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.stash) == 0 && !p.gone {
		began := time.Now()
		switch err := p.awaitFrame(deadline); {
		case err == nil:
			p.quiet = p.quick
			p.fillStash()
			p.quiet, p.quick = false, time.Since(began) < silentWait
		case err != errLate:
			p.gone = true
		}
	}
	return p.firstStashed()
}

// awaitFrame waits until a frame has begun to arrive. It returns immediately if there is input in the buffer. It also
// does so if there is no deadline and the following read blocks until the frame arrives.
func (p *portConn) awaitFrame(deadline time.Time) error {
	switch {
	case p.conn.HasBuffered() || p.blocks && deadline.IsZero():
		return nil
	case p.ring != nil:
		return p.awaitRing(deadline)
	}
	return p.pollEvents(unix.POLLIN, deadline)
}

// awaitRing works like awaitFrame for a port that also receives data through shared memory.
func (p *portConn) awaitRing(deadline time.Time) error {
	for !p.hasArrived() {
		if p.ring.SpinUntil(deadline) || p.ring.PrepareSleep() {
			continue
		}
		err := p.pollEvents(unix.POLLIN, deadline)
		p.ring.EndSleep()
		if err != nil {
			return err
		}
		if idle := p.idle; idle != nil && !p.hasArrived() {
			p.idle = nil
			idle()
		}
	}
	return nil
}

// firstStashed removes and returns the first stored frame. The caller must hold p.mu.
func (p *portConn) firstStashed() (f wire.Frame, ok, open bool) {
	if len(p.stash) == 0 {
		return f, false, !p.gone
	}
	f = p.stash[0]
	p.stash = p.stash[1:]
	return f, true, true
}
