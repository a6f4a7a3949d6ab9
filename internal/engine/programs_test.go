package engine_test

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

	"retort/internal/core"
	"retort/internal/devel/demo"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
)

var updatePrograms = flag.Bool("update-programs", false, "write what programs do into testdata/programs")

// TestPrograms checks the Outcomes of the programs in testdata/programs, which are written as models write them and
// use the bundled servers. TypeScript and JavaScript programs must have the same Outcome on each runtime. Unless
// RETORT_FULL is set, each program runs on only one of the runtimes. If a program fails, fix the engine and not the
// program. A file NAME.want has the expected Outcome, shortened to the beginning of the result and of the output.
func TestPrograms(t *testing.T) {
	left := programsLike(t, "*.[jt]s") // QuickJS, which is always available, runs those that are left
	all := left
	for i, name := range []string{"node", "bun", "deno"} {
		t.Run(name, func(t *testing.T) {
			path, settings := testenv.Need(t, name), ""
			if name != "node" { // node is found in PATH
				settings = fmt.Sprintf("runtimes: {%s: %q}", name, path)
			}
			mine := all
			if !testenv.Full() {
				mine = everyFourth(all, i)
				left = slices.DeleteFunc(slices.Clone(left), func(file string) bool { return slices.Contains(mine, file) })
			}
			runFiles(t, name, mine, "process", settings)
		})
	}
	t.Run("quickjs", func(t *testing.T) { runFiles(t, "quickjs", left, "process", "") })
	t.Run("python", func(t *testing.T) {
		testenv.Need(t, "python")
		runFiles(t, "python", programsLike(t, "*.py"), "process", "")
	})
}

// everyFourth returns every fourth file, beginning with the one at the index from.
func everyFourth(files []string, from int) (some []string) {
	for i := from; i < len(files); i += 4 {
		some = append(some, files[i])
	}
	return some
}

// Each of these sandboxes runs a different quarter of the programs, so that every program runs in one
// of them.
const (
	inRunc = iota
	inRunsc
	inGVisor
	inMachines
)

// TestProgramsInGVisor checks that the programs of TestPrograms have the same Outcomes in gVisor.
func TestProgramsInGVisor(t *testing.T) {
	settings := fmt.Sprintf("sandboxMode: gvisor\ngvisor: {runsc: %q}\n", testenv.Need(t, "runsc"))
	runContained(t, "gvisor", settings, inGVisor)
}

// TestProgramsInDocker checks that the programs of TestPrograms have the same Outcomes in containers.
func TestProgramsInDocker(t *testing.T) {
	d := testenv.StartDockerd(t)
	defer d.End()
	for runner, part := range map[string]int{"runc": inRunc, "runsc": inRunsc} {
		settings := fmt.Sprintf("sandboxMode: docker\ndocker: {host: %q, runtime: %s}\n", d.Host(), runner)
		t.Run(runner, func(t *testing.T) {
			if runner == "runsc" {
				testenv.Need(t, runner)
			}
			runContained(t, "docker", settings, part)
		})
	}
}

// TestProgramsInMachines checks that the programs of TestPrograms have the same Outcomes in virtual machines.
func TestProgramsInMachines(t *testing.T) {
	settings := fmt.Sprintf("sandboxMode: vm\nvm: {qemu: %q, kernel: %q}\n", testenv.Need(t, "qemu"), filepath.Join("..", "..", "testdata", "kernel"))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	runContained(t, "vm", settings, inMachines)
}

// runContained runs a quarter of the programs, or all if RETORT_FULL is set, on the runtimes that every sandbox
// supports.
func runContained(t *testing.T, sandbox, settings string, part int) {
	for _, r := range []struct{ runtime, pattern string }{{"quickjs", "*.[jt]s"}, {"python", "*.py"}} {
		t.Run(r.runtime, func(t *testing.T) {
			if r.runtime == "python" {
				testenv.Need(t, "python")
			}
			files := programsLike(t, r.pattern)
			if !testenv.Full() {
				files = everyFourth(files, part)
			}
			runFiles(t, r.runtime, files, sandbox, settings)
		})
	}
}

// programsLike returns the files in testdata/programs that match a pattern.
func programsLike(t *testing.T, pattern string) []string {
	t.Helper()
	programs, err := filepath.Glob(filepath.Join("..", "..", "testdata", "programs", pattern))
	if err != nil || len(programs) < 20 {
		t.Fatalf("%d programs, %v", len(programs), err)
	}
	return programs
}

// runFiles runs programs on a runtime. settings is the text of a retort.yaml that selects the sandbox; sandbox is the
// sandbox's name.
func runFiles(t *testing.T, runtime string, files []string, sandbox, settings string) {
	e := openWith(t, "piiTokenization: false\n"+settings, demo.ServerNames()...) // the expected results have real values instead of tokens
	e.WaitForServers(t.Context())
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { runProgram(t, e, runtime, sandbox, file) })
	}
}

// TestProgramsAreRightAsBeforeWhenTypesAreLearned checks that types learned from answers cause no warnings about
// correct programs. It runs each program twice, the second time in an engine that has learned from all answers of the
// first run.
func TestProgramsAreRightAsBeforeWhenTypesAreLearned(t *testing.T) {
	testenv.Need(t, "python")
	c := engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: t.TempDir(), Keys: t.TempDir(), Settings: "piiTokenization: false\n", Limits: unlimitedTime, Servers: untypedServers(t)}
	learned := 0
	scripts, pythons := programsLike(t, "*.[jt]s"), programsLike(t, "*.py")
	if !testenv.Full() { // many programs exist in both languages, so each language runs a different half
		scripts, pythons = slices.Concat(everyFourth(scripts, 0), everyFourth(scripts, 2)), slices.Concat(everyFourth(pythons, 1), everyFourth(pythons, 3))
	}
	programs := slices.Concat(scripts, pythons)
	warned := make([][]string, len(programs))
	for round := range 2 {
		e, err := engine.Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		e.WaitForServers(t.Context())
		for i, file := range programs {
			got := checkWarnings(execute(t, e, file, "", fmt.Sprint(round)))
			if round == 0 {
				warned[i] = got
			} else if !slices.Equal(got, warned[i]) {
				t.Errorf("%s: warned of %q before, of %q with learned types", file, warned[i], got)
			}
		}
		learned = learnedTools(e)
		if err := e.Close(); err != nil { // Close saves what it has learned
			t.Fatal(err)
		}
	}
	if learned < 20 {
		t.Errorf("the types of %d tools are learned, want 20", learned)
	}
}

// learnedTools returns the number of tools whose answers an engine has learned from.
func learnedTools(e *engine.Engine) (n int) {
	for _, s := range e.Toolset().Servers {
		for _, tool := range s.Tools {
			if tool.Learned != nil {
				n++
			}
		}
	}
	return n
}

// checkWarnings returns the warnings of an Outcome that come from the type check.
func checkWarnings(o core.Outcome) []string {
	return slices.DeleteFunc(slices.Clone(o.Warnings), func(w string) bool { return !strings.HasPrefix(w, "line ") })
}

// untypedServers returns the bundled servers with the output schemas of their tools removed.
func untypedServers(t *testing.T) (servers []engine.Server) {
	t.Helper()
	for _, name := range demo.ServerNames() {
		servers = append(servers, engine.Server{Name: name, Dial: removeMember(demo.DialFunc(name), "outputSchema")})
	}
	return servers
}

// execute runs the program in a file and approves everything it asks for.
func execute(t *testing.T, e *engine.Engine, file, runtime, session string) engine.Outcome {
	t.Helper()
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	req := engine.Request{Name: filepath.Base(file), Code: string(code), Session: session}
	switch filepath.Ext(file) {
	case ".py":
		req.Language = core.Python
	case ".js":
		req.Language, req.Runtime = core.JavaScript, runtime
	default:
		req.Language, req.Runtime = core.TypeScript, runtime
	}
	yes := func(context.Context, core.Approval) (core.ApprovalAnswer, bool) {
		return core.ApprovalAnswer{Approve: true}, true
	}
	return e.Execute(core.WithChannel(t.Context(), yes), req)
}

func runProgram(t *testing.T, e *engine.Engine, runtime, sandbox, file string) {
	t.Helper()
	o := execute(t, e, file, runtime, runtime+"-"+strings.ReplaceAll(filepath.Base(file), ".", "-"))
	if o.Stats.Runtime != runtime || o.Stats.Sandbox != sandbox {
		t.Errorf("ran on %q in %q", o.Stats.Runtime, o.Stats.Sandbox)
	}
	o.Warnings = slices.DeleteFunc(o.Warnings, func(w string) bool { return strings.Contains(w, "has known vulnerabilities") }) // of this machine's Docker
	got, want := formatOutcome(o), file+".want"
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

// executionID matches the path of a result file up to the execution's id, which differs from run to run.
var executionID = regexp.MustCompile(`results/[a-z0-9]+`)

// formatOutcome formats an Outcome as text, which people review and the tests compare.
func formatOutcome(o core.Outcome) string {
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
