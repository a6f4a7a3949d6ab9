// Package parsertest provides a real Python parser for tests of the program checks.
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

// GuestParser parses programs in one guest process without a sandbox. It is safe for concurrent use.
type GuestParser struct {
	Version string // of Python: "3.11.7"

	mu   sync.Mutex
	conn *wire.FrameConn
}

type guestPipes struct {
	io.ReadCloser
	io.WriteCloser
}

func (p guestPipes) Close() error { return p.WriteCloser.Close() }

// NewInterpreter starts a guest with the Python that RETORT_PYTHON names, or python3, and ends it with the test. If
// there is no Python, it skips or fails the test.
func NewInterpreter(t testing.TB) *GuestParser {
	t.Helper()
	path := os.Getenv("RETORT_PYTHON")
	if path == "" {
		path = testenv.Need(t, "python")
	}
	dir := t.TempDir()
	for name, data := range python.GuestFiles() {
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
	conn := wire.NewConn(guestPipes{out, in})
	t.Cleanup(func() {
		_ = conn.Close()
		_ = cmd.Wait()
	})
	ready, err := wire.ReadGreeting(conn)
	if err != nil {
		t.Fatal(err)
	}
	return &GuestParser{Version: ready.Version, conn: conn}
}

// Parse implements python.CodeParser.
func (i *GuestParser) Parse(ctx context.Context, code string) (core.ParsedProgram, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	known, tree, err := wire.ParseCode(ctx, i.conn, code)
	if err != nil {
		return core.ParsedProgram{}, err
	}
	told, err := wire.AwaitCompiled(ctx, i.conn)
	return core.ParsedProgram{Known: known, Tree: tree, Compiled: func() (json.RawMessage, error) { return told, err }}, nil
}
