package clientfiles

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"retort/internal/devel/testenv"
)

// TestLargeFile checks that a client's file with megabytes of history is changed and restored like any
// other.
func TestLargeFile(t *testing.T) {
	entries := 100_000 // 9 MB
	if testenv.Full() {
		entries = 300_000
	}
	m := newMachine(t, "linux")
	file := m.userFile("claude-code")
	text := []byte(fmt.Sprintf(`{"mcpServers": {"a": {"command": "a"}}, "projects": {%q: {"mcpServers": {"b": {"command": "b"}}, "history": [%s{}]}}}`,
		m.Dir, strings.Repeat(`{"display": "what was said, and said again, \"quoted\"", "n": 12345678901234567890}, `, entries)))
	m.write(file, text)
	if done := m.install(m.options("claude-code")); len(done.Moved) != 2 {
		t.Errorf("%+v", done.Moved)
	}
	m.uninstall(m.options("claude-code"))
	if string(m.read(file)) != string(text) {
		t.Error("not restored")
	}
}

// TestParsedOnce checks that an operation parses each text of a file only once.
func TestParsedOnce(t *testing.T) {
	m := newMachine(t, "linux")
	c, _ := FindClient("claude-code")
	f := c.format.(jsonFile)
	src := []byte(`{"mcpServers": {"a": {"command": "a"}}, "projects": {"` + m.Dir + `": {"mcpServers": {"b": {"command": "b"}}}}}`)
	first, root, err := f.parseTree(src)
	if err != nil {
		t.Fatal(err)
	}
	again, same, _ := f.parseTree([]byte(string(src)))
	if root != same || first.Value != again.Value {
		t.Error("parsed again")
	}
	whole, _ := f.decodeAll(src)
	if _, err := f.readMembers(src, []string{"mcpServers"}); err != nil {
		t.Fatal(err)
	}
	result, err := applyChanges(f, src, []memberChange{{[]string{"mcpServers"}, []string{"a"}, nil}, {[]string{"projects", m.Dir, "mcpServers"}, []string{"b"}, nil}})
	if err != nil || strings.Contains(string(result), "command") {
		t.Fatalf("%s %v", result, err)
	}
	if before, _ := f.decodeAll(src); fmt.Sprint(before) != fmt.Sprint(whole) || !strings.Contains(fmt.Sprint(whole), "command") {
		t.Error("what was read has been changed")
	}
	if f.read.made {
		t.Error("what was edited was not read back")
	}
}

// TestOtherProjects checks what an import does with servers that a user's file lists for other projects: it reports
// them, but they can be imported only in those projects.
func TestOtherProjects(t *testing.T) {
	m := newMachine(t, "linux")
	other := filepath.Join(filepath.Dir(m.Dir), "other")
	m.write(m.userFile("claude-code"), fmt.Appendf(nil, `{"mcpServers": {"a": {"command": "a"}}, "projects": {%q: {"mcpServers": {"mine": {"command": "m"}}}, %q: {"mcpServers": {"theirs": {"command": "t"}}}, "/empty": {}}}`, m.Dir, other))
	done, err := ImportServers(m.Environment, ImportOptions{Out: m.out, Home: m.home})
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, s := range done.Servers {
		got += fmt.Sprintf("%s %s %s; ", s.Name, s.State, s.Reason)
	}
	if want := "a added ; mine added ; theirs left it is for " + other + " only: run retort import --project there; "; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	m.write(filepath.Join(other, "README"), nil)
	there := m.Environment
	there.Dir = other
	done, err = ImportServers(there, ImportOptions{Project: true, Out: filepath.Join(other, "retort.json"), Home: m.home})
	if err != nil || len(done.Servers) != 1 || done.Servers[0].Name != "theirs" || done.Servers[0].State != Added {
		t.Errorf("%+v %v", done, err)
	}
}

// TestPercent checks that %VAR% is treated as a variable only for Gemini CLI on Windows.
func TestPercent(t *testing.T) {
	for _, c := range []struct{ client, system, want string }{
		{"gemini", "windows", `"KEY":"a${MY_KEY}b 100% %x y%"`}, {"gemini", "linux", `"KEY":"a%MY_KEY%b 100% %x y%"`}, {"cursor", "windows", `"KEY":"a%MY_KEY%b 100% %x y%"`},
	} {
		m := newMachine(t, c.system)
		m.write(m.userFile(c.client), []byte(`{"mcpServers": {"a": {"command": "a", "env": {"KEY": "a%MY_KEY%b 100% %x y%"}}}}`))
		if _, err := ImportServers(m.Environment, ImportOptions{Out: m.out, Home: m.home}); err != nil {
			t.Fatal(err)
		}
		if got := strings.ReplaceAll(string(m.read(m.out)), `": "`, `":"`); !strings.Contains(got, c.want) {
			t.Errorf("%s on %s: %s", c.client, c.system, got)
		}
	}
}
