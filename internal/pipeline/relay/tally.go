package relay

import (
	"context"
	"maps"
	"sync"

	"retort/internal/core"
	"retort/internal/sandbox"
)

// Tally counts the calls of one execution and refuses calls beyond the budget.
type Tally struct {
	mu       sync.Mutex
	limit    int
	tools    *core.Toolset
	progress func(int)
	total    int
	calls    map[string]int
	hits     int
}

// serve makes t also count the calls of x.
func (t *Tally) serve(x Execution) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.limit, t.tools, t.progress = x.Limits.ToolCalls, x.Tools, x.Progress
}

// hit counts an answer from the cache.
func (t *Tally) hit() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hits++
}

// Hits returns how many answers came from the cache, without a call.
func (t *Tally) Hits() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hits
}

func (t *Tally) guard(next sandbox.Host) sandbox.Host {
	return sandbox.HostFunc(func(ctx context.Context, c core.Call) (core.Result, error) {
		n, ok := t.count(c)
		if !ok {
			return core.Result{}, core.Errorf(core.KindLimit, "relay.budget", "the budget of %d tool calls is spent", t.limit).
				WithHint("ask for more at once (page size, bulk tools) or raise resourceLimits.toolCalls").At(c.Server, c.Tool)
		}
		if t.progress != nil {
			t.progress(n)
		}
		return next.Call(ctx, c)
	})
}

func (t *Tally) count(c core.Call) (n int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.total >= t.limit {
		return t.total, false
	}
	t.total++
	if tool, known := t.tools.Exact(c.Server, c.Tool); known {
		t.calls[t.tools.Qualified(tool)]++
	}
	return t.total, true
}

// Counts returns the calls made so far, in total and by qualified tool name.
func (t *Tally) Counts() (total int, byTool map[string]int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total, maps.Clone(t.calls)
}
