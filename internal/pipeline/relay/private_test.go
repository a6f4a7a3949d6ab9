package relay

import (
	"errors"
	"strings"
	"testing"

	"retort/internal/core"
)

// TestUnhidden checks that the program gets the kind and hint of a limit as the cause, but an internal error for any
// other cause.
func TestUnhidden(t *testing.T) {
	full := core.Errorf(core.KindLimit, "pii.vault", "the session is full").WithHint("ask for less")
	if e := unhiddenError("the answer was withheld", full); e.Kind != core.KindLimit || e.Hint != "ask for less" || !strings.Contains(e.Message, "the session is full") {
		t.Errorf("%+v", e)
	}
	if e := unhiddenError("the answer was withheld", errors.New("no disk")); e.Kind != core.KindInternal || e.Hint != "" {
		t.Errorf("%+v", e)
	}
}
