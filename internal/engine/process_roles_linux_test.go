package engine_test

import (
	"os"
	"os/exec"
	"testing"
)

// TestRoles checks that this program, started with the arguments of the child that compiles the code of a sandbox's
// guest, writes the compiled code. It does so with and without the sandbox's restrictions.
func TestRoles(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, arguments := range map[string][]string{"alone": {"guest", "compile"}, "behind walls": {"walls", "guest", "compile"}} {
		t.Run(name, func(t *testing.T) {
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			_, _ = write.WriteString(`{"Profile":"quickjs","Weak":true,"Files":64}`)
			_ = write.Close()
			cmd := exec.Command(self, arguments...)
			cmd.ExtraFiles = []*os.File{read}
			if out, err := cmd.Output(); err != nil || len(out) < 10_000 {
				t.Errorf("%v: %d bytes", err, len(out))
			}
		})
	}
}
