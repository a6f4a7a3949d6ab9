package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// text returns the content of a file, or the error's text if the file cannot be read.
func text(w *Workspace, name string) string {
	data, _, err := w.ReadAt(name, 0, 100)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// TestDraft checks that a draft can be read and changed like the original workspace, and that the original stays
// unchanged.
func TestDraft(t *testing.T) {
	w := open(t, 1<<20)
	for name, data := range map[string]string{"a.txt": "a", "sub/b.txt": "b", "c.txt": "c", "d.txt": "d"} {
		if err := w.Write(name, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(w.dir, "link")); err != nil {
		t.Fatal(err)
	}
	d, err := w.NewDraft()
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"write": d.Write("a.txt", []byte("other")), "append": d.AppendFile("sub/b.txt", []byte("more")),
		"append to a new file": d.AppendFile("new.txt", []byte("new")), "remove": d.RemovePath("c.txt", false), "rename": d.RenamePath("d.txt", "sub/d.txt"),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for name, want := range map[string]string{"a.txt": "other", "sub/b.txt": "bmore", "new.txt": "new", "sub/d.txt": "d"} {
		if got := text(d, name); got != want {
			t.Errorf("draft: %s holds %q", name, got)
		}
	}
	if _, err := d.Stat("c.txt"); err == nil {
		t.Error("c.txt was removed and is there")
	}
	if _, err := d.Stat("link"); err == nil {
		t.Error("the draft has a link that leads out")
	}
	if err := d.Write("large", make([]byte, 1<<20)); err == nil || !strings.Contains(err.Error(), "EDQUOT") {
		t.Errorf("the quota: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a.txt": "a", "sub/b.txt": "b", "c.txt": "c", "d.txt": "d"} {
		if got := text(w, name); got != want {
			t.Errorf("%s holds %q", name, got)
		}
	}
	if _, err := os.Stat(d.dir); !os.IsNotExist(err) {
		t.Errorf("the draft is still there: %v", err)
	}
}
