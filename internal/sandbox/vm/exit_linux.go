package vm

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox/exitcause"
	"retort/internal/sandbox/wire"
)

// Explain implements warmpool.Guest.
func (m *virtualMachine) Explain(end *wire.ProgramEnd, p core.CheckedProgram) {
	select {
	case <-m.said:
	case <-m.over:
		<-m.said
	case <-time.After(lastMessageTimeout):
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
	// Inside a machine only the kernel kills a guest, and only when memory runs out.
	starved := stderr == "" && m.end != nil && m.end.Signal == int(syscall.SIGKILL)
	if starved || m.outgrown.Load() || m.image.isOutOfMemory(stderr) {
		stop := wire.MemoryStop(p.Limits.Memory)
		end.Status, end.Error = stop.Status, stop.Reason
		return
	}
	end.Status, end.Error = core.StatusError, m.exitError(stderr, p.Name)
}

// isOutOfMemory reports whether the runtime's standard error states that it ran out of memory.
func (i *machineImage) isOutOfMemory(stderr string) bool {
	if i.i != nil {
		return i.i.Exhausted(stderr)
	}
	return exitcause.OutOfMemory(stderr)
}

// whyNot ends a machine that did not become ready for a program, and returns the reason. The argument err is the error
// by which the caller noticed the problem.
func (m *virtualMachine) whyNot(err error) error {
	select {
	case <-m.said:
	case <-time.After(lastMessageTimeout):
	}
	own := m.endsItself()
	m.Kill()
	<-m.gone
	select {
	case <-m.said:
		if m.end != nil {
			return fmt.Errorf("%w: %s%s%s", err, m.end.Failed, exitcause.FirstStderrLine(m.end.Stderr), exitcause.FirstStderrLine(m.stderr.String()))
		}
	default:
	}
	return fmt.Errorf("%w%s", m.startError(err, own), exitcause.FirstStderrLine(m.stderr.String()))
}

// endsItself waits a moment and reports whether the machine ended in that time without being killed.
func (m *virtualMachine) endsItself() bool {
	select {
	case <-m.over:
	case <-time.After(lastMessageTimeout):
		return false
	}
	return m.ended.Load() == nil
}

// startError returns the reason why a machine did not become ready. The machine must have been ended before the call.
// The argument err is the error of a connection to the machine. The argument own is true if the machine ended on its
// own, and false if it had to be killed.
func (m *virtualMachine) startError(err error, own bool) error {
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
	return errors.New("the machine closed its connections and was killed")
}

// exitError returns the error for a program whose machine or guest ended without exceeding a limit.
func (m *virtualMachine) exitError(stderr, file string) *core.Error {
	if m.end == nil {
		return exitcause.ExplainExit(exitcause.RuntimeExit{
			Op: Name + ".run", Subject: "the machine", State: m.cmd.ProcessState.String(), Killed: true, Stderr: m.stderr.String(),
		})
	}
	x := exitcause.RuntimeExit{
		Op: Name + ".run", Subject: "the sandbox's process", State: fmt.Sprintf("exit status %d", m.end.Status),
		Stderr: stderr, File: file, Runtime: m.image.runtime, Native: m.image.i != nil,
	}
	if m.end.Signal != 0 {
		x.Signal = syscall.Signal(m.end.Signal)
		x.State = fmt.Sprintf("signal: %v", x.Signal)
	}
	if m.image.i != nil {
		x.Crashed = m.image.i.Crashed
	}
	return exitcause.ExplainExit(x)
}
