//go:build unix

package clientfiles

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestModesAndLinks(t *testing.T) {
	m := newMachine(t, "linux")
	file := m.userFile("cursor")
	real := filepath.Join(m.UserHome, "dotfiles", "cursor.json")
	m.write(real, []byte(cursorFile))
	if err := os.Chmod(real, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, file); err != nil {
		t.Fatal(err)
	}
	m.install(m.options("cursor"))
	if info, err := os.Lstat(file); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link is gone")
	}
	if info, _ := os.Stat(real); info.Mode().Perm() != 0o640 {
		t.Error(info.Mode())
	}
	if info, _ := os.Stat(m.out); info.Mode().Perm() != 0o600 {
		t.Error(info.Mode())
	}
	m.uninstall(m.options("cursor"))
	if string(m.read(real)) != cursorFile {
		t.Error("not restored")
	}
}

// TestProjectLinks checks that a project's file is refused if the file or its folder is a link out of the project.
func TestProjectLinks(t *testing.T) {
	for name, link := range map[string]func(m *machine, outside string) error{
		"file": func(m *machine, outside string) error {
			_ = os.Mkdir(filepath.Join(m.Dir, ".cursor"), 0o755)
			return os.Symlink(outside, filepath.Join(m.Dir, ".cursor", "mcp.json"))
		},
		"folder": func(m *machine, outside string) error {
			return os.Symlink(filepath.Dir(outside), filepath.Join(m.Dir, ".cursor"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, "linux")
			outside := filepath.Join(m.UserHome, "x", "mcp.json")
			m.write(outside, []byte(cursorFile))
			if err := link(m, outside); err != nil {
				t.Fatal(err)
			}
			o := m.options("cursor")
			o.Project, o.Out = true, filepath.Join(m.Dir, "retort.json")
			if _, err := Install(m.Environment, o); err == nil || !strings.Contains(err.Error(), "outside of the project") {
				t.Error(err)
			}
			done, err := ImportServers(m.Environment, ImportOptions{Project: true, Out: o.Out, Home: m.home})
			if err != nil || len(done.Broken) != 1 || string(m.read(outside)) != cursorFile {
				t.Errorf("%+v %v", done, err)
			}
		})
	}
}

// TestOnlyFiles checks that a device in the place of a client's file is refused.
func TestOnlyFiles(t *testing.T) {
	m := newMachine(t, "linux")
	file := m.userFile("cursor")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", file); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(m.Environment, m.options("cursor")); err == nil || !strings.Contains(err.Error(), "regular") {
		t.Error(err)
	}
}
