package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/process"
	"retort/internal/sandbox/runtimes"
)

// startTargets maps a runtime to its targets for the smallest program, in milliseconds: cold for a process that is
// started for the program, and warm for a process that is already running.
var startTargets = map[string]struct{ cold, warm float64 }{
	"quickjs": {15, 2}, "python": {40, 5}, "node": {60, 5},
}

// bareCommands maps a runtime to a command that starts its interpreter outside of any sandbox and does nothing else.
// The time of this command is a lower bound for a cold start.
var bareCommands = map[string][]string{
	"node": {"node", "-e", ""}, "bun": {"bun", "-e", "0"}, "deno": {"deno", "eval", ""},
}

// measureRuntimes measures how long the smallest program takes in each runtime that this machine has, from the
// request for a sandbox to the result of the program.
func (b *benchRun) measureRuntimes(ctx context.Context) error {
	command := []string{b.Self, "guest"}
	known := runtimes.SupportedRuntimes(nil, core.DefaultLimits().Memory)
	cold := process.New(process.Options{Command: command, Compiles: true, Warm: -1, MaxWarm: -1, Interpreters: known})
	defer cold.Close()
	warm := process.New(process.Options{Command: command, Compiles: true, Interpreters: known})
	defer warm.Close()
	defer func() { b.pause = 0 }()
	for _, runtime := range cold.Capabilities().Runtimes {
		target := startTargets[runtime]
		b.Progress("starting " + runtime)
		if command, ok := bareCommands[runtime]; ok {
			if err := b.timeRuns(
				runtime+": by itself, without a sandbox or program", 20, 0,
				func() error { return exec.CommandContext(ctx, command[0], command[1:]...).Run() },
			); err != nil {
				return fmt.Errorf("%s: %w", runtime, err)
			}
		}
		b.pause = 50 * time.Millisecond // lets the previous one end
		if err := b.timeRuns(
			runtime+": smallest program, from nothing", 20, target.cold,
			func() error { return runSmallest(ctx, cold, runtime) },
		); err != nil {
			return fmt.Errorf("%s: %w", runtime, err)
		}
		b.pause = 300 * time.Millisecond // lets the next child become ready
		if err := b.timeRuns(
			runtime+": smallest program, warm", 20, target.warm, func() error { return runSmallest(ctx, warm, runtime) },
		); err != nil {
			return fmt.Errorf("%s: %w", runtime, err)
		}
	}
	return nil
}

func runSmallest(ctx context.Context, b sandbox.Backend, runtime string) error {
	p := core.CheckedProgram{Name: "program", Language: core.JavaScript, Code: "return 1", Limits: core.DefaultLimits()}
	if runtime == "python" {
		p.Language, p.Code = core.Python, "result = 1"
	}
	return runProgram(ctx, b, runtime, p)
}

// runProgram runs a program and returns an error unless it succeeds.
func runProgram(ctx context.Context, b sandbox.Backend, runtime string, p core.CheckedProgram) error {
	s, err := b.Prepare(ctx, sandbox.SandboxSpec{Runtime: runtime, Limits: p.Limits})
	if err != nil {
		return err
	}
	defer s.Close()
	none := sandbox.HostFunc(func(context.Context, core.ToolCall) (core.CallResult, error) {
		return core.CallResult{Value: json.RawMessage("1")}, nil
	})
	r, err := s.Run(ctx, p, none)
	switch {
	case err != nil:
		return err
	case r.Error != nil:
		return r.Error
	case r.Status != core.StatusOK:
		return fmt.Errorf("it ended with %s", r.Status)
	}
	return nil
}
