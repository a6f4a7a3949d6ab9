package procgroup

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"retort/internal/devel/testenv"
)

// TestBornInGroup checks that children are created in their control group. It does so with the groups that this
// machine delegates, and with a group of version 2 of control groups.
func TestBornInGroup(t *testing.T) {
	t.Run("own", func(t *testing.T) {
		g := OpenGroups()
		if g == nil {
			t.Skip("this machine delegates no control groups")
		}
		bornIn(t, g)
	})
	t.Run("version 2", func(t *testing.T) {
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			t.Fatal(err)
		}
		at := mountOf(string(mounts), "cgroup2", "")
		if at.dir == "" {
			t.Skip("version 2 is not mounted")
		}
		dir := filepath.Join(at.dir, fmt.Sprintf("retort-test-%d", os.Getpid()))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Skip(err)
		}
		defer os.Remove(dir)
		bornIn(t, &GroupSet{version: 2, dirs: map[string]string{"memory": dir}})
	})
}

// TestOpenedWhileStarting checks that OpenGroups creates groups in the right place even while this process's first
// thread is in the group of a child to start that child. It also checks that KillAll of the child's group does not
// kill this process.
func TestOpenedWhileStarting(t *testing.T) {
	first := OpenGroups()
	if first == nil || first.version != 1 {
		t.Skip("threads enter groups of version 1 only")
	}
	defer first.Close()
	child := first.AddGroup()
	defer child.Remove()
	for controller, dir := range child.dirs {
		if err := writeControl(dir, "tasks", strconv.Itoa(os.Getpid())); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := writeControl(first.homes[controller], "tasks", strconv.Itoa(os.Getpid())); err != nil {
				t.Error(err)
			}
		}()
	}
	second := OpenGroups()
	defer second.Close()
	for controller, dir := range second.dirs {
		if filepath.Dir(dir) != filepath.Dir(first.dirs[controller]) || second.homes[controller] != first.homes[controller] {
			t.Errorf("%s: groups are made in %s, and left for %s", controller, dir, second.homes[controller])
		}
	}
	child.KillAll(10 * time.Millisecond) // which ends children, and not this process
}

// TestClaimWaits checks that claimDir removes nested groups of a dead engine, and waits for a process in them that
// has not ended yet.
func TestClaimWaits(t *testing.T) {
	own := OpenGroups()
	if own == nil || own.version != 1 {
		t.Skip("this machine has no groups of version 1")
	}
	defer own.Close()
	parent := own.homes["memory"]
	left := filepath.Join(parent, prefix+strconv.Itoa(deadProcess(t)))
	empty := filepath.Join(left, "2")
	if err := errors.Join(os.MkdirAll(filepath.Join(left, "1", "more"), 0o755), os.Mkdir(empty, 0o755)); err != nil {
		t.Fatal(err)
	}
	late := exec.Command("cat")
	hold, err := late.StdinPipe()
	if err == nil {
		err = late.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := writeControl(filepath.Join(left, "1", "more"), "cgroup.procs", strconv.Itoa(late.Process.Pid)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		testenv.Poll(func() bool { _, err := os.Stat(empty); return err != nil }) // claim has begun to remove groups
		_ = hold.Close()
		ended <- late.Wait()
	}()
	dir, err := claimDir(parent, testenv.Patience)
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(dir)
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", left, err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the process was not left alone: %v", err)
	}
}

// deadProcess returns the id of a process that has ended.
func deadProcess(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

// bornIn starts a child and checks that the child was created in its own control group, and that no thread of this
// process stays in that group.
func bornIn(t *testing.T, g *GroupSet) {
	s := New(g)
	defer s.Close()
	child := exec.Command("/bin/sleep", "1000")
	child.SysProcAttr = &syscall.SysProcAttr{}
	in, err := s.Start(child)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Remove()
	defer func() { _ = child.Wait() }()
	defer func() { _ = child.Process.Kill() }()
	if in == nil {
		t.Fatal("the child has no group")
	}
	if words := in.DescribeLimits(); words != fmt.Sprintf("cgroup v%d", g.version) {
		t.Error(words)
	}
	name := filepath.Join(filepath.Base(g.dirs["memory"]), filepath.Base(in.dirs["memory"]))
	if where := groupsOf(t, fmt.Sprint(child.Process.Pid)); !strings.Contains(where, name+"\n") {
		t.Errorf("the child is in\n%s, not in %s", where, name)
	}
	tasks, _ := filepath.Glob("/proc/self/task/*/cgroup")
	for _, task := range tasks {
		if where := groupsOf(t, "self/task/"+filepath.Base(filepath.Dir(task))); strings.Contains(where, name+"\n") {
			t.Errorf("%s of the engine stays in the child's group", task)
		}
	}
}

func groupsOf(t *testing.T, process string) string {
	t.Helper()
	data, err := os.ReadFile("/proc/" + process + "/cgroup")
	if err != nil {
		return "" // a thread that ended
	}
	return string(data)
}
