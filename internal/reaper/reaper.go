// Package reaper starts child processes of which nothing outlives this process,
// not even when it is killed with SIGKILL. Every child leads a process group
// (on Windows: a job) of its own, is ended together with everything it has
// started, and is watched by one helper process, which ends what is left when
// this process is gone.
//
// On Linux the child itself is also killed by the kernel when this process
// dies. What a child starts and moves into another session on purpose, as a
// daemon does, is left alone.
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
	helper  *helper // nil if there is none
	spawner spawner

	mu     sync.Mutex
	closed bool
	live   map[*Process]struct{}
}

// New makes a Reaper. The argument list argv starts the helper process: the own
// binary with arguments that make it call Serve with its standard input. With no
// arguments there is no helper: after a SIGKILL of this process, Linux still
// kills the direct children, and nobody their children.
//
// The helper is started together with the first child.
func New(argv ...string) *Reaper {
	r := &Reaper{live: map[*Process]struct{}{}}
	if len(argv) > 0 {
		r.helper = &helper{argv: argv}
	}
	return r
}

// Start starts cmd as the leader of a new session. The caller must have set
// cmd's standard streams to files (or nil), and neither calls cmd.Start nor
// cmd.Wait. An error means that nothing was left running.
func (r *Reaper) Start(cmd *exec.Cmd) (*Process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, ErrClosed
	}
	prepare(cmd)
	if err := r.spawner.start(cmd); err != nil {
		return nil, err
	}
	p, err := adopt(cmd)
	if err != nil {
		return nil, err
	}
	r.live[p] = struct{}{}
	release := r.Watch(cmd.Process.Pid)
	go func() {
		p.await()
		release()
		r.mu.Lock()
		delete(r.live, p)
		r.mu.Unlock()
		close(p.done)
	}()
	return p, nil
}

// Watch has the helper kill the process group led by pid if this process dies
// before release is called. It is for children that were started elsewhere.
// Without a helper it does nothing.
func (r *Reaper) Watch(pid int) (release func()) {
	if r.helper == nil {
		return func() {}
	}
	r.helper.watch(pid)
	return sync.OnceFunc(func() { r.helper.release(pid) })
}

// Err says why the helper does not run although it should: the processes are not
// watched then. It is nil if all is well, or no process was started yet.
func (r *Reaper) Err() error {
	if r.helper == nil {
		return nil
	}
	r.helper.mu.Lock()
	defer r.helper.mu.Unlock()
	return r.helper.err
}

// Close ends all processes that are still there, each with grace to end by
// itself, then the helper. It returns when nothing is left.
func (r *Reaper) Close(grace time.Duration) {
	r.mu.Lock()
	r.closed = true
	live := make([]*Process, 0, len(r.live))
	for p := range r.live {
		live = append(live, p)
	}
	r.mu.Unlock()
	var wg sync.WaitGroup
	for _, p := range live {
		wg.Go(func() { p.Stop(grace) })
	}
	wg.Wait()
	r.spawner.close()
	if r.helper != nil {
		r.helper.close()
	}
}
