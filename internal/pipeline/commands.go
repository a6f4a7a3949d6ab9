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

// commands starts the commands of one program, one after the other, so that they use no more than the program itself
// may.
type commands struct {
	x    *execution
	to   sandbox.Commander // nil until the program has its sandbox, and where that starts none
	turn chan struct{}

	mu      sync.Mutex
	started int
	refused int
	planned []string // names, in a dry run
}

// execRequest holds the arguments of exec.
type execRequest struct {
	Command *string  `json:"command"`
	Args    []string `json:"args"`
	Stdin   *string  `json:"stdin"`
}

// execResult holds the result of exec.
type execResult struct {
	Code      int    `json:"code"`
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	Truncated bool   `json:"truncated"`
}

func (x *execution) commanding(box sandbox.Sandbox) {
	to, _ := box.(sandbox.Commander)
	x.commands.to = to
}

// exec starts a command for the program. A refusal is recorded.
func (c *commands) exec(ctx context.Context, raw json.RawMessage) (any, error) {
	var r execRequest
	if err := json.Unmarshal(raw, &r); err != nil || r.Command == nil {
		return nil, core.Errorf(core.KindInvalidArguments, "pipeline.exec", "exec takes a command's name, a list of strings, and optionally a string as stdin")
	}
	if refused := c.refusal(r); refused != nil {
		c.note(*r.Command, refused)
		return nil, refused
	}
	if c.x.rehearses() {
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
	return c.start(ctx, r)
}

// refusal returns why a command must not start, or nil after counting it.
func (c *commands) refusal(r execRequest) *core.Error {
	if refused := c.x.pipeline.Policy.Command(*r.Command, r.Args); refused != nil {
		return refused
	}
	if r.Stdin != nil && len(*r.Stdin) > sandbox.MaxStdin {
		return core.Errorf(core.KindInvalidArguments, "pipeline.exec", "%s was given %d bytes as stdin; the maximum is %d", *r.Command, len(*r.Stdin), sandbox.MaxStdin)
	}
	if c.to == nil {
		return core.Errorf(core.KindSandboxUnavailable, "pipeline.exec", "there is no sandbox here that starts commands")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if most := c.x.req.Limits.ToolCalls; c.started >= most {
		return core.Errorf(core.KindLimit, "pipeline.exec", "the program has started %d commands, which is the maximum", most).
			WithHint("do more in one command, or raise resourceLimits.toolCalls")
	}
	c.started++
	return nil
}

// start starts a command. The audit log gets an entry before, which is on disk, and one after.
func (c *commands) start(ctx context.Context, r execRequest) (any, error) {
	record := c.x.flight.record
	command := sandbox.Command{Name: *r.Command, Args: r.Args}
	if r.Stdin != nil {
		command.Stdin = []byte(*r.Stdin)
	}
	var failed error
	if command.Folders, failed = c.x.folders(); failed != nil {
		return nil, failed
	}
	if slices.ContainsFunc(command.Folders, func(f sandbox.Folder) bool { return f.Writable }) {
		command.Full = c.x.files.Full
		defer c.x.files.Full() // counts the files that the command has written against the quota
	}
	if refused := record.command(command); refused != nil {
		return nil, refused
	}
	began := time.Now()
	ended, err := c.to.Start(ctx, command)
	record.commandEnded(command.Name, ended, time.Since(began), core.AsError(err))
	if err != nil {
		return nil, core.AsError(err)
	}
	return execResult{Code: ended.Code, Stdout: c.shown(ended.Stdout), Stderr: c.shown(ended.Stderr), Truncated: ended.Truncated}, nil
}

// shown returns output as the program gets it. Invalid UTF-8 is replaced, and a character that was cut is left out.
func (c *commands) shown(output []byte) string {
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

// note records a refusal.
func (c *commands) note(name string, refused *core.Error) {
	c.mu.Lock()
	c.refused++
	n := c.refused
	c.mu.Unlock()
	if n <= maxRefusals {
		c.x.flight.record.commandRefused(name, refused)
	}
}

// warning lists the commands that a dry run has not started.
func (c *commands) warning() []string {
	if len(c.planned) == 0 {
		return nil
	}
	names := slices.Clone(c.planned)
	slices.Sort(names)
	return []string{fmt.Sprintf("the dry run started no commands, and exec answered nothing; the program would start %s", strings.Join(slices.Compact(names), ", "))}
}

// command records that a command is about to be started.
func (r *record) command(c sandbox.Command) *core.Error {
	if r.to == nil {
		return nil
	}
	arguments, err := json.Marshal(c.Args)
	if err != nil {
		return core.Errorf(core.KindInternal, "pipeline.exec", "the arguments cannot be recorded: %w", err)
	}
	e := r.event(core.EventCommand)
	e.Status, e.Bytes = "started", int64(len(c.Stdin))
	e.Facts = map[string]any{"command": r.text(c.Name), "arguments": len(c.Args), "digest": r.to.Digest(arguments)}
	e.Body = bodyOf(asked{Arguments: r.json(arguments)})
	return r.add(e, true)
}

func (r *record) commandEnded(name string, ended sandbox.Ended, took time.Duration, failed *core.Error) {
	e := r.event(core.EventCommand)
	e.Status, e.Duration, e.Bytes = "ended", took, int64(len(ended.Stdout)+len(ended.Stderr))
	e.Facts = map[string]any{"command": r.text(name), "code": ended.Code}
	if ended.Truncated {
		e.Facts["truncated"] = true
	}
	if failed != nil {
		e.Status, e.Facts["error"] = "failed", failed.Kind
		e.Body = bodyOf(said{Error: r.text(failed.Message)})
	}
	_ = r.add(e, false) // that it began is on disk
}

func (r *record) commandRefused(name string, refused *core.Error) {
	e := r.event(core.EventCommand)
	e.Status, e.Facts = "refused", map[string]any{"command": r.text(clipped(name)), "error": refused.Kind}
	e.Body = bodyOf(said{Error: r.text(refused.Message)})
	_ = r.add(e, false) // it is refused all the same
}
