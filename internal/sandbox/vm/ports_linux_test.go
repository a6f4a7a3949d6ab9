package vm

import (
	"bufio"
	"bytes"
	"errors"
	"os/exec"
	"testing"

	"retort/internal/devel/testenv"
)

// TestListenToHostile checks that a machine is killed if it sends invalid data or too long a line on its control
// connection.
func TestListenToHostile(t *testing.T) {
	for name, said := range map[string][]byte{
		"a line without an end": bytes.Repeat([]byte("x"), 3*maxLineLength),
		"empty lines":           bytes.Repeat([]byte("\n"), 1000),
		"no JSON":               []byte("{\"Status\":\n"),
		"another value":         []byte("[]\n"),
	} {
		t.Run(name, func(t *testing.T) {
			p, err := newPorts()
			if err != nil {
				t.Fatal(err)
			}
			defer p.closeAll()
			m := &virtualMachine{machinePorts: p, cmd: exec.Command("/proc/self/exe", "sleep"), said: make(chan struct{})}
			if err := m.cmd.Start(); err != nil {
				t.Fatal(err)
			}
			go m.listenControl()
			go func() { _, _ = p.far[1].Write(said) }()
			ended := make(chan error, 1)
			go func() { ended <- m.cmd.Wait() }()
			if !testenv.Poll(func() bool { return len(ended) > 0 }) {
				_ = m.cmd.Process.Kill()
				t.Fatal("the machine goes on")
			}
			if <-m.said; m.end != nil {
				t.Errorf("%+v", m.end)
			}
		})
	}
}

// TestMonitorIsBounded checks that reading a line without end from QEMU's monitor fails.
func TestMonitorIsBounded(t *testing.T) {
	p, err := newPorts()
	if err != nil {
		t.Fatal(err)
	}
	defer p.closeAll()
	go func() { _, _ = p.far[2].Write(bytes.Repeat([]byte(" "), 3*maxLineLength)) }()
	if _, err := p.readMonitor("", 1); !errors.Is(err, bufio.ErrBufferFull) {
		t.Error(err)
	}
}
