package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"retort/internal/devel/pictures"
)

// TestRecording runs the commands of testdata/recording.txtar. It checks that the recording in docs/images shows what
// the commands print, except for times and numbers of tokens. With -update it draws the recording.
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

// says implements the script command "says TEXT". It sets the comment above the next command.
func (r *recorder) says(_ *testscript.TestScript, _ bool, args []string) { r.comment = args[0] }

// shows implements the script command "shows COMMAND…". It runs a command, ignores its exit code, and records what a
// user at a terminal sees. If the command asks a question there, the question is recorded as a separate scene.
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

// newQuestion returns what the terminal shows of a question and its answer. It returns "" if ttyout has not changed
// since the previous command. The terminal echoes the answer before the question is printed, so newQuestion moves the
// answer to the end.
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
