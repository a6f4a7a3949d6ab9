package pipeline

import (
	"context"
	"slices"
	"sync"
	"time"

	"retort/internal/core"
)

// warningList collects the warnings of an execution, each once. It is safe for concurrent use.
type warningList struct {
	mu   sync.Mutex
	said []string
}

func (n *warningList) addWarning(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains(n.said, text) {
		n.said = append(n.said, text)
	}
}

// Vet implements relay.Supervisor. It refuses a call of a tool whose definition is no longer trusted, and returns the
// tool as its server lists it now. After a person has approved something in this execution, Vet relies only on a tool
// list that was requested after the approval.
func (x *programExecution) Vet(ctx context.Context, t *core.Tool) (now *core.Tool, refused *core.Error) {
	if x.tools.RegistryOnly(t) {
		return nil, x.tools.NoServerFor(t)
	}
	var since time.Time
	if at := x.approved.Load(); at != nil {
		since = *at
	}
	now, warning, refused := x.pipeline.Tools.VetTool(core.WithCaller(ctx, x.newCaller()), t, since)
	if warning != "" {
		x.notes.addWarning(warning)
	}
	return now, refused
}

// changeReason returns the reason why every call of a tool with a changed definition needs approval. It returns "" if
// the definition is unchanged or has been trusted since.
func (x *programExecution) changeReason(t *core.Tool) string {
	if !t.RequiresApproval() {
		return ""
	}
	if now, ok := x.pipeline.Tools.Toolset().FindExact(t.Server, t.Name); ok && now.Pin == t.Pin && now.Change == nil {
		return ""
	}
	return "toolChanges: ask"
}
