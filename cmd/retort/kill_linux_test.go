package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"retort/internal/testenv"
)

// When the engine is killed with SIGKILL in the middle of a program, nothing of
// its children is left: no sandbox, no server, nothing that a server started.
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

// process tells a process from another that later gets its number.
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

// startOf is the start time of a process, empty if it is gone or a zombie.
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
