package procgroup

import (
	"os/exec"
	"runtime"
	"sync"
)

// Spawner starts children from one thread that lives as long as they do. The kernel sends a child its death signal
// when the thread that forked it ends, and Go may end other threads at any time.
type Spawner struct {
	groups *Groups
	tasks  chan func()
	done   sync.Once
}

// New makes a Spawner that puts each child into a group of its own below groups, unless groups is nil. The caller
// must close it.
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

// Start starts cmd and returns its group, which is nil if it has none. The caller must remove the group after it has
// waited for the process.
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

// Close ends the thread and removes the groups. All children must have ended.
func (s *Spawner) Close() {
	s.done.Do(func() {
		close(s.tasks)
		s.groups.Close()
	})
}
