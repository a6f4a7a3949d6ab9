package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestEmbeddingExample runs the example that embeds the engine, with this program as the retort
// that its servers are. Go keeps the example that it has built for the next time.
func TestEmbeddingExample(t *testing.T) {
	dir := t.TempDir()
	retort := retortIn(t, dir).Path
	env := append(os.Environ(), "HOME="+dir, "PATH="+filepath.Dir(retort)+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} { // they are below HOME
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "retort/examples/07-embed")
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	want := "found: crm.searchRecords\nasked: files.write_file\nended: ok {\"openLeads\":1000}\n"
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s", err, out)
	}
}
