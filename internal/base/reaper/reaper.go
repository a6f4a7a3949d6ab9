// Package reaper starts child processes and ensures that neither they nor their descendants outlive this process,
// even if it is killed with SIGKILL.
//
// On Linux each child has a keeper process. The keeper starts the child, stays its parent and adopts its orphaned
// descendants (PR_SET_CHILD_SUBREAPER). So a daemon that forks twice and starts its own session is still a descendant
// of the keeper. The keeper kills all its descendants when the child has ended, when this process requests it, and
// when this process has ended. Processes of another user, such as those that sudo starts, cannot be killed and are
// left running.
//
// On other Unix systems each child leads a process group, and one helper process kills the remaining groups when this
// process has ended. There, a process that leaves its group outlives its child.
//
// On Windows each child has a job object, which the system terminates together with this process.
package reaper

import (
	"errors"
	"os/exec"
	"sync"
	"time"
)

// ErrClosed is the error that Start returns after Close.
var ErrClosed = errors.New("reaper: closed")

// Reaper starts child processes and ensures that they end with this process. It is safe for concurrent use.
type Reaper struct {
	system *systemStarter

	mu       sync.Mutex
	closed   bool
	starting sync.WaitGroup
	live     map[*ReapedProcess]struct{}
}

// New returns a Reaper and starts no process. argv is the command that starts the processes that watch children: this
// binary, with arguments that make it call Serve. Without argv no processes watch the children, and ending a child
// ends only its process group. If this process is then killed with SIGKILL, Linux kills the direct children, but not
// their descendants.
func New(argv ...string) *Reaper {
	return &Reaper{system: newSystem(argv), live: map[*ReapedProcess]struct{}{}}
}

// Start starts cmd as the leader of a new session. The caller must set cmd's standard streams to files or nil, and
// must call neither cmd.Start nor cmd.Wait. Of cmd's other fields, only Path, Args, Env and Dir are used. If Start
// returns an error, no process is left running.
func (r *Reaper) Start(cmd *exec.Cmd) (*ReapedProcess, error) {
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
	p := &ReapedProcess{tree: t, done: make(chan struct{})}
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

// Close stops all running processes. It kills those that remain after grace. It returns when no process is left.
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

func (r *Reaper) runningProcesses() []*ReapedProcess {
	r.mu.Lock()
	defer r.mu.Unlock()
	live := make([]*ReapedProcess, 0, len(r.live))
	for p := range r.live {
		live = append(live, p)
	}
	return live
}

// ReapedProcess represents a running child with its descendants.
type ReapedProcess struct {
	tree  processTree
	done  chan struct{} // closed when the child and all its descendants have ended
	state string
}

// processTree represents a child together with its descendants, as far as the operating system lets this process
// track them.
type processTree interface {
	processID() int
	// stopTree asks all processes of the tree to end. Those that remain after grace are killed, possibly after
	// stopTree has returned.
	stopTree(grace time.Duration)
	// awaitEnd waits until no process of the tree is left. It kills descendants that outlive the child. It returns how
	// the child ended.
	awaitEnd() (state string)
}

// ProcessID returns the process id of the child.
func (p *ReapedProcess) ProcessID() int { return p.tree.processID() }

// Done returns a channel that is closed when the child and all its descendants have ended.
func (p *ReapedProcess) Done() <-chan struct{} { return p.done }

// State returns how the child ended, such as "exit status 3" or "signal: killed". It returns "" until Done is closed.
func (p *ReapedProcess) State() string {
	if !isClosed(p.done) {
		return ""
	}
	return p.state
}

// Stop asks the child and its descendants to end, and kills those that remain after grace. It returns when none is
// left. It may be called at any time and more than once.
func (p *ReapedProcess) Stop(grace time.Duration) {
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

// waitFor waits until c is closed, but at most for d. It reports whether c is closed.
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
