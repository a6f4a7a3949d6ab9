package gvisor

import (
	"testing"

	"retort/internal/sandbox/interpreter"
	"retort/internal/sandbox/sandboxtest"
)

func TestPrograms(t *testing.T) {
	t.Parallel()
	for _, runtime := range []string{quickjs, "python"} {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			o := optionsHere(t)
			if runtime == "python" {
				o.Interpreters = []interpreter.Interpreter{pythonHere(t)}
			}
			b := New(o)
			defer b.Close()
			sandboxtest.Programs(t, b, runtime)
		})
	}
}
