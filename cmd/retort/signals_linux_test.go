package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"retort/internal/devel/testenv"
)

// busy represents a "retort serve" process that is running a program. The test exchanges MCP messages with it over
// standard input and output.
type busy struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

// startBusy starts "retort serve" and a program that calls a tool and then runs code. It returns after the call has
// reached the tool's server.
func startBusy(t *testing.T, code string) *busy {
	t.Helper()
	dir := t.TempDir()
	heard := filepath.Join(dir, "heard") // the requests that the server gets
	config := `{"mcpServers": {"chat": {"command": "sh", "args": ["-c", "tee ` + heard + ` | retort demo-server chat"]}}}`
	if err := os.WriteFile(filepath.Join(dir, ".mcp.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := retortIn(t, dir, "serve")
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(cmd.Path)+":"+os.Getenv("PATH"), "HOME="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := startWithHangups(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	b := &busy{t, cmd, in, bufio.NewScanner(out)}
	b.out.Buffer(nil, 1<<20)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	fmt.Fprintf(in, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_code","arguments":{"code":"await chat.listChannels({}); %s"}}}`+"\n", code)
	testenv.WaitUntil(t, "the program is under way", func() bool {
		text, _ := os.ReadFile(heard)
		return strings.Contains(string(text), "tools/call")
	})
	return b
}

// startWithHangups starts a command with the default action for SIGHUP, even if the tests run under nohup. During the
// start it catches SIGHUP. A child inherits a signal that its parent ignores as ignored, but gets the default action
// for a signal that its parent catches.
func startWithHangups(cmd *exec.Cmd) error {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	defer signal.Stop(caught)
	return cmd.Start()
}

// signal sends a signal to the server. It returns the lines that the server then writes. The last line is the response
// that refuses a new request because the server is ending.
func (b *busy) signal(s syscall.Signal) (lines []string) {
	b.t.Helper()
	if err := b.cmd.Process.Signal(s); err != nil {
		b.t.Fatal(err)
	}
	fmt.Fprintln(b.in, `{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	for b.out.Scan() {
		text := b.out.Text()
		lines = append(lines, text)
		switch {
		case !strings.Contains(text, `"id":3`):
		case strings.Contains(text, "the server is ending"):
			return lines
		default:
			fmt.Fprintln(b.in, `{"jsonrpc":"2.0","id":3,"method":"ping"}`)
		}
	}
	b.t.Fatalf("the server has ended: %q", lines)
	return nil
}

// TestFirstSignalDrains sends SIGHUP, SIGTERM or SIGINT to a server once. It checks that the running program ends
// normally, that its request is answered, and that the server exits without an error.
func TestFirstSignalDrains(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			b := startBusy(t, "await new Promise(r => setTimeout(r, 1500)); return 'drained'")
			lines := b.signal(s)
			for b.out.Scan() {
				lines = append(lines, b.out.Text())
			}
			if all := strings.Join(lines, "\n"); !strings.Contains(all, "drained") {
				t.Errorf("the program was not answered: %s", all)
			}
			if err := b.cmd.Wait(); err != nil {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

// TestSecondSignalEndsAtOnce checks that a second signal ends the server and all of its children immediately.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	b := startBusy(t, "while (true) {}")
	b.signal(syscall.SIGTERM)
	family := descendants(b.cmd.Process.Pid)
	if err := b.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for b.out.Scan() {
		if strings.Contains(b.out.Text(), `"id":2`) {
			t.Errorf("the program was waited for: %s", b.out.Text())
		}
	}
	_ = b.cmd.Wait()
	if code := b.cmd.ProcessState.ExitCode(); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	testenv.WaitUntil(t, "no child is left", func() bool { return len(alive(family)) == 0 })
}
