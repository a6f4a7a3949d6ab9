package process

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// strength ranks this sandbox among the others: a process of its own that the
// operating system limits, but does not wall in.
const strength = 20

func walls() []string {
	return []string{
		"a process of its own, killed at the deadline", "no environment, no inherited descriptors",
		"a runtime without files, network or processes", "limits on memory, CPU time, files and open descriptors",
		"ends with the engine, whatever ends it",
	}
}

// attributes put a child into a session of its own and have the kernel kill it
// when the thread that started it ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// sameProgram is the path to start for path. For that of this very program it is
// what this process runs, also after an upgrade has put another in its place:
// host and guest must be of one version.
func sameProgram(path string) string {
	const running = "/proc/self/exe"
	own, err := os.Executable()
	if err != nil || path != own {
		return path
	}
	if _, err := os.Stat(running); err != nil {
		return path
	}
	return running
}

// spawner starts children from one thread that lives as long as they may: Go
// ends threads as it likes, and the kernel sends a child its death signal when
// the thread that forked it ends.
type spawner struct {
	tasks chan func()
	done  sync.Once
}

func newSpawner() *spawner {
	s := &spawner{tasks: make(chan func())}
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		for task := range s.tasks {
			task()
		}
	}()
	return s
}

func (s *spawner) start(cmd *exec.Cmd) error {
	result := make(chan error)
	s.tasks <- func() { result <- cmd.Start() }
	return <-result
}

// close ends the thread. No child may be left.
func (s *spawner) close() { s.done.Do(func() { close(s.tasks) }) }
