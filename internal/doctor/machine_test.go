//go:build linux || darwin

package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// worstStatus returns the worst status of some checks, and the texts of all of them.
func worstStatus(checks []CheckResult) (worst CheckStatus, text string) {
	order := map[CheckStatus]int{OK: 0, Mended: 1, Warning: 2, Broken: 3}
	worst = OK
	for _, c := range checks {
		if order[c.Level] > order[worst] {
			worst = c.Level
		}
		text += c.Words + " " + c.Mend + "\n"
	}
	return worst, text
}

func TestFolder(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("as root everything can be written")
	}
	base := t.TempDir()
	at := func(name string, mode os.FileMode) string {
		dir := filepath.Join(base, name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dir        string
		fix        bool
		want, then CheckStatus // now, and when it is looked at once more
		says       string
	}{
		{at("right", 0o700), false, OK, OK, "free"},
		{at("open", 0o755), false, Warning, Warning, "chmod 700"},
		{at("mended", 0o757), true, Mended, OK, "was readable by other users (mode 757)"},
		{filepath.Join(base, "gone"), false, OK, OK, "created when it is needed"},
		{filepath.Join(base, "made/below"), true, Mended, OK, "made"},
		{file, false, Broken, Broken, "is a file"},
		{file, true, Broken, Broken, "is a file"},
	} {
		got, text := worstStatus(CheckFolder("home", c.dir, c.fix))
		if got != c.want || !strings.Contains(text, c.says) {
			t.Errorf("%s: %s, want %s: %s", c.dir, got, c.want, text)
		}
		if got, text := worstStatus(CheckFolder("home", c.dir, c.fix)); got != c.then {
			t.Errorf("%s, then: %s, want %s: %s", c.dir, got, c.then, text)
		}
	}
}

func TestKeysOfOthers(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"a.key": 0o600, "b.key": 0o644, "other": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if got, text := worstStatus(CheckKeys("keys", dir, false)); got != Warning || !strings.Contains(text, "chmod 600") || strings.Contains(text, "/a.key") || strings.Contains(text, "/other") {
		t.Errorf("%s: %s", got, text)
	}
	if got, _ := worstStatus(CheckKeys("keys", dir, true)); got != Mended {
		t.Error(got)
	}
	if checks := CheckKeys("keys", dir, false); checks != nil {
		t.Errorf("%+v", checks)
	}
}

func TestClock(t *testing.T) {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		now    time.Time
		behind time.Duration
		want   CheckStatus
		says   string
	}{
		{now, 0, OK, "2026"},
		{now, time.Hour, Broken, "accept-clock"},
		{time.Unix(0, 0), 0, Broken, "past"},
	} {
		if got := CheckClock(c.now, c.behind); got.Level != c.want || !strings.Contains(got.Words+got.Mend, c.says) {
			t.Errorf("%+v", got)
		}
	}
}

// TestShell checks that a shell reads the quoted form of a word as exactly that word.
func TestShell(t *testing.T) {
	for word, want := range map[string]string{"a": "a", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "/a/b.c-d": "/a/b.c-d"} {
		if got := shellQuote(word); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho \"tool $1\"\necho more\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := ProgramVersion(t.Context(), path); got != "tool --version" {
		t.Errorf("%q", got)
	}
	if got := ProgramVersion(t.Context(), path+"x"); got != "" {
		t.Errorf("%q", got)
	}
}

func TestFiles(t *testing.T) {
	for most, want := range map[uint64]CheckStatus{64: Broken, leastFiles: Warning, littleFiles: OK, 1 << 20: OK} {
		if worst, text := worstStatus(checkFileLimit(most)); worst != want || worst != OK && !strings.Contains(text, "ulimit -n 4096") {
			t.Errorf("%d files: %s %s, want %s", most, worst, text, want)
		}
	}
}
