package vm

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"retort/internal/devel/testenv"
)

// idleMachine returns a virtualMachine whose process takes the place of a real monitor and does nothing. The process
// ends when its input ends.
func idleMachine(t *testing.T) *virtualMachine {
	t.Helper()
	m := &virtualMachine{machinePorts: &machinePorts{over: make(chan struct{})}, cmd: exec.Command("cat"), gone: make(chan struct{}), said: make(chan struct{})}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	t.Cleanup(func() { _ = w.Close() })
	m.cmd.Stdin = r
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Kill)
	go m.awaitExit()
	close(m.said)
	return m
}

// TestWhyAMachineIsNotReady checks that the error for a machine that did not become ready names the reason why it
// ended.
func TestWhyAMachineIsNotReady(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(m *virtualMachine)
		want string
	}{
		"too slow": {func(m *virtualMachine) { t.Cleanup(m.killAfter(time.Nanosecond)) }, "the machine was stopped because it was not ready after 0s; it spent"},
		"cancelled": {func(m *virtualMachine) {
			ctx, cancel := context.WithCancel(context.Background())
			m.endWith(ctx)
			cancel()
		}, "the machine was killed before it was ready: context canceled"},
		"killed":   {func(m *virtualMachine) { m.Kill() }, "the machine ended (signal: killed)"},
		"outgrown": {func(m *virtualMachine) { m.outgrown.Store(true); m.Kill() }, "the machine ran out of memory"},
	} {
		t.Run(name, func(t *testing.T) {
			m := idleMachine(t)
			c.end(m)
			testenv.Receive(t, m.gone, "the end of the machine")
			if err := m.whyNot(io.EOF); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	other := errors.New("it says something else")
	if err := idleMachine(t).whyNot(other); !errors.Is(err, other) {
		t.Error(err)
	}
}
