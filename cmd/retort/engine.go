package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"retort/internal/core"
	"retort/internal/engine"
)

func (a *app) executeWithProgress(ctx context.Context, e *engine.Engine, req core.ExecutionRequest) core.Outcome {
	p := a.newProgress("running")
	p.question = func() string { return describeWaiting(e.Waiting("")) }
	say, done := p.start()
	defer done()
	req.Progress = func(calls int) { say(fmt.Sprintf("%d tool calls", calls)) }
	return withResumeHint(e.Execute(a.withTerminalApproval(ctx), req))
}

// describeWaiting returns text that says which command answers the first of the questions that wait for a person. It
// returns "" if no question is waiting.
func describeWaiting(questions []core.Approval) string {
	if len(questions) == 0 {
		return ""
	}
	id := questions[0].ID
	text := "and waiting for approval; to see the request: retort approvals show " + id + "; to allow it: retort approvals approve " + id
	if more := len(questions) - 1; more > 0 {
		text += fmt.Sprintf(" (%d more)", more)
	}
	return text
}

func (a *app) readProgram(name string) (string, error) {
	in := io.Reader(a.stdin)
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return "", core.Errorf(core.KindInvalidArguments, "run", "%w", err)
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxProgramBytes+1))
	if err != nil {
		return "", core.Errorf(core.KindInvalidArguments, "run", "%w", err)
	}
	if len(text) > maxProgramBytes {
		return "", core.Errorf(core.KindInvalidArguments, "run", "the program exceeds %d bytes", maxProgramBytes)
	}
	return string(text), nil
}

// parseLanguage returns the language that a flag names. Without the flag, it returns the language of the file's
// extension. It returns "" if the extension is unknown.
func parseLanguage(flag, file string) (core.Language, error) {
	switch flag {
	case "ts", "typescript":
		return core.TypeScript, nil
	case "js", "javascript":
		return core.JavaScript, nil
	case "py", "python":
		return core.Python, nil
	case "":
		switch filepath.Ext(file) {
		case ".js", ".mjs", ".cjs":
			return core.JavaScript, nil
		case ".py":
			return core.Python, nil
		case ".ts", ".mts", ".cts":
			return core.TypeScript, nil
		}
		return "", nil
	}
	return "", core.Errorf(core.KindInvalidArguments, "run", "--lang %q is not ts, js or py", flag)
}

// waitForServers waits until all servers have listed their tools or failed, but at most for patience. It shows the
// names of the servers for which it is waiting.
func (a *app) waitForServers(ctx context.Context, e *engine.Engine, patience time.Duration, servers ...string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	say, done := a.startProgress("connecting")
	defer done()
	watch := time.AfterFunc(900*time.Millisecond, func() { say("waiting for " + strings.Join(e.PendingServers(), ", ")) })
	defer watch.Stop()
	e.WaitForServers(ctx, servers...)
}

// withEngineProgress works like withEngine and also shows progress while f runs.
func (a *app) withEngineProgress(cmd *cobra.Command, f func(*engine.Engine) error) error {
	return a.withEngine(cmd, func(e *engine.Engine) error {
		_, done := a.startProgress("asking the servers")
		defer done()
		return f(e)
	})
}

// withEngine opens an engine, runs f with it and closes it.
func (a *app) withEngine(cmd *cobra.Command, f func(*engine.Engine) error) error {
	e, err := a.openEngine(cmd.Context(), func(c *engine.Config) { c.Reserve = engine.ReserveNone })
	if err != nil {
		return err
	}
	defer e.Close()
	return f(e)
}
