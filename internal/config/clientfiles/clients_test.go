package clientfiles

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the goldens")

// machine is a simulated operating system with a user's home directory and a project.
type machine struct {
	Environment
	t    *testing.T
	home string
	out  string
}

func newMachine(t *testing.T, system string) *machine {
	dir := t.TempDir()
	m := &machine{t: t, home: filepath.Join(dir, "data"), out: filepath.Join(dir, "ours", "mcp.json")}
	variables := map[string]string{}
	if system == "windows" {
		variables["APPDATA"] = filepath.Join(dir, "user", "AppData", "Roaming")
	}
	m.Environment = Environment{GOOS: system, UserHome: filepath.Join(dir, "user"), Dir: filepath.Join(dir, "project"), Getenv: func(k string) string { return variables[k] }}
	if err := os.MkdirAll(m.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *machine) write(path string, text []byte) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) read(path string) []byte {
	m.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		m.t.Fatal(err)
	}
	return text
}

func (m *machine) options(client string) InstallOptions {
	return InstallOptions{Client: client, Out: m.out, Home: m.home, Command: "/usr/bin/retort", Args: []string{"serve", "--config", "OURS"}}
}

func (m *machine) install(o InstallOptions) *InstallResult {
	m.t.Helper()
	done, err := Install(m.Environment, o)
	if err != nil {
		m.t.Fatal(err)
	}
	return done
}

func (m *machine) uninstall(o InstallOptions) *InstallResult {
	m.t.Helper()
	done, err := Uninstall(m.Environment, o)
	if err != nil {
		m.t.Fatal(err)
	}
	return done
}

// userFile returns the path of the file in which a client stores the user's servers.
func (m *machine) userFile(client string) string {
	c, err := FindClient(client)
	if err != nil {
		m.t.Fatal(err)
	}
	return m.firstPath(c.places[0])
}

// replaceProject replaces PROJECT in a fixture by the path of this machine's project.
func (m *machine) replaceProject(src []byte) []byte {
	return bytes.ReplaceAll(src, []byte("PROJECT"), []byte(m.Dir))
}

func (m *machine) plain(v any) string {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		m.t.Fatal(err)
	}
	text = bytes.ReplaceAll(text, []byte(m.Dir), []byte("PROJECT"))
	return string(bytes.ReplaceAll(text, []byte(filepath.Dir(m.home)), []byte("DIR")))
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	file = filepath.Join("testdata", "golden", file)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", file, d)
	}
}

// fixtures returns the paths of the example files of all clients. Each path ends with the client's name and the
// file's name.
func fixtures(t testing.TB) []string {
	files, err := filepath.Glob("testdata/files/*/*")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	return files
}

// TestRoundTrip checks with example files of every client that an import does not change the file, and that uninstall
// restores it byte for byte after an install. It covers both line endings, a byte order mark and a missing last
// newline.
func TestRoundTrip(t *testing.T) {
	covered := map[string]bool{}
	for _, path := range fixtures(t) {
		client, name := filepath.Base(filepath.Dir(path)), filepath.Base(path)
		covered[client] = true
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		variants := map[string][]byte{
			"": src, "crlf": bytes.ReplaceAll(src, []byte("\n"), []byte("\r\n")), "bom": append([]byte(byteOrderMark), src...),
			"no-newline": bytes.TrimRight(src, "\n"),
		}
		for variant, text := range variants {
			t.Run(client+"/"+name+"/"+variant, func(t *testing.T) {
				m := newMachine(t, "linux")
				text = m.replaceProject(text)
				file := m.userFile(client)
				m.write(file, text)
				imported, err := ImportServers(m.Environment, ImportOptions{Out: m.out, Home: m.home})
				if err != nil || len(imported.Broken) > 0 {
					t.Fatal(err, imported.Broken)
				}
				if !bytes.Equal(m.read(file), text) {
					t.Fatal("import has changed the client's file")
				}
				done := m.install(m.options(client))
				installed := m.read(file)
				m.mustContainRetort(client, installed)
				if variant == "crlf" && bytes.Contains(text, []byte("\n")) && bytes.Count(installed, []byte("\n")) != bytes.Count(installed, []byte("\r\n")) {
					t.Errorf("mixed line ends:\n%q", installed)
				}
				if again := m.install(m.options(client)); again.Changed {
					t.Error("a second install changes something")
				}
				if variant == "" {
					ours := []byte("none\n")
					if pathExists(m.out) {
						ours = m.read(m.out)
					}
					golden(t, client+"-"+name+".txt", "-- client --\n"+strings.ReplaceAll(string(installed), m.Dir, "PROJECT")+"\n-- ours --\n"+string(ours)+"\n-- import --\n"+m.plain(imported)+"\n-- install --\n"+m.plain(done)+"\n")
				}
				undone := m.uninstall(m.options(client))
				if !bytes.Equal(m.read(file), text) || undone.Restored != "exact" {
					t.Errorf("uninstall (%s) left\n%s", undone.Restored, m.read(file))
				}
				if left, _ := filepath.Glob(filepath.Join(m.home, "clients", "*.*")); len(left) > 0 {
					t.Errorf("left behind: %s", left)
				}
				if again := m.uninstall(m.options(client)); again.Restored != "none" || again.Changed {
					t.Errorf("a second uninstall says %s", again.Restored)
				}
			})
		}
	}
	for _, c := range AllClients() {
		if !covered[c.Name] {
			t.Errorf("no fixture of %s", c.Name)
		}
	}
}

// mustContainRetort reads a client's file after an install, and checks that it is valid in its format and contains
// Retort exactly once.
func (m *machine) mustContainRetort(client string, src []byte) {
	m.t.Helper()
	c, _ := FindClient(client)
	members, err := c.format.readMembers(src, c.places[0].at)
	if err != nil {
		m.t.Fatalf("%v\n%s", err, src)
	}
	count := 0
	for _, x := range members {
		if c.isOurs(x) {
			count++
		}
	}
	if count != 1 {
		m.t.Errorf("Retort is there %d times:\n%s", count, src)
	}
}

// TestMergedUninstall checks that uninstalling from a file that was changed after the install keeps that change and
// otherwise restores the original.
func TestMergedUninstall(t *testing.T) {
	for _, path := range fixtures(t) {
		client, name := filepath.Base(filepath.Dir(path)), filepath.Base(path)
		t.Run(client+"/"+name, func(t *testing.T) {
			m := newMachine(t, "linux")
			file := m.userFile(client)
			src, _ := os.ReadFile(path)
			src = m.replaceProject(src)
			m.write(file, src)
			m.install(m.options(client))
			c, _ := FindClient(client)
			at := c.places[0].at
			added := objectMember{Name: "later", Value: json.RawMessage(`{"command":"later"}`)}
			changed, err := editOnce(c.format, m.read(file), at, nil, []objectMember{added})
			if err != nil {
				t.Fatal(err)
			}
			m.write(file, changed)
			done := m.uninstall(m.options(client))
			if done.Restored != "merged" || !slices.ContainsFunc(done.Kept, func(k KeptServer) bool { return k.Name == "later" }) {
				t.Errorf("%+v", done)
			}
			want, err := editOnce(c.format, src, at, nil, []objectMember{added})
			if err != nil {
				t.Fatal(err)
			}
			wantWhole, _ := c.format.decodeAll(want)
			got, err := c.format.decodeAll(m.read(file))
			if err != nil || !sameJSON(wantWhole, got) {
				t.Errorf("%v\n%s", err, m.read(file))
			}
		})
	}
}
