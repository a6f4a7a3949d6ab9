package process

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox/exitcause"
	"retort/internal/sandbox/procgroup"
	"retort/internal/sandbox/warmpool"
)

const (
	// minSampledRuntime is the shortest running time of a program for which its peak memory is measured. For a
	// shorter program, measuring would take about as long as the program itself. Its report states the memory that
	// the child process used before the program arrived.
	minSampledRuntime = 5 * time.Millisecond

	helperThreads = 128
)

// guestChild implements warmpool.Guest with a child process.
type guestChild struct {
	kind      *childKind
	cmd       *exec.Cmd
	in, out   *os.File // ends of the pipes from and to the child
	stderr    *procgroup.StderrHead
	peak      warmpool.MemoryPeak
	group     *procgroup.ChildGroup
	killing   sync.Once
	presetFor core.Limits    // limits that were set for the child's control group before a program arrived
	began     time.Time      // time at which the child received its program
	footing   baselineMemory // memory and threads of the child when its program arrived
	oomKilled bool           // the kernel killed the child because memory ran out; valid only after exited is closed
	exited    chan struct{}  // closed when the child has ended and its exit status was collected
	listener  *os.File       // socket over which the child sends its network listener; nil without network access
}

// supplyChild starts a child of kind k, with the confinement that this machine allows, and waits until it is ready for
// a program. If the child that probeMachine started is still there, it returns that.
func (b *Backend) supplyChild(k *childKind) (*warmpool.ReadyGuest, error) {
	found := b.check()
	if found.refusal != nil {
		return nil, found.refusal
	}
	if err := k.checkFound(); err != nil {
		return nil, err
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
func (b *Backend) startGreeted(k *childKind, weak bool) (*warmpool.ReadyGuest, error) {
	if code := b.compiledHarness(k, weak); code != nil {
		if c, err := b.greetChild(k.withArgument(CompiledArgument), weak, code); err == nil {
			return c, nil
		}
		k.harness.code.Store(nil) // the program may be another one by now
	}
	return b.greetChild(k, weak, nil)
}

// greetChild starts a child and waits for its greeting, the message that it is ready for a program. The argument code
// holds the compiled harness, the code that runs programs in the child, or is nil.
func (b *Backend) greetChild(k *childKind, weak bool, code []byte) (*warmpool.ReadyGuest, error) {
	var c *guestChild
	ready, err := b.StartGuest(warmpool.GuestKind{
		Runtime: k.runtime, Within: b.greeting, Harness: code,
		Start: func(context.Context) (_ warmpool.Guest, err error) {
			c, err = b.startChild(k, weak)
			return c, err
		},
	})
	if err != nil {
		return nil, err
	}
	c.presetLimits(b.limits, k.plan.Processes)
	return ready, nil
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
	return c, nil
}

// oneThread is the environment variable that makes the Go runtime of a child run Go code on one thread at a time.
// Setting that from the start is cheaper than runtime.GOMAXPROCS in the process, which stops all threads.
// Interpreters such as Python do not get the variable, because programs can see their environment.
const oneThread = "GOMAXPROCS=1"

func (b *Backend) startChild(k *childKind, weak bool) (_ *guestChild, err error) {
	if !b.enter() {
		return nil, warmpool.ErrClosed
	}
	defer func() {
		if err != nil {
			b.children.Done()
		}
	}()
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
	c := &guestChild{
		kind: k, cmd: cmd, in: fromChild, out: toChild, stderr: &procgroup.StderrHead{}, exited: make(chan struct{}),
		listener: listener,
	}
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
	go func() {
		defer b.children.Done()
		c.awaitExit()
	}()
	return c, nil
}

// awaitExit waits until the child has ended and collects its exit status.
func (c *guestChild) awaitExit() {
	_ = c.cmd.Wait() // how it ended is in ProcessState
	if c.oomKilled = c.group.IsOutOfMemory(); c.oomKilled {
		c.peak.Note(c.group.PeakBytes())
	}
	c.group.Remove()
	closeFile(c.listener)
	close(c.exited)
}

func (c *guestChild) Read(b []byte) (int, error)  { return c.in.Read(b) }
func (c *guestChild) Write(b []byte) (int, error) { return c.out.Write(b) }

// Close implements warmpool.Guest.
func (c *guestChild) Close() error {
	c.Kill()
	return nil
}

// Kill implements warmpool.Guest. It also closes the connection to the child.
func (c *guestChild) Kill() {
	c.killing.Do(func() {
		c.measureMemory()
		_ = c.cmd.Process.Kill()
		_, _ = c.out.Close(), c.in.Close()
	})
}

// Gone implements warmpool.Guest.
func (c *guestChild) Gone() <-chan struct{} { return c.exited }

// Limit implements warmpool.Guest.
func (c *guestChild) Limit(l core.Limits) {
	c.setLimits(l, c.kind.plan.Processes)
	c.began = time.Now()
	c.peak.Note(c.residentBefore())
}

// Bounds implements warmpool.Guest.
func (c *guestChild) Bounds() string { return c.group.DescribeLimits() }

// Peak implements warmpool.Guest.
func (c *guestChild) Peak() int64 {
	c.measureMemory()
	return c.peak.Bytes()
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
