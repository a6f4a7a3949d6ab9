package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"retort/internal/devel/pictures"
	"retort/internal/devel/testenv"
)

// TestRecording runs the commands of testdata/recording.txtar and checks that the recording in docs/images shows what
// they print, except for times and numbers of tokens. With -update it draws the recording.
func TestRecording(t *testing.T) {
	var r recorder
	t.Run("commands", func(t *testing.T) {
		testscript.Run(t, testscript.Params{
			Files: []string{"testdata/recording.txtar"}, RequireExplicitExec: true,
			Cmds: map[string]func(*testscript.TestScript, bool, []string){"says": r.says, "shows": r.shows},
			Setup: func(e *testscript.Env) error {
				e.Setenv("HOME", filepath.Join(e.WorkDir, ".user"))
				return nil
			},
		})
	})
	if len(r.scenes) < 5 {
		t.Fatalf("only %d scenes were recorded", len(r.scenes))
	}
	p := pictures.Recording(r.scenes)
	for _, problem := range p.Problems() {
		t.Error(problem)
	}
	if size := len(p.SVG(pictures.Palettes()["dark"])); size > 60_000 {
		t.Errorf("the recording has %d bytes", size)
	}
	if err := p.Compare(filepath.Join(repository, pictures.ImagesDir), *updateDocs, pictures.Stable); err != nil {
		t.Error(err)
	}
}

// recorder collects the scenes of a script.
type recorder struct {
	comment string
	ttyout  string
	scenes  []pictures.Scene
}

// says is the script command "says TEXT". It sets the comment above the next command.
func (r *recorder) says(_ *testscript.TestScript, _ bool, args []string) { r.comment = args[0] }

// shows is the script command "shows COMMAND…". It runs a command, whatever its exit code is, and records what a person
// at a terminal sees. If the command asks something there, that is a scene of its own.
func (r *recorder) shows(ts *testscript.TestScript, _ bool, args []string) {
	_ = ts.Exec(args[0], args[1:]...)
	asked := r.newQuestion(ts.ReadFile("ttyout"))
	printed := ts.ReadFile("stdout") + string(progressLines.ReplaceAll([]byte(ts.ReadFile("stderr")), nil))
	s := pictures.Scene{Comment: r.comment, Command: strings.Join(quoted(args), " "), Output: printed, Seconds: 4.5}
	if asked != "" {
		s.Output, s.Seconds = asked, 6
		r.scenes = append(r.scenes, s)
		s.Output, s.Seconds = asked+"\n"+printed, 4
	}
	r.scenes = append(r.scenes, s)
}

// newQuestion returns what the terminal shows of a question and its answer. It returns "" if ttyout is that of an earlier
// command. The terminal echoes the answer before the question is there, so it is moved to its end.
func (r *recorder) newQuestion(ttyout string) string {
	if ttyout == r.ttyout {
		return ""
	}
	r.ttyout = ttyout
	question := strings.Replace(strings.ReplaceAll(ttyout, "\r", ""), "y\n", "", 1)
	return strings.TrimSpace(question) + " y"
}

func quoted(args []string) (words []string) {
	for _, a := range args {
		if strings.Contains(a, " ") {
			a = "'" + a + "'"
		}
		words = append(words, a)
	}
	return words
}

// TestTokenFigures checks that retort bench tokens still measures the committed figures, within 5 %. With -update it
// measures all tasks and writes the figures.
func TestTokenFigures(t *testing.T) {
	args := []string{"bench", "tokens", "--json"}
	if !testenv.Full() && !*updateDocs {
		args = append(args, "--only", "one trivial call", "--only", "first program wrong")
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

// bundledTools counts the bundled servers and their tools.
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
				t.Errorf("%s: %s: %d, %d, %d, not %v. Measure again: go test ./cmd/retort -run TestTokenFigures -update, "+
					"then go test ./internal/devel/pictures -update", task.Name, w.Way, w.Loaded, w.Peak, w.RoundTrips, old)
			}
		}
	}
}

func far(got, want int) bool { return math.Abs(float64(got-want)) > 0.05*float64(want) }
