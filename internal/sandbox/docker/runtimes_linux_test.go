//go:build amd64 || arm64

package docker

import (
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox"
	"retort/internal/sandbox/interpreter"
	"retort/internal/sandbox/runtimes"
)

// TestScriptRuntimes checks that the allowed system calls, files and threads suffice for each JavaScript runtime of
// the machine. Unless RETORT_FULL is set, only Node.js runs in containers of gVisor, because package gvisor tests the
// others.
func TestScriptRuntimes(t *testing.T) {
	t.Parallel()
	for _, runner := range []string{"runc", gvisor} {
		for _, name := range []string{"node", "bun", "deno"} {
			if runner == gvisor && name != "node" && !testenv.Full() {
				continue
			}
			t.Run(runner+"/"+name, func(t *testing.T) {
				if runner == gvisor {
					testenv.Need(t, "runsc")
				}
				o := options(t, runner)
				o.Warm = -1
				for _, i := range runtimes.SupportedRuntimes(map[string]string{name: testenv.Need(t, name)}, core.DefaultLimits().Memory) {
					if i.Runtime == name {
						o.Interpreters = []interpreter.Interpreter{i}
					}
				}
				b := New(o)
				defer b.Close()
				l := core.DefaultLimits()
				s, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: name, Limits: l})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				r, err := s.Run(t.Context(), core.CheckedProgram{Language: core.JavaScript, Code: "return await callMCPTool('x') + 1", Name: "program.ts", Limits: l}, sandbox.HostFunc(nothing))
				if err != nil || r.Status != core.StatusOK || string(r.Value) != "2" {
					t.Errorf("%v %s %s %v", err, r.Status, r.Value, r.Error)
				}
			})
		}
	}
}
