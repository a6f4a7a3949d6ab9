package gvisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox/procgroup"
	"retort/internal/sandbox/warmpool"
	"retort/internal/sandbox/wire"
	"retort/internal/sandbox/wire/shm"
)

const (
	// guestOverhead is the memory that a guest and its kernel need in addition to their program's memory, in bytes.
	guestOverhead = 96 << 20
	// relayMemory bounds the memory of a relay, in bytes. A relay is the process that forwards a guest's network
	// connections. Most of its memory is data that it has not forwarded yet.
	relayMemory    = 96 << 20
	sampleInterval = 20 * time.Millisecond
	// memoryTolerance is the number of bytes by which a program may stay above its memory limit. A program that
	// exceeds the limit by more is killed after overLimitGrace. It might otherwise never end, because it can catch
	// every out-of-memory error and try again.
	memoryTolerance = 32 << 20
	overLimitGrace  = 750 * time.Millisecond
	// exitTimeout bounds how long the processes of a container may take to exit.
	exitTimeout = 5 * time.Second
	// gvisorThreads bounds the number of threads that gVisor itself may have, in addition to two for each thread of
	// the program.
	gvisorThreads = 256
)

// guestContainer represents a running gVisor container. Its process is `runsc run`, which starts the container's
// kernel and file server. Both end with that process.
type guestContainer struct {
	dir     string
	root    *guestRoot
	cmd     *exec.Cmd
	group   *procgroup.ChildGroup
	in, out *os.File
	wire    io.ReadWriter     // combines in, out and the shared memory into one stream
	shared  *shm.SharedMemory // memory that guest and engine share; nil if there is no shared memory
	stderr  procgroup.StderrHead
	closing sync.Once

	gone     chan struct{}
	began    bool // the container's kernel was started; valid only after gone is closed
	watch    sync.Once
	watching chan struct{} // closed when the guest ends, to stop the watching of its memory
	pid      int           // process id of the container's kernel, found when the program arrived
	memory   *os.File      // open file in which the container's kernel keeps the memory of programs
	footing  int64         // memory of the container in bytes when the program arrived
	peak     warmpool.MemoryPeak
	outgrown atomic.Bool
}

// shareMemory creates the memory that a container shares with the engine. It returns nil if sharing is impossible.
// The program's calls are then slower.
func (r *guestRoot) shareMemory(dir string) *shm.SharedMemory {
	if !r.shares {
		return nil
	}
	memory, err := shm.CreateMemory(filepath.Join(dir, "ring"))
	if err != nil {
		return nil // without it the container is slower and reports what else is wrong
	}
	return memory
}

// connectGuest connects the engine to the guest, over shared memory if the container has any.
func (g *guestContainer) connectGuest() {
	g.wire = struct {
		io.Reader
		io.Writer
	}{g.in, g.out}
	if g.shared != nil {
		g.wire = shm.NewHost(g.wire, g.shared, 0)
	}
}

func (g *guestContainer) Read(b []byte) (int, error)  { return g.wire.Read(b) }
func (g *guestContainer) Write(b []byte) (int, error) { return g.wire.Write(b) }

// Close closes the connection, which makes the guest exit.
func (g *guestContainer) Close() error {
	g.Kill()
	var err error
	g.closing.Do(func() {
		err = errors.Join(g.out.Close(), g.in.Close(), g.shared.Close())
	})
	return err
}

// Kill implements warmpool.Guest.
func (g *guestContainer) Kill() { _ = g.cmd.Process.Kill() }

// Gone implements warmpool.Guest.
func (g *guestContainer) Gone() <-chan struct{} { return g.gone }

// Bounds implements warmpool.Guest.
func (g *guestContainer) Bounds() string {
	return "rlimits, watcher, and a control group where there is one"
}

// awaitExit waits until the container has ended and removes its files.
func (g *guestContainer) awaitExit() {
	_ = g.cmd.Wait() // how it ended is in ProcessState
	close(g.watching)
	pid := g.kernelPID()
	g.began = pid > 1
	for end := time.Now().Add(exitTimeout); g.isRunning(pid) && time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	g.group.KillAll(exitTimeout)
	if g.group.IsOutOfMemory() {
		g.outgrown.Store(true)
	}
	g.group.Remove()
	_ = os.RemoveAll(g.dir)
	close(g.gone)
}

// kernelPID returns the process id of the container's kernel, or 0 if the kernel was not started.
func (g *guestContainer) kernelPID() int {
	data, err := os.ReadFile(filepath.Join(g.dir, pidFile))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0
	}
	return pid
}

// isRunning reports whether the process pid exists and belongs to the container. Another process may have received
// the id.
func (g *guestContainer) isRunning(pid int) bool {
	if pid <= 1 {
		return false
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && ofContainer(line, g.dir)
}

// Limit implements warmpool.Guest. The limits are a backstop: inside the container the guest limits its own memory
// first, so that the program gets an error.
func (g *guestContainer) Limit(l core.Limits) {
	g.watch.Do(func() {
		g.pid = g.kernelPID()
		g.memory = openMemory(g.pid)
		if !g.root.command { // which has its program from the beginning
			g.footing = g.usedMemory()
		}
		g.group.SetLimits(g.group.UsedBytes()+g.root.memoryAllowance(l), l, gvisorThreads+2*g.root.threads)
		go g.checkMemory(l)
	})
}

// memoryAllowance returns how much the memory of a container may grow after its program arrives, in bytes.
func (r *guestRoot) memoryAllowance(l core.Limits) int64 {
	most := l.Memory + guestOverhead + 2*l.Result
	if r.relayed {
		most += relayMemory
	}
	return most
}

// checkMemory kills the container if it exceeds its memory allowance, or if its program exceeds its own limit by more
// than memoryTolerance for longer than overLimitGrace.
func (g *guestContainer) checkMemory(l core.Limits) {
	defer g.memory.Close() // a nil file returns an error
	low := time.Now()      // when it last was within its memory limit
	exceeds := func(now int64) bool {
		took := now - g.footing
		if took <= l.Memory+memoryTolerance {
			low = time.Now()
		}
		return took > g.root.memoryAllowance(l) || time.Since(low) > overLimitGrace
	}
	if warmpool.WatchMemory(g.watching, sampleInterval, g.measurePeak, exceeds) {
		g.outgrown.Store(true)
		g.Kill()
	}
}

func (g *guestContainer) measurePeak() int64 { return g.peak.Note(g.usedMemory()) }

// usedMemory returns the memory of the container in bytes. It is the sum of two amounts: the memory of the
// container's programs, which its gVisor kernel keeps in one file, and the memory of that kernel itself.
func (g *guestContainer) usedMemory() int64 {
	var stat syscall.Stat_t
	if g.memory == nil || syscall.Fstat(int(g.memory.Fd()), &stat) != nil {
		return procgroup.OwnMemory(g.pid)
	}
	return stat.Blocks*512 + procgroup.OwnMemory(g.pid)
}

// openMemory opens the file in which a container's kernel keeps the memory of programs. It returns nil if that is not
// permitted.
func openMemory(pid int) *os.File {
	if pid <= 1 {
		return nil
	}
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if target, err := os.Readlink(name); err == nil && strings.HasPrefix(target, "/memfd:runsc-memory") {
			f, _ := os.Open(name)
			return f
		}
	}
	return nil
}

// Peak implements warmpool.Guest.
func (g *guestContainer) Peak() int64 {
	g.measurePeak()
	return g.peak.Bytes()
}

// Explain implements warmpool.Guest.
func (g *guestContainer) Explain(end *wire.ProgramEnd, p core.CheckedProgram) {
	<-g.gone
	if g.outgrown.Load() || g.root.isOutOfMemory(g.stderr.String()) {
		stop := wire.MemoryStop(p.Limits.Memory)
		end.Status, end.Error = stop.Status, stop.Reason
		return
	}
	end.Status, end.Error = core.StatusError, g.exitError(p.Name)
}
