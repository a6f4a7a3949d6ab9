package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"retort/internal/core"
	"retort/internal/sandbox"
)

// commandRunner starts host commands for one program. It runs one command at a time, so that the commands together do
// not exceed the resource limits of the program itself.
type commandRunner struct {
	x    *programExecution
	to   sandbox.CommandStarter // nil until the program has its sandbox, and where that starts none
	turn chan struct{}

	mu      sync.Mutex
	started int
	refused int
	planned []string // names, in a dry run
}

// execRequest holds the arguments of exec, the function with which programs start host commands.
type execRequest struct {
	Command *string  `json:"command"`
	Args    []string `json:"args"`
	Stdin   *string  `json:"stdin"`
}

// execResult holds what exec, the function with which programs start host commands, returns to the program.
type execResult struct {
	Code      int    `json:"code"`
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	Truncated bool   `json:"truncated"`
}

func (x *programExecution) attachCommands(box sandbox.Sandbox) {
	to, _ := box.(sandbox.CommandStarter)
	x.commands.to = to
}

// execCommand runs a command for the program, or only notes its name in a dry run. It records a refused command in
// the audit log.
func (c *commandRunner) execCommand(ctx context.Context, raw json.RawMessage) (any, error) {
	var r execRequest
	if err := json.Unmarshal(raw, &r); err != nil || r.Command == nil {
		return nil, core.Errorf(
			core.KindInvalidArguments, "pipeline.exec",
			"exec needs the name of a command, a list of strings, and optionally a string for stdin",
		)
	}
	if refused := c.refuseCommand(r); refused != nil {
		c.noteRefusal(*r.Command, refused)
		return nil, refused
	}
	if c.x.isDryRun() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.planned = append(c.planned, *r.Command)
		return execResult{}, nil
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, core.Errorf(core.KindCancelled, "pipeline.exec", "the program has ended")
	}
	if ended := c.x.halt.waitIfEnding(ctx); ended != nil {
		return nil, ended
	}
	return c.startCommand(ctx, r)
}

// refuseCommand returns an error if a command must not start. Otherwise it counts the command and returns nil.
func (c *commandRunner) refuseCommand(r execRequest) *core.Error {
	if refused := c.x.pipeline.Policy.CheckCommand(*r.Command, r.Args); refused != nil {
		return refused
	}
	if r.Stdin != nil && len(*r.Stdin) > sandbox.MaxStdin {
		return core.Errorf(
			core.KindInvalidArguments, "pipeline.exec", "%s was given %d bytes as stdin; the maximum is %d", *r.Command,
			len(*r.Stdin), sandbox.MaxStdin,
		)
	}
	if c.to == nil {
		return core.Errorf(core.KindSandboxUnavailable, "pipeline.exec", "no sandbox on this machine can start commands")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if most := c.x.req.Limits.ToolCalls; c.started >= most {
		return core.Errorf(core.KindLimit, "pipeline.exec", "the program has started %d commands, which is the maximum", most).
			WithHint("do more with one command, or raise resourceLimits.toolCalls")
	}
	c.started++
	return nil
}

// startCommand runs a command. It writes an audit log entry that is durable before the command starts, and another
// one after the command has ended.
func (c *commandRunner) startCommand(ctx context.Context, r execRequest) (any, error) {
	command := sandbox.HostCommand{Name: *r.Command, Args: r.Args}
	if r.Stdin != nil {
		command.Stdin = []byte(*r.Stdin)
	}
	var failed error
	if command.Folders, failed = c.x.sandboxFolders(); failed != nil {
		return nil, failed
	}
	if slices.ContainsFunc(command.Folders, func(f sandbox.MountedPath) bool { return f.Writable }) {
		command.Full = c.x.files.IsFull
		defer c.x.files.IsFull() // counts the files that the command has written against the quota
	}
	if refused := c.x.recordCommand(command); refused != nil {
		return nil, refused
	}
	began := time.Now()
	ended, err := c.to.Start(ctx, command)
	c.x.commandEnded(command.Name, ended, time.Since(began), core.AsError(err))
	if err != nil {
		return nil, core.AsError(err)
	}
	return execResult{
		Code: ended.Code, Stdout: c.showOutput(ended.Stdout), Stderr: c.showOutput(ended.Stderr),
		Truncated: ended.Truncated,
	}, nil
}

// showOutput returns a command's output as text for the program. It masks secrets, replaces invalid UTF-8, and drops
// a partial character at the end.
func (c *commandRunner) showOutput(output []byte) string {
	if c.x.pipeline.Secrets != nil {
		output = c.x.pipeline.Secrets.Mask(output)
	}
	for i := 1; i < utf8.UTFMax && i <= len(output); i++ {
		if last := output[len(output)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				output = output[:len(output)-i]
			}
			break
		}
	}
	return strings.ToValidUTF8(string(output), "\ufffd")
}

// noteRefusal records a refused command in the audit log, at most maxRefusals times per program.
func (c *commandRunner) noteRefusal(name string, refused *core.Error) {
	c.mu.Lock()
	c.refused++
	n := c.refused
	c.mu.Unlock()
	if n <= maxRefusals {
		c.x.commandRefused(name, refused)
	}
}

// skippedWarning returns a warning that lists the commands that a dry run did not start.
func (c *commandRunner) skippedWarning() []string {
	if len(c.planned) == 0 {
		return nil
	}
	names := slices.Clone(c.planned)
	slices.Sort(names)
	return []string{fmt.Sprintf(
		"the dry run started no commands, and exec returned empty results; the program would start %s",
		strings.Join(slices.Compact(names), ", "),
	)}
}

// recordCommand records in the audit log that a command is about to start.
func (x *execution) recordCommand(c sandbox.HostCommand) *core.Error {
	if x.pipeline.Recorder == nil {
		return nil
	}
	arguments, err := json.Marshal(c.Args)
	if err != nil {
		return core.Errorf(core.KindInternal, "pipeline.exec", "the arguments cannot be recorded: %w", err)
	}
	e := x.newEvent(core.EventCommand)
	e.Status, e.Bytes = "started", int64(len(c.Stdin))
	e.Facts = map[string]any{"command": x.hideText(c.Name), "arguments": len(c.Args), "digest": x.pipeline.Recorder.Digest(arguments)}
	e.Body = bodyOf(requestBody{Arguments: x.hideJSON(arguments)})
	return x.recordEvent(e, true)
}

func (x *execution) commandEnded(name string, ended sandbox.CommandResult, took time.Duration, failed *core.Error) {
	e := x.newEvent(core.EventCommand)
	e.Status, e.Duration, e.Bytes = "ended", took, int64(len(ended.Stdout)+len(ended.Stderr))
	e.Facts = map[string]any{"command": x.hideText(name), "code": ended.Code}
	if ended.Truncated {
		e.Facts["truncated"] = true
	}
	if failed != nil {
		e.Status, e.Facts["error"] = "failed", failed.Kind
		e.Body = bodyOf(errorBody{Error: x.hideText(failed.Message)})
	}
	_ = x.recordEvent(e, false) // that it began is on disk
}

func (x *execution) commandRefused(name string, refused *core.Error) {
	e := x.newEvent(core.EventCommand)
	e.Status, e.Facts = "refused", map[string]any{"command": x.hideText(clipHost(name)), "error": refused.Kind}
	e.Body = bodyOf(errorBody{Error: x.hideText(refused.Message)})
	_ = x.recordEvent(e, false) // it is refused all the same
}
