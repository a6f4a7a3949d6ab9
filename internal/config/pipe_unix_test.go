//go:build unix

package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestNamedPipeIsRefused checks that a named pipe in the place of a configuration file is refused at once: opening it
// would wait for a writer that may never come.
func TestNamedPipeIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "retort.yaml")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readFile(path, false); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("%v", err)
	}
}

// TestInheritedPipeIsRead checks that a pipe that a shell passes, as with <(command), is read once.
func TestInheritedPipeIsRead(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("enabled: true\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	path := fmt.Sprintf("/dev/fd/%d", r.Fd())
	if text, err := readFile(path, false); err != nil || string(text) != "enabled: true\n" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := readFile(path, true); err == nil || !strings.Contains(err.Error(), "read only once") {
		t.Errorf("%v", err)
	}
}
