package reaper

import (
	"os"
	"os/exec"
	"sync"
	"time"
)

// Process is a running child with everything that it has started.
type Process struct {
	cmd   *exec.Cmd
	group group

	exited chan struct{} // the child itself has ended
	done   chan struct{} // nothing is left of the group either
	state  *os.ProcessState

	mu       sync.Mutex
	deadline time.Time // until when the rest of the group may live on after the child
}

func adopt(cmd *exec.Cmd) (*Process, error) {
	g, err := newGroup(cmd)
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, err
	}
	return &Process{cmd: cmd, group: g, exited: make(chan struct{}), done: make(chan struct{})}, nil
}

// PID is the process id of the child, which is also that of its group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended and nothing is left of its group.
func (p *Process) Done() <-chan struct{} { return p.done }

// State is how the child ended: "exit status 3", "signal: killed". It is empty
// until Done is closed.
func (p *Process) State() string {
	select {
	case <-p.done:
		return p.state.String()
	default:
		return ""
	}
}

// Stop asks the whole group to end, kills what is left of it after grace, and
// returns when nothing is left. It may be called at any time and repeatedly.
func (p *Process) Stop(grace time.Duration) {
	p.mu.Lock()
	p.deadline = time.Now().Add(grace)
	p.mu.Unlock()
	if grace > 0 && !ended(p.done) {
		p.group.terminate()
		wait(p.exited, grace)
	}
	if !ended(p.exited) {
		p.group.kill()
	}
	<-p.done
}

// await returns when the child has ended and its group is gone. A child that
// ends by itself takes its group with it at once; one that is being stopped
// leaves the others the time that Stop granted.
//
// The child stays unreaped until then, so that its process id, which is the
// name of the group, cannot come to mean somebody else.
func (p *Process) await() {
	p.group.awaitLeader(p.cmd)
	close(p.exited)
	p.mu.Lock()
	deadline := p.deadline
	p.mu.Unlock()
	for p.group.alive() && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
	}
	p.group.kill()
	_ = p.cmd.Wait() // how it ended is in ProcessState; not all systems can wait without reaping
	p.state = p.cmd.ProcessState
	p.group.close()
}

func ended(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func wait(c <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
	case <-t.C:
	}
}
