package testenv

import (
	"bufio"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// KilledAt starts the test binary as a child process with an environment variable set. The child prints numbers,
// one per line; any other line fails the test. KilledAt kills the child after the given number of lines; 0 means
// as soon as it has started. It returns the last number that the child has printed, or none if the child has
// printed nothing.
func KilledAt(t *testing.T, variable, value string, numbers, none int) (last int) {
	t.Helper()
	return runUntilKilled(t, variable, value, none, func(kill func(), lines int) {
		if lines == numbers {
			kill()
		}
	})
}

// runUntilKilled implements KilledAt and KilledAtChange. It starts the test binary as a child process, and returns
// the last number that the child has printed, or none. It calls the function at when the child has started and
// again after each line of the child's output. The arguments of at are a function that kills the child, and the
// number of lines so far.
func runUntilKilled(t *testing.T, variable, value string, none int, at func(kill func(), lines int)) (last int) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), variable+"="+value)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	kill := func() { _ = c.Process.Kill() }
	defer func() { kill(); _ = c.Wait() }()
	last = none
	n := 0
	at(kill, n)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if last, err = strconv.Atoi(lines.Text()); err != nil {
			t.Fatal(lines.Text())
		}
		n++
		at(kill, n)
	}
	return last
}

// ControlGroups returns the paths of an engine's control groups and of all groups below them, each followed by its
// processes. pid is the engine's process id. The groups may be in several places, because the memory group can be
// deeper in the hierarchy than the others.
func ControlGroups(pid int) (groups []string) {
	own := regexp.MustCompile(`/retort-` + strconv.Itoa(pid) + `(\.[^/]*)?(/|$)`)
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && own.MatchString(path) {
			groups = append(groups, path+groupMembers(path))
		}
		return nil // a process that has ended is not one
	})
	return groups
}

// groupMembers returns the processes in a control group with their states.
func groupMembers(group string) (text string) {
	pids, _ := os.ReadFile(filepath.Join(group, "cgroup.procs"))
	for _, pid := range strings.Fields(string(pids)) {
		stat, _ := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		text += " [" + string(stat[:min(len(stat), 40)]) + "]"
	}
	return text
}
