package process

import (
	"bytes"
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/hostcmd"
)

// commandPlan returns the confinement of a command. The command sees its own file, its shared libraries, a few
// devices and an empty /tmp.
func commandPlan(c *hostcmd.HostCommand, args []string) (confine.SandboxPlan, error) {
	image, err := c.Image()
	if err != nil {
		return confine.SandboxPlan{}, err
	}
	p := c.SandboxPlan(args)
	p.Mounts = imageMounts(image)
	pinned := c.PinnedFiles()
	for i := range p.Mounts {
		p.Mounts[i].Same = pinned[p.Mounts[i].Target]
		delete(pinned, p.Mounts[i].Target)
	}
	for target, same := range pinned { // a file in one of the folders
		p.Mounts = append(p.Mounts, confine.PlanMount{Source: target, Target: target, Same: same})
	}
	return p, nil
}

// startCommand starts a confined child, which then executes the command, and waits for its end. The command gets only
// its arguments, its input and its folders.
func (b *Backend) startCommand(ctx context.Context, c sandbox.HostCommand, l core.Limits) (sandbox.CommandResult, error) {
	found, absent := b.options.Commands.FindCommand(c.Name)
	if absent != nil {
		return sandbox.CommandResult{}, absent
	}
	if confine.WantsProc {
		return sandbox.CommandResult{}, hostcmd.RefusedError(
			"this build of retort cannot start commands, because it was built with cgo",
		).WithHint("build it with CGO_ENABLED=0, as `make build` does")
	}
	if b.check().weak {
		return sandbox.CommandResult{},
			hostcmd.RefusedError("commands need a sandbox that this machine does not allow").WithHint("run `retort doctor` to see why")
	}
	plan, err := commandPlan(found, c.Args)
	if err != nil {
		return sandbox.CommandResult{}, hostcmd.UnstartableError(c.Name, err)
	}
	for _, f := range c.Folders {
		plan.Mounts = append(plan.Mounts, confine.PlanMount{Below: f.Below, Source: f.Name, Target: f.Target, Writable: f.Writable})
	}
	plan.Data, plan.Seconds = memoryAllowance(l)+spareMapping, int64(processorTime(l)/time.Second)
	return b.runCommand(ctx, &childKind{command: b.kinds[quickjs].command, plan: plan}, c, l)
}

// runCommand runs a command in its own child process, enforces the limits and waits for its end.
func (b *Backend) runCommand(
	whole context.Context, k *childKind, c sandbox.HostCommand, limits core.Limits,
) (sandbox.CommandResult, error) {
	ctx, cancel := context.WithCancelCause(whole)
	defer cancel(nil)
	cmd, plan, _, err := k.buildCommand(false)
	if err != nil {
		return sandbox.CommandResult{}, hostcmd.UnstartableError(c.Name, err)
	}
	over := errors.New("too much output")
	stdout := hostcmd.NewOutput(sandbox.MaxStdout, func() { cancel(over) })
	stderr := hostcmd.NewOutput(sandbox.MaxStderr, func() { cancel(over) })
	cmd.Path, cmd.Env, cmd.Dir = sameProgram(cmd.Path), []string{}, rootDir()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(c.Stdin), stdout, stderr
	cmd.WaitDelay = time.Second // only the child has the other ends
	k.sendPlan(plan, false)
	group, err := b.spawner.Start(cmd)
	for _, f := range cmd.ExtraFiles {
		_ = f.Close()
	}
	if err != nil {
		return sandbox.CommandResult{}, hostcmd.UnstartableError(c.Name, err)
	}
	group.SetLimits(memoryAllowance(limits), limits, hostcmd.Threads)
	running := &guestChild{cmd: cmd}
	unwatch := running.watchLimits(limits, hostcmd.Threads, cancel)
	unfill := watchFolders(c.Full, cancel)
	unkill := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait() // how it ended is in ProcessState
	unkill()
	unwatch()
	unfill()
	oomKilled := group.IsOutOfMemory()
	group.Remove()
	ended := hostcmd.NewResult(codeOf(cmd.ProcessState), stdout, stderr)
	switch cause := context.Cause(ctx); {
	case oomKilled:
		return ended, hostcmd.MemoryError(c.Name)
	case whole.Err() != nil:
		return ended, hostcmd.CancelledError(c.Name)
	case cause != nil && !errors.Is(cause, over):
		return ended, core.Errorf(core.KindLimit, "process.command", "%s was killed: %v", c.Name, cause).WithHint("pass it less data at a time")
	}
	return ended, hostcmd.StartError(c.Name, ended)
}

// errFull is the reason that is recorded when a command is ended because the folders of the workspace exceed their
// quota.
var errFull = errors.New("the workspace is full (resourceLimits.disk)")

// measureInterval is the time between two measurements of the size of a command's writable folders. A command can
// exceed the quota by the amount that it writes in this time.
const measureInterval = 250 * time.Millisecond

// watchFolders measures the writable folders periodically and ends the command when they exceed the quota.
func watchFolders(full func() bool, cancel context.CancelCauseFunc) (stop func()) {
	if full == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(measureInterval)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			if full() {
				cancel(errFull)
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

func codeOf(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
