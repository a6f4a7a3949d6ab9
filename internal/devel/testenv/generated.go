package testenv

import (
	"os"
	"testing"
)

// CheckGenerated fails the test if the file's content is not want. If update is set, it writes the file first. The
// argument command is the command that writes the file.
func CheckGenerated(t testing.TB, file, want, command string, update bool) {
	t.Helper()
	if update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("%v: %s is not up to date; write it with: %s", err, file, command)
	}
}
