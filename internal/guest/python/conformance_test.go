package python

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"retort/internal/run"
	"retort/internal/wire"
)

var update = flag.Bool("update", false, "write what programs do into testdata")

// TestPrograms runs the programs in testdata. A file holds any number of them:
//
//	=== name
//	the program
//	--- status kind line:column
//	the message of the error, or the JSON of the value
//	--- output
//	what it printed
func TestPrograms(t *testing.T) {
	files, err := filepath.Glob("testdata/*.programs")
	if err != nil || len(files) == 0 {
		t.Fatal("no programs", err)
	}
	s := newStarter(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".programs"), func(t *testing.T) { testPrograms(t, s, file) })
	}
}

func testPrograms(t *testing.T, s starter, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var updated strings.Builder
	head, rest, _ := strings.Cut("\n"+string(data), "\n=== ")
	updated.WriteString(strings.TrimPrefix(head, "\n"))
	for _, test := range strings.Split(rest, "\n=== ") {
		name, body, _ := strings.Cut(test, "\n")
		code, want, _ := strings.Cut(body, "\n--- ")
		got := ""
		t.Run(name, func(t *testing.T) {
			host := &fakeHost{files: map[string]string{"workspace/a.txt": "grün", "workspace/sub/b.json": `{"b":1}`, "servers/demo/__init__.py": "# demo"}}
			got = describeEnd(s.run(t, run.Program{Code: code, Name: "program.py", Namespaces: demoNamespaces}, host))
			if want = strings.TrimRight(want, "\n"); !s.same(got, want) && !*update {
				t.Errorf("%s\ngot:\n%s\nwant:\n%s", code, got, want)
			}
		})
		fmt.Fprintf(&updated, "\n=== %s\n%s\n--- %s", name, code, got)
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.TrimPrefix(updated.String(), "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var places = regexp.MustCompile(`:\d+`)

// same compares outcomes. They are those of Python 3.11: others word some errors
// in their own way, and older ones have no columns.
func (s starter) same(got, want string) bool {
	if strings.HasPrefix(s.version, "3.11.") || strings.HasPrefix(want, "ok") {
		return got == want
	}
	plain := func(text string) string {
		text, _, _ = strings.Cut(text, "\n")
		if strings.HasPrefix(text, "error syntax") {
			return "error syntax"
		}
		return places.ReplaceAllString(text, "")
	}
	return plain(got) == plain(want)
}

func describeEnd(end wire.End) string {
	var b strings.Builder
	b.WriteString(string(end.Status))
	if e := end.Error; e != nil {
		fmt.Fprintf(&b, " %s %d:%d", e.Kind, e.Line, e.Column)
		if e.Server != "" {
			fmt.Fprintf(&b, " %s.%s", e.Server, e.Tool)
		}
		fmt.Fprintf(&b, "\n%s", e.Message)
		if e.Stack != "" {
			fmt.Fprintf(&b, "\n%s", e.Stack)
		}
	} else if end.Value != nil {
		fmt.Fprintf(&b, "\n%s", end.Value)
	}
	for _, warning := range end.Warnings {
		fmt.Fprintf(&b, "\nwarning: %s", warning)
	}
	if len(end.Output) > 0 {
		fmt.Fprintf(&b, "\n--- output\n%s", strings.TrimRight(string(end.Output), "\n"))
	}
	return b.String()
}
