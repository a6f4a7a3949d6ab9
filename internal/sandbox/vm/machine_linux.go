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
	"retort/internal/sandbox/warmpool"
	"retort/internal/sandbox/wire"
	"retort/internal/sandbox/wire/shm"
)

const (
	// guestOverhead bounds the memory that a machine may need in addition to the program's memory, in bytes: for the
	// guest, its kernel and QEMU's translated code.
	guestOverhead = 128<<20 + translationBufferMB<<20
	lookEvery     = 20 * time.Millisecond
	ending        = 5 * time.Second
	// lastMessageTimeout bounds how long a machine may take to report why its guest ended.
	lastMessageTimeout = 2 * time.Second
	// monitorThreads bounds the threads of the process that runs a machine, QEMU or Firecracker.
	monitorThreads = 64
)

// virtualMachine represents a running virtual machine and the process of its monitor.
type virtualMachine struct {
	*machinePorts
	image   *machineImage
	cmd     *exec.Cmd
	group   *procgroup.ChildGroup
	stderr  procgroup.StderrHead
	closing sync.Once
	talk    io.ReadWriter // connection to the guest; set for a copy of a saved machine

	gone     chan struct{}
	watch    sync.Once
	footing  int64
	peak     warmpool.MemoryPeak
	outgrown atomic.Bool
	ended    atomic.Pointer[error] // reason why the machine was killed before it was ready; nil if it was not

	said chan struct{} // closed when the machine has reported how its guest ended, or has ended without a report
	end  *vminit.GuestEnd
}

// startMachine starts the monitor of a machine in its own confinement.
func (b *vmBackend) startMachine(i *machineImage, p *machinePorts, plan *confine.SandboxPlan) (*virtualMachine, error) {
	read, write, err := os.Pipe()
	if err != nil {
		p.closeAll()
		return nil, err
	}
	p.over = make(chan struct{})
	m := &virtualMachine{machinePorts: p, image: i, gone: make(chan struct{}), said: make(chan struct{})}
	m.cmd = exec.Command(b.Guest[0], append([]string{confine.Argument}, b.Guest[1:]...)...)
	m.cmd.Args[0] = b.named
	m.cmd.Env, m.cmd.Dir, m.cmd.ExtraFiles = []string{}, "/", append([]*os.File{read}, p.far...)
	m.cmd.Stderr = &m.stderr
	m.cmd.SysProcAttr = confine.ChildAttributes(false)
	m.cmd.WaitDelay = time.Second
	m.group, err = b.spawner.Ensure().Start(m.cmd)
	p.closeProgramEnds()
	_ = read.Close()
	if err != nil {
		_ = write.Close()
		p.closeAll()
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
	go m.awaitExit()
	return m, nil
}

// bootMachine boots a machine from its kernel.
func (b *vmBackend) bootMachine(ctx context.Context, i *machineImage, dir string) (*virtualMachine, error) {
	p, err := b.driver.makePorts()
	if err != nil {
		return nil, err
	}
	var plan *confine.SandboxPlan
	if p.shared, err = i.makeSharedMemory(dir); err == nil {
		plan, err = b.driver.bootPlan(i, dir, p)
	}
	if err != nil {
		p.closeAll()
		return nil, err
	}
	m, err := b.startMachine(i, p, plan)
	if err != nil {
		return nil, err
	}
	defer m.endWith(ctx)()
	if err := b.driver.configureMachine(ctx, i, p); err != nil {
		return nil, m.failMachine(err)
	}
	go m.listenControl()
	return m, nil
}

// endWith makes the machine end with ctx: when ctx ends, the machine is killed, and the cause of the end of ctx is
// recorded as the reason that later errors report. The returned function stop cancels this.
func (m *virtualMachine) endWith(ctx context.Context) (stop func()) {
	cancel := context.AfterFunc(ctx, func() {
		m.abandonMachine(fmt.Errorf("the machine was killed before it was ready: %w", context.Cause(ctx)))
	})
	return func() { cancel() }
}

// abandonMachine kills a machine that has not become ready, and records the reason.
func (m *virtualMachine) abandonMachine(why error) {
	m.ended.CompareAndSwap(nil, &why)
	m.Kill()
}

// failMachine ends a machine that has not run a program yet, and returns the reason why it failed.
func (m *virtualMachine) failMachine(err error) error {
	go m.listenControl()
	err = m.whyNot(err)
	_ = m.Close()
	<-m.gone
	return err
}

// restoreMachine starts a copy of a saved machine. It returns when the copy runs and has received the current time
// and new random numbers.
func (b *vmBackend) restoreMachine(ctx context.Context, i *machineImage, dir string) (*virtualMachine, error) {
	ready, err := os.ReadFile(dir + "/" + readyFile)
	if err != nil {
		return nil, err
	}
	p, err := b.driver.makePorts()
	if err != nil {
		return nil, err
	}
	var plan *confine.SandboxPlan
	if p.shared, err = i.makeSharedMemory(dir); err == nil {
		plan, err = b.driver.restorePlan(i, dir, p)
	}
	if err != nil {
		p.closeAll()
		return nil, err
	}
	m, err := b.startMachine(i, p, plan)
	if err != nil {
		return nil, err
	}
	m.talk = p.joinWire(&copiedWire{p.wire, ready})
	defer m.endWith(ctx)()
	if err = b.driver.resumeMachine(ctx, p); err == nil {
		p.shared.RemoveName()
		err = m.sendWake()
	}
	if err == nil && shm.IsRingGuest(ready) {
		err = shm.SendBell(p.wire) // the guest has time until a program comes
	}
	if err != nil {
		return nil, m.failMachine(err)
	}
	go m.listenControl()
	return m, nil
}

// sendWake sends a restored machine the current time and a new seed for random numbers. It waits until the machine
// has answered.
func (m *virtualMachine) sendWake() error {
	seed := make([]byte, 64)
	_, _ = rand.Read(seed) // never fails
	data, err := json.Marshal(vminit.WakeMessage{Now: time.Now().UnixNano(), Seed: seed})
	if err != nil {
		return err
	}
	if _, err := m.control.Write(append(data, '\n')); err != nil {
		return err
	}
	line, err := m.events.ReadSlice('\n')
	if err == nil && len(line) > 1 {
		err = fmt.Errorf("it reports %s", bytes.TrimSpace(line))
	}
	return err
}

// listenControl waits for the only message that a machine may send on the control connection: that its guest has
// ended. A machine that sends anything else is killed.
func (m *virtualMachine) listenControl() {
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

// readGreeting waits until the guest has sent its first frame, which says that it is ready. It returns the bytes that
// the guest has sent, undecoded.
func (m *virtualMachine) readGreeting() ([]byte, error) {
	if m.image.config.Commands {
		said := make([]byte, len(vminit.Ready))
		_, err := io.ReadFull(m.wire, said)
		if err == nil && string(said) != vminit.Ready {
			err = fmt.Errorf("it reports %q", said)
		}
		return said, err
	}
	var seen bytes.Buffer
	all := &teeReader{m.wire, &seen}
	var said io.ReadWriteCloser = all
	if m.shared != nil {
		said = struct {
			io.ReadWriter
			io.Closer
		}{m.joinWire(all), all}
	}
	if m.image.config.Plan.Network == confine.Relayed {
		said = struct {
			io.Reader
			io.WriteCloser
		}{mux.PeekFirst(all), all}
	}
	_, err := wire.ReadGreeting(wire.NewConn(said))
	return seen.Bytes(), err
}

// teeReader reads from a file. It also appends everything that it has read to a buffer.
type teeReader struct {
	*os.File
	seen *bytes.Buffer
}

func (t *teeReader) Read(b []byte) (int, error) {
	n, err := t.File.Read(b)
	t.seen.Write(b[:n])
	return n, err
}

// waitIdle waits until the machine has used hardly any processor time for three quarters of a second.
func (m *virtualMachine) waitIdle(ctx context.Context) {
	const window, quiet = 250 * time.Millisecond, 3
	for still, last := 0, m.processorTicks(); still < quiet && ctx.Err() == nil; {
		select {
		case <-time.After(window):
		case <-m.over:
			return
		}
		now := m.processorTicks()
		if still++; now-last > 3 { // hundredths of a second
			still = 0
		}
		last = now
	}
}

// processorTicks returns the processor time that the machine has used, in hundredths of a second.
func (m *virtualMachine) processorTicks() (sum int64) {
	data, _ := os.ReadFile("/proc/" + strconv.Itoa(m.cmd.Process.Pid) + "/stat")
	_, after, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(after)
	for n := 11; n <= 12 && n < len(fields); n++ {
		t, _ := strconv.ParseInt(fields[n], 10, 64)
		sum += t
	}
	return sum
}

func (m *virtualMachine) Read(b []byte) (int, error)  { return m.talk.Read(b) }
func (m *virtualMachine) Write(b []byte) (int, error) { return m.talk.Write(b) }

// copiedWire represents the connection to the guest of a restored copy. Reads return first the data that the guest
// sent before the machine was saved, and then the data that arrives.
type copiedWire struct {
	*os.File
	ready []byte
}

func (c *copiedWire) Read(b []byte) (int, error) {
	if len(c.ready) > 0 {
		n := copy(b, c.ready)
		c.ready = c.ready[n:]
		return n, nil
	}
	return c.File.Read(b)
}

// Close closes the connection, which ends the machine.
func (m *virtualMachine) Close() error {
	m.Kill()
	m.closing.Do(m.machinePorts.closeAll)
	return nil
}

// Kill implements warmpool.Guest.
func (m *virtualMachine) Kill() { _ = m.cmd.Process.Kill() }

// Gone implements warmpool.Guest.
func (m *virtualMachine) Gone() <-chan struct{} { return m.gone }

// Bounds implements warmpool.Guest.
func (m *virtualMachine) Bounds() string {
	return "the machine's memory, watcher, and a control group where there is one"
}

func (m *virtualMachine) awaitExit() {
	_ = m.cmd.Wait() // how it ended is in ProcessState
	close(m.over)
	m.group.KillAll(ending)
	if m.group.IsOutOfMemory() {
		m.outgrown.Store(true)
	}
	m.group.Remove()
	close(m.gone)
}

// Limit implements warmpool.Guest. The limits are a backstop: inside the machine the guest limits its own memory
// first, so that the program gets an error.
func (m *virtualMachine) Limit(l core.Limits) {
	m.watch.Do(func() {
		m.footing = m.usedMemory()
		m.group.SetLimits(m.group.UsedBytes()+memoryAllowance(l), l, monitorThreads)
		go m.checkMemory(l)
	})
}

// memoryAllowance returns how much the memory of a machine may grow after its program arrives, in bytes.
func memoryAllowance(l core.Limits) int64 { return l.Memory + guestOverhead + 2*l.Result }

// checkMemory kills the machine if it uses more memory than the limits of its program allow.
func (m *virtualMachine) checkMemory(l core.Limits) {
	most := m.footing + memoryAllowance(l)
	if warmpool.WatchMemory(m.over, lookEvery, m.measurePeak, func(now int64) bool { return now > most }) {
		m.outgrown.Store(true)
		m.Kill()
	}
}

func (m *virtualMachine) measurePeak() int64 { return m.peak.Note(m.usedMemory()) }

// usedMemory returns the private memory of the virtual machine, including its monitor, in bytes. Pages that it still
// shares with the saved machine do not count.
func (m *virtualMachine) usedMemory() int64 { return procgroup.OwnMemory(m.cmd.Process.Pid) }

// Peak implements warmpool.Guest.
func (m *virtualMachine) Peak() int64 {
	m.measurePeak()
	return m.peak.Bytes()
}
