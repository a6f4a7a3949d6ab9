package bench

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/gvisor"
	"retort/internal/sandbox/runtimes"
)

// measureGVisor measures gVisor's containers if gVisor is installed: the smallest program, a thousand calls, and the
// memory of a waiting container.
func (b *benchRun) measureGVisor(ctx context.Context) error {
	if _, err := exec.LookPath("runsc"); err != nil {
		b.Progress("gVisor is not on this machine")
		return nil
	}
	known := runtimes.SupportedRuntimes(nil, core.DefaultLimits().Memory)[:1] // Python
	o := gvisor.Options{Guest: []string{b.Self, "guest"}, Dir: filepath.Join(b.home, "gvisor"), Interpreters: known, Warm: -1, MaxWarm: -1}
	cold := gvisor.New(o)
	defer cold.Close()
	o.Warm, o.MaxWarm = 0, 0 // as the engine has them
	warm := gvisor.New(o)
	defer warm.Close()
	if err := b.measureSandboxes(ctx, "gvisor", warm.Capabilities().Runtimes, cold, warm, 600, 25); err != nil {
		return err
	}
	return b.measureIdleMemory(ctx, warm)
}

// measureIdleMemory measures the memory of a container that waits for a program, with all of its processes.
func (b *benchRun) measureIdleMemory(ctx context.Context, warm sandbox.Backend) error {
	s, err := warm.Prepare(ctx, sandbox.SandboxSpec{Runtime: "quickjs", Limits: core.DefaultLimits()})
	if err != nil {
		return err
	}
	defer s.Close()
	time.Sleep(2 * time.Second) // lets the pool fill up again
	megabytes, containers := 0.0, 0
	for _, pid := range descendantPIDs(os.Getpid()) {
		if part, err := proportionalMB(pid); err == nil {
			megabytes += part
		}
		if processName(pid) == "runsc-sandbox" {
			containers++
		}
	}
	if containers > 0 {
		b.rows = append(b.rows, ResultRow{
			Name: "gvisor: memory of a container that waits", Median: megabytes / float64(containers), Unit: "MB",
			Runs: containers,
		})
	}
	return nil
}

const inTurn, allAtOnce = "one after the other", "at once"

// callPrograms maps a language to its programs that make a thousand calls: one makes the calls one after the
// other, the other makes them concurrently.
var callPrograms = map[core.Language]map[string]string{
	core.JavaScript: {
		inTurn:    "for (let i = 0; i < 1000; i++) await callMCPTool('x')",
		allAtOnce: "await Promise.all(Array.from({length: 1000}, () => callMCPTool('x')))",
	},
	core.Python: {
		inTurn:    "for i in range(1000): call_mcp_tool('x')",
		allAtOnce: "import asyncio\nasync def one(): await call_mcp_tool('x')\nawait asyncio.gather(*[one() for i in range(1000)])",
	},
}

// makeThousandCalls runs a program that makes a thousand calls. The host answers each without delay.
func makeThousandCalls(ctx context.Context, b sandbox.Backend, runtime, way string) error {
	p := core.CheckedProgram{Name: "program", Language: core.JavaScript, Limits: core.DefaultLimits()}
	if runtime == "python" {
		p.Language = core.Python
	}
	p.Code = callPrograms[p.Language][way]
	return runProgram(ctx, b, runtime, p)
}
