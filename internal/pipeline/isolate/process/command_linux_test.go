package process

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"retort/internal/pipeline/isolate"
	"retort/internal/pipeline/isolate/commands"
	"retort/internal/run"
)

// beCommand is this binary as a command that programs start.
func beCommand(args []string) {
	switch args[0] {
	case "argv":
		_ = json.NewEncoder(os.Stdout).Encode(os.Args)
	case "env":
		fmt.Print(len(os.Environ()), os.Getpid())
	case "echo":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "spill":
		for {
			fmt.Println(strings.Repeat("x", 1<<10))
		}
	case "exit":
		fmt.Fprint(os.Stderr, "bad")
		os.Exit(7)
	case "sleep":
		fmt.Println("begun")
		time.Sleep(time.Hour)
	case "devour":
		devour()
	case "fork":
		err := exec.Command(os.Args[0], "x", "argv").Run()
		fmt.Println(err, syscall.Exec(os.Args[0], []string{"x"}, nil))
		pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		if errno == 0 && pid == 0 {
			syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		}
		fmt.Println(errno)
	case "read":
		for _, name := range args[1:] {
			_, err := os.ReadFile(name)
			fmt.Println(name, err == nil)
		}
	case "ls":
		_ = filepath.WalkDir("/", func(p string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				fmt.Println(p)
			}
			return nil
		})
	}
	os.Exit(0)
}

// commander is a backend whose programs can start this binary as tool, and a file that is not
// there as absent.
func commander(t *testing.T) (*Backend, string) {
	t.Helper()
	dir := t.TempDir()
	tool := filepath.Join(dir, "tool")
	binary, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tool, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	c, err := commands.Look([]string{tool, filepath.Join(dir, "absent"), tool})
	if err != nil {
		t.Fatal(err)
	}
	b := New(Options{Warm: -1, Commands: c})
	t.Cleanup(func() { _ = b.Close() })
	return b, tool
}

// started has a program start tool, and gives what it got.
func started(t *testing.T, b *Backend, l run.Limits, c isolate.Command) (isolate.Ended, *run.Error, isolate.Report) {
	t.Helper()
	l = l.Or(run.Limits{Timeout: 20 * time.Second}).Or(run.DefaultLimits())
	s, err := b.Prepare(t.Context(), isolate.Spec{Runtime: quickjs, Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var ended isolate.Ended
	var failed error
	h := isolate.HostFunc(func(ctx context.Context, _ run.Call) (run.Result, error) {
		ended, failed = s.(isolate.Commander).Start(ctx, c)
		return run.Result{Value: json.RawMessage("1")}, nil
	})
	report, err := s.Run(t.Context(), run.Program{Code: "await searchTools('x')", Name: "try", Limits: l}, h)
	if err != nil {
		t.Fatal(err)
	}
	return ended, run.AsError(failed), report
}

func tool(args ...string) isolate.Command {
	return isolate.Command{Name: "tool", Args: append([]string{"command"}, args...)}
}

func TestCommand(t *testing.T) {
	b, path := commander(t)
	secret := filepath.Join(filepath.Dir(path), "secret")
	if err := os.WriteFile(secret, []byte("swordfish"), 0o644); err != nil {
		t.Fatal(err)
	}
	hostile := []string{"argv", "$(id)", "; id", "`id`", "*", "a b", "'", `"`, "\n", "--x=/etc/y", ""}
	want, _ := json.Marshal(append([]string{"/usr/bin/tool", "command"}, hostile...))
	for _, c := range []struct {
		name    string
		command isolate.Command
		code    int
		out     string
	}{
		{"arguments stay what they are", tool(hostile...), 0, string(want) + "\n"},
		{"no environment, and no other process", tool("env"), 0, "0 1"},
		{"no input", tool("echo"), 0, ""},
		{"input", isolate.Command{Name: "tool", Args: []string{"command", "echo"}, Stdin: []byte(strings.Repeat("ä", 1<<18))}, 0, strings.Repeat("ä", 1<<18)},
		{"files", tool("read", secret, "/etc/passwd", "/etc/hostname", "/proc/self/environ", "/usr/bin/tool"), 0,
			secret + " false\n/etc/passwd false\n/etc/hostname false\n/proc/self/environ false\n/usr/bin/tool true\n"},
	} {
		ended, failed, report := started(t, b, run.Limits{}, c.command)
		if failed != nil || ended.Code != c.code || string(ended.Stdout) != c.out || ended.Truncated || report.Status != run.StatusOK {
			t.Errorf("%s: %d %.200q %.200q %v %v", c.name, ended.Code, ended.Stdout, ended.Stderr, failed, report.Status)
		}
	}
	ended, failed, _ := started(t, b, run.Limits{}, tool("exit"))
	if failed != nil || ended.Code != 7 || string(ended.Stderr) != "bad" {
		t.Error(ended, failed)
	}
}

func TestCommandStartsNothing(t *testing.T) {
	b, _ := commander(t)
	ended, failed, _ := started(t, b, run.Limits{}, tool("fork"))
	if out := string(ended.Stdout); failed != nil || strings.Count(out, "operation not permitted") != 3 {
		t.Errorf("%d %q %q %v", ended.Code, out, ended.Stderr, failed)
	}
}

func TestCommandBounds(t *testing.T) {
	b, _ := commander(t)
	ended, failed, _ := started(t, b, run.Limits{}, tool("spill"))
	if failed != nil || !ended.Truncated || len(ended.Stdout) != isolate.MaxStdout || ended.Code != 137 {
		t.Error(ended.Code, ended.Truncated, len(ended.Stdout), failed)
	}
	_, failed, report := started(t, b, run.Limits{Timeout: time.Second}, tool("sleep"))
	if failed == nil || failed.Kind != run.KindCancelled || report.Status != run.StatusTimeout {
		t.Error(failed, report.Status)
	}
	ended, failed, _ = started(t, b, run.Limits{Memory: 32 << 20}, tool("devour"))
	if (failed == nil || failed.Kind != run.KindLimit) && ended.Code == 0 {
		t.Error(ended.Code, failed)
	}
}

func TestCommandEndsWithItsProgram(t *testing.T) {
	b, _ := commander(t)
	l := run.Limits{Timeout: 20 * time.Second}.Or(run.DefaultLimits())
	s, err := b.Prepare(t.Context(), isolate.Spec{Runtime: quickjs, Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.(isolate.Commander).Start(t.Context(), tool("env")); run.AsError(err).Kind != run.KindCancelled {
		t.Error("a command starts before its program:", err)
	}
	ended := make(chan error, 1)
	h := isolate.HostFunc(func(ctx context.Context, _ run.Call) (run.Result, error) {
		time.AfterFunc(300*time.Millisecond, func() { _ = s.Close() })
		_, err := s.(isolate.Commander).Start(ctx, tool("sleep"))
		ended <- err
		return run.Result{}, run.AsError(err)
	})
	if _, err := s.Run(t.Context(), run.Program{Code: "await searchTools('x')", Name: "try", Limits: l}, h); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; run.AsError(err) == nil || run.AsError(err).Kind != run.KindCancelled {
		t.Error(err)
	}
	if _, err := s.(isolate.Commander).Start(t.Context(), tool("env")); run.AsError(err).Kind != run.KindCancelled {
		t.Error("a command starts after its program:", err)
	}
}

// TestCommandIsTheFileThatWasLookedAt holds that what is started is what was looked at, however
// another file has come into its place.
func TestCommandIsTheFileThatWasLookedAt(t *testing.T) {
	for name, swap := range map[string]func(path string) error{
		"another file": func(path string) error {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return replaced(path, func(p string) error { return os.WriteFile(p, data, 0o755) })
		},
		"a symbolic link": func(path string) error {
			return replaced(path, func(p string) error { return os.Symlink("/bin/cat", p) })
		},
		"a directory that is one": func(path string) error {
			moved := filepath.Dir(path) + "-moved"
			other := filepath.Dir(path) + "-other"
			if err := os.Mkdir(other, 0o755); err != nil {
				return err
			}
			data, _ := os.ReadFile("/bin/cat")
			if err := os.WriteFile(filepath.Join(other, "tool"), data, 0o755); err != nil {
				return err
			}
			if err := os.Rename(filepath.Dir(path), moved); err != nil {
				return err
			}
			return os.Symlink(other, filepath.Dir(path))
		},
		"other bytes": func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteString("x")
			return err
		},
		"other rights": func(path string) error { return os.Chmod(path, 0o4755) },
	} {
		t.Run(name, func(t *testing.T) {
			b, path := commander(t)
			if _, failed, _ := started(t, b, run.Limits{}, tool("env")); failed != nil {
				t.Fatal(failed)
			}
			if err := swap(path); err != nil {
				t.Fatal(err)
			}
			ended, failed, _ := started(t, b, run.Limits{}, tool("env"))
			if failed == nil || failed.Kind != run.KindSandboxUnavailable {
				t.Errorf("%q %q %v", ended.Stdout, ended.Stderr, failed)
			}
		})
	}
}

func replaced(path string, with func(string) error) error {
	if err := with(path + ".new"); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func TestCapableCommands(t *testing.T) {
	b, _ := commander(t)
	have := b.Capabilities()
	if !slices.Equal(have.Commands, []string{"tool"}) || len(have.NoCommands) != 1 || have.NoCommands[0].Command != "absent" {
		t.Error(have.Commands, have.NoCommands)
	}
	for name, want := range map[string]string{"absent": "not on this machine", "other": "no command"} {
		if _, failed, _ := started(t, b, run.Limits{}, isolate.Command{Name: name}); failed == nil || !strings.Contains(failed.Message, want) {
			t.Errorf("%s: %v", name, failed)
		}
	}
}
