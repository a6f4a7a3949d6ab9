package gvisor

import (
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox/interpreter"
	"retort/internal/sandbox/runtimes"
)

// TestScriptRuntimes checks that the allowed system calls, files and threads suffice for each JavaScript runtime of
// the machine.
func TestScriptRuntimes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"node", "bun", "deno"} {
		t.Run(name, func(t *testing.T) {
			o := optionsHere(t)
			o.Warm = -1
			for _, i := range runtimes.SupportedRuntimes(map[string]string{name: testenv.Need(t, name)}, core.DefaultLimits().Memory) {
				if i.Runtime == name {
					o.Interpreters = []interpreter.Interpreter{i}
				}
			}
			b := New(o)
			defer b.Close()
			if r := runProgram(t, b, name, "return 1 + 1", core.Limits{}); r.Status != core.StatusOK || string(r.Value) != "2" {
				t.Errorf("%s %s %v", r.Status, r.Value, r.Error)
			}
		})
	}
}
