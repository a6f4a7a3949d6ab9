package vm

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"
	"unicode"

	"retort/internal/core"
	"retort/internal/sandbox/wire"
)

const (
	effects     = "calls that the program had made before may have had their effects"
	stackHint   = "look for a recursion without an end, or use a loop; a higher limit of recursion does not make the stack larger"
	crashHint   = "most often that is a recursion without an end, or values nested too deeply: use loops and flat values; " + effects
	killedHint  = "the machine may be short of memory; " + effects
	exitHint    = "a program ends with its last statement, not by ending its process; " + effects
	restartHint = effects + "; run it again, in smaller steps"
)

// Explain implements warmpool.Guest.
func (m *vm) Explain(end *wire.End, p core.Program) {
	select {
	case <-m.said:
	case <-m.over:
		<-m.said
	case <-time.After(lastWords):
	}
	m.Kill()
	<-m.gone
	stderr := ""
	select {
	case <-m.said:
		if m.end != nil {
			stderr = m.end.Stderr
		}
	default:
	}
	// Nobody else kills a guest inside of its machine but the kernel, for want of memory.
	starved := stderr == "" && m.end != nil && m.end.Signal == int(syscall.SIGKILL)
	if starved || m.outgrown.Load() || m.image.exhausted(stderr) {
		stop := wire.MemoryStop(p.Limits.Memory)
		end.Status, end.Error = stop.Status, stop.Reason
		return
	}
	end.Status, end.Error = core.StatusError, m.death(stderr, p.Name)
}

// exhausted reports whether the runtime's standard error says that it ran out of memory.
func (i *image) exhausted(stderr string) bool {
	if i.i != nil {
		return i.i.Exhausted(stderr)
	}
	return strings.Contains(stderr, "out of memory") || strings.Contains(stderr, "cannot allocate memory")
}

// whyNot completes the error of a machine that is not ready. The machine ends.
func (m *vm) whyNot(err error) error {
	select {
	case <-m.said:
	case <-time.After(lastWords):
	}
	own := m.endsItself()
	m.Kill()
	<-m.gone
	select {
	case <-m.said:
		if m.end != nil {
			return fmt.Errorf("%w: %s%s%s", err, m.end.Failed, complaint(m.end.Stderr), complaint(m.stderr.String()))
		}
	default:
	}
	return fmt.Errorf("%w%s", m.cause(err, own), complaint(m.stderr.String()))
}

// endsItself reports whether the machine has ended, or does so within a moment, without being killed here.
func (m *vm) endsItself() bool {
	select {
	case <-m.over:
	case <-time.After(lastWords):
		return false
	}
	return m.ended.Load() == nil
}

// cause returns the reason why a machine whose connections failed with err is not ready. own is set if it ended by
// itself. The machine must be gone.
func (m *vm) cause(err error, own bool) error {
	switch why := m.ended.Load(); {
	case why != nil:
		return *why
	case m.outgrown.Load():
		return errors.New("the machine ran out of memory")
	case !errors.Is(err, io.EOF):
		return err
	case own:
		return fmt.Errorf("the machine ended (%s)", m.cmd.ProcessState)
	}
	return errors.New("the machine closed its connections, and was ended")
}

// complaint returns the first line of stderr that has letters, in the form of a message's tail.
func complaint(stderr string) string {
	for line := range strings.Lines(stderr) {
		if line = strings.TrimSpace(line); strings.ContainsFunc(line, unicode.IsLetter) {
			return ": " + line
		}
	}
	return ""
}

// death returns the error for the end of a machine, or of its guest, that exceeded no limit.
func (m *vm) death(stderr, file string) *core.Error {
	if m.end == nil {
		return core.Errorf(core.KindRuntime, Name+".run", "the machine was ended from outside (%s)%s", m.cmd.ProcessState, complaint(m.stderr.String())).WithHint(killedHint)
	}
	words := fmt.Sprintf("(exit status %d)%s", m.end.Status, complaint(stderr))
	if m.end.Signal != 0 {
		words = fmt.Sprintf("(signal: %v)%s", syscall.Signal(m.end.Signal), complaint(stderr))
	}
	switch syscall.Signal(m.end.Signal) {
	case syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGFPE:
		return m.crash(words, stderr, file)
	}
	e := core.Errorf(core.KindRuntime, Name+".run", "the sandbox's process ended unexpectedly %s", words)
	if m.image.i != nil && complaint(stderr) == "" {
		return e.WithHint(exitHint)
	}
	return e.WithHint(restartHint)
}

// crash returns the error for a crash of the runtime, which a program can cause.
func (m *vm) crash(words, stderr, file string) *core.Error {
	line, deep := 0, false
	if m.image.i != nil && m.image.i.Crashed != nil {
		line, deep = m.image.i.Crashed(stderr, file)
	}
	e := core.Errorf(core.KindRuntime, Name+".run", "the program crashed %s %s", m.image.runtime, words).WithHint(crashHint)
	if deep {
		e = core.Errorf(core.KindRuntime, Name+".run", "the call stack overflowed: functions called each other until the stack of %s was gone", m.image.runtime).WithHint(stackHint)
	}
	if e.Line = line; line > 0 {
		e.Column = 1
	}
	return e
}
