//go:build !linux

package reaper

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
)

// AdoptOrphans does nothing, because only Linux lets a process adopt orphaned descendants.
func AdoptOrphans() error { return nil }

// systemStarter starts children of this process. A helper process kills the children's process groups when this
// process has ended.
type systemStarter struct {
	argv []string // command that starts the helper; empty if no helper is used

	mu      sync.Mutex
	watched map[int]string // start time of the leader, by process group id
	pipe    io.WriteCloser // pipe to the helper; nil while no helper runs
	cmd     *exec.Cmd
}

func newSystem(argv []string) *systemStarter {
	return &systemStarter{argv: argv, watched: map[int]string{}}
}

func (s *systemStarter) startTree(cmd *exec.Cmd) (processTree, error) {
	prepareCommand(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	d, err := newDirect(cmd)
	if err != nil {
		return nil, err
	}
	if len(s.argv) == 0 {
		return d, nil
	}
	if err := s.watchGroup(d.processID()); err != nil {
		d.group.killAll()
		_ = d.awaitEnd()
		return nil, fmt.Errorf("the watchdog process of the servers cannot be started: %w", err)
	}
	return watchedTree{d, s}, nil
}

// watchedTree represents a child whose process group the helper process watches.
type watchedTree struct {
	*directChild
	system *systemStarter
}

func (w watchedTree) awaitEnd() string {
	state := w.directChild.awaitEnd()
	w.system.releaseGroup(w.processID())
	return state
}

// watchGroup makes the helper process kill the process group led by pid if this process dies before it calls
// releaseGroup. The protocol on the pipe to the helper has three messages. A line "+pid start" adds a group. A line
// "-pid" removes a group. The end of the pipe means that this process has died.
func (s *systemStarter) watchGroup(pid int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched[pid] = startTime(pid)
	if s.sendHelper("+%d %s\n", pid, s.watched[pid]) == nil {
		return nil
	}
	s.endHelper() // somebody killed the helper: a new one has to know them all
	if err := s.launchHelper(); err != nil {
		delete(s.watched, pid)
		return err
	}
	for pid, start := range s.watched {
		_ = s.sendHelper("+%d %s\n", pid, start)
	}
	return nil
}

func (s *systemStarter) releaseGroup(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watched, pid)
	_ = s.sendHelper("-%d\n", pid)
}

func (s *systemStarter) closeStarter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endHelper()
}

func (s *systemStarter) sendHelper(format string, args ...any) error {
	if s.pipe == nil {
		return io.ErrClosedPipe
	}
	_, err := fmt.Fprintf(s.pipe, format, args...)
	return err
}

// launchHelper starts the helper process in its own session. The helper then receives no signals from the terminal and
// none that are sent to this process's group. The helper inherits neither the environment nor file descriptors.
func (s *systemStarter) launchHelper() error {
	cmd := exec.Command(s.argv[0], s.argv[1:]...)
	cmd.Env = []string{}
	cmd.Dir = rootDir
	detachHelper(cmd)
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		_ = pipe.Close()
		return err
	}
	s.cmd, s.pipe = cmd, pipe
	return nil
}

func (s *systemStarter) endHelper() {
	if s.pipe == nil {
		return
	}
	_ = s.pipe.Close()
	_ = s.cmd.Wait()
	s.pipe, s.cmd = nil, nil
}

// Serve runs the helper process. It reads the process groups to watch from its standard input. The end of the input
// means that the engine process has ended. Serve then kills the remaining groups. It ignores signals such as SIGTERM
// that ask a process to end.
func Serve() {
	ignoreSignals()
	watched := map[int]string{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		applyLine(watched, lines.Text())
	}
	for pid, start := range watched {
		killGroup(pid, start)
	}
}

// applyLine executes one line of the protocol between engine and helper. The line adds a process group to watched or
// removes one. applyLine ignores invalid lines.
func applyLine(watched map[int]string, line string) {
	if len(line) == 0 {
		return
	}
	first, start, _ := strings.Cut(line[1:], " ")
	pid, err := strconv.Atoi(first)
	switch {
	case err != nil || pid <= 1:
	case line[0] == '+':
		watched[pid] = start
	case line[0] == '-':
		delete(watched, pid)
	}
}
