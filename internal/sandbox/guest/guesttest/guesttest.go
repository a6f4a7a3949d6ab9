// Package guesttest defines the behaviour of guests by test programs in TypeScript and Python. The programs run on
// guests, in the test process or another one, and in every sandbox. They must end in the same way everywhere.
//
// The packages guest and python describe the form of the programs. Each file in the folder programs contains any
// number of programs in this format:
//
//	=== name | memory=64
//	the program
//	--- status kind line:column
//	the message of the error, or the JSON of the value
//	warning: a warning about the program
//	--- output
//	what it printed
//	--- on node node22: status kind line:column
//	the same for runtimes where it ends otherwise
//
// Limits can follow the name, in megabytes for memory and in bytes for the result. "not=bun" names a runtime that
// cannot run the program. "place=any" means that the position of the error can vary. "warnings=any" means that it can
// vary which calls have been answered when the program fails.
package guesttest

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox/wire"
)

//go:embed programs
var files embed.FS

// ProgramSuite runs the test programs that are written in the language of one runtime.
type ProgramSuite struct {
	Runtime string // runtime that runs the programs: "quickjs", "python", "node", "node22", "bun" or "deno"
	Version string // version of Python; each version words some errors differently
	AtOnce  int    // number of programs that run at the same time; 0 means 1
	Update  bool   // write the actual outcomes into the program files instead of comparing them

	// Of and Part select programs if RETORT_FULL is not set: a program runs if its index modulo Of is Part. If Of is
	// 0, all programs run. If Own is set, the programs for which the files record an outcome of this runtime run,
	// too.
	Of, Part int
	Own      bool

	// Run runs one program to its end. The limits of p may be incomplete.
	Run func(t testing.TB, p core.CheckedProgram, h wire.CallHost) wire.ProgramEnd
}

// RunPrograms runs the programs of all files and checks how they end.
func (s *ProgramSuite) RunPrograms(t *testing.T) {
	folder := "programs/javascript"
	if s.Runtime == python {
		folder = "programs/python"
	}
	all, err := fs.Glob(files, folder+"/*.programs")
	if err != nil || len(all) < 6 {
		t.Fatalf("%d files of programs, %v", len(all), err)
	}
	for _, file := range all {
		t.Run(strings.TrimSuffix(path.Base(file), ".programs"), func(t *testing.T) { s.testFile(t, file) })
	}
}

func (s *ProgramSuite) testFile(t *testing.T, file string) {
	data, err := files.ReadFile(file)
	onDisk := filepath.Join(testenv.Root(t), "internal/sandbox/guest/guesttest", file)
	if s.Update { // another runtime may have been there
		data, err = os.ReadFile(onDisk)
	}
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut("\n"+string(data), "\n=== ")
	var programs []*testProgram
	for _, text := range strings.Split(rest, "\n=== ") {
		programs = append(programs, parseProgram(t, s.referenceRuntime(), text))
	}
	s.testPrograms(t, programs)
	if !s.Update {
		return
	}
	updated := strings.TrimPrefix(head, "\n")
	for _, p := range programs {
		updated += p.String()
	}
	if err := os.WriteFile(onDisk, []byte(strings.TrimPrefix(updated, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// testPrograms runs the given programs and returns when all of them have ended.
func (s *ProgramSuite) testPrograms(t *testing.T, programs []*testProgram) {
	var all sync.WaitGroup
	next := make(chan *testProgram)
	for range max(1, s.AtOnce) {
		all.Go(func() {
			for p := range next {
				t.Run(p.name, func(t *testing.T) { s.runProgram(t, p) })
			}
		})
	}
	for i, p := range programs {
		if p.not != s.Runtime && s.isChosen(i, p) {
			next <- p
		}
	}
	close(next)
	all.Wait()
}

// isChosen reports whether the suite runs p. number is the index of p in its file.
func (s *ProgramSuite) isChosen(number int, p *testProgram) bool {
	_, own := p.want[s.Runtime]
	return s.Of == 0 || s.Update || testenv.Full() || number%s.Of == s.Part || s.Own && own
}

func (s *ProgramSuite) runProgram(t *testing.T, p *testProgram) {
	h := newHost(s.Runtime)
	end := s.Run(t, core.CheckedProgram{Code: p.code, Name: s.fileName(), Limits: p.limits, Namespaces: HostNamespaces(s.Runtime)}, h)
	if end.Error != nil && p.anyPlace {
		end.Error.Line, end.Error.Column, end.Error.Stack = 0, 0, ""
	}
	if p.anyWarnings {
		end.Warnings = nil
	}
	got := describeEnd(end)
	if want := p.expectedEnd(s.Runtime); !s.isSame(got, want) && !s.Update {
		t.Errorf("%s\ngot:\n%s\nwant:\n%s", p.code, got, want)
	}
	p.want[s.Runtime] = got
}

const python = "python"

// referenceRuntime returns the runtime whose results are the reference for its language.
func (s *ProgramSuite) referenceRuntime() string {
	if s.Runtime == python {
		return python
	}
	return "quickjs"
}

func (s *ProgramSuite) fileName() string {
	if s.Runtime == python {
		return "program.py"
	}
	return "program.ts"
}

var places = regexp.MustCompile(`:\d+`)

var columns = regexp.MustCompile(`(\d+):\d+`)

// WithoutColumns removes the column from each position in a text: "2:16" becomes "2". The column that Bun reports for
// an error in a call varies. It is the beginning of the expression or, after a garbage collection, the beginning of
// the arguments.
func WithoutColumns(text string) string { return columns.ReplaceAllString(text, "$1") }

// isSame reports whether two outcomes are equal. For Bun, columns are not compared. For Python, the expected outcome
// is that of version 3.11. Other versions word some errors differently, and older ones report no columns.
func (s *ProgramSuite) isSame(got, want string) bool {
	if s.Runtime == "bun" {
		return WithoutColumns(got) == WithoutColumns(want)
	}
	if s.Runtime != python || strings.HasPrefix(s.Version, "3.11.") || strings.HasPrefix(want, "ok") {
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

// describeEnd formats how a program ended, in the format of the program files.
func describeEnd(end wire.ProgramEnd) string {
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
