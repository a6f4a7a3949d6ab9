package reaper_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"retort/internal/base/reaper"
	"retort/internal/devel/testenv"
)

// daemons holds shell scripts by name. Each script starts a background process outside the script's process group. The
// background process creates the file "up" in the script's working directory, and keeps that working directory.
var daemons = map[string]string{
	"a session of its own": `setsid sh -c '(touch up; sleep 1000) &' &`,
	"several sessions":     `setsid sh -c 'setsid sh -c "(setsid sh -c \"touch up; sleep 1000\") &" &' &`,
	"a group of its own":   `set -m; (touch up; exec sleep 1000) &`,
	"deaf":                 `setsid sh -c '(trap "" TERM HUP INT QUIT; touch up; while :; do sleep 1; done) &' &`,
	"no environment":       `setsid env -i /bin/sh -c '(/bin/touch up; /bin/sleep 1000) &' &`,
	"forks all the time":   `echo 'touch up; sh "$0" & exit' > f.sh; setsid sh f.sh &`,
	"forks into sessions":  `echo 'touch up; setsid sh "$0" & exit' > f.sh; setsid sh f.sh &`,
}

// living returns the ids of the running processes whose working directory is dir.
func living(dir string) (pids []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if at, err := os.Readlink(link); err == nil && at == dir && !isClosed(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// isClosed reports whether a process has ended. It returns true for a process that does not exist and for a zombie.
func isClosed(pid int) bool {
	s, err := reaper.ReadStat(pid)
	return err != nil || s.State == 'Z' || s.State == 'X'
}

// assertNobody fails the test unless all processes whose working directory is dir end, apart from those in spared. A
// search can miss a process that forks continuously. Therefore ten searches in a row must find no process.
func assertNobody(t *testing.T, dir string, spared ...int) {
	t.Helper()
	var left []int
	seen := func() bool {
		left = slices.DeleteFunc(living(dir), func(pid int) bool { return slices.Contains(spared, pid) })
		return len(left) > 0
	}
	times := 0
	if !testenv.Poll(func() bool {
		if times++; seen() {
			times = 0
		}
		return times == 10
	}) {
		t.Errorf("left: %v", left)
	}
	for ; seen(); times++ { // nothing, unless the test failed
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func awaitUp(t *testing.T, dir string) {
	t.Helper()
	testenv.WaitUntil(t, "the daemon is there", func() bool { _, err := os.Stat(filepath.Join(dir, "up")); return err == nil })
}

// startIn starts a shell script in the working directory dir. r watches the script's processes.
func startIn(t *testing.T, r *reaper.Reaper, dir, script string) *reaper.ReapedProcess {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	p, err := r.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// engineIn starts the test binary as an engine with the working directory dir. It returns once the engine has started
// script. part is the kind of engine, such as "engine" (see TestMain).
func engineIn(t *testing.T, part, dir, script string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], part, script)
	cmd.Dir = dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if line, _ := bufio.NewReader(out).ReadString('\n'); !strings.HasPrefix(line, "started") {
		t.Fatalf("the engine said %q", line)
	}
	return cmd
}

func TestDaemonsEndWithTheirChild(t *testing.T) {
	for name, script := range daemons {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r := reaper.New(os.Args[0], "keeper")
			defer r.Close(0)
			p := startIn(t, r, dir, script+" until [ -e up ]; do sleep 0.01; done; exit 7")
			testenv.Receive(t, p.Done(), "the end")
			assertNobody(t, dir)
			if p.State() != "exit status 7" {
				t.Errorf("state %q", p.State())
			}
		})
	}
}

func TestStopEndsDaemons(t *testing.T) {
	for name, script := range daemons {
		for _, grace := range []time.Duration{0, 50 * time.Millisecond} {
			t.Run(fmt.Sprint(name, grace), func(t *testing.T) {
				dir := t.TempDir()
				r := reaper.New(os.Args[0], "keeper")
				defer r.Close(0)
				p := startIn(t, r, dir, "trap '' TERM; "+script+" while :; do sleep 1; done")
				awaitUp(t, dir)
				p.Stop(grace)
				assertNobody(t, dir)
			})
		}
	}
}

// TestDaemonsAreAsked checks that Stop sends SIGTERM to a daemon, and that the daemon may end by itself within the
// grace period.
func TestDaemonsAreAsked(t *testing.T) {
	dir := t.TempDir()
	r := reaper.New(os.Args[0], "keeper")
	defer r.Close(0)
	p := startIn(t, r, dir, `setsid sh -c '(trap "touch asked; exit" TERM; touch up; while :; do sleep 0.01; done) &' & exec sleep 1000`)
	awaitUp(t, dir)
	p.Stop(testenv.Patience)
	if _, err := os.Stat(filepath.Join(dir, "asked")); err != nil || p.State() != "signal: terminated" {
		t.Errorf("%v, %s", err, p.State())
	}
}

func TestDaemonsEndWithAKilledEngine(t *testing.T) {
	for name, script := range daemons {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			engine := engineIn(t, "engine", dir, script+" exec sleep 1000")
			awaitUp(t, dir)
			_ = engine.Process.Kill()
			_ = engine.Wait()
			assertNobody(t, dir)
		})
	}
}

// TestOthersLiveOn checks that stopping one server does not end another server and its daemon.
func TestOthersLiveOn(t *testing.T) {
	r := reaper.New(os.Args[0], "keeper")
	defer r.Close(0)
	here, there := t.TempDir(), t.TempDir()
	one := startIn(t, r, here, daemons["a session of its own"]+" exec sleep 1000")
	startIn(t, r, there, daemons["a session of its own"]+" exec sleep 1000")
	awaitUp(t, here)
	awaitUp(t, there)
	var others []int // the other server and its daemon; the shells that started them end by themselves
	testenv.WaitUntil(t, "both processes of the other server sleep", func() bool {
		others = sleeping(there)
		return len(others) == 2
	})
	one.Stop(0)
	assertNobody(t, here)
	if now := sleeping(there); !slices.Equal(now, others) {
		t.Errorf("processes %v of the other server, then %v", others, now)
	}
}

// sleeping returns the ids of the processes in the working directory dir that run the command sleep.
func sleeping(dir string) []int {
	return slices.DeleteFunc(living(dir), func(pid int) bool {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		return string(name) != "sleep\n"
	})
}

// TestKilledKeeper checks what happens if a server kills its keeper, the process that watches it. The engine must then
// adopt and kill the server's remaining processes.
func TestKilledKeeper(t *testing.T) {
	for name, script := range daemons {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			engine := engineIn(t, "engine-adopting", dir, script+` until [ -e go ]; do sleep 0.01; done; kill -9 $PPID; exec sleep 1000`)
			awaitUp(t, dir)
			if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			assertNobody(t, dir, engine.Process.Pid)
			if isClosed(engine.Process.Pid) {
				t.Error("the engine ended too")
			}
		})
	}
}

// TestSignalsToTheKeeper checks that a server cannot disable its keeper, the process that watches it, with signals
// such as SIGTERM or SIGSTOP. After such a signal, the keeper must still kill the server's processes when the engine
// is killed. Only SIGKILL may end a keeper.
func TestSignalsToTheKeeper(t *testing.T) {
	for _, signal := range []string{"TERM", "INT", "HUP", "QUIT", "USR1", "STOP"} {
		t.Run(signal, func(t *testing.T) {
			dir := t.TempDir()
			engine := engineIn(t, "engine", dir, daemons["deaf"]+` until [ -e up ]; do sleep 0.01; done; kill -`+signal+` $PPID; touch sent; exec sleep 1000`)
			testenv.WaitUntil(t, "the signal was sent", func() bool { _, err := os.Stat(filepath.Join(dir, "sent")); return err == nil })
			_ = engine.Process.Kill()
			_ = engine.Wait()
			assertNobody(t, dir)
		})
	}
}

// TestCheckOrigin checks that CheckOrigin rejects processes that an engine has started, and accepts others. It calls
// CheckOrigin in a separate process, because CheckOrigin also rejects descendants of its caller.
func TestCheckOrigin(t *testing.T) {
	judged := func(pid int) string {
		out, err := exec.Command(os.Args[0], "judge", strconv.Itoa(pid)).CombinedOutput()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	stranger := exec.Command("sleep", "1000")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer stranger.Wait()
	defer stranger.Process.Kill()
	if said := judged(stranger.Process.Pid); said != "" {
		t.Errorf("a process that no engine started: %s", said)
	}
	if reaper.CheckOrigin(stranger.Process.Pid) == nil {
		t.Error("a child of this process is not refused by this process")
	}
	if said := judged(1 << 30); said == "" {
		t.Error("a process that does not exist is not refused")
	}
	// Another engine's daemon.
	dir := t.TempDir()
	engine := engineIn(t, "engine", dir, daemons["several sessions"]+" exec sleep 1000")
	awaitUp(t, dir)
	if said := judged(engine.Process.Pid); said != "" {
		t.Errorf("an engine that a person started: %s", said)
	}
	for _, pid := range living(dir) {
		if pid != engine.Process.Pid && !strings.Contains(judged(pid), "processes that an engine has started") {
			t.Errorf("%d: %s", pid, judged(pid))
		}
	}
}
