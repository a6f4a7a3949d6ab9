package gvisor

import (
	"testing"

	"retort/internal/pipeline/isolate/interpreter"
	"retort/internal/pipeline/isolate/isolatetest"
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
			isolatetest.Programs(t, b, runtime)
		})
	}
}
