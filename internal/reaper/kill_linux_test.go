package reaper_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"retort/internal/reaper"
	"retort/internal/testenv"
)

// group lists the living processes of a process group.
func group(pgid int) (pids []int) {
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
		for _, pid := range group(pgid) { // none, unless the test fails
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}()
	testenv.WaitUntil(t, fmt.Sprintf("group %d is gone", pgid), func() bool { return len(group(pgid)) == 0 })
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

// Without the helper the kernel still kills the direct child.
func TestKernelKillsTheChild(t *testing.T) {
	assertGone(t, runEngine(t, "engine-alone", "exec sleep 1000", 1))
}

// ended reports whether a process has closed all it had: it is a zombie or gone.
func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	return err != nil || strings.HasPrefix(rest, "Z")
}

// A helper that somebody killed is replaced, and knows of what was started before.
func TestHelperIsReplaced(t *testing.T) {
	before := helpers(t)
	r := reaper.New(os.Args[0], "helper")
	defer r.Close(0)
	start(t, r, "sleep 1000")
	for pid := range helpers(t) {
		if !before[pid] {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			testenv.WaitUntil(t, "the helper is dead", func() bool { return ended(pid) })
		}
	}
	// That it is gone shows when the pipe to it is closed, with its last thread.
	testenv.WaitUntil(t, "there is one helper more than before", func() bool {
		start(t, r, "sleep 1000")
		return len(helpers(t)) == len(before)+1
	})
}

// The helper is deaf to what a terminal or a service manager sends first.
func TestHelperIgnoresSignals(t *testing.T) {
	before := helpers(t)
	r := reaper.New(os.Args[0], "helper")
	defer r.Close(0)
	start(t, r, "sleep 1000")
	deaf := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}
	for pid := range helpers(t) {
		if before[pid] {
			continue
		}
		testenv.WaitUntil(t, "the helper ignores signals", func() bool { return ignores(t, pid, deaf) })
		for _, s := range deaf {
			_ = syscall.Kill(pid, s)
		}
		start(t, r, "sleep 1000") // replaces the helper if it is dead
		if !helpers(t)[pid] {
			t.Errorf("helper %d is gone", pid)
		}
	}
}

// ignores reports whether the process ignores all of the signals.
func ignores(t *testing.T, pid int, signals []syscall.Signal) bool {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "SigIgn:")
	mask, _ := strconv.ParseUint(strings.Fields(after)[0], 16, 64)
	for _, s := range signals {
		if mask&(1<<(s-1)) == 0 {
			return false
		}
	}
	return true
}

func TestHelperLeavesWithUs(t *testing.T) {
	before := helpers(t)
	r := reaper.New(os.Args[0], "helper")
	start(t, r, "sleep 1000")
	testenv.WaitUntil(t, "there is one helper more than before", func() bool { return len(helpers(t)) == len(before)+1 })
	r.Close(0)
	if len(helpers(t)) != len(before) {
		t.Errorf("helpers before %v, now %v", before, helpers(t))
	}
}

// A number that means somebody else by now is left alone.
func TestStrangersAreSpared(t *testing.T) {
	stranger := exec.Command("sleep", "1000")
	stranger.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer stranger.Wait()
	defer stranger.Process.Kill()
	helper := exec.Command(os.Args[0], "helper")
	helper.Stdin = strings.NewReader(fmt.Sprintf("+%d 12345\n", stranger.Process.Pid))
	if err := helper.Run(); err != nil {
		t.Fatal(err)
	}
	if len(group(stranger.Process.Pid)) != 1 {
		t.Error("a process with another start time was killed")
	}
}

// Watch is for children that were started elsewhere.
func TestWatch(t *testing.T) {
	r := reaper.New(os.Args[0], "helper")
	kept, left := exec.Command("sleep", "1000"), exec.Command("sleep", "1000")
	for _, cmd := range []*exec.Cmd{kept, left} {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Wait()
		defer cmd.Process.Kill()
	}
	r.Watch(kept.Process.Pid)()
	r.Watch(left.Process.Pid)
	r.Close(0)
	assertGone(t, left.Process.Pid)
	if len(group(kept.Process.Pid)) != 1 {
		t.Error("a released process was killed")
	}
}

// helpers are the helper processes of this test process.
func helpers(t *testing.T) map[int]bool {
	t.Helper()
	found := map[int]bool{}
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		line, _ := os.ReadFile(path)
		stat, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "stat"))
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if string(line) == os.Args[0]+"\x00helper\x00" && len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) && fields[0] != "Z" {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			found[pid] = true
		}
	}
	return found
}
