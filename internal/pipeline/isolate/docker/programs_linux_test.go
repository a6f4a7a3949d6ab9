//go:build amd64 || arm64

package docker

import (
	"testing"

	"retort/internal/pipeline/isolate/interpreter"
	"retort/internal/pipeline/isolate/isolatetest"
	"retort/internal/testenv"
)

// TestPrograms runs the programs of all sandboxes. Those of containers with gVisor's kernel are
// tested in package gvisor, except where everything is.
func TestPrograms(t *testing.T) {
	t.Parallel()
	runners := []string{"runc"}
	if testenv.Full() {
		runners = append(runners, gvisor)
	}
	for _, runner := range runners {
		for _, language := range []string{quickjs, "python"} {
			t.Run(runner+"/"+language, func(t *testing.T) {
				t.Parallel()
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
