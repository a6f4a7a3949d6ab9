package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// watchedFolder is a folder with a watched configuration, and a clock that only the test advances.
type watchedFolder struct {
	*testing.T
	dir     string
	watch   *Watcher
	at      time.Time
	reading func() // is called after the files were read and before the load returns
}

func watched(t *testing.T, files map[string]string) *watchedFolder {
	d := &watchedFolder{T: t, dir: t.TempDir(), at: time.Now()}
	for name, text := range files {
		d.write(name, text)
	}
	d.watch = NewWatcher(func(note NoteFunc, again bool) (*Config, error) {
		c, err := Load(Options{Dir: d.dir, UserConfigDir: filepath.Join(d.dir, "user"), Note: note, Again: again})
		if d.reading != nil {
			d.reading()
		}
		return c, err
	})
	d.watch.now = func() time.Time { return d.at }
	if _, err := d.watch.LoadFirst(); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *watchedFolder) path(name string) string { return filepath.Join(d.dir, name) }

func (d *watchedFolder) write(name, text string) {
	d.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(d.path(name)), 0o755), os.WriteFile(d.path(name), []byte(text), 0o644)); err != nil {
		d.Fatal(err)
	}
}

// poll returns the updates that the next n polls find.
func (d *watchedFolder) poll(n int) (found []Update) {
	for range n {
		d.at = d.at.Add(PollInterval)
		if u, news := d.watch.PollChanges(); news {
			found = append(found, u)
		}
	}
	return found
}

// pollOnce returns the update that the polls of one second find. The test fails unless they find exactly one.
func (d *watchedFolder) pollOnce() Update {
	d.Helper()
	found := d.poll(int(time.Second / PollInterval))
	if len(found) != 1 {
		d.Fatalf("%d updates: %+v", len(found), found)
	}
	return found[0]
}

func (d *watchedFolder) none() {
	d.Helper()
	if found := d.poll(20); len(found) > 0 {
		d.Fatalf("unexpected update: %+v", found[0])
	}
}

func TestWatchFindsChanges(t *testing.T) {
	entry := func(command string) string {
		return `{"mcpServers": {"a": {"command": "` + command + `", "envFile": "vars"}}}`
	}
	start := map[string]string{".mcp.json": entry("one"), "vars": "A=1", "retort.yaml": "permissionLevel: execute_full\n"}
	for name, c := range map[string]struct {
		change func(d *watchedFolder)
		holds  func(c *Config) bool
		file   string
	}{
		"settings": {func(d *watchedFolder) { d.write("retort.yaml", "permissionLevel: read_only\n") },
			func(c *Config) bool { return c.Settings.PermissionLevel == PermissionReadOnly }, "retort.yaml"},
		"replaced by rename": {func(d *watchedFolder) {
			d.write("new", "permissionLevel: read_only\n")
			if err := os.Rename(d.path("new"), d.path("retort.yaml")); err != nil {
				d.Fatal(err)
			}
		}, func(c *Config) bool { return c.Settings.PermissionLevel == PermissionReadOnly }, "retort.yaml"},
		"as large, at the same time": {func(d *watchedFolder) {
			info, err := os.Stat(d.path(".mcp.json"))
			if err != nil {
				d.Fatal(err)
			}
			d.poll(1) // it is known as it is
			d.write(".mcp.json", entry("two"))
			if err := os.Chtimes(d.path(".mcp.json"), info.ModTime(), info.ModTime()); err != nil {
				d.Fatal(err)
			}
		}, func(c *Config) bool { return c.Servers[0].Command == "two" }, ".mcp.json"},
		"variables": {func(d *watchedFolder) { d.write("vars", "A=2") },
			func(c *Config) bool { return c.Servers[0].Env["A"] == "2" }, "vars"},
		"link to another file": {func(d *watchedFolder) {
			d.write("other.yaml", "permissionLevel: read_only\n")
			if err := errors.Join(os.Remove(d.path("retort.yaml")), os.Symlink(d.path("other.yaml"), d.path("retort.yaml"))); err != nil {
				d.Fatal(err)
			}
		}, func(c *Config) bool { return c.Settings.PermissionLevel == PermissionReadOnly }, "retort.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			d := watched(t, start)
			c := c
			c.change(d)
			u := d.pollOnce()
			if u.Err != nil || !c.holds(u.Config) || !slices.Equal(u.Files, []string{d.path(c.file)}) || len(u.Digests[d.path(c.file)]) != 64 {
				t.Fatalf("%+v", u)
			}
			d.watch.Accept()
			d.none()
		})
	}
}

// TestWatchFindsNewFiles checks that new files of the project are noticed, and that the user's own server file is
// then no longer watched.
func TestWatchFindsNewFiles(t *testing.T) {
	d := watched(t, map[string]string{"user/retort/mcp.json": `{"mcpServers": {"a": {"command": "own"}}}`})
	d.write("retort.yaml", "servers: {a: {deny: [x]}}\n")
	if u := d.pollOnce(); u.Err != nil || len(u.Config.Settings.Servers) != 1 {
		t.Fatalf("%+v", u)
	}
	d.watch.Accept()
	d.write("retort.yaml", "permissionLevel: read_only\n")
	d.write(".mcp.json", `{"mcpServers": {"b": {"command": "project"}}}`)
	if u := d.pollOnce(); u.Err != nil || u.Config.Servers[0].Name != "b" {
		t.Fatalf("%+v", u)
	}
	d.watch.Accept()
	d.write("user/retort/mcp.json", `{"mcpServers": {"a": {"command": "other"}}}`)
	d.none()
}

// TestWatchRefusesBrokenFiles checks that a broken, missing or empty file is reported once, and that the
// configuration is read again when the files change.
func TestWatchRefusesBrokenFiles(t *testing.T) {
	for name, c := range map[string]struct {
		change func(d *watchedFolder)
		want   string
	}{
		"half":      {func(d *watchedFolder) { d.write(".mcp.json", `{"mcpServers": {"a": {"comm`) }, ".mcp.json:1:"},
		"wrong key": {func(d *watchedFolder) { d.write("retort.yaml", "permisionLevel: read_only\n") }, "permissionLevel"},
		"empty":     {func(d *watchedFolder) { d.write("retort.yaml", "") }, "retort.yaml is empty"},
		"blank":     {func(d *watchedFolder) { d.write("retort.yaml", " \n\t\n") }, "retort.yaml is empty"},
		"gone":      {func(d *watchedFolder) { _ = os.Remove(d.path("retort.yaml")) }, "retort.yaml is missing or unreadable"},
		"servers":   {func(d *watchedFolder) { _ = os.Remove(d.path(".mcp.json")) }, ".mcp.json is missing or unreadable"},
		"not a file": {func(d *watchedFolder) {
			_ = os.Remove(d.path("retort.yaml"))
			_ = os.Mkdir(d.path("retort.yaml"), 0o755)
		}, "retort.yaml: it is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			d := watched(t, map[string]string{".mcp.json": `{"mcpServers": {"a": {"command": "one"}}}`, "retort.yaml": "permissionLevel: execute_full\n"})
			c.change(d)
			if u := d.pollOnce(); u.Err == nil || u.Config != nil || !strings.Contains(u.Err.Error(), c.want) || len(u.Files) != 1 {
				t.Fatalf("%+v, want an error about %s", u, c.want)
			}
			d.none()
			_ = os.Remove(d.path("retort.yaml"))
			d.write("retort.yaml", "permissionLevel: read_only\n")
			d.write(".mcp.json", `{"mcpServers": {"a": {"command": "two"}}}`)
			if u := d.pollOnce(); u.Err != nil || u.Config.Settings.PermissionLevel != PermissionReadOnly || u.Config.Servers[0].Command != "two" {
				t.Fatalf("%+v", u)
			}
		})
	}
}

// TestWatchWaitsForTheWriter checks that a file is not used while another program writes it: while it differs from
// poll to poll, or if it changes while it is read.
func TestWatchWaitsForTheWriter(t *testing.T) {
	d := watched(t, map[string]string{"retort.yaml": "permissionLevel: execute_full\n"})
	whole := "permissionLevel: read_only\nservers: {}\ntoolChanges: ask\n"
	for n := 1; n < len(whole); n += 7 {
		d.write("retort.yaml", whole[:n])
		if found := d.poll(1); len(found) > 0 {
			t.Fatalf("after %d bytes: %+v", n, found[0])
		}
	}
	d.write("retort.yaml", whole[:len(whole)-4])
	d.reading = func() { d.write("retort.yaml", whole) }
	if found := d.poll(2); len(found) > 0 {
		t.Fatalf("read while it was written: %+v", found[0])
	}
	if u := d.pollOnce(); u.Err != nil || u.Config.Settings.ToolChanges != ChangesAsk {
		t.Fatalf("%+v", u)
	}
}

// TestWatchRetries checks that RetryNext makes the next poll report the same change again. If the file then gets its
// accepted content back, the next update lists no differing files.
func TestWatchRetries(t *testing.T) {
	d := watched(t, map[string]string{"retort.yaml": "permissionLevel: execute_full\n"})
	d.write("retort.yaml", "permissionLevel: read_only\n")
	d.pollOnce()
	d.watch.RetryNext()
	if u := d.pollOnce(); u.Err != nil || len(u.Files) != 1 {
		t.Fatalf("%+v", u)
	}
	d.write("retort.yaml", "permissionLevel: execute_full\n")
	if u := d.pollOnce(); u.Err != nil || len(u.Files) != 0 {
		t.Fatalf("%+v", u)
	}
}

// TestWatchReadsNothingInVain checks that unchanged files are not read again, once the last change is so old that a
// file's size and time are a reliable sign of a change.
func TestWatchReadsNothingInVain(t *testing.T) {
	d := watched(t, map[string]string{"retort.yaml": "permissionLevel: execute_full\n"})
	d.none()
	d.watch.readFile = func(path string) ([]byte, error) {
		t.Errorf("%s was read", path)
		return nil, nil
	}
	d.none()
}

func TestDifferNamesSettingsAsWritten(t *testing.T) {
	all := reflect.TypeFor[Settings]()
	for i := range all.NumField() {
		key := keyOf(all.Field(i).Name)
		if _, err := ParseSettings("f", t.TempDir(), []byte(key+": {}\n"), nil); err != nil && strings.Contains(err.Error(), "unknown key") {
			t.Errorf("%s: %v", all.Field(i).Name, err)
		}
	}
	a := Settings{}.WithDefaults()
	b := a
	b.HTTP.Addr, b.MaxTasks = "127.0.0.1:1", 7
	if got := DifferingKeys(a, b); !slices.Equal(got, []string{"http", "maxConcurrentTasks"}) {
		t.Error(got)
	}
	if got := DifferingKeys(a, Settings{}.WithDefaults()); got != nil {
		t.Errorf("the defaults differ from themselves: %v", got)
	}
}
