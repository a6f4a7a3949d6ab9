package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestEmbeddingExample checks the output of the example program that embeds the engine. The example starts the retort
// command as its servers, and this test binary acts as that command.
func TestEmbeddingExample(t *testing.T) {
	dir := t.TempDir()
	retort := retortIn(t, dir).Path
	env := append(os.Environ(), "HOME="+dir, "PATH="+filepath.Dir(retort)+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} { // their defaults are below HOME, which is another one here
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "-ldflags=-w", "retort/examples/07-embed")
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	want := "found: crm.searchRecords\nasked: files.write_file\nended: ok {\"openLeads\":1000}\n"
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s", err, out)
	}
}
