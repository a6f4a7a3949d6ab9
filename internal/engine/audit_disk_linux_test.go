package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
)

// mountSmall mounts a file system of 4 MB for a test and returns its path.
func mountSmall(t *testing.T, dir string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a small file system needs root")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}

// TestDiskFull checks that calls that may have effects are not sent while the disk is full, and that programs that
// only read still run. When there is space again, calls with effects are sent again, and the audit log has no gap.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	mountSmall(t, filepath.Join(dir, "home", "audit"))
	c := killable(dir)
	e, err := engine.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	write := func(id string) core.Outcome {
		return e.Execute(t.Context(), engine.Request{Code: "return await notes.createNote({id: '" + id + "'})"})
	}
	if o := write("before"); o.Status != core.StatusOK {
		t.Fatal(o.Status, o.Error)
	}
	filler := filepath.Join(dir, "home", "audit", "filler")
	fill(t, filler)
	var refused core.Outcome
	for refusals := 0; refusals < 3; { // what is written already may have room for a few, and its log gives some back
		if refused = write("full"); refused.Status == core.StatusOK {
			refusals = 0
			continue
		}
		refusals++
		fill(t, filler)
	}
	if refused.Status != core.StatusError || refused.Error.Kind != core.KindInternal || !strings.Contains(refused.Error.Message, "cannot be recorded") || refused.Error.Hint == "" {
		t.Fatalf("with a full disk: %s %+v", refused.Status, refused.Error)
	}
	effects := len(lines(t, filepath.Join(dir, "effects")))
	if o := write("full"); o.Status == core.StatusOK || len(lines(t, filepath.Join(dir, "effects"))) != effects {
		t.Errorf("a call left that is not recorded: %s", o.Status)
	}
	if o := e.Execute(t.Context(), engine.Request{ID: "reads", Code: "return 1 + 1"}); o.Status != core.StatusOK || len(o.Warnings) == 0 {
		t.Errorf("a program that only reads: %s %+v, warnings %v", o.Status, o.Error, o.Warnings)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	testenv.WaitUntil(t, "there is room again", func() bool { return write("after").Status == core.StatusOK })
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	rec := readRecord(t, dir)
	if rec.requests["reads"] != 1 || rec.calls[rec.digest([]byte(`{"id":"after"}`))] != 1 {
		t.Errorf("something is missing: %v", rec.requests)
	}
	if n := rec.calls[rec.digest([]byte(`{"id":"full"}`))]; n != effects-1 {
		t.Errorf("%d calls are recorded, and %d have left", n, effects-1)
	}
}

func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
}
