package gvisor

import (
	"testing"

	"retort/internal/pipeline/isolate/interpreter"
	"retort/internal/pipeline/isolate/isolatetest"
)

// What goes between a container and the engine goes through memory that both see, and no
// guest can do harm with that.
func TestSharedMemory(t *testing.T) {
	t.Parallel()
	o := optionsHere(t)
	o.Interpreters = []interpreter.Interpreter{pythonHere(t)}
	b := New(o)
	defer b.Close()
	isolatetest.SharedMemory(t, b)
}
