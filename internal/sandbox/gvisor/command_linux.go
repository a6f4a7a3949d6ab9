package gvisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/hostcmd"
)

// commandRoot is the prefix of the names of root file systems for commands.
const commandRoot = "command-"

// spareMapping is the number of bytes of address space that a command may map in addition to the memory that it may
// use.
const spareMapping = 1 << 30

// buildCommand creates the root file system for a command. It contains the command's file and its shared libraries.
// The file must be unchanged since it was found.
func (b *gvisorBackend) buildCommand(c *hostcmd.HostCommand) (*guestRoot, error) {
	if refused := c.CheckStandalone(); refused != nil {
		return nil, refused
	}
	dir, err := b.place.makeRootDir(commandRoot + c.Name)
	if err != nil {
		return nil, err
	}
	r := &guestRoot{runtime: c.Name, dir: dir, threads: hostcmd.Threads, command: true}
	if _, err := r.addBase(b.Guest[0], true); err != nil {
		return nil, err
	}
	r.addScratch()
	if err := r.addProgram(c); err != nil {
		return nil, err
	}
	image, err := c.Image()
	if err != nil {
		return nil, err
	}
	for target, source := range image.Sources {
		if target == c.Inside {
			continue
		}
		if err := r.copyFile(target, source); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// addProgram copies a command into the root. It returns an error if the file changes while it is copied.
func (r *guestRoot) addProgram(c *hostcmd.HostCommand) error {
	from, err := c.Open()
	if err != nil {
		return err
	}
	defer from.Close()
	where, err := r.hostPath(c.Inside)
	if err != nil {
		return err
	}
	to, err := os.OpenFile(where, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close(), c.CheckFile(from))
}

// runCommand runs a command in its own container.
func (b *gvisorBackend) runCommand(ctx context.Context, c sandbox.HostCommand, l core.Limits) (sandbox.CommandResult, error) {
	found, absent := b.Commands.FindCommand(c.Name)
	if absent != nil {
		return sandbox.CommandResult{}, absent
	}
	runsc, err := b.runsc()
	if err != nil {
		return sandbox.CommandResult{}, err
	}
	made, err := b.roots[commandRoot+c.Name]()
	if errors.Is(err, confine.ErrOther) {
		return sandbox.CommandResult{}, hostcmd.ChangedError(c.Name)
	}
	if err != nil {
		return sandbox.CommandResult{}, hostcmd.UnstartableError(c.Name, err)
	}
	dir, err := b.place.makeContainerDir()
	if err != nil {
		return sandbox.CommandResult{}, explainFileError(err)
	}
	own := *made
	plan := found.SandboxPlan(c.Args)
	plan.Data, plan.Seconds = l.Memory+spareMapping, commandSeconds(l)
	text, err := json.Marshal(plan)
	if err == nil {
		own.writeSpec(string(text), b.Guest[1:])
		err = own.writeBundle(dir, "")
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return sandbox.CommandResult{}, hostcmd.UnstartableError(c.Name, err)
	}
	return b.becomeCommand(ctx, newContainer(runsc, &own, dir), c, l)
}

// commandSeconds returns the processor time that a command may use, in seconds.
func commandSeconds(l core.Limits) int64 { return int64(l.Computing/time.Second)*2 + 5 }

// becomeCommand makes a started container run a command, and waits until the command has ended.
func (b *gvisorBackend) becomeCommand(
	whole context.Context, g *guestContainer, c sandbox.HostCommand, l core.Limits,
) (sandbox.CommandResult, error) {
	ctx, cancel := context.WithCancel(whole)
	defer cancel()
	stdout, stderr := hostcmd.NewOutput(sandbox.MaxStdout, cancel), hostcmd.NewOutput(sandbox.MaxStderr, cancel)
	g.cmd.Stdin, g.cmd.Stdout, g.cmd.Stderr = bytes.NewReader(c.Stdin), stdout, stderr
	if err := b.runContainer(ctx, g); err != nil {
		_ = os.RemoveAll(g.dir)
		return sandbox.CommandResult{}, hostcmd.UnstartableError(c.Name, err)
	}
	defer context.AfterFunc(ctx, g.Kill)()
	go g.limitCommand(l)
	<-g.gone
	ended := hostcmd.NewResult(codeOf(g.cmd.ProcessState), stdout, stderr)
	switch {
	case g.outgrown.Load():
		return ended, hostcmd.MemoryError(c.Name)
	case whole.Err() != nil:
		return ended, hostcmd.CancelledError(c.Name)
	case !g.began: // the output is gVisor's
		return sandbox.CommandResult{}, hostcmd.RefusedError(
			"%s could not be started: %.200q", c.Name, ended.Stderr,
		).WithHint("run `retort doctor` to see what is wrong")
	}
	return ended, hostcmd.StartError(c.Name, ended)
}

// limitCommand waits until the gVisor kernel of a command's container runs, and then sets the limits of the
// container.
func (g *guestContainer) limitCommand(l core.Limits) {
	for g.kernelPID() == 0 {
		select {
		case <-g.watching:
			return
		case <-time.After(2 * time.Millisecond):
		}
	}
	g.Limit(l)
}

func codeOf(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
