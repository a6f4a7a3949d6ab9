package engine_test

import (
	"os"
	"testing"

	"retort/internal/engine"
)

// TestMain makes the test binary act as the engine's guest, reaper or compiler, and as a server or engine of some
// tests, if its arguments say so.
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
		executeUntilKilled(dir)
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
