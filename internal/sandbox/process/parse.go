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
	// parseTime is how long a child may take to parse one program.
	parseTime = 5 * time.Second
	// parsedFor is how long a child that has parsed a program waits to run it,
	// and maxParsed how many may.
	parsedFor = 2 * time.Second
	maxParsed = 8
	// longCode is from how many bytes on a program takes a while to be parsed, on
	// one core, and to be judged, on another; longBreather is the while.
	longCode     = 16 << 10
	longBreather = 60 * time.Millisecond
)

// Parse has a fresh child of a runtime say what is in code, see wire.Parse. The
// child may run that very program next, and no other: what hostile code makes of
// a parser stays with it. Errors are *core.Error or the context's.
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

// outcome is how compiling ended.
type outcome struct {
	told json.RawMessage
	err  error
}

// unparsed ends a sandbox that could not parse a program, and says why.
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

// parsed are children that have parsed a program and done nothing else.
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

// keep lets a child wait for the program that it has parsed.
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

// take gives out the child that has parsed the program of a sandbox, nil if there
// is none.
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
		w.child.Kill()
	}
	p.list = nil
}
