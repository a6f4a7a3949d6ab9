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

// commandRoot begins the names of roots for commands.
const commandRoot = "command-"

// spare sets the number of bytes that a command may map beyond the memory that it may use.
const spare = 1 << 30

// buildCommand creates the root of a command: its own file, which must be unchanged since it was found, and the
// libraries that it is linked with.
func (b *backend) buildCommand(c *hostcmd.Command) (*root, error) {
	if refused := c.Alone(); refused != nil {
		return nil, refused
	}
	dir, err := b.place.root(commandRoot + c.Name)
	if err != nil {
		return nil, err
	}
	r := &root{runtime: c.Name, dir: dir, threads: hostcmd.Threads, command: true}
	if _, err := r.base(b.Guest[0], true); err != nil {
		return nil, err
	}
	r.scratch()
	if err := r.program(c); err != nil {
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
		if err := r.copy(target, source); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// program copies a command into the root. The file must not change while it is copied.
func (r *root) program(c *hostcmd.Command) error {
	from, err := c.Open()
	if err != nil {
		return err
	}
	defer from.Close()
	where, err := r.at(c.Inside)
	if err != nil {
		return err
	}
	to, err := os.OpenFile(where, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close(), c.Check(from))
}

// command runs a command in a container of its own.
func (b *backend) command(ctx context.Context, c sandbox.Command, l core.Limits) (sandbox.Ended, error) {
	found, absent := b.Commands.Find(c.Name)
	if absent != nil {
		return sandbox.Ended{}, absent
	}
	runsc, err := b.runsc()
	if err != nil {
		return sandbox.Ended{}, err
	}
	made, err := b.roots[commandRoot+c.Name]()
	if errors.Is(err, confine.ErrOther) {
		return sandbox.Ended{}, hostcmd.Other(c.Name)
	}
	if err != nil {
		return sandbox.Ended{}, hostcmd.Unstartable(c.Name, err)
	}
	dir, err := b.place.container()
	if err != nil {
		return sandbox.Ended{}, full(err)
	}
	own := *made
	plan := found.Plan(c.Args)
	plan.Data, plan.Seconds = l.Memory+spare, seconds(l)
	text, err := json.Marshal(plan)
	if err == nil {
		own.specify(string(text), b.Guest[1:])
		err = own.bundle(dir, "")
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return sandbox.Ended{}, hostcmd.Unstartable(c.Name, err)
	}
	return b.become(ctx, newContainer(runsc, &own, dir), c, l)
}

// seconds returns the processor time of a command, in seconds.
func seconds(l core.Limits) int64 { return int64(l.Computing/time.Second)*2 + 5 }

// become runs a command in a started container and waits for its end.
func (b *backend) become(whole context.Context, g *container, c sandbox.Command, l core.Limits) (sandbox.Ended, error) {
	ctx, cancel := context.WithCancel(whole)
	defer cancel()
	stdout, stderr := hostcmd.NewOutput(sandbox.MaxStdout, cancel), hostcmd.NewOutput(sandbox.MaxStderr, cancel)
	g.cmd.Stdin, g.cmd.Stdout, g.cmd.Stderr = bytes.NewReader(c.Stdin), stdout, stderr
	if err := b.run(ctx, g); err != nil {
		_ = os.RemoveAll(g.dir)
		return sandbox.Ended{}, hostcmd.Unstartable(c.Name, err)
	}
	defer context.AfterFunc(ctx, g.Kill)()
	go g.bound(l)
	<-g.gone
	ended := hostcmd.Ended(codeOf(g.cmd.ProcessState), stdout, stderr)
	switch {
	case g.outgrown.Load():
		return ended, hostcmd.Starved(c.Name)
	case whole.Err() != nil:
		return ended, hostcmd.Cancelled(c.Name)
	case !g.began: // the output is gVisor's
		return sandbox.Ended{}, hostcmd.Refuse("%s could not be started: %.200q", c.Name, ended.Stderr).WithHint("`retort doctor` says what is wrong")
	}
	return ended, hostcmd.Unstarted(c.Name, ended)
}

// bound sets the limits of a command's container as soon as its kernel runs.
func (g *container) bound(l core.Limits) {
	for g.kernel() == 0 {
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
