//go:build linux

package reaper_test

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"retort/internal/base/reaper"
	"retort/internal/devel/testenv"
)

// TestMain lets the test binary play the role that its first argument names. As a keeper it watches a child. As an
// engine it starts a server and waits to be killed. Engines in different roles use keepers, use none, or adopt
// orphans. As "judge" it prints the result of CheckOrigin for a process.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "keeper":
			reaper.Serve()
			return
		case "engine":
			engine(reaper.New(os.Args[0], "keeper"), os.Args[2])
			return
		case "engine-alone":
			engine(reaper.New(), os.Args[2])
			return
		case "engine-adopting":
			fmt.Print(text(reaper.AdoptOrphans()))
			engine(reaper.New(os.Args[0], "keeper"), os.Args[2])
			return
		case "judge":
			pid, _ := strconv.Atoi(os.Args[2])
			fmt.Print(text(reaper.CheckOrigin(pid)))
			return
		}
	}
	os.Exit(m.Run())
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func engine(r *reaper.Reaper, script string) {
	p, err := r.Start(exec.Command("sh", "-c", script))
	if err != nil {
		fmt.Println("error", err)
		return
	}
	fmt.Println("started", p.ProcessID())
	select {}
}

func start(t *testing.T, r *reaper.Reaper, script string) *reaper.ReapedProcess {
	t.Helper()
	p, err := r.Start(exec.Command("sh", "-c", script))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestEndsByItself(t *testing.T) {
	r := reaper.New(os.Args[0], "keeper")
	defer r.Close(0)
	p := start(t, r, "exit 3")
	<-p.Done()
	if p.State() != "exit status 3" {
		t.Errorf("state %q", p.State())
	}
}

func TestStateIsEmptyWhileRunning(t *testing.T) {
	r := reaper.New(os.Args[0], "keeper")
	defer r.Close(0)
	p := start(t, r, "sleep 1000")
	if p.State() != "" {
		t.Errorf("state %q", p.State())
	}
	p.Stop(0)
	if p.State() != "signal: killed" {
		t.Errorf("state %q", p.State())
	}
}

func TestStop(t *testing.T) {
	for _, tt := range []struct {
		name, script, state string
		grace               time.Duration
	}{
		{"polite", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done", "exit status 7", 5 * time.Second},
		{"stubborn", "trap '' TERM; echo ready; while :; do sleep 0.01; done", "signal: killed", 50 * time.Millisecond},
		{"with grandchildren", "sh -c 'sleep 1000 & sleep 1000' & echo ready; wait", "signal: terminated", time.Second},
		{"stubborn grandchildren", "sh -c \"trap '' TERM; echo ready; while :; do sleep 0.01; done\" & wait", "signal: terminated", 50 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := reaper.New(os.Args[0], "keeper")
			defer r.Close(0)
			cmd := exec.Command("sh", "-c", tt.script)
			out, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			cmd.Stdout = w
			p, err := r.Start(cmd)
			w.Close()
			if err != nil {
				t.Fatal(err)
			}
			if line, _ := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
				t.Fatalf("read %q", line)
			}
			p.Stop(tt.grace)
			if p.State() != tt.state {
				t.Errorf("state %q, want %q", p.State(), tt.state)
			}
			assertGone(t, p.ProcessID())
		})
	}
}

func TestOrphansEndWithTheirLeader(t *testing.T) {
	r := reaper.New()
	defer r.Close(0)
	p := start(t, r, "sleep 1000 & sleep 1000 & exit 0")
	<-p.Done()
	assertGone(t, p.ProcessID())
}

func TestCloseEndsAll(t *testing.T) {
	r := reaper.New(os.Args[0], "keeper")
	var pids []int
	for range 5 {
		pids = append(pids, start(t, r, "sleep 1000 & sleep 1000").ProcessID())
	}
	r.Close(time.Second)
	for _, pid := range pids {
		assertGone(t, pid)
	}
	if _, err := r.Start(exec.Command("sleep", "1000")); err != reaper.ErrClosed {
		t.Errorf("start after close: %v", err)
	}
}

func TestStartFails(t *testing.T) {
	r := reaper.New(os.Args[0], "keeper")
	defer r.Close(0)
	if _, err := r.Start(exec.Command("/no/such/program")); err == nil {
		t.Error("no error")
	}
}

// TestKeeperFails checks that Start returns an error if the keeper, the process that watches the server, cannot be
// started. Start must then not start the server.
func TestKeeperFails(t *testing.T) {
	r := reaper.New("/no/such/program")
	defer r.Close(0)
	if _, err := r.Start(exec.Command("sleep", "1000")); err == nil || !strings.Contains(err.Error(), "watchdog process of the server") || errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// TestStartFailsAsWithoutKeeper starts a missing program and one that is not executable. It checks that the error is
// the same with a keeper, a process that watches the program, as without one.
func TestStartFailsAsWithoutKeeper(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{"/no/such/program": os.ErrNotExist, file: os.ErrPermission} {
		for _, r := range []*reaper.Reaper{reaper.New(), reaper.New(os.Args[0], "keeper")} {
			if _, err := r.Start(exec.Command(path)); !errors.Is(err, want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %v", path, err)
			}
			r.Close(0)
		}
	}
}

// TestChildGetsWhatItShould checks the streams, arguments, environment, working directory and number of descriptors of
// a child. They must be the same whether a keeper (a process that watches the child) or this process starts it.
func TestChildGetsWhatItShould(t *testing.T) {
	dir := t.TempDir()
	descriptors := "" // how many the child has
	for _, r := range []*reaper.Reaper{reaper.New(), reaper.New(os.Args[0], "keeper")} {
		cmd := exec.Command("sh", "-c", `read line; echo "$0 $line $A $(pwd)"; ls /proc/self/fd | wc -l; exit 3`, "na\xffme")
		cmd.Dir, cmd.Env = dir, []string{"A=\xfe", "PATH=" + os.Getenv("PATH")}
		in, feed, _ := os.Pipe()
		out, w, _ := os.Pipe()
		cmd.Stdin, cmd.Stdout = in, w
		p, err := r.Start(cmd)
		_, _ = in.Close(), w.Close()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(feed, "hello")
		all, _ := io.ReadAll(out)
		said, count, _ := strings.Cut(string(all), "\n")
		descriptors = cmp.Or(descriptors, count)
		<-p.Done()
		if want := "na\xffme hello \xfe " + dir; said != want || count != descriptors || p.State() != "exit status 3" {
			t.Errorf("%q and %q descriptors, want %q and %q; %s", said, count, want, descriptors, p.State())
		}
		_, _ = feed.Close(), out.Close()
		r.Close(0)
	}
}

// runEngine starts an engine that starts script. It waits until the script's process group has the given number of
// members, and then kills the engine with SIGKILL. It returns the id of the process group.
func runEngine(t *testing.T, part, script string, members int) (pid int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], part, script)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if _, err := fmt.Sscanf(strings.TrimSpace(line), "started %d", &pid); err != nil {
		t.Fatalf("engine said %q", line)
	}
	testenv.WaitUntil(t, fmt.Sprintf("%d processes are there", members), func() bool { return len(processGroup(pid)) >= members })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return pid
}
