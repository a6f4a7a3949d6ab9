package core

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestTooManyFiles checks that an error for which too many files are open says so, whoever makes it.
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
