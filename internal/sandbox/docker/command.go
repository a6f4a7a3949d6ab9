package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"syscall"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/hostcmd"
)

const (
	// commandProfile returns the allow list of system calls for containers of commands.
	commandProfile = "command"
	// spare sets the number of bytes that a command may map beyond the memory that it may use.
	spare = 1 << 30
)

// commandImage returns the name of a command's image. The name of the command itself may be invalid for Docker.
func commandImage(name string) string {
	sum := sha256.Sum256([]byte(name))
	return commandProfile + "." + hex.EncodeToString(sum[:6])
}

// command runs a command in a container of its own.
func (b *backend) command(whole context.Context, c sandbox.Command, l core.Limits) (sandbox.Ended, error) {
	found, absent := b.Commands.Find(c.Name)
	if absent != nil {
		return sandbox.Ended{}, absent
	}
	d, err := b.met()
	if err != nil {
		return sandbox.Ended{}, err
	}
	ctx, cancel := context.WithCancel(whole)
	defer cancel()
	m := b.images[commandImage(c.Name)]
	started, in, err := b.launch(ctx, d, m, func(image string) (*create, error) { return b.askCommand(d, m, image, found, c, l) })
	switch {
	case errors.Is(err, confine.ErrOther):
		return sandbox.Ended{}, hostcmd.Other(c.Name)
	case err != nil && whole.Err() != nil:
		return sandbox.Ended{}, hostcmd.Cancelled(c.Name)
	case err != nil:
		return sandbox.Ended{}, hostcmd.Unstartable(c.Name, err)
	}
	stdout, stderr := hostcmd.NewOutput(sandbox.MaxStdout, cancel), hostcmd.NewOutput(sandbox.MaxStderr, cancel)
	defer context.AfterFunc(ctx, started.Kill)()
	go started.feed(c.Stdin)
	_ = demux(in, stdout, stderr)
	_ = started.conn.Close()
	ended := hostcmd.Ended(started.over(), stdout, stderr)
	switch {
	case ended.Code == 128+int(syscall.SIGKILL) && !started.killed.Load() && d.oom.has(started.id, tardy):
		return ended, hostcmd.Starved(c.Name)
	case whole.Err() != nil:
		return ended, hostcmd.Cancelled(c.Name)
	case ended.Code < 0:
		return ended, hostcmd.Refuse("the connection to Docker ended while %s ran", c.Name).WithHint(daemonHint)
	}
	return ended, hostcmd.Unstarted(c.Name, ended)
}

// askCommand returns the request for the container of a command.
func (b *backend) askCommand(d *daemon, m *image, name string, found *hostcmd.Command, c sandbox.Command, l core.Limits) (*create, error) {
	plan := found.Plan(c.Args)
	plan.Data, plan.Seconds = allowance(l)+spare, 2*int64(l.Computing/time.Second)+5
	if !d.kernel { // otherwise the control group counts the threads, and not the user, which all programs share
		plan.Processes = 0
	}
	needed, err := found.Image()
	if err != nil {
		return nil, err
	}
	for _, inside := range slices.Sorted(maps.Keys(needed.Sources)) {
		plan.Mounts = append(plan.Mounts, confine.Mount{Source: inside, Target: inside})
	}
	return b.contain(d, m, name, commandProfile, plan, l)
}

// feed writes stdin to the container's input and closes it.
func (c *container) feed(stdin []byte) {
	if _, err := c.conn.Write(stdin); err != nil {
		return
	}
	if half, ok := c.conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// over waits until a container whose output has ended is gone. It returns the exit status, or -1 if the daemon does
// not report it.
func (c *container) over() int {
	for range 2 {
		select {
		case <-c.gone:
			return c.code
		case <-time.After(ending):
			c.Kill()
		}
	}
	return -1
}
