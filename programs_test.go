package retort_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"retort"
	"retort/internal/demo"
	"retort/internal/run"
	"retort/internal/testenv"
)

var updatePrograms = flag.Bool("update-programs", false, "write what programs do into testdata/programs")

// TestPrograms runs the programs of testdata/programs, which are written as
// models write them, against the bundled servers: TypeScript and JavaScript on
// each runtime, with the same outcome. Where such a program does not run as it
// is, the engine is to be mended and not the program.
//
// A file NAME.want is what is left of the outcome where that is short: the
// beginning of the result and of the output.
func TestPrograms(t *testing.T) {
	for _, r := range []struct{ name, need, pattern string }{
		{"quickjs", "", "*.[jt]s"}, {"node", "node", "*.[jt]s"}, {"bun", "bun", "*.[jt]s"}, {"deno", "deno", "*.[jt]s"}, {"python", "python", "*.py"},
	} {
		t.Run(r.name, func(t *testing.T) {
			settings := ""
			if r.need != "" {
				if path := testenv.Need(t, r.need); r.need == "bun" || r.need == "deno" { // which are not in PATH
					settings = fmt.Sprintf("runtimes: {%s: %q}", r.name, path)
				}
			}
			runPrograms(t, r.name, r.pattern, "process", settings)
		})
	}
}

// TestProgramsInGVisor runs them behind a kernel of their own, with the same outcomes.
func TestProgramsInGVisor(t *testing.T) {
	settings := fmt.Sprintf("sandboxMode: gvisor\ngvisor: {runsc: %q}\n", testenv.Need(t, "runsc"))
	t.Run("quickjs", func(t *testing.T) { runPrograms(t, "quickjs", "*.[jt]s", "gvisor", settings) })
	t.Run("python", func(t *testing.T) {
		testenv.Need(t, "python")
		runPrograms(t, "python", "*.py", "gvisor", settings)
	})
}

// TestProgramsInDocker runs them in containers, with the same outcomes.
func TestProgramsInDocker(t *testing.T) {
	d := testenv.StartDockerd(t)
	defer d.End()
	for _, runner := range []string{"runc", "runsc"} {
		settings := fmt.Sprintf("sandboxMode: docker\ndocker: {host: %q, runtime: %s}\n", d.Host(), runner)
		t.Run(runner, func(t *testing.T) {
			if runner == "runsc" {
				testenv.Need(t, runner)
			}
			t.Run("quickjs", func(t *testing.T) { runPrograms(t, "quickjs", "*.[jt]s", "docker", settings) })
			t.Run("python", func(t *testing.T) {
				testenv.Need(t, "python")
				runPrograms(t, "python", "*.py", "docker", settings)
			})
		})
	}
}

// TestProgramsInMachines runs them in virtual machines, with the same outcomes.
func TestProgramsInMachines(t *testing.T) {
	settings := fmt.Sprintf("sandboxMode: vm\nvm: {qemu: %q, kernel: %q}\n", testenv.Need(t, "qemu"), filepath.Join("testdata", "kernel"))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Run("quickjs", func(t *testing.T) { runPrograms(t, "quickjs", "*.[jt]s", "vm", settings) })
	t.Run("python", func(t *testing.T) {
		testenv.Need(t, "python")
		runPrograms(t, "python", "*.py", "vm", settings)
	})
}

// runPrograms runs all programs of a pattern on a runtime, with settings that ask for sandbox.
func runPrograms(t *testing.T, runtime, pattern, sandbox, settings string) {
	e := openWith(t, "piiTokenization: false\n"+settings, demo.Names()...) // they are judged by what they find
	e.Settle(t.Context())
	programs, err := filepath.Glob(filepath.Join("testdata", "programs", pattern))
	if err != nil || len(programs) < 20 {
		t.Fatalf("%d programs, %v", len(programs), err)
	}
	for _, file := range programs {
		t.Run(filepath.Base(file), func(t *testing.T) { runProgram(t, e, runtime, sandbox, file) })
	}
}

// What was learned from answers must not put warnings on programs that are right: each is
// run twice, and the second time all answers of the first are known.
func TestProgramsAreRightAsBeforeWhenTypesAreLearned(t *testing.T) {
	testenv.Need(t, "python")
	servers, learned := untyped(t), 0
	e, err := retort.Open(t.Context(), retort.Config{NoFiles: true, Home: t.TempDir(), Settings: "piiTokenization: false\n", Servers: servers})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.Settle(t.Context())
	programs, _ := filepath.Glob(filepath.Join("testdata", "programs", "*.[jpt][sy]"))
	yes := func(context.Context, run.Approval) (run.Answer, bool) { return run.Answer{Approve: true}, true }
	warned := map[string][]string{}
	for round := range 2 {
		for _, file := range programs {
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			req := retort.Request{Code: string(code), Session: fmt.Sprint(round), Language: run.TypeScript}
			switch filepath.Ext(file) {
			case ".js":
				req.Language = run.JavaScript
			case ".py":
				req.Language = run.Python
			}
			o := e.Execute(run.WithChannel(t.Context(), yes), req)
			if round == 0 {
				warned[file] = checkWarnings(o)
				time.Sleep(20 * time.Millisecond)
			} else if got := checkWarnings(o); !slices.Equal(got, warned[file]) {
				t.Errorf("%s: warned of %q before, of %q with learned types", file, warned[file], got)
			}
		}
	}
	for _, s := range e.Toolset().Servers {
		for _, tool := range s.Tools {
			if tool.Learned != nil {
				learned++
			}
		}
	}
	if learned < 20 {
		t.Errorf("of %d tools the types are learned, want 20", learned)
	}
}

// checkWarnings are those of the type check.
func checkWarnings(o run.Outcome) []string {
	return slices.DeleteFunc(slices.Clone(o.Warnings), func(w string) bool { return !strings.HasPrefix(w, "line ") })
}

// untyped are the bundled servers as if none of their tools declared what it answers.
func untyped(t *testing.T) (servers []retort.Server) {
	t.Helper()
	for _, name := range demo.Names() {
		servers = append(servers, retort.Server{Name: name, Dial: without(demo.Dial(name), "outputSchema")})
	}
	return servers
}

func runProgram(t *testing.T, e *retort.Engine, runtime, sandbox, file string) {
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(file)
	req := retort.Request{Name: name, Code: string(code), Session: runtime + "-" + strings.ReplaceAll(name, ".", "-")}
	switch filepath.Ext(file) {
	case ".py":
		req.Language = run.Python
	case ".js":
		req.Language, req.Runtime = run.JavaScript, runtime
	default:
		req.Language, req.Runtime = run.TypeScript, runtime
	}
	yes := func(context.Context, run.Approval) (run.Answer, bool) { return run.Answer{Approve: true}, true }
	o := e.Execute(run.WithChannel(t.Context(), yes), req)
	if o.Stats.Runtime != runtime || o.Stats.Sandbox != sandbox {
		t.Errorf("ran on %q in %q", o.Stats.Runtime, o.Stats.Sandbox)
	}
	o.Warnings = slices.DeleteFunc(o.Warnings, func(w string) bool { return strings.Contains(w, "has known holes") }) // of this machine's Docker
	got, want := tellOutcome(o), file+".want"
	if *updatePrograms && (runtime == "quickjs" || runtime == "python") {
		if err := os.WriteFile(want, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(want)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(text) {
		t.Errorf("--- got\n%s--- want\n%s", got, text)
	}
}

// executionID is what differs from run to run in a file's name.
var executionID = regexp.MustCompile(`results/[a-z0-9]+`)

// tellOutcome is an outcome for people to review.
func tellOutcome(o run.Outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", o.Status)
	if o.Error != nil {
		fmt.Fprintf(&b, "error: %s %s\n%s\nhint: %s\n", o.Error.Kind, o.Error.Message, o.Error.Frame, o.Error.Hint)
	}
	for _, w := range o.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", executionID.ReplaceAllString(w, "results/ID"))
	}
	for _, a := range o.Artifacts {
		fmt.Fprintf(&b, "file: %s, %d bytes\n", executionID.ReplaceAllString(a.Path, "results/ID"), a.Bytes)
	}
	if o.Result != nil {
		fmt.Fprintf(&b, "result: %s\n", beginning(string(o.Result), 600))
	}
	lines := strings.SplitAfterN(o.Output, "\n", 7)
	b.WriteString(beginning(strings.Join(lines[:min(6, len(lines))], ""), 600))
	return strings.TrimSuffix(b.String(), "\n") + "\n"
}

func beginning(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
