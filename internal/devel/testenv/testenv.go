// Package testenv finds the programs that tests need on this machine. A test whose program is missing is skipped. But
// if RETORT_REQUIRE, a list of names separated by commas, contains the name of the program, the test fails.
//
//	RETORT_REQUIRE=node,node22 go test ./...
package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// IsRequired reports whether RETORT_REQUIRE contains name.
func IsRequired(name string) bool {
	return slices.Contains(strings.FieldsFunc(os.Getenv("RETORT_REQUIRE"), func(r rune) bool { return r == ',' || r == ' ' }), name)
}

// Need returns the path of a program. If it is missing, it skips or fails the test. "node22" is Node.js 22 or newer
// with the packages of testdata/npm22. "bun" and "deno" are those in testdata/npm-runtimes. "python" is python3.
// "runsc" is found in PATH or in the folder of go install. "qemu" is qemu-system-x86_64. Every other name is looked
// up in PATH.
func Need(t testing.TB, name string) string {
	t.Helper()
	if !IsWanted(name) {
		t.Skipf("make test-sandboxes runs the tests that need %s", name)
	}
	path, err := findProgram(t, name)
	Missing(t, name, err)
	return path
}

// IsAvailable reports whether Need would find the program, so that a test that needs it would run.
func IsAvailable(t testing.TB, name string) bool {
	t.Helper()
	_, err := findProgram(t, name)
	return IsWanted(name) && (err == nil || IsRequired(name))
}

func findProgram(t testing.TB, name string) (path string, err error) {
	t.Helper()
	switch name {
	case "node22":
		return installedCommand(t, "npm22", ".bin/node")
	case "bun":
		return installedCommand(t, "npm-runtimes", ".bin/bun")
	case "deno":
		return installedCommand(t, "npm-runtimes", "@deno/linux-x64-glibc/deno")
	case "python":
		return exec.LookPath("python3")
	case "runsc":
		return goInstalled(name)
	case "qemu":
		return exec.LookPath("qemu-system-x86_64")
	}
	return exec.LookPath(name)
}

// IsWanted reports whether tests that need name are enabled. Tests of containers and virtual machines take minutes.
// They are enabled only if RETORT_SANDBOXES is 1, as "make test-sandboxes" sets it, or if RETORT_REQUIRE lists name.
// All other tests are always enabled.
func IsWanted(name string) bool {
	optional := slices.Contains([]string{"dockerd", "runsc", "qemu", "firecracker"}, name)
	return !optional || os.Getenv("RETORT_SANDBOXES") == "1" || IsRequired(name)
}

// goInstalled returns the path of a program in PATH or in the folder into which go install puts programs.
func goInstalled(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	out, err := exec.Command("go", "env", "GOBIN", "GOPATH").Output()
	if err != nil {
		return "", err
	}
	bin, gopath, _ := strings.Cut(strings.TrimRight(string(out), "\n"), "\n")
	if bin == "" {
		bin = filepath.Join(filepath.SplitList(gopath)[0], "bin")
	}
	return exec.LookPath(filepath.Join(bin, name))
}

// NPM returns the folder node_modules of testdata/npm, which has the real MCP servers. If "node" is missing, it skips
// or fails the test.
func NPM(t testing.TB) string {
	t.Helper()
	Need(t, "node")
	dir, err := existingPath(filepath.Join(Root(t), "testdata", "npm", "node_modules"), "npm ci in testdata/npm")
	Missing(t, "node", err)
	return dir
}

// NPM22 returns the folder node_modules of testdata/npm22. If "node22" is missing, it skips or fails the test.
func NPM22(t testing.TB) string {
	t.Helper()
	return filepath.Dir(filepath.Dir(Need(t, "node22")))
}

// Missing does nothing if err is nil. Otherwise err is the reason why the program name is missing, and Missing skips
// the test, or fails it if the program is required.
func Missing(t testing.TB, name string, err error) {
	t.Helper()
	switch {
	case err == nil:
	case IsRequired(name):
		t.Fatalf("%s is required by RETORT_REQUIRE: %v", name, err)
	default:
		t.Skipf("%s is not here: %v", name, err)
	}
}

// installedCommand returns the path of a command that npm has installed in a folder of testdata.
func installedCommand(t testing.TB, dir, command string) (string, error) {
	return existingPath(filepath.Join(Root(t), "testdata", dir, "node_modules", filepath.FromSlash(command)), "npm ci in testdata/"+dir)
}

func existingPath(path, install string) (string, error) {
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w (install with: %s)", err, install)
	}
	return path, nil
}

// Root returns the folder of the module that the test belongs to.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if data, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && strings.HasPrefix(string(data), "module retort\n") {
			return dir
		}
		if dir == filepath.Dir(dir) {
			err = errors.New("no go.mod above")
			break
		}
	}
	t.Fatalf("testenv: the module's folder was not found: %v", err)
	return ""
}

// Full reports whether RETORT_FULL is 1, which "make test-all" sets for releases. Tests then run every combination of
// their parameters. Otherwise they run a selection that covers each value.
func Full() bool { return os.Getenv("RETORT_FULL") == "1" }
