package process

import (
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"retort/internal/sandbox/wire"
)

// What is added to a guest's command line.
const (
	// CompileArgument has it write its harness, compiled, to its standard output
	// and end.
	CompileArgument = "compile"
	// CompiledArgument has it wait for that in the first frame.
	CompiledArgument = "compiled"
)

// compiledHarness is what all children of a kind begin with, in the form to which their
// runtime compiles it. It is made by a child in which no program ever runs.
type compiledHarness struct {
	children atomic.Int64 // started so far
	code     atomic.Pointer[[]byte]
}

// compiled is the compiled harness of k; nil if there is none. The second child
// has it made in the background: who runs one program has no use for it.
func (b *Backend) compiled(k *kind, weak bool) []byte {
	if k.harness == nil {
		return nil
	}
	if k.harness.children.Add(1) == 2 {
		b.children.Go(func() {
			if code, err := b.compile(k, weak); err == nil { // else the next children do without
				k.harness.code.Store(&code)
			}
		})
	}
	if code := k.harness.code.Load(); code != nil {
		return *code
	}
	return nil
}

func (b *Backend) compile(k *kind, weak bool) ([]byte, error) {
	c, err := b.start(k.with(CompileArgument), weak)
	if err != nil {
		return nil, err
	}
	defer c.Kill()
	defer time.AfterFunc(b.greeting, c.Kill).Stop()
	code, err := io.ReadAll(io.LimitReader(c.pipes, wire.MaxHarness+1))
	if err != nil {
		return nil, err
	}
	<-c.exited
	if state := c.cmd.ProcessState; !state.Success() || len(code) == 0 || len(code) > wire.MaxHarness {
		return nil, fmt.Errorf("the harness could not be compiled: %s%s", state, c.complaint())
	}
	return code, nil
}

// with is k with one more argument for its guest.
func (k *kind) with(argument string) *kind {
	c := *k
	if len(c.plan.Argv) > 0 {
		c.plan.Argv = append(slices.Clone(c.plan.Argv), argument)
	} else {
		c.command = append(slices.Clone(c.command), argument)
	}
	return &c
}
