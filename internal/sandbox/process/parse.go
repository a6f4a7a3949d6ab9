package process

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/wire"
)

const (
	// parseTime bounds the time that a child may take to parse one program.
	parseTime = 5 * time.Second
	// parsedFor sets how long a child that has parsed a program waits to run it. maxParsed bounds these children.
	parsedFor = 2 * time.Second
	maxParsed = 8
	// longCode sets the size in bytes from which parsing and checking a program take noticeable time on two cores.
	// longBreather is how long the pool then waits before it starts another child.
	longCode     = 16 << 10
	longBreather = 60 * time.Millisecond
)

// Parse lets a new child of a runtime parse code, see wire.Parse. This child may later run exactly that program and
// no other, so hostile code that takes over the parser affects only itself. Errors are *core.Error or the context's.
func (b *Backend) Parse(ctx context.Context, runtime, code string) (core.Parsed, error) {
	s, err := b.Prepare(ctx, sandbox.Spec{Runtime: runtime, Limits: core.DefaultLimits()})
	if err != nil {
		return core.Parsed{}, err
	}
	box := s.(*childSandbox)
	if len(code) >= longCode {
		box.kind.pool.Postpone(longBreather)
	}
	limited, cancel := context.WithTimeout(ctx, parseTime)
	known, tree, err := wire.Parse(limited, box.child.conn, code)
	if err != nil {
		defer cancel()
		return core.Parsed{}, box.unparsed(ctx, limited)
	}
	compiled := make(chan outcome, 1)
	go func() {
		defer cancel()
		told, err := wire.Compiled(limited, box.child.conn)
		if err != nil {
			compiled <- outcome{err: box.unparsed(ctx, limited)}
			return
		}
		b.forget(box)
		b.parsed.keep(runtime, code, box.child)
		compiled <- outcome{told: told}
	}()
	return core.Parsed{Known: known, Tree: tree, Compiled: func() (json.RawMessage, error) {
		o := <-compiled
		return o.told, o.err
	}}, nil
}

// outcome represents the result of compiling.
type outcome struct {
	told json.RawMessage
	err  error
}

// unparsed closes a sandbox that could not parse a program and returns the reason.
func (s *childSandbox) unparsed(ctx, limited context.Context) error {
	_ = s.Close()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return core.Errorf(core.KindLimit, "process.parse", "the program could not be parsed within %v", parseTime)
	}
	<-s.child.exited
	return core.Errorf(core.KindLimit, "process.parse", "the program could not be parsed: the interpreter ended (%s)%s", s.child.cmd.ProcessState, s.child.complaint()).
		WithHint("build nested values and long expressions in several statements")
}

// parsed holds children that have parsed a program and done nothing else.
type parsed struct {
	within time.Duration // how long a child is kept; parsedFor except in tests

	mu     sync.Mutex
	list   []*waiting
	closed bool
}

type waiting struct {
	runtime, code string
	child         *child
	end           *time.Timer
}

// keep stores a child until the program that it has parsed is run.
func (p *parsed) keep(runtime, code string, c *child) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.list) >= maxParsed {
		c.Kill()
		return
	}
	w := &waiting{runtime: runtime, code: code, child: c}
	w.end = time.AfterFunc(p.within, func() {
		if p.remove(w) {
			c.Kill()
		}
	})
	p.list = append(p.list, w)
}

// take returns the child that has parsed the program of a sandbox, or nil.
func (p *parsed) take(s sandbox.Spec) *child {
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
	if !found.child.Alive() {
		return nil
	}
	return found.child
}

// remove removes w and reports whether it was still there.
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
		w.child.Kill()
	}
	p.list = nil
}
