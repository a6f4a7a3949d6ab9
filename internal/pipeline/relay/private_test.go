package relay

import (
	"errors"
	"strings"
	"testing"

	"retort/internal/run"
)

// That a session is full is the program's to know, with what to do; what else fails is ours.
func TestUnhidden(t *testing.T) {
	full := run.Errorf(run.KindLimit, "pii.vault", "the session is full").WithHint("ask for less")
	if e := unhidden("the answer was held back", full); e.Kind != run.KindLimit || e.Hint != "ask for less" || !strings.Contains(e.Message, "the session is full") {
		t.Errorf("%+v", e)
	}
	if e := unhidden("the answer was held back", errors.New("no disk")); e.Kind != run.KindInternal || e.Hint != "" {
		t.Errorf("%+v", e)
	}
}
