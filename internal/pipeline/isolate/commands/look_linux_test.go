package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
		{write("script", "#!/bin/sh\nid\n", 0o755), "script (#!)"},
		{write("text", "id\n", 0o755), "no program of this system"},
		{write("setuid", string(binary), os.ModeSetuid|0o755), "setuid"},
		{write("setgid", string(binary), os.ModeSetgid|0o755), "setgid"},
		{"./tool", "absolute path"},
		{"bin/tool", "absolute path"},
	} {
		if _, err := Look([]string{c.written}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.written, err)
		}
	}
	good := write("good", string(binary), 0o755)
	if _, err := Look([]string{good, filepath.Join(dir, "other", "good")}); err == nil {
		t.Error("two commands have one name")
	}
	t.Setenv("PATH", dir)
	t.Chdir(dir)
	c, err := Look([]string{"good", "nothing", good + "-absent"})
	if err != nil || c.found["good"] == nil || len(c.missing) != 2 {
		t.Fatal(c, err)
	}
	t.Setenv("PATH", ".:"+t.TempDir())
	if c, err := Look([]string{"good"}); err != nil || len(c.found) != 0 {
		t.Error("a directory that depends on where one is was looked in:", c, err)
	}
}
