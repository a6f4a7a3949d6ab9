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
	// commandProfile is the list of system calls that containers of commands may make.
	commandProfile = "command"
	// spare is what a command may map beside what it may use, in bytes.
	spare = 1 << 30
)

// commandImage names the image of a command, whose own name may be none for Docker.
func commandImage(name string) string {
	sum := sha256.Sum256([]byte(name))
	return commandProfile + "." + hex.EncodeToString(sum[:6])
}

// command starts a command in a container of its own.
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

// askCommand is the container that is wanted for a command.
func (b *backend) askCommand(d *daemon, m *image, name string, found *hostcmd.Command, c sandbox.Command, l core.Limits) (*create, error) {
	plan := found.Plan(c.Args)
	plan.Data, plan.Seconds = allowance(l)+spare, 2*int64(l.Computing/time.Second)+5
	if !d.kernel { // else the control group counts, and not a user that all programs are
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

// feed gives a container its input, and ends that.
func (c *container) feed(stdin []byte) {
	if _, err := c.conn.Write(stdin); err != nil {
		return
	}
	if half, ok := c.conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// over returns when a container whose output has ended is gone, and what it ended with; or -1 where
// the daemon does not say.
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
