//go:build amd64 || arm64

package docker

import (
	"testing"

	"retort/internal/devel/testenv"
	"retort/internal/sandbox/interpreter"
	"retort/internal/sandbox/sandboxtest"
)

// TestPrograms runs the programs of sandboxtest.Programs in containers. It uses containers of gVisor only if
// RETORT_FULL is set, because the tests of package gvisor cover that kernel.
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
				sandboxtest.Programs(t, b, language)
			})
		}
	}
}
