package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retort/internal/core"
)

// expectUsage fails the test unless the counted usage equals the usage on disk.
func expectUsage(t *testing.T, w *Workspace, after string) {
	t.Helper()
	if on := w.treeUsage("."); w.used != on {
		t.Errorf("after %s: counted %v, on disk %v", after, w.used, on)
	}
}

// TestEntriesCount checks that every way to create files or folders counts them. No way may exceed the quota.
func TestEntriesCount(t *testing.T) {
	const room = 20
	for name, make := range map[string]func(w *Workspace, i int) error{
		"Write":                 func(w *Workspace, i int) error { return w.Write(fmt.Sprintf("f%d", i), nil) },
		"Write below folders":   func(w *Workspace, i int) error { return w.Write(fmt.Sprintf("d%d/e/f", i), nil) },
		"Append":                func(w *Workspace, i int) error { return w.AppendFile(fmt.Sprintf("f%d", i), nil) },
		"Append below folders":  func(w *Workspace, i int) error { return w.AppendFile(fmt.Sprintf("d%d/e/f", i), nil) },
		"MkdirAll":              func(w *Workspace, i int) error { return w.MkdirAll(fmt.Sprintf("d%d", i)) },
		"MkdirAll of a path":    func(w *Workspace, i int) error { return w.MkdirAll(fmt.Sprintf("d%d/e/f", i)) },
		"MkdirAll under a file": func(w *Workspace, i int) error { return makeUnderFile(w, i) },
		"Rename into folders":   func(w *Workspace, i int) error { return w.RenamePath(firstPath(w), fmt.Sprintf("d%d/e/f", i)) },
		"Save":                  func(w *Workspace, _ int) error { _, err := w.Save(t.Context(), ".txt", nil); return err },
		"Create": func(w *Workspace, _ int) error {
			in, err := w.Create(t.Context(), ".txt")
			if err == nil {
				_, _, err = in.Commit()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, room*entryCost)
			if err := w.Write("first", nil); err != nil {
				t.Fatal(err)
			}
			err := error(nil)
			for i := 0; i < 2*room && err == nil; i++ {
				err = make(w, i)
				expectUsage(t, w, fmt.Sprint("step ", i))
			}
			if err == nil || !strings.Contains(err.Error(), "EDQUOT") || core.AsError(err).Hint == "" {
				t.Errorf("it must end with EDQUOT and a hint: %v", err)
			}
			if n := w.treeUsage(".").entries; n > room || n < room-3 {
				t.Errorf("%d entries, want about %d", n, room)
			}
		})
	}
}

// makeUnderFile first tries to create a folder below a file, which fails. It then creates a folder elsewhere and
// returns the error of this second attempt.
func makeUnderFile(w *Workspace, i int) error {
	_ = w.MkdirAll("first/below")
	return w.MkdirAll(fmt.Sprintf("d%d", i))
}

// firstPath returns the current path of the first file in a workspace. Tests use it because they rename the file.
func firstPath(w *Workspace) string {
	files, _, _ := w.FindFiles("", "", 1)
	return files[0].Path
}

func TestUsageFollowsChanges(t *testing.T) {
	w := open(t, 1<<20)
	for i, step := range []func() error{
		func() error { return w.Write("a/b/c", make([]byte, 10)) },
		func() error { return w.Write("a/b/c", make([]byte, 5)) },
		func() error { return w.AppendFile("a/b/c", make([]byte, 5)) },
		func() error { return w.Write("a/d", make([]byte, 7)) },
		func() error { return w.RenamePath("a/d", "a/b/c") }, // replaces
		func() error { return w.RenamePath("a/b/c", "a/b/c") },
		func() error { return w.RenamePath("a", "x/y/a") },
		func() error { return w.MkdirAll("empty") },
		func() error { return w.RemovePath("empty", false) },
		func() error { return w.RemovePath("x", true) },
		func() error { return w.RemovePath("nothing", true) },
	} {
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		expectUsage(t, w, fmt.Sprint("step ", i))
	}
	for i, step := range []func() error{
		func() error { return w.RemovePath("missing", false) },
		func() error { return w.RenamePath("missing", "q/r/s") },
		func() error { return errorOf(w.MkdirAll("f/g"), w.RenamePath("f", "f/g/h")) }, // into itself
		func() error { return errorOf(w.Write("f/file", nil), w.RemovePath("f", false)) },
		func() error { return w.Write("f/file/below", nil) },
		func() error { return w.Write("../out", nil) },
		func() error { return w.Write("///out", nil) },
		func() error { return w.MkdirAll("a\x00b") },
	} {
		if err := step(); err == nil {
			t.Errorf("failing step %d: no error", i)
		}
		expectUsage(t, w, fmt.Sprint("failing step ", i))
	}
	if w.used.entries != 3 {
		t.Errorf("entries %d, want f, f/g and f/file", w.used.entries)
	}
}

// errorOf returns last, the error of the step that a test examines. It panics if before, the error of the preparing
// step, is not nil.
func errorOf(before, last error) error {
	if before != nil {
		panic(before)
	}
	return last
}

func TestDepth(t *testing.T) {
	w := open(t, 10<<20)
	path := func(n int) string { return strings.TrimSuffix(strings.Repeat("d/", n), "/") }
	for name, c := range map[string]struct {
		do   func() error
		fits bool
	}{
		"a folder at the bound":         {func() error { return w.MkdirAll(path(maxDepth)) }, true},
		"a file in it":                  {func() error { return w.Write(path(maxDepth)+"/file", nil) }, true},
		"a folder beyond":               {func() error { return w.MkdirAll(path(maxDepth + 1)) }, false},
		"a file beyond":                 {func() error { return w.Write(path(maxDepth+1)+"/file", nil) }, false},
		"an appended file beyond":       {func() error { return w.AppendFile(path(maxDepth+1)+"/file", nil) }, false},
		"a file moved beyond":           {func() error { return errorOf(w.Write("f", nil), w.RenamePath("f", path(maxDepth+1)+"/f")) }, false},
		"a tree moved below a tree":     {func() error { return errorOf(w.MkdirAll("t/"+path(40)), w.RenamePath("t", "e/"+path(30))) }, false},
		"a tree moved to where it fits": {func() error { return errorOf(w.MkdirAll("u/"+path(40)), w.RenamePath("u", "g/"+path(20))) }, true},
	} {
		err := c.do()
		if (err == nil) != c.fits || err != nil && !strings.Contains(err.Error(), "ENAMETOOLONG") {
			t.Errorf("%s: %v", name, err)
		}
		expectUsage(t, w, name)
	}
}

func TestNumberOfEntriesIsBounded(t *testing.T) {
	w := open(t, 1<<40)
	done, err := w.beginChange(".")
	if err != nil {
		t.Fatal(err)
	}
	w.used.entries = maxEntries - 2
	done()
	if err := w.Write("a/b", nil); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{w.Write("c", nil), w.AppendFile("c", nil), w.MkdirAll("c"), w.RenamePath("a/b", "c/d")} {
		if err == nil || !strings.Contains(err.Error(), "EDQUOT") {
			t.Errorf("one more than the bound: %v", err)
		}
	}
	if err := w.Write("a/b", []byte("content")); err != nil {
		t.Errorf("what is there can be written: %v", err)
	}
}

// TestLeftEntriesCount checks that entries of every kind count if they already exist when a workspace is opened.
func TestLeftEntriesCount(t *testing.T) {
	store := NewStore(t.TempDir(), 10*entryCost)
	dir := filepath.Join(store.dir, "s")
	for i := range 9 {
		if err := os.MkdirAll(filepath.Join(dir, fmt.Sprint(i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	_ = os.Symlink("nowhere", filepath.Join(dir, "link"))
	_ = os.WriteFile(filepath.Join(dir, "0", "file"), nil, 0o600)
	w, err := store.Open("s")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Write("more", nil); err == nil || !strings.Contains(err.Error(), "EDQUOT") {
		t.Errorf("it is full: %v", err)
	}
	if err := w.RemovePath("0", true); err != nil {
		t.Fatal(err)
	}
	if err := w.Write("more", nil); err != nil {
		t.Errorf("there is room again: %v", err)
	}
}
