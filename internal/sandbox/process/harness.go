package process

import (
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"retort/internal/sandbox/wire"
)

// Arguments that the backend appends to a guest's command line, if the guest can compile its harness, the code that
// runs programs in it.
const (
	// CompileArgument makes the guest write its compiled harness to standard output and exit. The harness is the part
	// of Retort that runs a program inside the sandbox.
	CompileArgument = "compile"
	// CompiledArgument makes the guest receive its harness, the code that runs programs in the guest, in compiled
	// form in the first frame, and load it.
	CompiledArgument = "compiled"
)

// compiledHarness holds the compiled form of the harness, the part of Retort that runs a program inside the sandbox.
// All children of one kind start with it. It is compiled by a child in which no program ever runs, so no program can
// tamper with it.
type compiledHarness struct {
	children atomic.Int64 // number of children of this kind that were started so far
	code     atomic.Pointer[[]byte]
}

// compiledHarness returns the compiled harness for children of kind k, or nil if it is not compiled yet. Compiling
// begins in the background when the second child of kind k starts. The start of the first child does not begin it,
// because a user who runs a single program does not need it.
func (b *Backend) compiledHarness(k *childKind, weak bool) []byte {
	if k.harness == nil {
		return nil
	}
	if k.harness.children.Add(1) == 2 && b.enter() {
		go func() {
			defer b.children.Done()
			if code, err := b.compileHarness(k, weak); err == nil { // else the next children do without
				k.harness.code.Store(&code)
			}
		}()
	}
	if code := k.harness.code.Load(); code != nil {
		return *code
	}
	return nil
}

func (b *Backend) compileHarness(k *childKind, weak bool) ([]byte, error) {
	c, err := b.startChild(k.withArgument(CompileArgument), weak)
	if err != nil {
		return nil, err
	}
	defer c.Kill()
	defer time.AfterFunc(b.greeting, c.Kill).Stop()
	code, err := io.ReadAll(io.LimitReader(c, wire.MaxHarness+1))
	if err != nil {
		return nil, err
	}
	<-c.exited
	if state := c.cmd.ProcessState; !state.Success() || len(code) == 0 || len(code) > wire.MaxHarness {
		return nil, fmt.Errorf("the harness could not be compiled: %s%s", state, c.stderrSuffix())
	}
	return code, nil
}

// withArgument returns a copy of k whose guest gets one more command-line argument.
func (k *childKind) withArgument(argument string) *childKind {
	c := *k
	if len(c.plan.Argv) > 0 {
		c.plan.Argv = append(slices.Clone(c.plan.Argv), argument)
	} else {
		c.command = append(slices.Clone(c.command), argument)
	}
	return &c
}
