package warmpool

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
	// parseTime bounds the time that a guest may take to parse one program.
	parseTime = 5 * time.Second
	// maxParsed bounds the number of guests that have parsed a program and wait for the order to run it.
	maxParsed = 8
	// longProgramSize is the size in bytes from which on a program counts as long: parsing and checking it keeps two
	// cores busy for a noticeable time. When a long program arrives, the pool waits for longProgramPause before it
	// starts another guest.
	longProgramSize  = 16 << 10
	longProgramPause = 60 * time.Millisecond
)

// Parse parses code in a new guest of a runtime, as wire.ParseCode describes. This guest may later run exactly that
// program and no other, so hostile code that takes over the parser affects only itself. The error is a *core.Error or
// the error of the context.
func (b *Backend) Parse(ctx context.Context, runtime, code string) (core.ParsedProgram, error) {
	prepared, err := b.Prepare(ctx, sandbox.SandboxSpec{Runtime: runtime, Limits: core.DefaultLimits()})
	if err != nil {
		return core.ParsedProgram{}, err
	}
	s := prepared.(*pooledSandbox)
	if len(code) >= longProgramSize {
		s.kind.pool.PostponeRefill(longProgramPause)
	}
	limited, cancel := context.WithTimeout(ctx, parseTime)
	known, tree, err := wire.ParseCode(limited, s.member.conn, code)
	if err != nil {
		defer cancel()
		return core.ParsedProgram{}, s.parseError(ctx, limited)
	}
	compiled := make(chan parseOutcome, 1)
	go func() {
		defer cancel()
		told, err := wire.AwaitCompiled(limited, s.member.conn)
		if err != nil {
			compiled <- parseOutcome{err: s.parseError(ctx, limited)}
			return
		}
		b.forgetSandbox(s)
		b.parsed.keepGuest(runtime, code, s.member)
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
func (s *pooledSandbox) parseError(ctx, limited context.Context) error {
	_ = s.Close()
	op := s.backend.Kind().Name + ".parse"
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return core.Errorf(core.KindLimit, op, "the program could not be parsed within %v", parseTime)
	}
	var end wire.ProgramEnd
	s.member.guest.Explain(&end, core.CheckedProgram{Limits: core.DefaultLimits()})
	why := "the interpreter ended"
	if end.Error != nil {
		why = end.Error.Message
	}
	return core.Errorf(core.KindLimit, op, "the program could not be parsed: %s", why).
		WithHint("build nested values and long expressions in several statements")
}

// parsedGuests holds guests that have parsed a program and may still run that program. They have done nothing else.
type parsedGuests struct {
	within time.Duration // how long a guest that has parsed a program is kept

	mu   sync.Mutex
	list []*parsedGuest
}

type parsedGuest struct {
	runtime, code string
	guest         *ReadyGuest
	end           *time.Timer
}

// keepGuest stores a guest until its program runs or Options.KeepParsed has passed. It kills the guest if too many are
// stored.
func (p *parsedGuests) keepGuest(runtime, code string, m *ReadyGuest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) >= maxParsed {
		m.Kill()
		return
	}
	w := &parsedGuest{runtime: runtime, code: code, guest: m}
	w.end = time.AfterFunc(p.within, func() {
		if p.removeGuest(w) {
			m.Kill()
		}
	})
	p.list = append(p.list, w)
}

// takeGuest removes and returns the guest that has parsed exactly the code of s. It returns nil if there is no such
// guest.
func (p *parsedGuests) takeGuest(s sandbox.SandboxSpec) *ReadyGuest {
	p.mu.Lock()
	var found *parsedGuest
	for _, w := range p.list {
		if s.Code != "" && w.runtime == s.Runtime && w.code == s.Code {
			found = w
			break
		}
	}
	p.mu.Unlock()
	if found == nil || !p.removeGuest(found) {
		return nil
	}
	found.end.Stop()
	if !found.guest.IsAlive() {
		return nil
	}
	return found.guest
}

// removeGuest removes the guest w from the stored guests and reports whether it was among them.
func (p *parsedGuests) removeGuest(w *parsedGuest) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.list, w)
	if i < 0 {
		return false
	}
	p.list = slices.Delete(p.list, i, i+1)
	return true
}
