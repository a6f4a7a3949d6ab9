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
	// parsedChildLifetime is how long a child that has parsed a program waits for the order to run that program.
	// maxParsed bounds the number of children that wait in this way.
	parsedChildLifetime = 2 * time.Second
	maxParsed           = 8
	// longProgramSize is the size in bytes from which on a program counts as long: parsing and checking it keeps two
	// cores busy for a noticeable time. When a long program arrives, the pool waits for longProgramPause before it
	// starts another child.
	longProgramSize  = 16 << 10
	longProgramPause = 60 * time.Millisecond
)

// Parse parses code in a new child of a runtime, as wire.ParseCode describes. This child may later run exactly that
// program and no other, so hostile code that takes over the parser affects only itself. The error is a *core.Error or
// the error of the context.
func (b *Backend) Parse(ctx context.Context, runtime, code string) (core.ParsedProgram, error) {
	s, err := b.Prepare(ctx, sandbox.SandboxSpec{Runtime: runtime, Limits: core.DefaultLimits()})
	if err != nil {
		return core.ParsedProgram{}, err
	}
	box := s.(*childSandbox)
	if len(code) >= longProgramSize {
		box.kind.pool.PostponeRefill(longProgramPause)
	}
	limited, cancel := context.WithTimeout(ctx, parseTime)
	known, tree, err := wire.ParseCode(limited, box.child.conn, code)
	if err != nil {
		defer cancel()
		return core.ParsedProgram{}, box.parseError(ctx, limited)
	}
	compiled := make(chan parseOutcome, 1)
	go func() {
		defer cancel()
		told, err := wire.AwaitCompiled(limited, box.child.conn)
		if err != nil {
			compiled <- parseOutcome{err: box.parseError(ctx, limited)}
			return
		}
		b.forgetSandbox(box)
		b.parsed.keepChild(runtime, code, box.child)
		compiled <- parseOutcome{told: told}
	}()
	return core.ParsedProgram{Known: known, Tree: tree, Compiled: func() (json.RawMessage, error) {
		o := <-compiled
		return o.told, o.err
	}}, nil
}

// parseOutcome holds the result of compiling a program, or the error.
type parseOutcome struct {
	told json.RawMessage
	err  error
}

// parseError closes the sandbox after parsing has failed, and returns the reason for the failure.
func (s *childSandbox) parseError(ctx, limited context.Context) error {
	_ = s.Close()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return core.Errorf(core.KindLimit, "process.parse", "the program could not be parsed within %v", parseTime)
	}
	<-s.child.exited
	return core.Errorf(
		core.KindLimit, "process.parse", "the program could not be parsed: the interpreter ended (%s)%s",
		s.child.cmd.ProcessState, s.child.stderrSuffix(),
	).
		WithHint("build nested values and long expressions in several statements")
}

// parsedChildren holds child processes that have parsed a program and may still run that program. They have done
// nothing else.
type parsedChildren struct {
	within time.Duration // how long a child that has parsed a program is kept; parsedChildLifetime except in tests

	mu     sync.Mutex
	list   []*parsedChild
	closed bool
}

type parsedChild struct {
	runtime, code string
	child         *guestChild
	end           *time.Timer
}

// keepChild stores a child until its program runs or parsedChildLifetime has passed. It kills the child if too many
// are stored.
func (p *parsedChildren) keepChild(runtime, code string, c *guestChild) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.list) >= maxParsed {
		c.Kill()
		return
	}
	w := &parsedChild{runtime: runtime, code: code, child: c}
	w.end = time.AfterFunc(p.within, func() {
		if p.removeChild(w) {
			c.Kill()
		}
	})
	p.list = append(p.list, w)
}

// takeChild removes and returns the child that has parsed exactly the code of s. It returns nil if there is no such
// child.
func (p *parsedChildren) takeChild(s sandbox.SandboxSpec) *guestChild {
	p.mu.Lock()
	var found *parsedChild
	for _, w := range p.list {
		if s.Code != "" && w.runtime == s.Runtime && w.code == s.Code {
			found = w
			break
		}
	}
	p.mu.Unlock()
	if found == nil || !p.removeChild(found) {
		return nil
	}
	found.end.Stop()
	if !found.child.IsAlive() {
		return nil
	}
	return found.child
}

// removeChild removes the child w from the stored children and reports whether it was among them.
func (p *parsedChildren) removeChild(w *parsedChild) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.list, w)
	if i < 0 {
		return false
	}
	p.list = slices.Delete(p.list, i, i+1)
	return true
}

func (p *parsedChildren) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, w := range p.list {
		w.end.Stop()
		w.child.Kill()
	}
	p.list = nil
}
