package clientfiles

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestPaths checks the paths of all clients' files on every operating system against a golden file.
func TestPaths(t *testing.T) {
	var all strings.Builder
	for _, system := range []string{"linux", "darwin", "windows"} {
		e := Environment{GOOS: system, UserHome: "/home", Dir: "/project", Getenv: func(k string) string {
			if system == "windows" && k == "APPDATA" {
				return "/home/AppData/Roaming"
			}
			return ""
		}}
		for _, c := range AllClients() {
			for _, p := range c.places {
				fmt.Fprintf(&all, "%s %s %s %s at %s\n", system, c.Name, p.scope, filepath.ToSlash(e.firstPath(p)), strings.Join(p.at, "."))
			}
		}
	}
	golden(t, "paths.txt", all.String())
}

func TestOwnFolders(t *testing.T) {
	e := Environment{GOOS: "linux", UserHome: "/home", Dir: "/project", Getenv: func(k string) string {
		return map[string]string{"CLAUDE_CONFIG_DIR": "/claude", "CODEX_HOME": "/codex", "XDG_CONFIG_HOME": "relative"}[k]
	}}
	for name, want := range map[string]string{"claude-code": "/claude/.claude.json", "codex": "/codex/config.toml", "goose": "/home/.config/goose/config.yaml"} {
		c, err := FindClient(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.firstPath(c.places[0]); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if _, err := FindClient("curser"); err == nil || !strings.Contains(fmt.Sprint(err), "no client") {
		t.Error(err)
	}
}
