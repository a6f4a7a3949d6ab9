package vm

import (
	"testing"

	"retort/internal/sandbox/interpreter"
	"retort/internal/sandbox/sandboxtest"
)

// TestSharedMemory checks that a hostile guest cannot harm the engine through the memory that they share.
func TestSharedMemory(t *testing.T) {
	t.Parallel()
	o := optionsHere(t, "qemu")
	o.Interpreters = []interpreter.Interpreter{pythonHere(t)}
	b := New(o)
	defer b.Close()
	sandboxtest.SharedMemory(t, b)
}
