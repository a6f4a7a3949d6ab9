package pipeline

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"retort/internal/core"
)

const (
	maxUncertain          = 100     // calls that one Outcome lists
	maxUncertainArguments = 4 << 10 // bytes of the arguments of one of them
)

// uncertainCalls collects the calls of an execution that were sent and may have taken effect although no answer came.
// It is safe for concurrent use.
type uncertainCalls struct {
	mu    sync.Mutex
	calls []core.SentCall
	more  int // calls beyond maxUncertain
}

// addCall adds a call that may have taken effect to the collected calls. Large arguments are left out.
func (u *uncertainCalls) addCall(c core.ToolCall, arguments json.RawMessage) {
	if len(arguments) > maxUncertainArguments {
		arguments = nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.calls) == maxUncertain {
		u.more++
		return
	}
	u.calls = append(u.calls, core.SentCall{Server: c.Server, Tool: c.Tool, Arguments: arguments})
}

// addToOutcome adds the calls to an Outcome, with a warning. The warning's hint replaces any advice to run the
// program again at once.
func (u *uncertainCalls) addToOutcome(o core.Outcome) core.Outcome {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.calls) == 0 {
		return o
	}
	o.Calls = append(o.Calls, u.calls...)
	var names []string
	for _, c := range u.calls {
		names = append(names, c.Server+"."+c.Tool)
	}
	slices.Sort(names)
	o.Warnings = append(o.Warnings, fmt.Sprintf("%d calls were sent but not answered, so it is unknown whether they took effect: %s; check their effects before you make them again",
		len(u.calls)+u.more, strings.Join(slices.Compact(names), ", ")))
	if o.Error != nil && !strings.Contains(o.Error.Hint, core.HintOutcomeUnknown) {
		e := *o.Error
		e.Hint = strings.TrimSuffix(
			"the calls listed in \"calls\" may have taken effect: look at the current state before you run the program again; "+e.Hint,
			"; ",
		)
		o.Error = &e
	}
	return o
}
