package reaper

import (
	"os/exec"
	"sync"
	"time"
)

// directChild represents a child of this process with its group: on Unix the process group that it leads, on Windows its
// job.
type directChild struct {
	cmd   *exec.Cmd
	group processGroup

	exited chan struct{} // closed when the child itself has ended

	mu       sync.Mutex
	deadline time.Time // until when the rest of the group may live on after the child
}

// newDirect makes the tree of cmd, which runs. If it fails, it kills cmd.
func newDirect(cmd *exec.Cmd) (*directChild, error) {
	g, err := newGroup(cmd)
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, err
	}
	return &directChild{cmd: cmd, group: g, exited: make(chan struct{})}, nil
}

func (d *directChild) processID() int { return d.cmd.Process.Pid }

func (d *directChild) stopTree(grace time.Duration) {
	d.mu.Lock()
	d.deadline = time.Now().Add(grace)
	d.mu.Unlock()
	if grace > 0 {
		d.group.terminateAll()
		waitFor(d.exited, grace)
	}
	if !isClosed(d.exited) {
		d.group.killAll()
	}
}

// awaitEnd returns when the child has ended and its group is gone. A child that ends by
// itself takes its group with it at once; one that is being stopped leaves the others
// the time that stop granted.
//
// The child stays unreaped until then, so that its process id, which is the name of
// the group, cannot come to mean somebody else.
func (d *directChild) awaitEnd() string {
	d.group.awaitLeader(d.cmd)
	close(d.exited)
	d.mu.Lock()
	deadline := d.deadline
	d.mu.Unlock()
	for d.group.isAlive() && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
	}
	d.group.killAll()
	_ = d.cmd.Wait() // how it ended is in ProcessState; not all systems can wait without reaping
	d.group.closeGroup()
	return d.cmd.ProcessState.String()
}
