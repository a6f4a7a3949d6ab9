package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"retort/internal/devel/pictures"
	"retort/internal/devel/testenv"
)

// TestTokenFigures checks that retort bench tokens still measures the committed figures, within 5 %. With -update it
// measures all tasks and writes the figures.
func TestTokenFigures(t *testing.T) {
	args := []string{"bench", "tokens", "--json"}
	if !testenv.Full() && !*updateDocs {
		args = append(args, "--only", "copy a transcript", "--only", "one trivial call", "--only", "first program wrong")
	}
	dir := t.TempDir()
	cmd := retortIn(t, dir, args...)
	cmd.Env = append(os.Environ(), "HOME="+dir)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	got := bundledTools(t)
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(repository, pictures.FiguresFile)
	if *updateDocs {
		raw, err := json.MarshalIndent(got, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(raw, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var want pictures.Figures
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	compareFigures(t, got, want)
}

// bundledTools returns the number of bundled servers and the number of their tools.
func bundledTools(t *testing.T) (f pictures.Figures) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repository, "internal/devel/demo/tools/*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		var definitions []json.RawMessage
		raw, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(raw, &definitions) != nil {
			t.Fatalf("%s: %v", file, err)
		}
		f.Servers, f.Tools = f.Servers+1, f.Tools+len(definitions)
	}
	return f
}

func compareFigures(t *testing.T, got, want pictures.Figures) {
	t.Helper()
	if got.Tools != want.Tools || got.Servers != want.Servers {
		t.Errorf("%d tools of %d servers, not %d of %d", got.Tools, got.Servers, want.Tools, want.Servers)
	}
	figures := map[string][3]int{}
	for _, task := range want.Workloads {
		for _, w := range task.Ways {
			figures[task.Name+": "+w.Way] = [3]int{w.Loaded, w.Peak, w.RoundTrips}
		}
	}
	for _, task := range got.Workloads {
		for _, w := range task.Ways {
			old := figures[task.Name+": "+w.Way]
			if far(w.Loaded, old[0]) || far(w.Peak, old[1]) || w.RoundTrips != old[2] {
				t.Errorf("%s: %s: %d, %d, %d, not %v. Measure again: "+
					"go test ./cmd/retort -run TestTokenFigures -update, "+
					"then go test ./internal/devel/pictures -update and go test ./internal -run TestReferencePages -update",
					task.Name, w.Way, w.Loaded, w.Peak, w.RoundTrips, old)
			}
		}
	}
}

func far(got, want int) bool { return math.Abs(float64(got-want)) > 0.05*float64(want) }
