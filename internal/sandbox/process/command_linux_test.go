package process

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/hostcmd"
	"retort/internal/sandbox/sandboxtest"
)

// commander returns a backend whose programs can start two commands: "tool", which is this test binary, and "absent",
// whose file does not exist. It also returns the path of tool.
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
	b := New(Options{Warm: -1, Commands: hostcmd.FindCommands([]string{tool, filepath.Join(dir, "absent"), tool})})
	t.Cleanup(func() { _ = b.Close() })
	return b, tool
}

// TestCommands checks that commands fulfil the contract that sandboxtest.CheckCommands defines.
func TestCommands(t *testing.T) {
	b, path := commander(t)
	sandboxtest.CheckCommands(t, b, path)
}

// TestCommandIsTheFileThatWasLookedAt checks that a command is not started if its file was replaced or changed in any
// way after it was found.
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
			if _, failed, _ := sandboxtest.StartCommand(t, b, core.Limits{}, sandboxtest.ToolCommand("env")); failed != nil {
				t.Fatal(failed)
			}
			if err := swap(path); err != nil {
				t.Fatal(err)
			}
			ended, failed, _ := sandboxtest.StartCommand(t, b, core.Limits{}, sandboxtest.ToolCommand("env"))
			if failed == nil || failed.Kind != core.KindSandboxUnavailable {
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
	for name, want := range map[string]string{"absent": "not on this machine", "other": "does not exist in this sandbox"} {
		if _, failed, _ := sandboxtest.StartCommand(t, b, core.Limits{}, sandbox.HostCommand{Name: name}); failed == nil || !strings.Contains(failed.Message, want) {
			t.Errorf("%s: %v", name, failed)
		}
	}
}
