package vm

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/wire/mux"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox/guest/vminit"
	"retort/internal/sandbox/procgroup"
	"retort/internal/sandbox/wire"
	"retort/internal/sandbox/wire/shm"
)

const (
	// beside gives the memory that a guest and its kernel need in addition to the program's own, and QEMU for
	// translated code, in bytes.
	beside    = 128<<20 + translated<<20
	lookEvery = 20 * time.Millisecond
	ending    = 5 * time.Second
	// lastWords bounds the time that a machine whose guest has gone may take to report the reason.
	lastWords = 2 * time.Second
	// threads bounds the threads of QEMU.
	threads = 64
)

// vm represents a running virtual machine with the process of its monitor.
type vm struct {
	*ports
	image   *image
	cmd     *exec.Cmd
	group   *procgroup.Group
	stderr  procgroup.Head
	closing sync.Once
	talk    io.ReadWriter // connection with the guest of a copy

	gone     chan struct{}
	watch    sync.Once
	footing  int64
	peak     atomic.Int64
	outgrown atomic.Bool
	ended    atomic.Pointer[error] // the reason why it was killed before it was ready, or nil

	said chan struct{} // closed when the machine has reported how its guest ended, or has ended
	end  *vminit.End
}

// begin starts the monitor of a machine in a confinement of its own.
func (b *backend) begin(i *image, p *ports, plan *confine.Plan) (*vm, error) {
	read, write, err := os.Pipe()
	if err != nil {
		p.close()
		return nil, err
	}
	p.over = make(chan struct{})
	m := &vm{ports: p, image: i, gone: make(chan struct{}), said: make(chan struct{})}
	m.cmd = exec.Command(b.Guest[0], append([]string{confine.Argument}, b.Guest[1:]...)...)
	m.cmd.Args[0] = b.named
	m.cmd.Env, m.cmd.Dir, m.cmd.ExtraFiles = []string{}, "/", append([]*os.File{read}, p.far...)
	m.cmd.Stderr = &m.stderr
	m.cmd.SysProcAttr = confine.Attributes(false)
	m.cmd.WaitDelay = time.Second
	m.group, err = b.spawn().Start(m.cmd)
	p.started()
	_ = read.Close()
	if err != nil {
		_ = write.Close()
		p.close()
		return nil, err
	}
	p.pid = m.cmd.Process.Pid
	// From here on the kernel kills the child when this process dies. If this process dies earlier, the child gets
	// no plan and exits. QEMU itself would not exit.
	go func() {
		data, err := json.Marshal(plan)
		if err == nil {
			_, _ = write.Write(data)
		}
		_ = write.Close()
	}()
	go m.reap()
	return m, nil
}

// boot starts a machine from its kernel.
func (b *backend) boot(ctx context.Context, i *image, dir string) (*vm, error) {
	p, err := b.driver.ports()
	if err != nil {
		return nil, err
	}
	var plan *confine.Plan
	if p.shared, err = i.shared(dir); err == nil {
		plan, err = b.driver.boot(i, dir, p)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	m, err := b.begin(i, p, plan)
	if err != nil {
		return nil, err
	}
	defer m.endWith(ctx)()
	if err := b.driver.started(ctx, i, p); err != nil {
		return nil, m.failed(err)
	}
	go m.listen()
	return m, nil
}

// endWith kills the machine when ctx ends. The end of ctx is then the cause of all failures. stop ends this.
func (m *vm) endWith(ctx context.Context) (stop func()) {
	cancel := context.AfterFunc(ctx, func() { m.abandon(fmt.Errorf("the machine was ended before it was ready: %w", context.Cause(ctx))) })
	return func() { cancel() }
}

// abandon kills a machine that is not ready.
func (m *vm) abandon(why error) {
	m.ended.CompareAndSwap(nil, &why)
	m.Kill()
}

// failed ends a machine that is not in use yet and returns the reason why it failed.
func (m *vm) failed(err error) error {
	go m.listen()
	err = m.whyNot(err)
	_ = m.Close()
	<-m.gone
	return err
}

// restore starts a copy of a saved machine. It returns when the copy runs and has a current clock and new random
// numbers.
func (b *backend) restore(ctx context.Context, i *image, dir string) (*vm, error) {
	ready, err := os.ReadFile(dir + "/" + readyFile)
	if err != nil {
		return nil, err
	}
	p, err := b.driver.ports()
	if err != nil {
		return nil, err
	}
	var plan *confine.Plan
	if p.shared, err = i.shared(dir); err == nil {
		plan, err = b.driver.restore(i, dir, p)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	m, err := b.begin(i, p, plan)
	if err != nil {
		return nil, err
	}
	m.talk = p.joined(&copied{p.wire, ready})
	defer m.endWith(ctx)()
	if err = b.driver.resume(ctx, p); err == nil {
		p.shared.Hide()
		err = m.wake()
	}
	if err == nil && shm.Begins(ready) {
		err = shm.Nudge(p.wire) // the guest has time until a program comes
	}
	if err != nil {
		return nil, m.failed(err)
	}
	go m.listen()
	return m, nil
}

// wake tells the machine what has changed since it was saved.
func (m *vm) wake() error {
	seed := make([]byte, 64)
	_, _ = rand.Read(seed) // never fails
	data, err := json.Marshal(vminit.Wake{Now: time.Now().UnixNano(), Seed: seed})
	if err != nil {
		return err
	}
	if _, err := m.control.Write(append(data, '\n')); err != nil {
		return err
	}
	line, err := m.events.ReadSlice('\n')
	if err == nil && len(line) > 1 {
		err = fmt.Errorf("it says %s", bytes.TrimSpace(line))
	}
	return err
}

// listen waits for the machine's message about its guest's end, the only one that it sends. A machine that sends
// anything else is compromised and is killed.
func (m *vm) listen() {
	defer close(m.said)
	if m.events == nil { // the connection was never made
		m.Kill()
		return
	}
	line, err := m.events.ReadSlice('\n')
	if err == nil {
		err = json.Unmarshal(line, &m.end)
	}
	if err != nil {
		m.end = nil
		m.Kill()
		return
	}
	_ = m.wire.SetReadDeadline(time.Now()) // the port does not report that its other end was closed
}

// greeting reads the first frame of the guest without decoding it.
func (m *vm) greeting() ([]byte, error) {
	if m.image.config.Commands {
		said := make([]byte, len(vminit.Ready))
		_, err := io.ReadFull(m.wire, said)
		if err == nil && string(said) != vminit.Ready {
			err = fmt.Errorf("it says %q", said)
		}
		return said, err
	}
	var seen bytes.Buffer
	all := &tee{m.wire, &seen}
	var said io.ReadWriteCloser = all
	if m.shared != nil {
		said = struct {
			io.ReadWriter
			io.Closer
		}{m.joined(all), all}
	}
	if m.image.config.Plan.Network == confine.Relayed {
		said = struct {
			io.Reader
			io.WriteCloser
		}{mux.Beginning(all), all}
	}
	_, err := wire.Greet(wire.NewConn(said))
	return seen.Bytes(), err
}

// tee records what is read.
type tee struct {
	*os.File
	seen *bytes.Buffer
}

func (t *tee) Read(b []byte) (int, error) {
	n, err := t.File.Read(b)
	t.seen.Write(b[:n])
	return n, err
}

// rest waits until the machine has been idle for a while.
func (m *vm) rest(ctx context.Context) {
	const window, quiet = 250 * time.Millisecond, 3
	for still, last := 0, m.ticks(); still < quiet && ctx.Err() == nil; {
		select {
		case <-time.After(window):
		case <-m.over:
			return
		}
		now := m.ticks()
		if still++; now-last > 3 { // hundredths of a second
			still = 0
		}
		last = now
	}
}

// ticks returns the processor time of the machine, in hundredths of a second.
func (m *vm) ticks() (sum int64) {
	data, _ := os.ReadFile("/proc/" + strconv.Itoa(m.cmd.Process.Pid) + "/stat")
	_, after, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(after)
	for n := 11; n <= 12 && n < len(fields); n++ {
		t, _ := strconv.ParseInt(fields[n], 10, 64)
		sum += t
	}
	return sum
}

func (m *vm) Read(b []byte) (int, error)  { return m.talk.Read(b) }
func (m *vm) Write(b []byte) (int, error) { return m.talk.Write(b) }

// copied is the connection to a copy. It first returns what the guest had sent before it was saved.
type copied struct {
	*os.File
	ready []byte
}

func (c *copied) Read(b []byte) (int, error) {
	if len(c.ready) > 0 {
		n := copy(b, c.ready)
		c.ready = c.ready[n:]
		return n, nil
	}
	return c.File.Read(b)
}

// Close closes the connection, which ends the machine.
func (m *vm) Close() error {
	m.Kill()
	m.closing.Do(m.ports.close)
	return nil
}

// Kill implements warmpool.Guest.
func (m *vm) Kill() { _ = m.cmd.Process.Kill() }

// Gone implements warmpool.Guest.
func (m *vm) Gone() <-chan struct{} { return m.gone }

func (m *vm) reap() {
	_ = m.cmd.Wait() // how it ended is in ProcessState
	close(m.over)
	m.group.End(ending)
	if m.group.Exhausted() {
		m.outgrown.Store(true)
	}
	m.group.Remove()
	close(m.gone)
}

// Limit implements warmpool.Guest. The limits are a backstop: inside, the guest limits its own memory, and the
// program then gets an error.
func (m *vm) Limit(l core.Limits) {
	m.watch.Do(func() {
		m.footing = m.used()
		m.group.Limit(m.group.Used()+allowance(l), l, threads)
		go m.look(l)
	})
}

// allowance returns how much more memory a machine may use than at its start.
func allowance(l core.Limits) int64 { return l.Memory + beside + 2*l.Result }

// look kills a machine that uses more memory than it may.
func (m *vm) look(l core.Limits) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-m.over:
			return
		case <-tick.C:
		}
		if m.measure() > m.footing+allowance(l) {
			m.outgrown.Store(true)
			m.Kill()
			return
		}
	}
}

func (m *vm) measure() int64 {
	now := m.used()
	for {
		old := m.peak.Load()
		if now <= old || m.peak.CompareAndSwap(old, now) {
			return now
		}
	}
}

// used returns the machine's own memory in bytes: the pages that it has changed, and QEMU.
func (m *vm) used() int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(data), "\nRssAnon:")
	var kb int64
	_, _ = fmt.Sscan(after, &kb)
	return kb << 10
}

// Peak implements warmpool.Guest.
func (m *vm) Peak() int64 {
	m.measure()
	return m.peak.Load()
}
