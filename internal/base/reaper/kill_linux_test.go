package reaper_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"retort/internal/devel/testenv"
)

// processGroup returns the ids of the running processes in a process group.
func processGroup(pgid int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		data, _ := os.ReadFile(path)
		_, rest, _ := strings.Cut(string(data), ") ")
		fields := strings.Fields(rest)
		if len(fields) > 2 && fields[2] == strconv.Itoa(pgid) && fields[0] != "Z" && fields[0] != "X" {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

func assertGone(t *testing.T, pgid int) {
	t.Helper()
	defer func() {
		for _, pid := range processGroup(pgid) { // none, unless the test fails
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}()
	testenv.WaitUntil(t, fmt.Sprintf("group %d is gone", pgid), func() bool { return len(processGroup(pgid)) == 0 })
}

func TestNothingOutlivesSIGKILL(t *testing.T) {
	for name, test := range map[string]struct {
		script  string
		members int
	}{
		"one":              {"exec sleep 1000", 1},
		"two":              {"sleep 1000 & sleep 1000", 3},
		"deep":             {"sh -c 'sh -c \"sleep 1000 & sleep 1000\" & sleep 1000' & wait", 5},
		"deaf":             {"trap '' TERM HUP INT; sleep 1000 & while :; do sleep 0.05; done", 2},
		"leader gone soon": {"sleep 1000 & sleep 0.02; exec sleep 1000", 2},
	} {
		t.Run(name, func(t *testing.T) { assertGone(t, runEngine(t, "engine", test.script, test.members)) })
	}
}

// TestKernelKillsTheChild checks that the kernel kills the direct child of a killed engine. It does so even if the
// child has no keeper, which is a process that watches the child.
func TestKernelKillsTheChild(t *testing.T) {
	assertGone(t, runEngine(t, "engine-alone", "exec sleep 1000", 1))
}
