package reaper

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
)

// helper is this process's side of the helper process. The pipe between them is
// the whole protocol: a line "+pid start" says that a group is to be watched,
// "-pid" that it is gone, the end of the pipe that this process is.
type helper struct {
	argv []string

	mu      sync.Mutex
	watched map[int]string // group → start time of its leader
	pipe    io.WriteCloser // nil while no helper runs
	cmd     *exec.Cmd
	err     error // why it could not be started
}

func (h *helper) watch(pid int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watched == nil {
		h.watched = map[int]string{}
	}
	h.watched[pid] = startTime(pid)
	if h.tell("+%d %s\n", pid, h.watched[pid]) == nil {
		return
	}
	h.end() // it was killed: a new one has to know them all
	if h.err = h.start(); h.err != nil {
		return
	}
	for pid, start := range h.watched {
		_ = h.tell("+%d %s\n", pid, start)
	}
}

func (h *helper) release(pid int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watched, pid)
	_ = h.tell("-%d\n", pid)
}

func (h *helper) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.end()
}

func (h *helper) tell(format string, args ...any) error {
	if h.pipe == nil {
		return io.ErrClosedPipe
	}
	_, err := fmt.Fprintf(h.pipe, format, args...)
	return err
}

// start runs the helper in a session of its own, so that neither a signal from
// the terminal nor one to this process's group reaches it. It inherits neither
// environment nor descriptors.
func (h *helper) start() error {
	cmd := exec.Command(h.argv[0], h.argv[1:]...)
	cmd.Env = []string{}
	cmd.Dir = rootDir
	detach(cmd)
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		_ = pipe.Close()
		return err
	}
	h.cmd, h.pipe = cmd, pipe
	return nil
}

func (h *helper) end() {
	if h.pipe == nil {
		return
	}
	_ = h.pipe.Close()
	_ = h.cmd.Wait()
	h.pipe, h.cmd = nil, nil
}
