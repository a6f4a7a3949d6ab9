package process

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox/exitcause"
	"retort/internal/sandbox/procgroup"
	"retort/internal/sandbox/warmpool"
	"retort/internal/sandbox/wire"
)

const (
	greeting = time.Minute // maximum time from the start of a child until it is ready for a program
	// minSampledRuntime is the shortest running time of a program for which its peak memory is measured. For a
	// shorter program, measuring would take about as long as the program itself. Its report states the memory that
	// the child process used before the program arrived.
	minSampledRuntime = 5 * time.Millisecond

	helperThreads = 128
)

// guestChild represents a child process that runs a guest.
type guestChild struct {
	cmd       *exec.Cmd
	pipes     *pipeConn
	conn      *wire.FrameConn
	stderr    *procgroup.StderrHead
	peak      warmpool.MemoryPeak
	group     *procgroup.ChildGroup
	presetFor core.Limits    // limits that were set for the child's control group before a program arrived
	began     time.Time      // time at which the child received its program
	footing   baselineMemory // memory and threads of the child when its program arrived
	oomKilled bool           // the kernel killed the child because memory ran out; valid only after exited is closed
	exited    chan struct{}  // closed when the child has ended and its exit status was collected
	listener  *os.File       // socket over which the child sends its network listener; nil without network access
}

// spawnChild starts a child of kind k, with the confinement that this machine allows, and waits until it is ready for
// a program.
func (b *Backend) spawnChild(k *childKind) (*guestChild, error) {
	found := b.check()
	if found.refusal != nil {
		return nil, found.refusal
	}
	if k.runtime == quickjs {
		select {
		case c := <-b.first:
			return c, nil
		default:
		}
	}
	return b.startGreeted(k, found.weak)
}

// startGreeted starts a child and waits for its greeting, the message that it is ready for a program. If the harness,
// the code that runs programs in the child, has been compiled already, the child gets the compiled harness.
func (b *Backend) startGreeted(k *childKind, weak bool) (*guestChild, error) {
	if code := b.compiledHarness(k, weak); code != nil {
		if c, err := b.greetChild(k.withArgument(CompiledArgument), weak, code); err == nil {
			return c, nil
		}
		k.harness.code.Store(nil) // the program may be another one by now
	}
	return b.greetChild(k, weak, nil)
}

// greetChild starts a child and waits for its greeting, the message that it is ready for a program. The argument code
// holds the compiled harness, the code that runs programs in the child, which greetChild sends first. If code is nil,
// it sends nothing.
func (b *Backend) greetChild(k *childKind, weak bool, code []byte) (*guestChild, error) {
	c, err := b.startChild(k, weak)
	if err != nil {
		return nil, err
	}
	late := time.AfterFunc(b.greeting, c.Kill)
	defer b.trackStarting(c)()
	if code != nil {
		_ = c.conn.SendFrame(wire.HarnessFrame(code)) // the next call reports a failure
	}
	_, err = wire.ReadGreeting(c.conn)
	inTime := late.Stop()
	if err == nil && inTime {
		c.presetLimits(b.limits, k.plan.Processes)
		return c, nil
	}
	c.Kill()
	<-c.exited
	if !inTime {
		return nil, fmt.Errorf("%s was not ready after %v%s", k.command[0], b.greeting, c.stderrSuffix())
	}
	return nil, fmt.Errorf("%s did not become ready: %w%s", k.command[0], err, c.stderrSuffix())
}

// refusedWalls reports whether err means that the operating system refused the child's confinement, which this package
// calls walls.
func refusedWalls(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL) ||
		strings.Contains(err.Error(), ": walls: ")
}

// StartHelper starts this binary in a role other than guest, with the confinement of a guest. The argument most is
// the memory limit of this helper process, in bytes. StartHelper returns a connection to the helper's standard input
// and output. Closing the connection ends the helper.
func (b *Backend) StartHelper(command []string, most int64) (io.ReadWriteCloser, error) {
	// Most machines allow full confinement. While that is unknown, trying it first would make every caller wait
	// for two starts, one after the other.
	k := builtinKind(command)
	c, err := b.startChild(k, false)
	if found := b.check(); found.refusal != nil || found.weak {
		if err == nil {
			c.Kill()
		}
		if found.refusal != nil {
			return nil, found.refusal
		}
		c, err = b.startChild(k, true)
	}
	if err != nil {
		return nil, err
	}
	limitHelper(c.cmd.Process.Pid, most)
	c.group.SetLimits(most, core.Limits{CPU: float64(runtime.GOMAXPROCS(0))}, helperThreads)
	return c.pipes, nil
}

// oneThread is the environment variable that makes the Go runtime of a child run Go code on one thread at a time.
// Setting that from the start is cheaper than runtime.GOMAXPROCS in the process, which stops all threads.
// Interpreters such as Python do not get the variable, because programs can see their environment.
const oneThread = "GOMAXPROCS=1"

func (b *Backend) startChild(k *childKind, weak bool) (*guestChild, error) {
	in, toChild, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fromChild, out, err := os.Pipe()
	if err != nil {
		_, _ = in.Close(), toChild.Close()
		return nil, err
	}
	cmd, plan, listener, err := k.buildCommand(weak)
	if err != nil {
		_, _, _, _ = in.Close(), toChild.Close(), fromChild.Close(), out.Close()
		return nil, err
	}
	c := &guestChild{cmd: cmd, stderr: &procgroup.StderrHead{}, exited: make(chan struct{}), listener: listener}
	c.pipes = &pipeConn{child: c, in: fromChild, out: toChild}
	c.conn = wire.NewConn(c.pipes)
	cmd.Path = sameProgram(cmd.Path)
	cmd.Env, cmd.Dir = []string{oneThread}, rootDir()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, c.stderr
	cmd.WaitDelay = time.Second // for standard error, if another process holds it open
	k.sendPlan(plan, weak)
	c.group, err = b.spawner.Start(c.cmd)
	_, _ = in.Close(), out.Close()
	for _, f := range cmd.ExtraFiles {
		_ = f.Close()
	}
	if err != nil {
		_, _ = toChild.Close(), fromChild.Close()
		closeFile(listener)
		return nil, err
	}
	b.children.Go(func() {
		_ = c.cmd.Wait() // how it ended is in ProcessState
		if c.oomKilled = c.group.IsOutOfMemory(); c.oomKilled {
			c.peak.Note(c.group.PeakBytes())
		}
		c.group.Remove()
		closeFile(c.listener)
		close(c.exited)
	})
	return c, nil
}

// Kill ends the child without waiting for its end. It is idempotent.
func (c *guestChild) Kill() { _ = c.conn.Close() }

// endChild kills the child process. It is called when the child's connection is closed.
func (c *guestChild) endChild() {
	c.measureMemory()
	_ = c.cmd.Process.Kill()
}

// measureMemory records the child's peak memory, unless its program has run for too short a time (minSampledRuntime).
func (c *guestChild) measureMemory() {
	if time.Since(c.began) > minSampledRuntime {
		c.peak.Note(highWater(c.cmd.Process.Pid))
	}
}

// stderrSuffix returns the cause of the child's end from its standard error, as a suffix for an error message. The
// child must have exited.
func (c *guestChild) stderrSuffix() string {
	return exitcause.FirstStderrLine(c.stderr.String())
}

func (c *guestChild) IsAlive() bool {
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}

// pipeConn represents the connection to a child. Closing it kills the child.
type pipeConn struct {
	child   *guestChild
	in, out *os.File
}

func (p *pipeConn) Read(b []byte) (int, error)  { return p.in.Read(b) }
func (p *pipeConn) Write(b []byte) (int, error) { return p.out.Write(b) }

func (p *pipeConn) Close() error {
	p.child.endChild()
	_ = p.out.Close()
	return p.in.Close()
}
