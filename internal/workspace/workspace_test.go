package workspace

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retort/internal/core"
)

func open(t *testing.T, quota int64) *Workspace {
	t.Helper()
	w, err := NewStore(t.TempDir(), quota).Open("default")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// TestClosedWorkspacesHoldNothing checks that a workspace keeps its folder open only while it is in use. Otherwise
// many sessions would need many file descriptors.
func TestClosedWorkspacesHoldNothing(t *testing.T) {
	s := NewStore(t.TempDir(), 100+2*entryCost)
	first, err := s.Open("a")
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Open("a")
	if err != nil || second != first {
		t.Fatal("one session must be one workspace", err)
	}
	if err := first.Write("x", make([]byte, 60)); err != nil {
		t.Fatal(err)
	}
	first.Close()
	if err := second.Write("y", make([]byte, 30)); err != nil {
		t.Errorf("the other user's close must not matter: %v", err)
	}
	second.Close()
	if _, err := first.root.Stat("x"); err == nil {
		t.Error("the folder is still open")
	}
	again, err := s.Open("a")
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := again.Write("z", make([]byte, 30)); err == nil {
		t.Error("the quota was forgotten")
	}
}

func TestSessionsHaveFoldersOfTheirOwn(t *testing.T) {
	seen := map[string]string{}
	for _, session := range []string{"default", "Default", "a/b", "a_b", "..", "", "CON", "a.b", "é", "x y", strings.Repeat("long", 100)} {
		f := folderName(session)
		if other, taken := seen[strings.ToLower(f)]; taken {
			t.Errorf("sessions %q and %q share the folder %q", session, other, f)
		}
		seen[strings.ToLower(f)] = session
		if f != filepath.Base(f) || f == "." || f == ".." || len(f) > 100 {
			t.Errorf("session %q has the folder %q", session, f)
		}
	}
}

func TestNothingOutsideCanBeNamed(t *testing.T) {
	w := open(t, 1<<20)
	secret := filepath.Join(filepath.Dir(w.Folder()), "secret.txt")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(w.Folder(), "link")); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"../secret.txt", "a/../../secret.txt", secret, "link", "./../secret.txt"} {
		if data, _, err := w.ReadAt(name, 0, 100); err == nil {
			t.Errorf("read %q through %q", data, name)
		} else if strings.Contains(err.Error(), filepath.Dir(w.Folder())) && name != secret {
			t.Errorf("the error tells where the workspace is: %v", err)
		}
		_ = w.Write(name, []byte("changed"))
		_ = w.RemovePath(name, true)
		if data, err := os.ReadFile(secret); string(data) != "secret" {
			t.Fatalf("%q reached the file outside: %q, %v", name, data, err)
		}
	}
}

func TestQuota(t *testing.T) {
	w := open(t, 100+2*entryCost)
	steps := []struct {
		do   func() error
		want bool // whether the step fits into the quota
	}{
		{func() error { return w.MkdirAll("d") }, true},
		{func() error { return w.Write("a", make([]byte, 60)) }, true},
		{func() error { return w.Write("b", make([]byte, 60)) }, false},
		{func() error { return w.Write("a", make([]byte, 100)) }, true},
		{func() error { return w.AppendFile("a", make([]byte, 1)) }, false},
		{func() error { return w.Write("a", make([]byte, 10)) }, true},
		{func() error { return w.RemovePath("d", false) }, true},
		{func() error { return w.AppendFile("c", make([]byte, 90)) }, true},
		{func() error { return w.RemovePath("c", true) }, true},
		{func() error { return w.RenamePath("a", "e") }, true},
		{func() error { return w.Write("f", make([]byte, 90)) }, true},
	}
	for i, s := range steps {
		if err := s.do(); (err == nil) != s.want {
			t.Fatalf("step %d: %v", i, err)
		} else if err != nil && (!strings.Contains(err.Error(), "EDQUOT") || core.AsError(err).Hint == "") {
			t.Errorf("step %d: the error must be EDQUOT with a hint: %v", i, err)
		}
	}
	if want := (spaceUsage{100, 2}); w.used != want || w.treeUsage(".") != want {
		t.Errorf("used %v, measured %v, want %v", w.used, w.treeUsage("."), want)
	}
}

func TestWriteReplacesWhole(t *testing.T) {
	w := open(t, 1<<20)
	if err := w.Write("a.txt", []byte("old")); err != nil {
		t.Fatal(err)
	}
	old, err := os.Open(filepath.Join(w.Folder(), "a.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if err := w.Write("a.txt", []byte("new content")); err != nil {
		t.Fatal(err)
	}
	kept := make([]byte, 10)
	if n, _ := old.Read(kept); string(kept[:n]) != "old" {
		t.Errorf("a reader of the old file sees %q: it was written in place", kept[:n])
	}
	files, err := w.ListFolder("")
	if err != nil || len(files) != 1 {
		t.Errorf("temporary files are left: %v, %v", files, err)
	}
}

// call runs one function of the file tree and returns its result, or its error as text.
func call(tree *FileTree, function string, arguments string) string {
	answer, err := tree.FileFunctions()[function](context.Background(), json.RawMessage(arguments))
	if err != nil {
		return "error: " + core.AsError(err).Message
	}
	text, _ := json.Marshal(answer)
	return string(text)
}

func TestTree(t *testing.T) {
	servers := VirtualFolder{
		File: func(name string) (string, bool) { return "text of " + name, name == "github/index.ts" },
		List: func(name string) ([]string, bool) {
			switch name {
			case "":
				return []string{"github/"}, true
			case "github":
				return []string{"index.ts"}, true
			}
			return nil, false
		},
	}
	tree := &FileTree{Workspace: open(t, 1<<20), Folders: map[string]VirtualFolder{"servers": servers}}
	b64 := base64.StdEncoding.EncodeToString
	for _, c := range []struct{ function, arguments, want string }{
		{"list_files", `{"path":"."}`, `{"entries":[{"name":"servers","dir":true,"bytes":0},{"name":"workspace","dir":true,"bytes":0}]}`},
		{"list_files", `{"path":"./servers"}`, `{"entries":[{"name":"github","dir":true,"bytes":0}]}`},
		{"list_files", `{"path":"/servers/github/"}`, `{"entries":[{"name":"index.ts","dir":false,"bytes":0}]}`},
		{"read_file", `{"path":"servers/github/index.ts"}`, fmt.Sprintf(`{"data":%q,"bytes":23,"eof":true}`, b64([]byte("text of github/index.ts")))},
		{"read_file", `{"path":"servers/github/index.ts","offset":8,"length":6}`, fmt.Sprintf(`{"data":%q,"bytes":23,"eof":false}`, b64([]byte("github")))},
		{"read_file", `{"path":"servers/github/index.ts","offset":99}`, `{"data":"","bytes":23,"eof":true}`},
		{"read_file", `{"path":"servers/github/index.ts","offset":-1}`, `error: EINVAL: servers/github/index.ts: offset and length must not be negative`},
		{"write_file", `{"path":"servers/x.ts","data":""}`, `error: EROFS: servers/x.ts: only files in ./workspace/ can be written`},
		{"write_file", `{"path":"./workspace/d/a.txt","data":"aGVsbG8="}`, `{"bytes":5}`},
		{"write_file", `{"path":"./workspace/d/a.txt","data":"IQ==","append":true}`, `{"bytes":1}`},
		{"read_file", `{"path":"workspace/d/a.txt"}`, fmt.Sprintf(`{"data":%q,"bytes":6,"eof":true}`, b64([]byte("hello!")))},
		{"read_file", `{"path":"./workspace/none.txt"}`, `error: ENOENT: ./workspace/none.txt: no such file or folder`},
		{"read_file", `{"path":"./workspace/d"}`, `error: EISDIR: ./workspace/d: is a folder, not a file`},
		{"read_file", `{"path":"/etc/passwd"}`, `error: ENOENT: /etc/passwd: no such file or folder`},
		{"read_file", `{"path":"./workspace/../../../etc/passwd"}`, `error: ENOENT: ./workspace/../../../etc/passwd: no such file or folder`},
		{"rename_file", `{"from":"workspace/d/a.txt","to":"workspace/b.txt"}`, `{}`},
		{"make_dir", `{"path":"workspace/x/y"}`, `{}`},
		{"remove_file", `{"path":"workspace/x","recursive":true}`, `{}`},
		{"remove_file", `{"path":"workspace"}`, `error: EPERM: workspace: the workspace itself cannot be removed`},
		{"stat_file", `{"path":"servers/github"}`, `{"name":"github","dir":true,"bytes":0}`},
		{"write_file", `{"path":"./out/a.csv","data":"aGVsbG8="}`, `{"bytes":5}`},
		{"read_file", `{"path":"out/a.csv"}`, fmt.Sprintf(`{"data":%q,"bytes":5,"eof":true}`, b64([]byte("hello")))},
		{"read_file", `{"path":"workspace/out/a.csv"}`, fmt.Sprintf(`{"data":%q,"bytes":5,"eof":true}`, b64([]byte("hello")))},
		{"read_file", `{"path":"/out/a.csv"}`, `error: ENOENT: /out/a.csv: no such file or folder`},
		{"write_file", `{"path":"/out.csv","data":""}`, `error: EROFS: /out.csv: only files in ./workspace/ can be written`},
		{"write_file", `{"path":"../out.csv","data":""}`, `error: EROFS: ../out.csv: only files in ./workspace/ can be written`},
		{"write_file", `{"path":"out/../../out.csv","data":""}`, `error: EROFS: out/../../out.csv: only files in ./workspace/ can be written`},
		{"write_file", `{"path":"workspace/../out.csv","data":""}`, `error: EROFS: workspace/../out.csv: only files in ./workspace/ can be written`},
		{"write_file", `{"path":"out/../servers/x.ts","data":""}`, `error: EROFS: out/../servers/x.ts: only files in ./workspace/ can be written`},
		{"write_file", `{"path":"skills/x.ts","data":""}`, `error: EROFS: skills/x.ts: only files in ./workspace/ can be written`},
		{"write_file", `{"path":"","data":""}`, `error: EROFS: : only files in ./workspace/ can be written`},
		{"rename_file", `{"from":"out/a.csv","to":"b.csv"}`, `{}`},
		{"remove_file", `{"path":"out","recursive":true}`, `{}`},
		{"remove_file", `{"path":"./b.csv"}`, `{}`},
		{"stat_file", `{"path":"nowhere"}`, `error: ENOENT: nowhere: no such file or folder`},
	} {
		if got := call(tree, c.function, c.arguments); got != c.want {
			t.Errorf("%s %s:\n got %s\nwant %s", c.function, c.arguments, got, c.want)
		}
	}
}
