package relay

import (
	"errors"
	"strings"
	"testing"

	"retort/internal/core"
)

// TestUnhidden checks the error for data in which personal data could not be hidden. If a limit is the cause, the
// error has the limit's kind and hint; otherwise it has the kind internal.
func TestUnhidden(t *testing.T) {
	full := core.Errorf(core.KindLimit, "pii.vault", "the session is full").WithHint("ask for less")
	if e := unhiddenError("the answer was withheld", full); e.Kind != core.KindLimit || e.Hint != "ask for less" || !strings.Contains(e.Message, "the session is full") {
		t.Errorf("%+v", e)
	}
	if e := unhiddenError("the answer was withheld", errors.New("no disk")); e.Kind != core.KindInternal || e.Hint != "" {
		t.Errorf("%+v", e)
	}
}
