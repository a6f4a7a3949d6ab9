package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"retort/internal/config"
	"retort/internal/engine"
)

// TestSandboxNames checks that the engine has every backend that settings can name, in the same order.
func TestSandboxNames(t *testing.T) {
	home := t.TempDir()
	e, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Home: home, Keys: home, Reserve: engine.ReserveNone})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // there are no servers to wait for
	d, err := e.Doctor(ctx, nil, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var built []string
	for _, s := range d.Sandboxes {
		built = append(built, s.Name)
	}
	if want := config.SandboxNames(); !slices.Equal(built, want) {
		t.Errorf("the engine builds %v, settings can name %v", built, want)
	}
}
