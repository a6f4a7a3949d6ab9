package hostcmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retort/internal/core"
)

func TestLook(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	binary, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ written, want string }{
		{write("script", "#!/bin/sh\nid\n", 0o755), "script that sh must run, but sh is not one of the commands"},
		{write("odd", "#!/usr/bin/env -S sh -c\nid\n", 0o755), "does not understand its first line"},
		{write("empty", "#!\nid\n", 0o755), "does not name an interpreter"},
		{write("text", "id\n", 0o755), "not a program for this system"},
		{write("setuid", string(binary), os.ModeSetuid|0o755), "setuid"},
		{write("setgid", string(binary), os.ModeSetgid|0o755), "setgid"},
		{"./tool", "absolute path"},
		{"bin/tool", "absolute path"},
	} {
		s := FindCommands([]string{c.written})
		if len(s.found) != 0 || len(s.missing) != 1 || !strings.Contains(s.missing[0].Why.Message, c.want) {
			t.Errorf("%s: %+v %+v", c.written, s.found, s.missing)
		}
	}
	good := write("good", string(binary), 0o755)
	if s := FindCommands([]string{good, filepath.Join(dir, "other", "good")}); len(s.found) != 0 || len(s.missing) != 1 {
		t.Error("one of two commands with one name is started")
	}
	run := write("run", "#!"+good+" -x\n", 0o755)
	if s := FindCommands([]string{run, good}); len(s.found) != 2 || len(s.missing) != 0 || strings.Join(s.found["run"].SandboxPlan([]string{"a"}).Argv, " ") != "/usr/bin/good -x "+run+" a" {
		t.Errorf("a script whose interpreter is allowed: %+v %+v", s.found["run"], s.missing)
	}
	if s := FindCommands([]string{run, write("again", "#!/usr/bin/env run\n", 0o755), good}); len(s.found) != 2 {
		t.Error("a script runs a script")
	}
	t.Setenv("PATH", dir)
	t.Chdir(dir)
	c := FindCommands([]string{"good", "nothing", good + "-absent"})
	if c.found["good"] == nil || len(c.missing) != 2 {
		t.Fatal(c)
	}
	t.Setenv("PATH", ".:"+t.TempDir())
	if c := FindCommands([]string{"good"}); len(c.found) != 0 {
		t.Error("a directory that depends on where one is was looked in:", c)
	}
}

// TestPackageOf checks that packageOf returns the installed npm package of a script, or else only the script itself.
func TestPackageOf(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"project", "lib/node_modules/tool", "lib/node_modules/@scope/tool"} {
		if err := os.MkdirAll(filepath.Join(dir, name, "bin"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "package.json"), []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for file, want := range map[string]string{
		"project/bin/x": "project/bin/x", "lib/node_modules/tool/bin/x": "lib/node_modules/tool", "lib/node_modules/@scope/tool/bin/x": "lib/node_modules/@scope/tool",
		"lib/node_modules/x": "lib/node_modules/x",
	} {
		if got := packageOf(filepath.Join(dir, file)); got != filepath.Join(dir, want) {
			t.Errorf("%s: %s", file, got)
		}
	}
}

// TestUnstartableSaysItOnce checks that a message contains "cannot be started" only once, even if UnstartableError is
// applied to its own result.
func TestUnstartableSaysItOnce(t *testing.T) {
	cause := errors.New("it is gone")
	outside := core.Errorf(core.KindSandboxUnavailable, "docker", "Docker does not answer").WithHint("start it")
	for name, c := range map[string]struct {
		err        error
		want, hint string
	}{
		"a cause":          {cause, "tool cannot be started: it is gone", ""},
		"a refusal":        {fmt.Errorf("image: %w", UnstartableError("tool", cause)), "tool cannot be started: it is gone", ""},
		"another error":    {outside, "tool cannot be started: Docker does not answer", "start it"},
		"and again":        {UnstartableError("tool", UnstartableError("tool", outside)), "tool cannot be started: Docker does not answer", "start it"},
		"the changed file": {ChangedError("tool"), ChangedError("tool").Message, ChangedError("tool").Hint},
	} {
		if got := UnstartableError("tool", c.err); got.Message != c.want || got.Hint != c.hint || got.Kind != core.KindSandboxUnavailable {
			t.Errorf("%s: %q %q, want %q %q", name, got.Message, got.Hint, c.want, c.hint)
		}
	}
}
