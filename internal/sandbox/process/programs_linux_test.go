package process

import (
	"testing"

	"retort/internal/sandbox/sandboxtest"
)

// TestPrograms checks that the programs of package guesttest end on every runtime as they do without a sandbox.
func TestPrograms(t *testing.T) {
	for _, runtime := range testedRuntimes {
		t.Run(runtime, func(t *testing.T) {
			o := optionsFor(t, runtime)
			o.Warm, o.MaxWarm = -1, -1 // a child that waits at the end was started for nothing
			b := New(o)
			defer b.Close()
			sandboxtest.Programs(t, b, runtime)
		})
	}
}
