package core

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestTooManyFiles checks that every error caused by too many open files has a hint about that. A text from a server
// with the same words must not count.
func TestTooManyFiles(t *testing.T) {
	for _, cause := range []error{syscall.EMFILE, fmt.Errorf("x: %w", os.NewSyscallError("pipe2", syscall.ENFILE)), errors.Join(&os.PathError{Op: "open", Path: "a", Err: syscall.EMFILE}), &os.PathError{Op: "fork/exec", Path: "a", Err: syscall.EBADF}} {
		for name, e := range map[string]*Error{
			"plain":    AsError(cause),
			"internal": Errorf(KindInternal, "", "it failed: %w", cause),
			"hinted":   Errorf(KindInternal, "", "it failed: %w", cause).WithHint("begin a session with another name"),
		} {
			if e.Kind != KindLimit || !strings.Contains(e.Hint, "ulimit -n") || !strings.Contains(e.Message, "too many open files") {
				t.Errorf("%s: %+v", name, e)
			}
		}
		if e := Errorf(KindSandboxUnavailable, "", "no sandbox: %w", cause); e.Kind != KindSandboxUnavailable || !strings.Contains(e.Hint, "ulimit -n") {
			t.Errorf("%+v", e)
		}
	}
	if e := AsError(&os.PathError{Op: "read", Path: "a", Err: syscall.EBADF}); e.Kind != KindInternal {
		t.Errorf("a file that is closed: %+v", e)
	}
	said := errors.New("the server says: too many open files")
	if e := Errorf(KindInternal, "", "%w", said).WithHint("mend it"); e.Kind != KindInternal || e.Hint != "mend it" {
		t.Errorf("what others say counts: %+v", e)
	}
}

// TestMisplaced checks that an error caused by a wrong kind of file in the data directory names the path and advises
// to move the file away, whichever hint the error was given.
func TestMisplaced(t *testing.T) {
	dir := t.TempDir()
	pipe, file, link := dir+"/pipe", dir+"/file", dir+"/link"
	if err := errors.Join(os.Symlink(dir+"/none", link), os.Mkdir(pipe, 0o700), os.WriteFile(pipe+"/x", nil, 0o600), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	_, reads := os.ReadFile(pipe)
	for name, c := range map[string]struct {
		err  error
		path string
	}{
		"a directory is read":         {reads, pipe},
		"a file is a directory":       {os.MkdirAll(file+"/below", 0o700), file},
		"a file replaces a directory": {os.Rename(file, pipe), pipe},
		"a directory is removed":      {os.Remove(pipe), pipe},
		"a link leads nowhere":        {os.MkdirAll(link, 0o700), link},
		"a package says so":           {&os.PathError{Op: "open", Path: pipe, Err: misplacedForTest{}}, pipe},
	} {
		if c.err == nil {
			t.Fatal(name)
		}
		for how, e := range map[string]*Error{
			"plain":    AsError(c.err),
			"internal": Errorf(KindInternal, "", "it failed: %w", c.err),
			"hinted":   Errorf(KindInternal, "", "it failed: %w", errors.Join(c.err)).WithHint("begin a session with another name"),
		} {
			if e.Kind != KindInvalidArguments || e.Hint != moveAway || !strings.Contains(e.Message, c.path) {
				t.Errorf("%s, %s: %+v", name, how, e)
			}
		}
	}
	for name, err := range map[string]error{
		"a program that is started": &os.PathError{Op: "fork/exec", Path: "a", Err: syscall.ENOTDIR},
		"what others say":           errors.New("open a: not a directory"),
		"a missing file":            &os.PathError{Op: "open", Path: "a", Err: syscall.ENOENT},
	} {
		if e := Errorf(KindInternal, "", "%w", err).WithHint("x"); e.Kind != KindInternal || e.Hint != "x" {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if e := Errorf(KindPolicy, "", "%w", reads).WithHint("x"); e.Kind != KindPolicy || e.Hint != "x" {
		t.Errorf("an error of another kind: %+v", e)
	}
}

type misplacedForTest struct{}

func (misplacedForTest) Error() string { return "it is a named pipe" }
func (misplacedForTest) Misplaced()    {}
