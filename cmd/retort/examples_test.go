package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// TestEmbeddingExample builds the example that embeds the engine, and runs it with this
// program as the retort that its servers are.
func TestEmbeddingExample(t *testing.T) {
	dir := t.TempDir()
	embed, retort := filepath.Join(dir, "embed"), filepath.Join(dir, "retort")
	if runtime.GOOS == "windows" {
		embed, retort = embed+".exe", retort+".exe"
	}
	for program, source := range map[string]string{embed: "retort/examples/07-embed", retort: "retort/cmd/retort"} {
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, source).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	cmd := exec.CommandContext(t.Context(), embed)
	cmd.Env = append(os.Environ(), "HOME="+dir, "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	want := "found: crm.searchRecords\nasked: files.write_file\nended: ok {\"openLeads\":1000}\n"
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s", err, out)
	}
}
