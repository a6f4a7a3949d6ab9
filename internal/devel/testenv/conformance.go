package testenv

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// RunConformance runs a suite of MCP's conformance tests, each scenario as a subtest. module is the folder in
// testdata/npm22/node_modules with the suite; args are the suite's arguments.
//
// expected is a file that lists the scenarios that fail by design, one per line, each followed by the reason. The
// test also fails if a listed scenario passes or does not exist. A scenario that checks nothing counts as failed.
// Scenarios that measure time are skipped unless Full is true.
func RunConformance(t *testing.T, module, expected string, args ...string) {
	t.Helper()
	modules, node := NPM22(t), Need(t, "node22")
	reasons := expectedFailures(t, expected)
	suite := func(t *testing.T, args ...string) string {
		cmd := exec.CommandContext(Context(t), node, append([]string{
			"--import", slowTimersModule, filepath.Join(modules, module, "dist", "index.js"),
		}, args...)...)
		cmd.Dir = t.TempDir()
		out, _ := cmd.CombinedOutput() // its exit status does not consider the expected failures
		return string(out)
	}
	if args[0] == "client" {
		args = append(args, "--timeout", strconv.FormatInt(Patience.Milliseconds(), 10))
	}
	out := suite(t, args...)
	scenarios := parseVerdicts(out)
	if len(scenarios) == 0 {
		t.Fatalf("no summary in\n%s", out)
	}
	t.Logf("%d scenarios, %d are expected to fail", len(scenarios), len(reasons))
	for _, s := range scenarios {
		reason, listed := reasons[s.name]
		delete(reasons, s.name)
		t.Run(s.name, func(t *testing.T) {
			switch {
			case s.passed && listed:
				t.Errorf("it passes (%s), but %s says that it fails: %s", s.checks, expected, reason)
			case listed:
				t.Skipf("fails by design (%s): %s", s.checks, reason)
			case slices.Contains(timingScenarios, s.name) && !Full():
				t.Skip("it requires a reply within half a second; make test-all runs it")
			case !s.passed:
				t.Errorf("%s; alone it says\n%s", s.checks, suite(t, append(withoutFlags(args, "--suite", "--requirements"), "--scenario", s.name)...))
			}
		})
	}
	for name := range reasons {
		t.Errorf("%s names %s, which the suite does not have", expected, name)
	}
}

// scenarioVerdict holds the result of one scenario, as the summary of the suite states it.
type scenarioVerdict struct {
	name, checks string
	passed       bool
}

// slowTimersModule is the source of a module that Node.js loads before a suite. It makes timers of three seconds
// or more sixty times as long, because suites use those only as timeouts. It does not change shorter timers,
// because suites use them as delays.
const slowTimersModule = `data:text/javascript,
const soon = globalThis.setTimeout, signal = AbortSignal.timeout;
const longer = (ms) => ms >= 3000 ? 60 * ms : ms;
globalThis.setTimeout = Object.assign((f, ms, ...rest) => soon(f, longer(ms), ...rest), soon);
AbortSignal.timeout = (ms) => signal.call(AbortSignal, longer(ms));`

// timingScenarios lists the scenarios that fail if a client is half a second late, which can happen on a busy
// machine. The tests of the MCP client check the same behaviour with a fake clock.
var timingScenarios = []string{"sse-retry"}

var summaryLine = regexp.MustCompile(`(?m)^([✓✗~]) ([\w./-]+): ((\d+) passed, (\d+) failed.*)$`)

func parseVerdicts(out string) (list []scenarioVerdict) {
	for _, m := range summaryLine.FindAllStringSubmatch(out, -1) {
		list = append(list, scenarioVerdict{name: m[2], checks: m[3], passed: m[1] != "✗" && m[4] != "0" && m[5] == "0"})
	}
	return list
}

// expectedFailures reads the scenarios that are expected to fail. Each line has the form "scenario: reason"; # begins
// a comment.
func expectedFailures(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	reasons := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, ok := strings.Cut(line, ": ")
		if !ok || strings.TrimSpace(reason) == "" {
			t.Fatalf("%s: no reason in %q", file, line)
		}
		reasons[name] = strings.TrimSpace(reason)
	}
	return reasons
}

// withoutFlags returns args without the given flags and their values.
func withoutFlags(args []string, flags ...string) (rest []string) {
	for i := 0; i < len(args); i++ {
		if slices.Contains(flags, args[i]) {
			i++
			continue
		}
		rest = append(rest, args[i])
	}
	return rest
}
