package run_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"retort/internal/run"
)

// TestTooManyFiles checks that an error for which too many files are open says so, whoever makes it.
func TestTooManyFiles(t *testing.T) {
	for _, cause := range []error{syscall.EMFILE, fmt.Errorf("x: %w", os.NewSyscallError("pipe2", syscall.ENFILE)), errors.Join(&os.PathError{Op: "open", Path: "a", Err: syscall.EMFILE})} {
		for name, e := range map[string]*run.Error{
			"plain":    run.AsError(cause),
			"internal": run.Errorf(run.KindInternal, "", "it failed: %w", cause),
			"hinted":   run.Errorf(run.KindInternal, "", "it failed: %w", cause).WithHint("begin a session with another name"),
		} {
			if e.Kind != run.KindLimit || !strings.Contains(e.Hint, "ulimit -n") || !strings.Contains(e.Message, "too many open files") {
				t.Errorf("%s: %+v", name, e)
			}
		}
		if e := run.Errorf(run.KindSandboxUnavailable, "", "no sandbox: %w", cause); e.Kind != run.KindSandboxUnavailable || !strings.Contains(e.Hint, "ulimit -n") {
			t.Errorf("%+v", e)
		}
	}
	said := errors.New("the server says: too many open files")
	if e := run.Errorf(run.KindInternal, "", "%w", said).WithHint("mend it"); e.Kind != run.KindInternal || e.Hint != "mend it" {
		t.Errorf("what others say counts: %+v", e)
	}
}
