package reaper

import (
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// engineFD is the number of the file descriptor that is a keeper's end of the socket to the engine. A keeper is the
// process that watches a child.
const engineFD = 3

// startOrder is the engine's first message to a keeper, the process that watches one child. It contains the command to
// start as that child. The fields are byte slices because paths, arguments and variables need not be UTF-8.
type startOrder struct {
	Engine    int // process id of the engine
	Path, Dir []byte
	Args, Env [][]byte
}

// keeperRequest represents a message from the engine to a keeper, the process that watches one child of the engine.
// The first message is a startOrder instead.
type keeperRequest struct {
	Stop time.Duration // asks all processes to end; those that remain after this time are killed
}

// keeperReport represents a message to the engine from a keeper, the process that watches one child. The message says
// that the child was started, why it could not be started, how it ended, or that no process is left to kill.
type keeperReport struct {
	PID   int                 // process id of the child that was started
	Errno syscall.Errno       // error if the child could not be started
	Ended *syscall.WaitStatus // wait status of the child if it has ended
	Gone  bool                // whether no process is left that can be killed; set in the last message
}

// Serve runs a keeper, the process that watches one child. It starts the command that the engine requests. It kills
// all its descendants when the command has ended, when the engine requests it, or when the engine has ended. It
// returns when no descendant is left.
func Serve() {
	runtime.LockOSThread() // the kernel kills the child when the thread ends that started it
	nameThread(keeperThread)
	// Caught and not ignored: what is ignored would be ignored by the child too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	syscall.CloseOnExec(engineFD)
	engine := os.NewFile(engineFD, "engine")
	in, out := json.NewDecoder(engine), json.NewEncoder(engine)
	var o startOrder
	if in.Decode(&o) != nil {
		return
	}
	k := &keeperProcess{ended: make(chan syscall.WaitStatus, 1), empty: make(chan struct{})}
	errno := k.startChild(o)
	_ = out.Encode(keeperReport{PID: k.leader, Errno: errno})
	if errno != 0 {
		return
	}
	k.serveRequests(readRequests(in), engineGone(o.Engine), out)
	_ = out.Encode(keeperReport{Gone: true})
}

// keeperProcess holds the state of a keeper. A keeper is the parent of one child, and of all orphans among the child's
// descendants.
type keeperProcess struct {
	leader int
	// reaping is held while children are reaped or signalled, so that a child's id cannot be reused before the child
	// is signalled.
	reaping sync.Mutex
	ended   chan syscall.WaitStatus // receives the wait status of the child
	empty   chan struct{}           // closed when no descendant is left
}

// startChild starts the child. It first makes this process a subreaper, which adopts orphans. It also makes this
// process not dumpable, so that other processes can neither open its descriptors nor trace it.
func (k *keeperProcess) startChild(o startOrder) syscall.Errno {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return errnoOf(err)
	}
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	pid, err := syscall.ForkExec(string(o.Path), toStrings(o.Args), &syscall.ProcAttr{
		Dir: string(o.Dir), Env: toStrings(o.Env), Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return errnoOf(err)
	}
	k.leader = pid
	letGo()
	go k.reapChildren()
	return 0
}

// letGo closes the child's standard streams in the keeper, the process that watches the child. The engine can then
// notice when the child closes them. letGo also leaves the working directory.
func letGo() {
	if null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0); err == nil {
		for fd := range 3 {
			_ = unix.Dup3(null, fd, unix.O_CLOEXEC)
		}
	} else {
		for fd := range 3 {
			_ = unix.Close(fd)
		}
	}
	_ = os.Chdir("/")
}

// reapChildren collects the exit statuses of all children, including adopted ones. It returns when there are no more
// children. There are then no descendants either, because an orphan is adopted before its parent can be reaped.
func (k *keeperProcess) reapChildren() {
	defer close(k.empty)
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT|unix.WALL, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return // ECHILD
		}
		var status syscall.WaitStatus
		k.reaping.Lock()
		pid, err := syscall.Wait4(-1, &status, unix.WNOHANG|unix.WALL, nil)
		k.reaping.Unlock()
		if err == nil && pid == k.leader {
			k.ended <- status
		}
	}
}

// serveRequests handles the engine's requests to this keeper, the process that watches one child. It returns when no
// descendant is left, or when the keeper is not permitted to kill those that are left.
func (k *keeperProcess) serveRequests(requests <-chan keeperRequest, gone <-chan struct{}, out *json.Encoder) {
	var deadline <-chan time.Time
	stopping := false
	for {
		select {
		case <-k.empty:
			select {
			case status := <-k.ended:
				_ = out.Encode(keeperReport{Ended: &status})
			default:
			}
			return
		case status := <-k.ended:
			_ = out.Encode(keeperReport{Ended: &status})
			if !stopping {
				k.killAll(out)
				return
			}
		case r, ok := <-requests:
			if !ok || r.Stop <= 0 {
				k.killAll(out)
				return
			}
			stopping, deadline = true, time.After(r.Stop)
			terminateBelow(os.Getpid())
		case <-deadline:
			k.killAll(out)
			return
		case <-gone:
			k.killAll(out)
			return
		}
	}
}

// killAll kills descendants until none is left. A process that forks continuously cannot escape for long, because its
// children always stay descendants. killAll gives up if all remaining processes belong to other users.
func (k *keeperProcess) killAll(out *json.Encoder) {
	defer func() {
		select {
		case status := <-k.ended:
			_ = out.Encode(keeperReport{Ended: &status})
		default:
		}
	}()
	const patience = 200 // rounds in which nothing could be killed
	pause := 100 * time.Microsecond
	for powerless := 0; powerless < patience; {
		if k.killOnce() {
			powerless++
		} else {
			powerless = 0
		}
		if waitFor(k.empty, pause) {
			return
		}
		pause = min(2*pause, 5*time.Millisecond)
	}
}

// killOnce sends SIGKILL to all children and to their process groups. The child or its descendants have started the
// sessions of these groups, so the groups contain no other processes. powerless is true if there are children but the
// keeper is permitted to kill none of them.
func (k *keeperProcess) killOnce() (powerless bool) {
	k.reaping.Lock()
	defer k.reaping.Unlock()
	self := os.Getpid()
	children := childrenOf(self)
	powerless = len(children) > 0
	for _, pid := range children {
		if unix.Kill(pid, unix.SIGKILL) == unix.EPERM {
			killBelow(pid)
			continue
		}
		powerless = false
		if group, err := unix.Getpgid(pid); err == nil && group > 1 && group != unix.Getpgrp() {
			_ = unix.Kill(-group, unix.SIGKILL)
		}
	}
	return powerless
}

// killBelow kills the descendants of the process parent. It is for a parent such as sudo, which runs as another user
// and therefore cannot be killed itself.
func killBelow(parent int) {
	for _, h := range openBelow(parent) {
		_ = h.sendSignal(unix.SIGKILL)
		h.closeHandle()
	}
}

// terminateBelow asks all descendants of a process to end. It finds all of them before it signals the first, because a
// descendant gets another parent when its own parent ends.
func terminateBelow(parent int) {
	for _, h := range openBelow(parent) {
		_ = h.sendSignal(unix.SIGTERM)
		h.closeHandle()
	}
}

// readRequests returns a channel of the engine's requests. The channel is closed when the engine has closed its end of
// the socket.
func readRequests(in *json.Decoder) <-chan keeperRequest {
	c := make(chan keeperRequest)
	go func() {
		defer close(c)
		for {
			var r keeperRequest
			if in.Decode(&r) != nil {
				return
			}
			c <- r
		}
	}()
	return c
}

// engineGone returns a channel that is closed when the engine has ended. Watching the socket alone is not enough,
// because another process may hold a copy of the engine's end.
func engineGone(pid int) <-chan struct{} {
	gone := make(chan struct{})
	fd, err := unix.PidfdOpen(pid, 0)
	if os.Getppid() != pid { // it ended before, and its number may be another process's
		close(gone)
		return gone
	}
	if err != nil {
		return gone // before Linux 5.3
	}
	go func() {
		defer close(gone)
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	return gone
}

func toStrings(all [][]byte) (list []string) {
	for _, b := range all {
		list = append(list, string(b))
	}
	return slices.Clip(list)
}

func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return syscall.EIO
}
