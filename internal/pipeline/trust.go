package pipeline

import (
	"context"
	"slices"
	"sync"

	"retort/internal/run"
)

// notes are warnings about an execution, each once. They are safe for concurrent use.
type notes struct {
	mu   sync.Mutex
	said []string
}

func (n *notes) add(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains(n.said, text) {
		n.said = append(n.said, text)
	}
}

// vet refuses a call of a tool of which the definition is not trusted any more.
func (x *execution) vet(ctx context.Context, t *run.Tool) *run.Error {
	warning, refused := x.pipeline.Tools.Vet(ctx, t)
	if warning != "" {
		x.notes.add(warning)
	}
	return refused
}

// changed is why a person is asked about every call of a tool, "" if it is as it was
// trusted, or has been trusted since.
func (x *execution) changed(t *run.Tool) string {
	if !t.Asks() {
		return ""
	}
	if now, ok := x.pipeline.Tools.Toolset().Exact(t.Server, t.Name); ok && now.Pin == t.Pin && now.Change == nil {
		return ""
	}
	return "toolChanges: ask"
}
