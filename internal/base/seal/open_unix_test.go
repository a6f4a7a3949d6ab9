//go:build unix

package seal

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"retort/internal/devel/testenv"
)

// TestOdd checks that a directory, symbolic link, named pipe or socket in place of a file is rejected. Opening it must
// not block, and the error must name its kind.
func TestOdd(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	good := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	good(os.WriteFile(at("file"), []byte("text"), 0o600))
	good(syscall.Mkfifo(at("a named pipe"), 0o600))
	good(os.Mkdir(at("a directory"), 0o700))
	good(os.Symlink("file", at("a symbolic link")))
	l, err := net.Listen("unix", at("a socket"))
	good(err)
	defer l.Close()
	root, err := OpenRoot(dir)
	good(err)
	defer root.Close()
	for _, kind := range []string{"a named pipe", "a directory", "a symbolic link", "a socket"} {
		for what, open := range map[string]func() error{
			"read":   func() error { _, err := ReadFile(at(kind), 100); return err },
			"write":  func() error { _, err := OpenFile(at(kind), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); return err },
			"change": func() error { _, err := OpenFile(at(kind), os.O_RDWR|os.O_TRUNC, 0); return err },
			"look":   func() error { return CheckRegular(at(kind)) },
			"lock":   func() error { _, err := Lock(at(kind), time.Second); return err },
			"key":    func() error { _, err := LoadOrCreateKey(at(kind)); return err },
		} {
			done := make(chan error, 1)
			go func() { done <- open() }()
			err := testenv.Receive(t, done, what+" of "+kind)
			if !errors.Is(err, ErrIrregular) || !strings.Contains(err.Error(), kind) || !strings.Contains(err.Error(), dir) {
				t.Errorf("%s of %s: %v", what, kind, err)
			}
		}
		for what, flag := range map[string]int{"read": os.O_RDONLY, "append": os.O_WRONLY | os.O_APPEND} {
			done := make(chan error, 1)
			go func() {
				f, err := OpenIn(root, kind, flag, 0)
				if err == nil {
					err = f.Close()
				}
				done <- err
			}()
			// Links that stay in the root are followed there.
			if err := testenv.Receive(t, done, what+" of "+kind); (err == nil) != (kind == "a symbolic link") {
				t.Errorf("%s of %s in a root: %v", what, kind, err)
			}
		}
	}
	for what, open := range map[string]func() error{
		"root": func() error { _, err := OpenRoot(at("a named pipe")); return err },
		"sync": func() error { return SyncDir(at("a named pipe")) },
	} {
		done := make(chan error, 1)
		go func() { done <- open() }()
		if testenv.Receive(t, done, what) == nil {
			t.Errorf("%s of a named pipe succeeds", what)
		}
	}
	if text, err := os.ReadFile(at("file")); string(text) != "text" || err != nil {
		t.Errorf("the file that the link leads to has %q, %v", text, err)
	}
}

// TestBound checks that ReadFile returns an error and no content if the file is larger than the limit.
func TestBound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := ReadFile(path, 5); err != nil || string(text) != "12345" {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := ReadFile(path, 4); err == nil || len(text) > 0 || !strings.Contains(err.Error(), path) {
		t.Errorf("%q, %v", text, err)
	}
	if err := os.Truncate(path, 10<<30); err != nil {
		t.Skip("there is no room for a large file")
	}
	if text, err := ReadFile(path, MaxFile); err == nil || len(text) > 0 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}
