package engine_test

import (
	"os"
	"testing"

	"retort/internal/engine"
)

// TestMain lets the test binary play the engine's guests and helpers, and the servers of some tests.
func TestMain(m *testing.M) {
	engine.Init()
	if len(os.Args) > 1 && os.Args[1] == largeServer {
		serveLarge()
		return
	}
	if len(os.Args) > 1 && os.Args[1] == spillingServer {
		serveSpilling()
		return
	}
	if len(os.Args) > 2 && os.Args[1] == largeEngine {
		serveLargeEngine(os.Args[2])
		return
	}
	if len(os.Args) > 2 && os.Args[1] == floodedEngine {
		serveFloodedEngine(os.Args[2])
		return
	}
	if dir := os.Getenv(killedEngine); dir != "" {
		scribble(dir)
		return
	}
	home, err := os.MkdirTemp("", "retort-test-")
	if err != nil {
		panic(err)
	}
	_ = os.Setenv("HOME", home) // keys are made there
	code := m.Run()
	_ = os.RemoveAll(home)
	os.Exit(code)
}
