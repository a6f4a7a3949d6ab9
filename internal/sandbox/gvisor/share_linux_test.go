package gvisor

import (
	"testing"

	"retort/internal/sandbox/interpreter"
	"retort/internal/sandbox/sandboxtest"
)

// What goes between a container and the engine goes through memory that both see, and no
// guest can do harm with that.
func TestSharedMemory(t *testing.T) {
	t.Parallel()
	o := optionsHere(t)
	o.Interpreters = []interpreter.Interpreter{pythonHere(t)}
	b := New(o)
	defer b.Close()
	sandboxtest.SharedMemory(t, b)
}
