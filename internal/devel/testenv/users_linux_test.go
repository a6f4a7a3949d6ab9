package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestUsers(t *testing.T) {
	dir := t.TempDir()
	below := filepath.Join(dir, "below")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("cat")
	cmd.Dir = below
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if len(openLinks(dir)) == 0 {
		t.Error("the working directory of a process is not seen")
	}
	if list := openLinks(dir + "x"); len(list) > 0 {
		t.Errorf("processes use a folder that does not exist: %q", list)
	}
	go func() { _ = input.Close() }()
	WaitForUsers(t, dir)
	_ = cmd.Wait()
}
