package process

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"retort/internal/pipeline/isolate"
	"retort/internal/run"
	"retort/internal/wire"
)

const (
	// parseTime is how long a child may take to parse one program.
	parseTime = 5 * time.Second
	// parsedFor is how long a child that has parsed a program waits to run it,
	// and maxParsed how many may.
	parsedFor = 2 * time.Second
	maxParsed = 8
)

// Parse has a fresh child of a runtime say what is in code, see wire.Parse. The
// child may run that very program next, and no other: what hostile code makes of
// a parser stays with it. The error is a *run.Error or the context's.
func (b *Backend) Parse(ctx context.Context, runtime, code string) (known json.RawMessage, tree []byte, err error) {
	s, err := b.Prepare(ctx, isolate.Spec{Runtime: runtime, Limits: run.DefaultLimits()})
	if err != nil {
		return nil, nil, err
	}
	child := s.(*sandbox).child
	limited, cancel := context.WithTimeout(ctx, parseTime)
	defer cancel()
	known, tree, err = wire.Parse(limited, child.conn, code)
	if err == nil {
		b.forget(s.(*sandbox))
		b.parsed.keep(runtime, code, child)
		return known, tree, nil
	}
	_ = s.Close()
	switch {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case limited.Err() != nil:
		return nil, nil, run.Errorf(run.KindLimit, "process.parse", "the program could not be parsed within %v", parseTime)
	}
	<-child.exited
	return nil, nil, run.Errorf(run.KindLimit, "process.parse", "the program could not be parsed: the interpreter ended (%s)%s", child.cmd.ProcessState, child.complaint()).
		WithHint("build nested values and long expressions in several statements")
}

// parsed are children that have parsed a program and done nothing else.
type parsed struct {
	mu     sync.Mutex
	list   []*waiting
	closed bool
}

type waiting struct {
	runtime, code string
	child         *child
	end           *time.Timer
}

// keep lets a child wait for the program that it has parsed.
func (p *parsed) keep(runtime, code string, c *child) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.list) >= maxParsed {
		c.kill()
		return
	}
	w := &waiting{runtime: runtime, code: code, child: c}
	w.end = time.AfterFunc(parsedFor, func() {
		if p.remove(w) {
			c.kill()
		}
	})
	p.list = append(p.list, w)
}

// take gives out the child that has parsed the program of a sandbox, nil if there
// is none.
func (p *parsed) take(s isolate.Spec) *child {
	p.mu.Lock()
	var found *waiting
	for _, w := range p.list {
		if s.Code != "" && w.runtime == s.Runtime && w.code == s.Code {
			found = w
			break
		}
	}
	p.mu.Unlock()
	if found == nil || !p.remove(found) {
		return nil
	}
	found.end.Stop()
	if !found.child.alive() {
		return nil
	}
	return found.child
}

// remove reports whether it was the one that removed w.
func (p *parsed) remove(w *waiting) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.list, w)
	if i < 0 {
		return false
	}
	p.list = slices.Delete(p.list, i, i+1)
	return true
}

func (p *parsed) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, w := range p.list {
		w.end.Stop()
		w.child.kill()
	}
	p.list = nil
}
