package reaper

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// keeperPatience limits the time that a new keeper, the process that watches a child, may take to start that
	// child. It matters for programs that embed the engine and do not call Serve, because their keepers may never
	// respond.
	keeperPatience = time.Minute
	// stopPatience limits the time that a keeper, the process that watches a child, may take to kill the child and its
	// descendants. A keeper exceeds it if it is suspended. This process then kills the keeper, adopts the keeper's
	// orphans and kills them itself.
	stopPatience = 10 * time.Second
)

// keptChild represents a child that a keeper has started. A keeper is a process that watches one child and kills its
// descendants.
type keptChild struct {
	keeper *exec.Cmd
	engine *os.File // this process's end of the socket to the keeper
	in     *json.Decoder
	leader int
	begun  uint64        // start time of the keeper
	over   chan struct{} // closed when the keeper has ended

	sending sync.Mutex
}

// startKept starts a keeper, which in turn starts cmd, watches it and kills its descendants.
func (s *systemStarter) startKept(cmd *exec.Cmd) (processTree, error) {
	k, err := s.startKeeper(cmd)
	if err != nil {
		// Not wrapped: errors.Is would find that the server's program is missing.
		const format = "the watchdog process of the server cannot be started: %v"
		return nil, fmt.Errorf(format, err)
	}
	first, err := k.beginChild(cmd)
	if err == nil && first.Errno == 0 && first.PID > 0 {
		k.leader = first.PID
		go k.awaitKeeper()
		return k, nil
	}
	_ = k.keeper.Process.Kill()
	_ = k.keeper.Wait()
	_ = k.engine.Close()
	if err != nil {
		return nil, fmt.Errorf("the watchdog process of the server does not answer: %w", err)
	}
	return nil, &os.PathError{Op: "fork/exec", Path: cmd.Path, Err: first.Errno}
}

// startKeeper starts a keeper, the process that will start and watch cmd. The keeper gets the standard streams of cmd.
// It runs in a new session, so that it receives no signals from the terminal and none that are sent to this process's
// group. It inherits no environment.
func (s *systemStarter) startKeeper(cmd *exec.Cmd) (*keptChild, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	k := &keptChild{engine: ours, in: json.NewDecoder(ours), over: make(chan struct{})}
	k.keeper = exec.Command(ownProgram(s.argv[0]), s.argv[1:]...)
	k.keeper.Args[0] = s.argv[0]
	k.keeper.Env = []string{}
	k.keeper.Stdin, k.keeper.Stdout, k.keeper.Stderr = cmd.Stdin, cmd.Stdout, cmd.Stderr
	k.keeper.ExtraFiles = []*os.File{theirs} // engineFD
	// If something has stopped the keeper, the death of this process lets it go on.
	k.keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGCONT}
	if err := s.spawner.startCommand(k.keeper); err != nil {
		_ = ours.Close()
		return nil, err
	}
	if stat, err := ReadStat(k.keeper.Process.Pid); err == nil {
		k.begun = stat.Start
	}
	return k, nil
}

// beginChild sends a keeper the command to start, and returns the keeper's report. A keeper is the process that starts
// and watches a child.
func (k *keptChild) beginChild(cmd *exec.Cmd) (first keeperReport, err error) {
	_ = k.engine.SetDeadline(time.Now().Add(keeperPatience))
	defer func() { _ = k.engine.SetDeadline(time.Time{}) }()
	o := startOrder{Engine: os.Getpid(), Path: []byte(cmd.Path), Dir: []byte(cmd.Dir), Args: bytesOf(cmd.Args), Env: bytesOf(cmd.Environ())}
	if err := json.NewEncoder(k.engine).Encode(o); err != nil {
		return first, err
	}
	return first, k.in.Decode(&first)
}

func (k *keptChild) processID() int { return k.leader }

func (k *keptChild) stopTree(grace time.Duration) {
	k.requestStop(grace)
	_ = k.keeper.Process.Signal(syscall.SIGCONT)
	if waitFor(k.over, max(grace, 0)+stopPatience) {
		return
	}
	_ = k.keeper.Process.Kill()
}

func (k *keptChild) requestStop(grace time.Duration) {
	k.sending.Lock()
	defer k.sending.Unlock()
	_ = k.engine.SetWriteDeadline(time.Now().Add(stopPatience))
	_ = json.NewEncoder(k.engine).Encode(keeperRequest{Stop: grace})
}

// awaitKeeper waits until the keeper, the process that watches the child, has ended. After that, the keeper's last
// messages can be read for one more second. The time is limited, because another process may keep the keeper's end of
// the socket open.
func (k *keptChild) awaitKeeper() {
	_ = k.keeper.Wait()
	_ = k.engine.SetReadDeadline(time.Now().Add(time.Second))
	close(k.over)
}

func (k *keptChild) awaitEnd() string {
	var last keeperReport
	state := "signal: killed, as was the process that kept watch over it"
	for !last.Gone {
		last = keeperReport{}
		if k.in.Decode(&last) != nil {
			break
		}
		if last.Ended != nil {
			state = describeStatus(*last.Ended)
		}
	}
	<-k.over
	if !last.Gone {
		killOrphans(k.begun)
	}
	_ = k.engine.Close()
	return state
}

// describeStatus formats a wait status in the same way as os.ProcessState.
func describeStatus(status syscall.WaitStatus) string {
	switch {
	case status.Exited():
		return fmt.Sprintf("exit status %d", status.ExitStatus())
	case status.Signaled() && status.CoreDump():
		return "signal: " + status.Signal().String() + " (core dumped)"
	case status.Signaled():
		return "signal: " + status.Signal().String()
	}
	return fmt.Sprintf("wait status %d", status)
}

// socketPair returns two connected sockets. Unlike pipes, other processes cannot open them through /proc.
func socketPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.SetNonblock(fds[0], true); err != nil { // for deadlines
		return nil, nil, errors.Join(err, unix.Close(fds[0]), unix.Close(fds[1]))
	}
	return os.NewFile(uintptr(fds[0]), "keeper"), os.NewFile(uintptr(fds[1]), "engine"), nil
}

// ownProgram returns the path with which to start the binary at path. If path is this process's own binary, it returns
// /proc/self/exe. An update may have replaced the file, and the keeper process must have the same version as this
// process.
func ownProgram(path string) string {
	if own, err := os.Executable(); err == nil && own == path {
		return "/proc/self/exe"
	}
	return path
}

func bytesOf(list []string) (all [][]byte) {
	for _, s := range list {
		all = append(all, []byte(strings.Clone(s)))
	}
	return all
}
