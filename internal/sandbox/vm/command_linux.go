package vm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"syscall"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/guest/vminit"
	"retort/internal/sandbox/hostcmd"
	"retort/internal/sandbox/interpreter"
)

const (
	// forCommands is used in place of a runtime's name for the saved machine in which host commands run. Each command
	// runs in a new copy of that machine.
	forCommands = "commands"
	// spareMapping bounds the address space that a host command may map in addition to the memory that it may use, in
	// bytes.
	spareMapping = 1 << 30
)

// commandOrder represents the message that tells a machine which command to run. The message includes the files that
// the command needs.
type commandOrder struct {
	vminit.CommandOrder
	command *hostcmd.HostCommand
	image   *interpreter.FileImage
	file    *os.File // open file of the command itself
}

// newOrder returns the order to run a command in a machine. The order includes the command's file and the shared
// libraries that it needs. newOrder returns an error if the command has changed since it was found. The caller must
// close the order.
func newOrder(found *hostcmd.HostCommand, c sandbox.HostCommand, l core.Limits) (*commandOrder, error) {
	if refused := found.CheckStandalone(); refused != nil {
		return nil, refused
	}
	file, err := found.Open()
	if err != nil {
		return nil, err
	}
	o := &commandOrder{command: found, file: file}
	if err := o.describeCommand(c, l); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return o, nil
}

func (o *commandOrder) describeCommand(c sandbox.HostCommand, l core.Limits) (err error) {
	if o.image, err = o.command.Image(); err != nil {
		return err
	}
	o.Stdin, o.Plan = int64(len(c.Stdin)), o.command.SandboxPlan(c.Args)
	o.Plan.Data, o.Plan.Seconds = l.Memory+spareMapping, int64(l.Computing/time.Second)*2+5
	for _, target := range slices.Sorted(maps.Keys(o.image.Sources)) {
		info, err := os.Stat(o.image.Sources[target])
		if err != nil {
			return err
		}
		o.Files = append(o.Files, vminit.OrderFile{Path: target, Size: info.Size()})
		o.Plan.Mounts = append(o.Plan.Mounts, confine.PlanMount{Source: path.Join(vminit.CommandRoot, target), Target: target})
	}
	return nil
}

// memoryUse returns how much of the machine's memory the files of the order will use, in bytes.
func (o *commandOrder) memoryUse() (sum int64) {
	for _, f := range o.Files {
		sum += f.Size
	}
	return sum + 2*o.Stdin
}

// openFile opens a file that the command needs.
func (o *commandOrder) openFile(f vminit.OrderFile) (io.ReadCloser, error) {
	if f.Path == o.command.Inside {
		return io.NopCloser(o.file), nil
	}
	return os.Open(o.image.Sources[f.Path])
}

// checkUnchanged returns an error if the command's file has changed since it was found.
func (o *commandOrder) checkUnchanged() error { return o.command.CheckFile(o.file) }

// runCommand runs a command in its own machine.
func (b *vmBackend) runCommand(ctx context.Context, c sandbox.HostCommand, l core.Limits) (sandbox.CommandResult, error) {
	found, absent := b.Commands.FindCommand(c.Name)
	if absent != nil {
		return sandbox.CommandResult{}, absent
	}
	o, err := newOrder(found, c, l)
	if errors.Is(err, confine.ErrOther) {
		return sandbox.CommandResult{}, hostcmd.ChangedError(c.Name)
	}
	if err != nil {
		return sandbox.CommandResult{}, hostcmd.UnstartableError(c.Name, err)
	}
	defer o.file.Close()
	err = b.waitPrepared(ctx, forCommands)
	var m *virtualMachine
	if err == nil {
		m, err = b.startCopy(ctx, forCommands)
	}
	switch {
	case ctx.Err() != nil:
		if m != nil {
			_ = m.Close()
			<-m.gone
		}
		return sandbox.CommandResult{}, hostcmd.CancelledError(c.Name)
	case err != nil:
		return sandbox.CommandResult{}, err
	}
	return m.runOrder(ctx, o, c, l)
}

// waitPrepared waits until a saved machine of the runtime exists, or until ctx ends. Saving the first machine takes
// longer than many programs may run. It therefore continues in the background when ctx ends.
func (b *vmBackend) waitPrepared(ctx context.Context, runtime string) error {
	made := make(chan error, 1)
	go func() {
		_, err := b.images[runtime]()
		made <- err
	}()
	select {
	case err := <-made:
		if err != nil {
			return unusableError(err)
		}
	case <-ctx.Done():
	}
	return ctx.Err()
}

// runOrder makes the machine run the command of the order o. It returns when both the command and the machine have
// ended.
func (m *virtualMachine) runOrder(whole context.Context, o *commandOrder, c sandbox.HostCommand, l core.Limits) (sandbox.CommandResult, error) {
	ctx, cancel := context.WithCancel(whole)
	defer cancel()
	stop := context.AfterFunc(ctx, m.Kill)
	defer stop()
	l.Memory += o.memoryUse()
	m.Limit(l)
	stdout, stderr := hostcmd.NewOutput(sandbox.MaxStdout, cancel), hostcmd.NewOutput(sandbox.MaxStderr, cancel)
	err := o.SendTo(m.wire, o.openFile, c.Stdin, o.checkUnchanged)
	end := vminit.GuestEnd{Signal: int(syscall.SIGKILL)} // for a command that writes nothing more
	if err == nil {
		err = readParts(m.wire, stdout, stderr, &end)
	}
	if err != nil && !errors.Is(err, confine.ErrOther) {
		err = m.whyNot(err)
	}
	_ = m.Close()
	<-m.gone
	ended := hostcmd.NewResult(codeOf(end), stdout, stderr)
	switch {
	case m.outgrown.Load():
		return ended, hostcmd.MemoryError(c.Name)
	case whole.Err() != nil:
		return ended, hostcmd.CancelledError(c.Name)
	case errors.Is(err, confine.ErrOther):
		return sandbox.CommandResult{}, hostcmd.ChangedError(c.Name)
	case ended.Truncated:
		return ended, nil
	case err != nil:
		return sandbox.CommandResult{}, hostcmd.UnstartableError(c.Name, err)
	}
	return ended, hostcmd.StartError(c.Name, ended)
}

// readParts reads the parts in which a machine sends the result of a command, until the last part, which reports the
// command's end. It copies the command's output to stdout and stderr.
func readParts(wire io.Reader, stdout, stderr io.Writer, end *vminit.GuestEnd) error {
	for r := bufio.NewReader(wire); ; {
		kind, data, err := vminit.ReadPart(r)
		if err != nil {
			return err
		}
		switch kind {
		case vminit.PartStdout:
			_, _ = stdout.Write(data) // never fails
		case vminit.PartStderr:
			_, _ = stderr.Write(data)
		default:
			return json.Unmarshal(data, end)
		}
	}
}

func codeOf(end vminit.GuestEnd) int {
	if end.Signal != 0 {
		return 128 + end.Signal
	}
	return end.Status
}
