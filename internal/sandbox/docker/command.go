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
	// commandProfile names the allow list of system calls for containers that run a host command.
	commandProfile = "command"
	// spareMapping is the number of bytes of address space that a command may map in addition to the memory that it
	// may use.
	spareMapping = 1 << 30
)

// commandImage returns the image name for a command. The image name contains a hash of the command's name, which
// itself may be invalid as a Docker name.
func commandImage(name string) string {
	sum := sha256.Sum256([]byte(name))
	return commandProfile + "." + hex.EncodeToString(sum[:6])
}

// runCommand runs a command in its own container.
func (b *dockerBackend) runCommand(whole context.Context, c sandbox.HostCommand, l core.Limits) (sandbox.CommandResult, error) {
	found, absent := b.Commands.FindCommand(c.Name)
	if absent != nil {
		return sandbox.CommandResult{}, absent
	}
	d, err := b.connectedDaemon()
	if err != nil {
		return sandbox.CommandResult{}, err
	}
	ctx, cancel := context.WithCancel(whole)
	defer cancel()
	m := b.images[commandImage(c.Name)]
	started, in, err := b.launchContainer(
		ctx, d, m, func(image string) (*createRequest, error) { return b.askCommand(d, m, image, found, c, l) },
	)
	switch {
	case errors.Is(err, confine.ErrOther):
		return sandbox.CommandResult{}, hostcmd.ChangedError(c.Name)
	case err != nil && whole.Err() != nil:
		return sandbox.CommandResult{}, hostcmd.CancelledError(c.Name)
	case err != nil:
		return sandbox.CommandResult{}, hostcmd.UnstartableError(c.Name, err)
	}
	stdout, stderr := hostcmd.NewOutput(sandbox.MaxStdout, cancel), hostcmd.NewOutput(sandbox.MaxStderr, cancel)
	defer context.AfterFunc(ctx, started.Kill)()
	go started.feedInput(c.Stdin)
	_ = demuxStreams(in, stdout, stderr)
	_ = started.conn.Close()
	ended := hostcmd.NewResult(started.waitExit(), stdout, stderr)
	switch {
	case ended.Code == 128+int(syscall.SIGKILL) && !started.killed.Load() && d.oom.isOutOfMemory(started.id, oomEventDelay):
		return ended, hostcmd.MemoryError(c.Name)
	case whole.Err() != nil:
		return ended, hostcmd.CancelledError(c.Name)
	case ended.Code < 0:
		return ended, hostcmd.RefusedError("the connection to Docker ended while %s ran", c.Name).WithHint(daemonHint)
	}
	return ended, hostcmd.StartError(c.Name, ended)
}

// askCommand returns the API request that creates the container of a command.
func (b *dockerBackend) askCommand(
	d *dockerDaemon, m *guestImage, name string, found *hostcmd.HostCommand, c sandbox.HostCommand, l core.Limits,
) (*createRequest, error) {
	plan := found.SandboxPlan(c.Args)
	plan.Data, plan.Seconds = memoryAllowance(l)+spareMapping, 2*int64(l.Computing/time.Second)+5
	if !d.kernel { // otherwise the control group counts the threads, and not the user, which all programs share
		plan.Processes = 0
	}
	needed, err := found.Image()
	if err != nil {
		return nil, err
	}
	for _, inside := range slices.Sorted(maps.Keys(needed.Sources)) {
		plan.Mounts = append(plan.Mounts, confine.PlanMount{Source: inside, Target: inside})
	}
	return b.confinedRequest(d, m, name, commandProfile, plan, l)
}

// feedInput writes stdin to the input of a command's container and then closes that input.
func (c *guestContainer) feedInput(stdin []byte) {
	if _, err := c.conn.Write(stdin); err != nil {
		return
	}
	if half, ok := c.conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// waitExit waits until the daemon has removed the container, whose output must have ended, and returns the exit
// status. If that takes longer than removeTimeout, waitExit kills the container. It returns -1 if the daemon does not
// report an exit status.
func (c *guestContainer) waitExit() int {
	for range 2 {
		select {
		case <-c.gone:
			return c.code
		case <-time.After(removeTimeout):
			c.Kill()
		}
	}
	return -1
}
