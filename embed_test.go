package retort_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"retort/internal/devel/testenv"
)

// TestModuleThatEmbeds checks that a module outside the tree can use the engine with the go.mod that the guide shows.
// All packages must be found; with testenv.Full the module is also built, which compiles all of them again.
func TestModuleThatEmbeds(t *testing.T) {
	tree, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile("docs/guides/embed-in-go.md")
	if err != nil {
		t.Fatal(err)
	}
	fragment := regexp.MustCompile("(?s)```\n(require retort .*?)```").FindSubmatch(guide)
	if fragment == nil {
		t.Fatal("the guide shows no go.mod")
	}
	dir := t.TempDir()
	lines := append([]byte("module example.com/embedding\n\ngo 1.26\n\n"), bytes.ReplaceAll(fragment[1], []byte("../retort"), []byte(filepath.ToSlash(tree)))...)
	copyTo := func(name, from string) {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), lines, 0o600); err != nil {
		t.Fatal(err)
	}
	copyTo("go.sum", "go.sum")
	copyTo("main.go", "examples/07-embed/main.go")
	run := func(args ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), "go", args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GOFLAGS=-trimpath -mod=mod", "GOPROXY=off", "GOWORK=off", "HOME="+userHome) // Go keeps its module cache there
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("go %v: %v\n%s", args, err, out)
		}
	}
	run("list", "-deps", ".")
	if testenv.Full() {
		run("build", "-o", filepath.Join(dir, "embedding"), ".")
	}
}
