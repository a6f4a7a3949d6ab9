package sqlstore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retort/internal/audit"
)

// TestFileIsGone checks that Append returns ErrGone if the file, its log or its index was deleted or replaced before
// the write.
func TestFileIsGone(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"file":   os.Remove,
		"log":    func(path string) error { return os.Remove(path + "-wal") },
		"index":  func(path string) error { return os.Remove(path + "-shm") },
		"folder": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
		"moved":  func(path string) error { return os.Rename(path, path+".old") },
		"replaced": func(path string) error {
			data, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path+".copy", data, 0o600), os.Rename(path+".copy", path))
		},
		"linked": func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.Symlink(path+".old", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "audit")
			s := open(t, dir+"/", Options{})
			must(t, s.Append(background, audit.WriteBatch{Rows: nextRows(t, s, 2)}))
			rows := nextRows(t, s, 1)
			must(t, spoil(filepath.Join(dir, "record-1.db")))
			if err := s.Append(background, audit.WriteBatch{Rows: rows}); !errors.Is(err, audit.ErrGone) {
				t.Errorf("%v", err)
			}
			if _, err := s.Head(background); !errors.Is(err, audit.ErrGone) {
				t.Errorf("the head is believed: %v", err)
			}
			another := open(t, dir+"/", Options{Fresh: true})
			if h := head(t, another); h.Seq != 0 || h.Chain == rows[0].Chain {
				t.Errorf("%v is not new", h)
			}
			must(t, another.Append(background, audit.WriteBatch{Rows: nextRows(t, another, 1)}))
		})
	}
}

// TestFresh checks that Open with Options.Fresh never continues an existing chain.
func TestFresh(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	first := open(t, dir+"/", Options{})
	chain := head(t, first).Chain
	must(t, first.Close())
	if h := head(t, open(t, dir+"/", Options{Fresh: true})); h.Chain == chain {
		t.Error("the chain is not new")
	}
	if files, err := ListFiles(dir); len(files) != 2 || err != nil {
		t.Error(files, err)
	}
	_ = mustRefuse(t, filepath.Join(dir, "record-1.db"), Options{Fresh: true}, "already")
}

// TestCutOff checks that a file can be created although an interrupted creation left files behind.
func TestCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record-1.db")
	for _, suffix := range []string{"", ".new", ".new-journal", ".new-wal"} {
		must(t, os.WriteFile(path+suffix, []byte(strings.Repeat("x", 5000))[:5000*min(len(suffix), 1)], 0o600))
	}
	err := mustRefuse(t, path, Options{ReadOnly: true}, "empty")
	if !errors.Is(err, audit.ErrEmpty) {
		t.Error(err)
	}
	s := open(t, path, Options{})
	must(t, s.Append(background, audit.WriteBatch{Rows: nextRows(t, s, 1)}))
	if left, _ := filepath.Glob(path + ".new*"); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}
