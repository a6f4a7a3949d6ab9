package procgroup

import (
	"os/exec"
	"runtime"
	"sync"
)

// ChildSpawner starts children from one thread that lives as long as the ChildSpawner. The kernel sends a child its
// death signal when the thread that forked it ends, and Go may end ordinary threads at any time.
type ChildSpawner struct {
	groups *GroupSet
	tasks  chan func()
	done   sync.Once
}

// New returns a ChildSpawner. It puts each child into its own group below groups, unless groups is nil. The caller
// must close it.
func New(groups *GroupSet) *ChildSpawner {
	s := &ChildSpawner{groups: groups, tasks: make(chan func())}
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		for task := range s.tasks {
			task()
		}
	}()
	return s
}

// Start starts cmd and returns its group, which is nil without control groups. The caller must remove the group after
// waiting for the process.
func (s *ChildSpawner) Start(cmd *exec.Cmd) (*ChildGroup, error) {
	in := s.groups.AddGroup()
	var inside bool
	var err error
	done := make(chan struct{})
	s.tasks <- func() {
		inside, err = in.startInside(cmd.SysProcAttr, cmd.Start)
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
func (s *ChildSpawner) Close() {
	s.done.Do(func() {
		close(s.tasks)
		s.groups.Close()
	})
}
