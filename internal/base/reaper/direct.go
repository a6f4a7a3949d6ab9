package reaper

import (
	"os/exec"
	"sync"
	"time"
)

// directChild represents a child of this process together with its group. On Unix, the group is the process group
// that the child leads. On Windows, it is the child's job object.
type directChild struct {
	cmd   *exec.Cmd
	group processGroup

	exited chan struct{} // closed when the child itself has ended, even if its group has not

	mu       sync.Mutex
	deadline time.Time // time until which the rest of the group may outlive the child
}

// newDirect returns the directChild for cmd. The caller must have started cmd. If newDirect fails, it kills cmd.
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

// awaitEnd waits until the child has ended and no process of its group is left. If the child has ended by itself,
// awaitEnd kills the rest of the group immediately. If stopTree is stopping the child, the rest of the group first
// gets the grace period of stopTree. The child is reaped only afterwards. Until then its process id, which is also the
// group's id, cannot be reused.
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
