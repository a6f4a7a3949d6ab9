package guest

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"retort/internal/run"
	"retort/internal/wire"
)

var update = flag.Bool("update", false, "write what programs do into testdata")

// TestPrograms runs the programs in testdata on QuickJS. A file holds any number
// of them:
//
//	=== name | memory=64
//	the body of the program
//	--- status kind line:column
//	the message of the error, or the JSON of the value
//	--- output
//	what it printed
//	--- on node node22: status kind line:column
//	the same for runtimes where it ends otherwise
//
// After the name may stand limits, in megabytes for memory and in bytes for the
// result; with "not=bun" a runtime that cannot run it; and with "place=any" that
// the place where it fails is left to chance.
func TestPrograms(t *testing.T) {
	testSuite(t, reference, func(t *testing.T, p run.Program) wire.End { return runProgram(t, p, newSuiteHost()) })
}

// reference is the runtime whose endings the others are measured by.
const reference = "quickjs"

func newSuiteHost() *fakeHost {
	return &fakeHost{files: map[string]string{"data/a.txt": "grün", "data/sub/b.json": `{"b":1}`}}
}

// conformanceProgram is one program of a file.
type conformanceProgram struct {
	title, name string
	code        string
	limits      run.Limits
	not         string // a runtime that cannot run it
	anyPlace    bool
	want        map[string]string // how it ends, by runtime; for most only on quickjs
}

func (c *conformanceProgram) expected(runtime string) string {
	if want, ok := c.want[runtime]; ok {
		return want
	}
	return c.want[reference]
}

func parseProgram(t *testing.T, text string) *conformanceProgram {
	t.Helper()
	title, body, _ := strings.Cut(text, "\n")
	code, ends, _ := strings.Cut(body, "\n--- ")
	c := &conformanceProgram{title: title, code: code, want: map[string]string{}}
	var settings string
	c.name, settings, _ = strings.Cut(title, " | ")
	for _, setting := range strings.Fields(settings) {
		key, value, _ := strings.Cut(setting, "=")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch key {
		case "memory":
			c.limits.Memory = n << 20
		case "result":
			c.limits.Result = n
		case "not":
			c.not = value
		case "place":
			c.anyPlace = value == "any"
		default:
			t.Fatalf("%s: %q", title, key)
		}
	}
	parts := strings.Split(ends, "\n--- on ")
	c.want[reference] = strings.TrimRight(parts[0], "\n")
	for _, part := range parts[1:] {
		runtimes, end, found := strings.Cut(part, ": ")
		if !found {
			t.Fatalf("%s: %q", title, part)
		}
		for _, runtime := range strings.Fields(runtimes) {
			c.want[runtime] = strings.TrimRight(end, "\n")
		}
	}
	return c
}

func (c *conformanceProgram) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n=== %s\n%s\n--- %s", c.title, c.code, c.want[reference])
	others := map[string][]string{}
	for _, runtime := range slices.Sorted(maps.Keys(c.want)) {
		if end := c.want[runtime]; runtime != reference && end != c.want[reference] {
			others[end] = append(others[end], runtime)
		}
	}
	lines := []string{}
	for end, runtimes := range others {
		lines = append(lines, fmt.Sprintf("\n--- on %s: %s", strings.Join(runtimes, " "), end))
	}
	slices.Sort(lines)
	return b.String() + strings.Join(lines, "")
}

// testSuite runs all programs on one runtime.
func testSuite(t *testing.T, runtime string, start func(*testing.T, run.Program) wire.End) {
	files, err := filepath.Glob("testdata/*.programs")
	if err != nil || len(files) == 0 {
		t.Fatal("no programs", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".programs"), func(t *testing.T) { testPrograms(t, file, runtime, start) })
	}
}

func testPrograms(t *testing.T, file, runtime string, start func(*testing.T, run.Program) wire.End) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut("\n"+string(data), "\n=== ")
	updated := strings.TrimPrefix(head, "\n")
	for _, text := range strings.Split(rest, "\n=== ") {
		c := parseProgram(t, text)
		if c.not != runtime {
			end := start(t, run.Program{Code: c.code, Name: "program.ts", Limits: c.limits, Namespaces: demoNamespaces})
			if end.Error != nil && c.anyPlace {
				end.Error.Line, end.Error.Column, end.Error.Stack = 0, 0, ""
			}
			got := describeEnd(end)
			if want := c.expected(runtime); got != want && !*update {
				t.Errorf("%s:\n%s\ngot:\n%s\nwant:\n%s", c.name, c.code, got, want)
			}
			c.want[runtime] = got
		}
		updated += c.String()
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.TrimPrefix(updated, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
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
	if len(end.Output) > 0 {
		fmt.Fprintf(&b, "\n--- output\n%s", strings.TrimRight(string(end.Output), "\n"))
	}
	return b.String()
}
