// Package reaper starts child processes of which nothing outlives this process,
// not even when it is killed with SIGKILL.
//
// On Linux each child has a keeper: a process that starts it, stays its parent and
// adopts whatever it leaves behind (PR_SET_CHILD_SUBREAPER). So a daemon that forks
// twice and begins a session of its own is still a descendant of the keeper. The
// keeper kills all its descendants when the child has ended, when it is asked to,
// and when this process is gone. Processes of another user, which sudo starts, can't
// be killed, and are left.
//
// On other Unix systems each child leads a process group, and one helper process
// kills the groups that are left when this process is gone. A process that leaves
// its group outlives its child there. On Windows each child has a job, which the
// system ends with this process.
package reaper

import (
	"errors"
	"os/exec"
	"sync"
	"time"
)

// ErrClosed is the error of a Reaper that was closed.
var ErrClosed = errors.New("reaper: closed")

// Reaper starts processes and keeps watch over them. It is safe for use by
// several goroutines.
type Reaper struct {
	system *systemStarter

	mu       sync.Mutex
	closed   bool
	starting sync.WaitGroup
	live     map[*Process]struct{}
}

// New makes a Reaper. The argument list argv starts the process that keeps watch: the
// own binary with arguments that make it call Serve. With no arguments nobody keeps
// watch: only the process group of each child is ended with it, and after a SIGKILL of
// this process Linux still kills the direct children, and nobody their children.
//
// Nothing is started before the first child.
func New(argv ...string) *Reaper {
	return &Reaper{system: newSystem(argv), live: map[*Process]struct{}{}}
}

// Start starts cmd as the leader of a new session. The caller must have set
// cmd's standard streams to files (or nil), and neither calls cmd.Start nor
// cmd.Wait. Of cmd's other fields Path, Args, Env and Dir count. An error means
// that nothing was left running.
func (r *Reaper) Start(cmd *exec.Cmd) (*Process, error) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil, ErrClosed
	}
	r.starting.Add(1)
	r.mu.Unlock()
	defer r.starting.Done()
	t, err := r.system.startTree(cmd)
	if err != nil {
		return nil, err
	}
	p := &Process{tree: t, done: make(chan struct{})}
	r.mu.Lock()
	r.live[p] = struct{}{}
	r.mu.Unlock()
	go func() {
		p.state = t.awaitEnd()
		r.mu.Lock()
		delete(r.live, p)
		r.mu.Unlock()
		close(p.done)
	}()
	return p, nil
}

// Close ends all processes that are still there, each with grace to end by
// itself. It returns when nothing is left.
func (r *Reaper) Close(grace time.Duration) {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.starting.Wait()
	var wg sync.WaitGroup
	for _, p := range r.runningProcesses() {
		wg.Go(func() { p.Stop(grace) })
	}
	wg.Wait()
	r.system.closeStarter()
}

func (r *Reaper) runningProcesses() []*Process {
	r.mu.Lock()
	defer r.mu.Unlock()
	live := make([]*Process, 0, len(r.live))
	for p := range r.live {
		live = append(live, p)
	}
	return live
}

// Process represents a running child with everything that it has started.
type Process struct {
	tree  processTree
	done  chan struct{} // closed when nothing is left
	state string
}

// processTree represents a child and what descends from it, as far as the system can tell.
type processTree interface {
	processID() int
	// stopTree asks all of it to end, and has what is left killed after grace. It may return
	// before that.
	stopTree(grace time.Duration)
	// awaitEnd returns when nothing is left, and says how the child ended. What the child leaves
	// behind is killed.
	awaitEnd() (state string)
}

// PID returns the process id of the child.
func (p *Process) PID() int { return p.tree.processID() }

// Done returns a channel that is closed when the child has ended and nothing is left of
// what it has started.
func (p *Process) Done() <-chan struct{} { return p.done }

// State returns how the child ended: "exit status 3", "signal: killed". It is empty
// until Done is closed.
func (p *Process) State() string {
	if !isClosed(p.done) {
		return ""
	}
	return p.state
}

// Stop asks the child and all that it has started to end, kills what is left after
// grace, and returns when nothing is left. It may be called at any time and repeatedly.
func (p *Process) Stop(grace time.Duration) {
	if !isClosed(p.done) {
		p.tree.stopTree(grace)
	}
	<-p.done
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// waitFor waits until c is closed, at most for d. It reports whether c is closed.
func waitFor(c <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-t.C:
		return false
	}
}
