package seal

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
)

// replaceNames returns the names of the entries of a directory.
func replaceNames(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestReplaceKeepsTheOldFile checks that a failure at any step keeps the old file and leaves no temporary file.
func TestReplaceKeepsTheOldFile(t *testing.T) {
	full := &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	half := func(w io.Writer) error { _, _ = io.WriteString(w, "half"); return full }
	for name, replace := range map[string]func(path string) error{
		"full disk": func(path string) error { return ReplaceWith(path, ReplaceOptions{}, half) },
		"check": func(path string) error {
			return ReplaceWith(path, ReplaceOptions{Check: func() error { return full }}, func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err })
		},
		"panic": func(path string) (err error) {
			defer func() { _ = recover(); err = full }()
			return ReplaceWith(path, ReplaceOptions{}, func(io.Writer) error { panic("x") })
		},
		"closed by write": func(path string) error {
			err := ReplaceWith(path, ReplaceOptions{}, func(w io.Writer) error { return w.(io.Closer).Close() })
			if err == nil {
				t.Error("a file that could not be synced was taken")
			}
			return full
		},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "file")
		if err := ReplaceFile(path, []byte("old")); err != nil {
			t.Fatal(err)
		}
		if err := replace(path); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: %v", name, err)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != "old" {
			t.Errorf("%s: the file is %q, %v", name, text, err)
		}
		if names := replaceNames(t, dir); !slices.Equal(names, []string{"file"}) {
			t.Errorf("%s: the directory has %v", name, names)
		}
	}
}

func TestReplaceWith(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links and permissions work differently on Windows")
	}
	dir := t.TempDir()
	path, target := filepath.Join(dir, "file"), filepath.Join(dir, "target")
	if err := errors.Join(os.WriteFile(target, []byte("of others"), 0o644), os.Symlink(target, path)); err != nil {
		t.Fatal(err)
	}
	checked := false
	o := ReplaceOptions{Temporary: ".part-*", Mode: 0o640, Check: func() error {
		parts, _ := filepath.Glob(filepath.Join(dir, ".part-*"))
		text, err := os.ReadFile(parts[0])
		checked = len(parts) == 1 && string(text) == "new"
		return err
	}}
	if err := ReplaceWith(path, o, func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }); err != nil || !checked {
		t.Fatal(err, checked)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
	if text, _ := os.ReadFile(target); string(text) != "of others" {
		t.Errorf("the link was followed: %q", text)
	}
	if err := ReplaceFile(path, []byte("own")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if names := replaceNames(t, dir); !slices.Equal(names, []string{"file", "target"}) {
		t.Errorf("the directory has %v", names)
	}
	if err := ReplaceWith(filepath.Join(dir, "none", "file"), ReplaceOptions{}, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without the directory: %v", err)
	}
}
