package relay

import (
	"context"
	"maps"
	"sync"

	"retort/internal/core"
	"retort/internal/sandbox"
)

// CallCounter counts the calls of one execution and refuses calls beyond the budget.
type CallCounter struct {
	mu       sync.Mutex
	limit    int
	tools    *core.Toolset
	progress Reporter
	total    int
	calls    map[string]int
	hits     int
}

// attachTo makes the counter use the call limit, the tools and the Reporter of the execution x.
func (t *CallCounter) attachTo(x ExecutionContext) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.limit, t.tools, t.progress = x.Limits.ToolCalls, x.Tools, x.Reporter
}

// countHit counts a cache hit: a call that was answered from the cache.
func (t *CallCounter) countHit() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hits++
}

// CacheHits returns how many calls were answered from the cache.
func (t *CallCounter) CacheHits() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hits
}

func (t *CallCounter) countGuard(next sandbox.ToolHost) sandbox.ToolHost {
	return sandbox.HostFunc(func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
		n, ok := t.countCall(c)
		if !ok {
			return core.CallResult{}, core.Errorf(core.KindLimit, "relay.budget", "the budget of %d tool calls is used up", t.limit).
				WithHint("request more data per call (page size, bulk tools) or raise resourceLimits.toolCalls").AtTool(c.Server, c.Tool)
		}
		t.progress.ReportProgress(n)
		return next.Call(ctx, c)
	})
}

func (t *CallCounter) countCall(c core.ToolCall) (n int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.total >= t.limit {
		return t.total, false
	}
	t.total++
	if tool, known := t.tools.FindExact(c.Server, c.Tool); known {
		t.calls[t.tools.QualifiedName(tool)]++
	}
	return t.total, true
}

// CallCounts returns the calls made so far, in total and by qualified tool name.
func (t *CallCounter) CallCounts() (total int, byTool map[string]int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total, maps.Clone(t.calls)
}
