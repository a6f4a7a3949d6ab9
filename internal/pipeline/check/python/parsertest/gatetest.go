// Package parsertest provides tests of the checks with a parser for Python.
package parsertest

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox/guest/python"
	"retort/internal/sandbox/wire"
)

// Interpreter parses with one guest, without confinement. It is safe for concurrent use.
type Interpreter struct {
	Version string // of Python: "3.11.7"

	mu   sync.Mutex
	conn *wire.Conn
}

type pipes struct {
	io.ReadCloser
	io.WriteCloser
}

func (p pipes) Close() error { return p.WriteCloser.Close() }

// NewInterpreter starts the Python of RETORT_PYTHON, or python3, until the test ends. Without Python, it skips or
// fails the test.
func NewInterpreter(t testing.TB) *Interpreter {
	t.Helper()
	path := os.Getenv("RETORT_PYTHON")
	if path == "" {
		path = testenv.Need(t, "python")
	}
	dir := t.TempDir()
	for name, data := range python.Files() {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o444); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(path, "-I", "-S", "-B", filepath.Join(dir, python.Main))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	conn := wire.NewConn(pipes{out, in})
	t.Cleanup(func() {
		_ = conn.Close()
		_ = cmd.Wait()
	})
	ready, err := wire.Greet(conn)
	if err != nil {
		t.Fatal(err)
	}
	return &Interpreter{Version: ready.Version, conn: conn}
}

// Parse parses a program for a python.Checker.
func (i *Interpreter) Parse(ctx context.Context, code string) (core.Parsed, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	known, tree, err := wire.Parse(ctx, i.conn, code)
	if err != nil {
		return core.Parsed{}, err
	}
	told, err := wire.Compiled(ctx, i.conn)
	return core.Parsed{Known: known, Tree: tree, Compiled: func() (json.RawMessage, error) { return told, err }}, nil
}
