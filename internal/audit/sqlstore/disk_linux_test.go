package sqlstore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"retort/internal/audit"
	"retort/internal/core"
)

// mountDisk mounts a new file system of a few megabytes for a test, and returns the folder at which it is mounted.
func mountDisk(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=3m"); err != nil {
		t.Skipf("no disk can be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// mustFail fails the test unless Append returns an error whose hint contains the given text.
func mustFail(t *testing.T, s audit.LogStore, b audit.WriteBatch, hint string) {
	t.Helper()
	err := s.Append(background, b)
	var known *core.Error
	if !errors.As(err, &known) || !strings.Contains(known.Hint, hint) {
		t.Fatalf("%v", err)
	}
}

func whole(t *testing.T, s audit.LogStore) {
	t.Helper()
	h := head(t, s)
	if rows := all(t, s.Walk(background, h.Chain, 1)); len(rows) != int(h.Seq) {
		t.Errorf("%d rows, and the head is %d", len(rows), h.Seq)
	}
	keys, err := s.Keys(background, []string{"failed"})
	if opened, err2 := s.Open(background); len(keys) > 0 || len(opened) > 0 || err != nil || err2 != nil {
		t.Error("half of a batch was written: ", keys, opened, err, err2)
	}
}

// TestFullDisk checks that a batch for which the disk has no room is not written, and that the same store works again
// once there is room.
func TestFullDisk(t *testing.T) {
	dir := mountDisk(t)
	s := open(t, filepath.Join(dir, "r.db"), Options{})
	must(t, s.Append(background, audit.WriteBatch{Rows: nextRows(t, s, 10)}))
	filler := filepath.Join(dir, "filler")
	for range 3 {
		data := make([]byte, 4<<20)
		_ = os.WriteFile(filler, data, 0o600) // until the disk is full
		for range 3 {
			b := audit.WriteBatch{Rows: nextRows(t, s, 40), Keys: []audit.BodyKey{{ID: "failed"}}, Opened: []string{"failed"}}
			for i := range b.Rows {
				b.Rows[i].Body = make([]byte, 10000)
			}
			mustFail(t, s, b, "full")
			whole(t, s)
		}
		must(t, os.Remove(filler))
		must(t, s.Append(background, audit.WriteBatch{Rows: nextRows(t, s, 30)}))
		whole(t, s)
	}
	must(t, s.Close())
	whole(t, open(t, filepath.Join(dir, "r.db"), Options{}))
}

func TestReadOnlyDisk(t *testing.T) {
	dir := mountDisk(t)
	path := filepath.Join(dir, "r.db")
	s := open(t, path, Options{})
	must(t, s.Append(background, audit.WriteBatch{Rows: nextRows(t, s, 10)}))
	chain := head(t, s).Chain
	must(t, s.Close())
	remount := func(flags uintptr) {
		t.Helper()
		must(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|flags, "size=3m"))
	}
	read := func() {
		t.Helper()
		r := open(t, path, Options{ReadOnly: true})
		if rows := all(t, r.Walk(background, chain, 1)); len(rows) != 10 {
			t.Errorf("%d rows", len(rows))
		}
		must(t, r.Close())
	}
	remount(syscall.MS_RDONLY)
	read()
	mustRefuse(t, path, Options{}, "cannot be written")
	remount(0)
	read()
	s = open(t, path, Options{})
	must(t, s.Append(background, audit.WriteBatch{Closed: []string{"x"}}))
	// As a process that was killed leaves it: with a log that is not in the file.
	for _, suffix := range []string{"", "-wal", "-shm"} {
		data, err := os.ReadFile(path + suffix)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, "copy.db"+suffix), data, 0o600))
	}
	must(t, s.Close())
	path = filepath.Join(dir, "copy.db")
	remount(syscall.MS_RDONLY)
	read()
	remount(0)
	read()
}

// TestDiskFails checks that after a failed write the store's chain is unchanged, and that the store reconnects for
// the next write.
func TestDiskFails(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "r.db"), Options{})
	must(t, s.Append(background, audit.WriteBatch{Rows: nextRows(t, s, 10)}))
	own := s.(*sqlStore)
	_, err := own.w.ExecContext(background, "PRAGMA max_page_count = 1") // no less than there are
	must(t, err)
	b := audit.WriteBatch{Rows: nextRows(t, s, 40), Keys: []audit.BodyKey{{ID: "failed"}}, Opened: []string{"failed"}}
	for i := range b.Rows {
		b.Rows[i].Body = make([]byte, 10000)
	}
	mustFail(t, s, b, "full")
	whole(t, s)
	must(t, s.Append(background, audit.WriteBatch{Rows: b.Rows})) // by another connection
	whole(t, s)
}

// TestFullDiskLeavesNoFile checks that no incomplete file remains if the disk has no room for a new one.
func TestFullDiskLeavesNoFile(t *testing.T) {
	dir := mountDisk(t)
	must(t, os.Mkdir(filepath.Join(dir, "audit"), 0o700))
	filler := filepath.Join(dir, "filler")
	_ = os.WriteFile(filler, make([]byte, 4<<20), 0o600) // until the disk is full
	for room := range 40 {                               // pages of 4 KiB
		if info, err := os.Stat(filler); err == nil {
			must(t, os.Truncate(filler, info.Size()-int64(room)<<12))
		}
		s, err := Open(background, filepath.Join(dir, "audit")+"/", Options{})
		files, err2 := ListFiles(filepath.Join(dir, "audit"))
		must(t, err2)
		if err == nil {
			must(t, s.Close())
			break
		}
		for _, file := range files {
			if fresh, err := (&sqliteEngine{path: file}).inspectHeader(); fresh || err != nil {
				t.Fatalf("half of a file with room for %d pages: %v", room, err)
			}
			must(t, open(t, file, Options{ReadOnly: true}).Close())
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "audit", "*.new*")); len(left) > 0 {
			t.Fatalf("left over with room for %d pages: %v", room, left)
		}
	}
	must(t, os.Remove(filler))
	s := open(t, filepath.Join(dir, "audit")+"/", Options{})
	must(t, s.Append(background, audit.WriteBatch{Rows: nextRows(t, s, 1)}))
}
