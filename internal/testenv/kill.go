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

// KilledAt starts the test program once more with an environment variable set, kills it when it
// has printed so many numbers, each on a line, and returns the last one; none if it printed none.
// Any other line fails the test. With 0 numbers it is killed as soon as it has started.
func KilledAt(t *testing.T, variable, value string, numbers, none int) (last int) {
	t.Helper()
	return killed(t, variable, value, none, func(kill func(), lines int) {
		if lines == numbers {
			kill()
		}
	})
}

// killed tells at when the program has started, and then of each line how many there are.
func killed(t *testing.T, variable, value string, none int, at func(kill func(), lines int)) (last int) {
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
	_ = c.Wait()
	return last
}

// Groups are the control groups of the engine with a process id and those below them, wherever
// they are (that of memory may lie deeper than the others), each with who is in it.
func Groups(pid int) (groups []string) {
	own := regexp.MustCompile(`/retort-` + strconv.Itoa(pid) + `(\.[^/]*)?(/|$)`)
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && own.MatchString(path) {
			groups = append(groups, path+members(path))
		}
		return nil // what has ended meanwhile is none
	})
	return groups
}

// members are the processes in a control group, with their states.
func members(group string) (text string) {
	pids, _ := os.ReadFile(filepath.Join(group, "cgroup.procs"))
	for _, pid := range strings.Fields(string(pids)) {
		stat, _ := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		text += " [" + string(stat[:min(len(stat), 40)]) + "]"
	}
	return text
}
