package clients

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// victim is what this test binary does as another process, to be killed: "install" or "uninstall".
const victim = "RETORT_TEST_VICTIM"

func TestMain(m *testing.M) {
	what := os.Getenv(victim)
	if what == "" {
		os.Exit(m.Run())
	}
	dir := os.Getenv("RETORT_TEST_DIR")
	e := Environment{GOOS: runtime.GOOS, UserHome: filepath.Join(dir, "user"), Dir: dir, Getenv: func(string) string { return "" }}
	o := InstallOptions{Client: "claude-code", Out: filepath.Join(dir, "ours", "mcp.json"), Home: filepath.Join(dir, "data"), Command: "/usr/bin/retort", Args: []string{"serve"}}
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	do := Install
	if what == "uninstall" {
		do = Uninstall
	}
	if _, err := do(e, o); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("done")
}

// killed runs install or uninstall as a process that ends after a while, with SIGKILL. Zero is
// never. It returns how long it took.
func killed(t *testing.T, dir, what string, after time.Duration) time.Duration {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), victim+"="+what, "RETORT_TEST_DIR="+dir)
	in, _ := c.StdinPipe()
	out, _ := c.StdoutPipe()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(out)
	if line, err := said.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q %v", line, err)
	}
	began := time.Now()
	_, _ = io.WriteString(in, "\n")
	if after > 0 {
		time.Sleep(after)
		_ = c.Process.Kill()
	}
	rest, _ := io.ReadAll(said)
	if err := c.Wait(); after == 0 && err != nil {
		t.Fatalf("%s: %v: %s", what, err, rest)
	}
	return time.Since(began)
}

// Killed at any moment, an install or uninstall leaves the client's file whole, as it was or as
// it will be, and our file with all that left the client's; an uninstall restores every byte.
func TestKilledAtAnyMoment(t *testing.T) {
	const kills = 40
	dir := t.TempDir()
	file, ours := filepath.Join(dir, "user", ".claude.json"), filepath.Join(dir, "ours", "mcp.json")
	before := []byte("{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"command\": \"a\"}, \"b\": {\"url\": \"https://b.example\"},\n  },\n  \"history\": [" +
		strings.Repeat("\"what was said, and said again\", ", 4_000) + "1],\n}\n")
	read := func(path string) []byte { text, _ := os.ReadFile(path); return text }
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, before, 0o640); err != nil {
		t.Fatal(err)
	}
	installs := killed(t, dir, "install", 0)
	after := read(file)
	uninstalls := killed(t, dir, "uninstall", 0)
	if bytes.Equal(before, after) || !bytes.Equal(read(file), before) {
		t.Fatal("without a kill it does not work")
	}
	seen := map[string]int{}
	whole := func(what string, n int) {
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
		killed(t, dir, "install", max(1, time.Duration(n)*installs*5/4/kills))
		whole("install", n)
		if n%2 == 1 {
			killed(t, dir, "install", 0)
			if !bytes.Equal(read(file), after) {
				t.Fatalf("kill %d: a second install ends elsewhere", n)
			}
			killed(t, dir, "uninstall", max(1, time.Duration(n)*uninstalls*5/4/kills))
			whole("uninstall", n)
		}
		killed(t, dir, "uninstall", 0)
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
