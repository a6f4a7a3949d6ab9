package procgroup

import (
	"os/exec"
	"runtime"
	"sync"
)

// Spawner starts children from one thread that lives as long as they may: Go
// ends threads as it likes, and the kernel sends a child its death signal when
// the thread that forked it ends.
type Spawner struct {
	groups *Groups
	tasks  chan func()
	done   sync.Once
}

// New makes a Spawner that puts each child into a group of its own, below groups;
// nil is none. Close must be called.
func New(groups *Groups) *Spawner {
	s := &Spawner{groups: groups, tasks: make(chan func())}
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		for task := range s.tasks {
			task()
		}
	}()
	return s
}

// Start starts cmd. Its group is nil where it is in none; else who has waited for
// it removes the group.
func (s *Spawner) Start(cmd *exec.Cmd) (*Group, error) {
	in := s.groups.Add()
	var inside bool
	var err error
	done := make(chan struct{})
	s.tasks <- func() {
		inside, err = in.bear(cmd.SysProcAttr, cmd.Start)
		close(done)
	}
	<-done
	if err != nil || !inside {
		in.Remove()
		in = nil
	}
	return in, err
}

// Close ends the thread and removes the groups. No child may be left.
func (s *Spawner) Close() {
	s.done.Do(func() {
		close(s.tasks)
		s.groups.Close()
	})
}
