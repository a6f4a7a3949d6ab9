package reaper

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// systemStarter starts children. If argv is set, each child gets a keeper, a process that watches the child and kills
// its descendants. argv is the command that starts a keeper. Without argv, systemStarter starts children directly.
type systemStarter struct {
	argv    []string
	spawner spawner

	sweepOnce sync.Once     // starts the sweeper at most once
	closeOnce sync.Once     // lets closeStarter act only once
	quit      chan struct{} // closed to end the sweeper; nil if no sweeper runs
	swept     chan struct{} // closed when the sweeper has ended
}

func newSystem(argv []string) *systemStarter { return &systemStarter{argv: argv} }

func (s *systemStarter) startTree(cmd *exec.Cmd) (processTree, error) {
	if len(s.argv) > 0 {
		s.sweepOnce.Do(s.startSweep)
		return s.startKept(cmd)
	}
	prepareCommand(cmd)
	if err := s.spawner.startCommand(cmd); err != nil {
		return nil, err
	}
	d, err := newDirect(cmd)
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (s *systemStarter) closeStarter() {
	s.closeOnce.Do(func() {
		s.spawner.closeSpawner()
		s.sweepOnce.Do(func() {}) // nothing sweeps from now on
		if s.quit != nil {
			close(s.quit)
			<-s.swept
		}
	})
}

// prepareCommand makes cmd the leader of a new session. It also makes the kernel kill the process when the thread that
// starts it ends.
func prepareCommand(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// Names of one thread in each engine and in each keeper (the process that watches a child). hasThread recognizes
// engines and keepers by these names. Any process can read the names in /proc, and no other process can change them.
const (
	engineThread = "retort-engine"
	keeperThread = "retort-keeper"
)

// nameThread names the calling thread, which must be locked to its goroutine.
func nameThread(name string) {
	_ = os.WriteFile("/proc/thread-self/comm", []byte(name), 0)
}

// spawner starts processes from a thread that lives as long as these processes may run. The kernel kills a child when
// the thread that forked it ends, and Go may end ordinary threads at any time.
type spawner struct {
	mu    sync.Mutex
	tasks chan func()
}

func (s *spawner) startCommand(cmd *exec.Cmd) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tasks == nil {
		s.tasks = make(chan func())
		go serveThread(s.tasks)
	}
	result := make(chan error)
	s.tasks <- func() { result <- cmd.Start() }
	return <-result
}

// serveThread runs tasks on one operating system thread. It never unlocks the thread, so that the thread ends with the
// goroutine. It does not use the main thread, because renaming that thread would rename the process.
func serveThread(tasks <-chan func()) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		locked := make(chan struct{})
		go func() {
			runtime.LockOSThread() // on another thread, as this one is taken
			close(locked)
			serveThread(tasks)
		}()
		<-locked
		runtime.UnlockOSThread()
		return
	}
	nameThread(engineThread)
	for task := range tasks {
		task()
	}
}

func (s *spawner) closeSpawner() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tasks != nil {
		close(s.tasks)
		s.tasks = nil
	}
}

// awaitLeader waits until the leader has ended, without reaping it.
func (g processGroup) awaitLeader(*exec.Cmd) {
	for {
		err := unix.Waitid(unix.P_PID, g.pgid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}

// isAlive reports whether a process of the group is running. Zombies do not count.
func (g processGroup) isAlive() bool {
	for _, pid := range processIDs() {
		if s, err := ReadStat(pid); err == nil && s.Group == g.pgid && !s.isDead() {
			return true
		}
	}
	return false
}

// processIDs returns the ids of all processes.
func processIDs() (pids []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
