package sandboxtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox"
	"retort/internal/sandbox/wire"
)

// CheckCommands tests that a backend fulfils the contract of sandbox.CommandStarter. Programs in the backend must be
// able to start the executable at path as the command "tool". That executable must call BeCommand if its first
// argument is "command".
func CheckCommands(t *testing.T, b sandbox.Backend, path string) {
	t.Run("results", func(t *testing.T) { commandResults(t, b, path) })
	t.Run("starts nothing", func(t *testing.T) { commandStartsNothing(t, b) })
	t.Run("bounds", func(t *testing.T) { commandBounds(t, b) })
	t.Run("ends with its program", func(t *testing.T) { commandEndsWithItsProgram(t, b) })
}

// BeCommand does what the command that CheckCommands starts must do. The first element of args selects the action.
// BeCommand returns the exit status of the command.
func BeCommand(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	switch args[0] {
	case "argv":
		_ = json.NewEncoder(stdout).Encode(os.Args)
	case "env":
		fmt.Fprint(stdout, len(os.Environ()), os.Getpid())
	case "echo":
		_, _ = io.Copy(stdout, stdin)
	case "spill":
		for {
			fmt.Fprintln(stdout, strings.Repeat("x", 1<<10))
		}
	case "exit":
		fmt.Fprint(stderr, "bad")
		return 7
	case "sleep":
		fmt.Fprintln(stdout, "begun")
		testenv.Hang()
	case "devour":
		var taken [][]byte
		for range 128 {
			taken = append(taken, bytes.Repeat([]byte{1}, 16<<20))
		}
		fmt.Fprintln(stdout, len(taken))
	case "fork":
		err := exec.Command(os.Args[0], "x", "argv").Run()
		fmt.Fprintln(stdout, err, syscall.Exec(os.Args[0], []string{"x"}, nil))
		pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		if errno == 0 && pid == 0 {
			_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		}
		fmt.Fprintln(stdout, errno)
	case "read":
		for _, name := range args[1:] {
			_, err := os.ReadFile(name)
			fmt.Fprintln(stdout, name, err == nil)
		}
	case "ls":
		_ = filepath.WalkDir("/", func(p string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				fmt.Fprintln(stdout, p)
			}
			return nil
		})
	}
	return 0
}

// StartCommand runs a program on b, and this program starts the command c. StartCommand returns the result of the
// command and the report of the program.
func StartCommand(
	t *testing.T, b sandbox.Backend, l core.Limits, c sandbox.HostCommand,
) (sandbox.CommandResult, *core.Error, sandbox.RunReport) {
	t.Helper()
	return startedWith(t.Context(), t, b, l, c, func() {})
}

// startedWith works like StartCommand, but runs the program with ctx. It calls the function starting just before the
// command starts.
func startedWith(
	ctx context.Context, t *testing.T, b sandbox.Backend, l core.Limits, c sandbox.HostCommand, starting func(),
) (sandbox.CommandResult, *core.Error, sandbox.RunReport) {
	t.Helper()
	l = l.WithDefaults(core.Limits{Timeout: hangTimeout}).WithDefaults(core.DefaultLimits())
	s, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: "quickjs", Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var ended sandbox.CommandResult
	var failed error
	h := sandbox.HostFunc(func(ctx context.Context, _ core.ToolCall) (core.CallResult, error) {
		starting()
		ended, failed = s.(sandbox.CommandStarter).Start(ctx, c)
		return core.CallResult{Value: json.RawMessage("1")}, nil
	})
	report, err := s.Run(ctx, core.CheckedProgram{Code: "await searchTools('x')", Name: "try", Limits: l}, h)
	if err != nil {
		t.Fatal(err)
	}
	return ended, core.AsError(failed), report
}

// ToolCommand returns the command "tool" for the tests of CheckCommands. Its first argument selects what the command
// does.
func ToolCommand(args ...string) sandbox.HostCommand {
	return sandbox.HostCommand{Name: "tool", Args: append([]string{"command"}, args...)}
}

func commandResults(t *testing.T, b sandbox.Backend, path string) {
	secret := filepath.Join(filepath.Dir(path), "secret")
	if err := os.WriteFile(secret, []byte("swordfish"), 0o644); err != nil {
		t.Fatal(err)
	}
	hostile := []string{"argv", "$(id)", "; id", "`id`", "*", "a b", "'", `"`, "\n", "--x=/etc/y", ""}
	want, _ := json.Marshal(append([]string{"/usr/bin/tool", "command"}, hostile...))
	for _, c := range []struct {
		name    string
		command sandbox.HostCommand
		code    int
		out     string
	}{
		{"arguments stay what they are", ToolCommand(hostile...), 0, string(want) + "\n"},
		{"no environment, and no other process", ToolCommand("env"), 0, "0 1"},
		{"no input", ToolCommand("echo"), 0, ""},
		{
			"input",
			sandbox.HostCommand{Name: "tool", Args: []string{"command", "echo"}, Stdin: []byte(strings.Repeat("ä", 1<<18))},
			0, strings.Repeat("ä", 1<<18),
		},
		{"files", ToolCommand("read", secret, "/etc/passwd", "/etc/shadow", "/proc/self/environ", "/usr/bin/tool"), 0,
			secret + " false\n/etc/passwd false\n/etc/shadow false\n/proc/self/environ false\n/usr/bin/tool true\n"},
	} {
		ended, failed, report := StartCommand(t, b, core.Limits{}, c.command)
		if failed != nil || ended.Code != c.code || string(ended.Stdout) != c.out || ended.Truncated || report.Status != core.StatusOK {
			t.Errorf("%s: %d %.200q %.200q %v %v", c.name, ended.Code, ended.Stdout, ended.Stderr, failed, report.Status)
		}
	}
	ended, failed, _ := StartCommand(t, b, core.Limits{}, ToolCommand("exit"))
	if failed != nil || ended.Code != 7 || string(ended.Stderr) != "bad" {
		t.Error(ended, failed)
	}
}

func commandStartsNothing(t *testing.T, b sandbox.Backend) {
	ended, failed, _ := StartCommand(t, b, core.Limits{}, ToolCommand("fork"))
	if out := string(ended.Stdout); failed != nil || strings.Count(out, "operation not permitted") != 3 {
		t.Errorf("%d %q %q %v", ended.Code, out, ended.Stderr, failed)
	}
}

func commandBounds(t *testing.T, b sandbox.Backend) {
	ended, failed, _ := StartCommand(t, b, core.Limits{}, ToolCommand("spill"))
	if failed != nil || !ended.Truncated || len(ended.Stdout) != sandbox.MaxStdout || ended.Code != 137 {
		t.Error(ended.Code, ended.Truncated, len(ended.Stdout), failed)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	late := func() { time.AfterFunc(busyFor, func() { stop(wire.TimeoutStop(hangTimeout)) }) }
	_, failed, report := startedWith(ctx, t, b, core.Limits{}, ToolCommand("sleep"), late)
	if failed == nil || failed.Kind != core.KindCancelled || report.Status != core.StatusTimeout {
		t.Error(failed, report.Status)
	}
	ended, failed, _ = StartCommand(t, b, core.Limits{Memory: 32 << 20}, ToolCommand("devour"))
	if (failed == nil || failed.Kind != core.KindLimit) && ended.Code == 0 {
		t.Error(ended.Code, failed)
	}
}

func commandEndsWithItsProgram(t *testing.T, b sandbox.Backend) {
	l := core.Limits{Timeout: hangTimeout}.WithDefaults(core.DefaultLimits())
	s, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: "quickjs", Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.(sandbox.CommandStarter).Start(t.Context(), ToolCommand("env")); core.AsError(err).Kind != core.KindCancelled {
		t.Error("a command starts before its program:", err)
	}
	ended := make(chan error, 1)
	h := sandbox.HostFunc(func(ctx context.Context, _ core.ToolCall) (core.CallResult, error) {
		time.AfterFunc(busyFor, func() { _ = s.Close() })
		_, err := s.(sandbox.CommandStarter).Start(ctx, ToolCommand("sleep"))
		ended <- err
		return core.CallResult{}, core.AsError(err)
	})
	if _, err := s.Run(t.Context(), core.CheckedProgram{Code: "await searchTools('x')", Name: "try", Limits: l}, h); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; core.AsError(err) == nil || core.AsError(err).Kind != core.KindCancelled {
		t.Error(err)
	}
	if _, err := s.(sandbox.CommandStarter).Start(t.Context(), ToolCommand("env")); core.AsError(err).Kind != core.KindCancelled {
		t.Error("a command starts after its program:", err)
	}
}
