package process

import (
	"testing"

	"retort/internal/sandbox/sandboxtest"
)

// TestPrograms runs on every runtime, behind all walls.
func TestPrograms(t *testing.T) {
	for _, runtime := range everywhere {
		t.Run(runtime, func(t *testing.T) {
			b := New(optionsFor(t, runtime))
			defer b.Close()
			sandboxtest.Programs(t, b, runtime)
		})
	}
}
