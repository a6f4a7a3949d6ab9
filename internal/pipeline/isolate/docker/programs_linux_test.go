//go:build amd64 || arm64

package docker

import (
	"testing"

	"retort/internal/pipeline/isolate/interpreter"
	"retort/internal/pipeline/isolate/isolatetest"
	"retort/internal/testenv"
)

// TestPrograms runs beside what waits more than it works.
func TestPrograms(t *testing.T) {
	t.Parallel()
	for _, runner := range []string{"runc", gvisor} {
		for _, language := range []string{quickjs, "python"} {
			t.Run(runner+"/"+language, func(t *testing.T) {
				if runner == gvisor {
					testenv.Need(t, "runsc")
				}
				o := options(t, runner)
				if language == "python" {
					o.Interpreters = []interpreter.Interpreter{pythonHere(t)}
				}
				b := New(o)
				defer b.Close()
				isolatetest.Programs(t, b, language)
			})
		}
	}
}
