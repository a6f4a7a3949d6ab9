package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"retort/internal/devel/testenv"
)

// TestKillLeavesNothing sends SIGKILL to an engine in the middle of a program. It checks that no descendant of the
// engine survives: no sandbox, no server, and no process that a server started.
func TestKillLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	heard := filepath.Join(dir, "heard") // the requests that the second server gets
	config := `{"mcpServers": {
		"files": {"command": "retort", "args": ["demo-server", "files"]},
		"shell": {"command": "sh", "args": ["-c", "sleep 1000 & tee ` + heard + ` | retort demo-server chat; sleep 1000"]}}}`
	if err := os.WriteFile(filepath.Join(dir, ".mcp.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := retortIn(t, dir, "serve")
	mark := "RETORT_KILL_TEST=" + strconv.Itoa(os.Getpid())
	cmd.Env = append(os.Environ(), mark, "PATH="+filepath.Dir(cmd.Path)+":"+os.Getenv("PATH"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_code","arguments":{"code":"await shell.listChannels({}); return 1"}}}`)
	awaitAnswer(t, out, `"id":2`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"execute_code","arguments":{"code":"await shell.listChannels({}); while (true) {}"}}}`)
	testenv.WaitUntil(t, "the second program is under way", func() bool {
		text, _ := os.ReadFile(heard)
		return strings.Count(string(text), "tools/call") == 2
	})

	family := descendants(cmd.Process.Pid)
	if len(family) < 5 { // sandboxes, reaper, two servers, sleep
		t.Errorf("expected several children, found %v", family)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	var left []processID
	if !testenv.Poll(func() bool { left = alive(family); return len(left) == 0 }) {
		t.Fatalf("left after the kill: %v", left)
	}
}

// TestDaemonsEndWithTheEngine checks that daemons that servers have started end with the engine, whether the engine
// ends normally, by SIGTERM or by SIGKILL. The daemons fork twice, start their own session, ignore signals, clear
// their environment or fork continuously. One server also kills its keeper, the process that watches it. The daemon of
// this server must end as well.
func TestDaemonsEndWithTheEngine(t *testing.T) {
	ends := map[string]func(cmd *exec.Cmd, in io.Closer) error{
		"clean":   func(_ *exec.Cmd, in io.Closer) error { return in.Close() },
		"SIGTERM": func(cmd *exec.Cmd, _ io.Closer) error { return cmd.Process.Signal(syscall.SIGTERM) },
		"SIGKILL": func(cmd *exec.Cmd, _ io.Closer) error { return cmd.Process.Kill() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cmd := retortIn(t, dir, "serve")
			write(t, dir, ".mcp.json", `{"mcpServers": {"shell": {"command": "sh", "args": ["server.sh"]}, "killing": {"command": "sh", "args": ["killing.sh"]}}}`)
			write(t, dir, "daemon.sh", "trap '' TERM HUP INT QUIT; echo $$ > daemon-$1; while :; do sleep 1; done")
			write(t, dir, "fork.sh", `echo $$ > daemon-4; setsid sh fork.sh & exit`)
			write(t, dir, "server.sh", `
				setsid sh -c 'setsid sh -c "sh daemon.sh 1 &" &' &
				setsid env -i /bin/sh -c 'PATH=/bin:/usr/bin sh daemon.sh 2 &' &
				set -m; sh daemon.sh 3 & set +m
				setsid sh fork.sh &
				exec retort demo-server chat`)
			write(t, dir, "killing.sh", `
				[ ! -e daemon-5 ] || exec retort demo-server files
				setsid sh -c 'setsid sh -c "sh daemon.sh 5 &" &' &
				until [ -s daemon-5 ]; do sleep 0.01; done
				kill -9 $PPID`)
			cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(cmd.Path)+":"+os.Getenv("PATH"), "HOME="+dir)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for i := range 5 {
				testenv.WaitUntil(t, fmt.Sprintf("daemon %d is there", i+1), func() bool { return daemonIn(dir, i+1) > 0 })
			}
			testenv.WaitUntil(t, "the engine has killed the daemon of the server that killed its keeper", func() bool { return startOf(daemonIn(dir, 5)) == "" })
			if err := end(cmd, in); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			var left []int
			quiet := 0 // looks in a row that saw nobody: one alone can miss what forks
			if !testenv.Poll(func() bool {
				quiet++
				if left = workingIn(dir); len(left) > 0 {
					quiet = 0
				}
				return quiet == 10
			}) {
				t.Errorf("left: %v", left)
			}
			for _, pid := range workingIn(dir) { // none, unless the test failed
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		})
	}
}

// daemonIn returns the process id that a daemon has written to its file, or 0 if there is no such id yet.
func daemonIn(dir string, number int) int {
	text, _ := os.ReadFile(filepath.Join(dir, fmt.Sprintf("daemon-%d", number)))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// workingIn returns the ids of the running processes whose working directory is dir.
func workingIn(dir string) (pids []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if at, err := os.Readlink(link); err == nil && at == dir && startOf(pid) != "" {
			pids = append(pids, pid)
		}
	}
	return pids
}

func awaitAnswer(t *testing.T, out io.Reader, id string) {
	t.Helper()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.Contains(lines.Text(), id) {
			if !strings.Contains(lines.Text(), `"status":"ok"`) {
				t.Fatalf("unexpected answer: %s", lines.Text())
			}
			return
		}
	}
	t.Fatal("the server's output ended")
}

// processID identifies a process by its id and start time, because the system reuses ids.
type processID struct {
	pid   int
	start string
}

func descendants(pid int) []processID {
	var all []processID
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, field := range strings.Fields(string(text)) {
			child, _ := strconv.Atoi(field)
			all = append(append(all, processID{child, startOf(child)}), descendants(child)...)
		}
	}
	return all
}

// startOf returns the start time of a process in the format of /proc. It returns "" if the process no longer exists or
// is a zombie.
func startOf(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 20 || fields[0] == "Z" {
		return ""
	}
	return fields[19]
}

func alive(processes []processID) []processID {
	var left []processID
	for _, p := range processes {
		if p.start != "" && startOf(p.pid) == p.start {
			left = append(left, p)
		}
	}
	return left
}
