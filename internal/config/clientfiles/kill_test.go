package clientfiles

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"retort/internal/devel/testenv"
)

// childVariable is the name of an environment variable that makes this test binary act as a child process, which a
// test kills. Its value is "install" or "uninstall" and, after a space, the folder to work in. The child prints 1
// when it is done.
const childVariable = "RETORT_TEST_VICTIM"

func TestMain(m *testing.M) {
	what, dir, killable := strings.Cut(os.Getenv(childVariable), " ")
	if !killable {
		os.Exit(m.Run())
	}
	e := Environment{GOOS: runtime.GOOS, UserHome: filepath.Join(dir, "user"), Dir: dir, Getenv: func(string) string { return "" }}
	o := InstallOptions{Client: "claude-code", Out: filepath.Join(dir, "ours", "mcp.json"), Home: filepath.Join(dir, "data"), Command: "/usr/bin/retort", Args: []string{"serve"}}
	do := Install
	if what == "uninstall" {
		do = Uninstall
	}
	if _, err := do(e, o); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(1)
}

// runAndKill runs install or uninstall in a child process. It kills the child when the given number of changes
// have been made in the folders that the child writes. It reports whether the child was done before that.
func runAndKill(t *testing.T, dir, what string, changes int) bool {
	t.Helper()
	folders := []string{filepath.Join(dir, "user"), filepath.Join(dir, "ours"), filepath.Join(dir, "data")}
	return testenv.KilledAtChange(t, childVariable, what+" "+dir, folders, changes, 0) == 1
}

// runWhole runs install or uninstall in a child process and lets it finish.
func runWhole(t *testing.T, dir, what string) {
	t.Helper()
	if !runAndKill(t, dir, what, math.MaxInt) {
		t.Fatalf("%s has not ended", what)
	}
}

// TestKilledAtAnyMoment checks that after an install or uninstall was killed at any moment, the client's file is
// complete, with its old or its new content. Retort's file then has every server that was removed from the client's
// file, and an uninstall restores every byte.
func TestKilledAtAnyMoment(t *testing.T) {
	const kills = 16 // more than an install or uninstall makes changes
	dir := t.TempDir()
	file, ours := filepath.Join(dir, "user", ".claude.json"), filepath.Join(dir, "ours", "mcp.json")
	before := []byte("{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"command\": \"a\"}, \"b\": {\"url\": \"https://b.example\"},\n  },\n  \"history\": [" +
		strings.Repeat("\"what was said, and said again\", ", 4_000) + "1],\n}\n")
	read := func(path string) []byte { text, _ := os.ReadFile(path); return text }
	for _, folder := range []string{filepath.Dir(file), filepath.Dir(ours), filepath.Join(dir, "data")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, before, 0o640); err != nil {
		t.Fatal(err)
	}
	runWhole(t, dir, "install")
	after := read(file)
	runWhole(t, dir, "uninstall")
	if bytes.Equal(before, after) || !bytes.Equal(read(file), before) {
		t.Fatal("without a kill it does not work")
	}
	seen := map[string]int{}
	check := func(what string, n int) {
		t.Helper()
		switch now := read(file); {
		case bytes.Equal(now, before):
			seen[what+", old"]++
		case bytes.Equal(now, after):
			seen[what+", new"]++
			if text := string(read(ours)); !strings.Contains(text, `"a"`) || !strings.Contains(text, "https://b.example") {
				t.Errorf("%s, kill %d: servers are lost: %s", what, n, text)
			}
		default:
			t.Fatalf("%s, kill %d: the file has %d bytes, neither what it had nor what it will have", what, n, len(now))
		}
	}
	for n := range kills {
		runAndKill(t, dir, "install", n+1)
		check("install", n)
		if n%2 == 1 {
			runWhole(t, dir, "install")
			if !bytes.Equal(read(file), after) {
				t.Fatalf("kill %d: a second install ends elsewhere", n)
			}
			runAndKill(t, dir, "uninstall", (n+1)/2)
			check("uninstall", n)
		}
		runWhole(t, dir, "uninstall")
		if !bytes.Equal(read(file), before) {
			t.Fatalf("kill %d: not restored", n)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 && runtime.GOOS != "windows" {
			t.Fatalf("kill %d: %v %v", n, info.Mode(), err)
		}
	}
	for _, at := range []string{filepath.Dir(file), filepath.Dir(ours)} {
		if left, _ := filepath.Glob(filepath.Join(at, ".retort-*")); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
	t.Logf("%d kills: %v", kills*3/2, seen)
}
