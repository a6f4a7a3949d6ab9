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
	// forCommands takes the place of a runtime in the name of the machine that is copied for each command. The copy
	// is told which command to run.
	forCommands = "commands"
	// spare sets the number of bytes that a command may map beyond the memory that it may use.
	spare = 1 << 30
)

// order represents the order that a machine receives, with the sources of its files.
type order struct {
	vminit.Order
	command *hostcmd.Command
	image   *interpreter.Image
	file    *os.File // the command's own
}

// newOrder returns the order for a command: its own file, if it is unchanged since it was found, and the libraries
// that it is linked with. The caller must close it.
func newOrder(found *hostcmd.Command, c sandbox.Command, l core.Limits) (*order, error) {
	if refused := found.Alone(); refused != nil {
		return nil, refused
	}
	file, err := found.Open()
	if err != nil {
		return nil, err
	}
	o := &order{command: found, file: file}
	if err := o.describe(c, l); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return o, nil
}

func (o *order) describe(c sandbox.Command, l core.Limits) (err error) {
	if o.image, err = o.command.Image(); err != nil {
		return err
	}
	o.Stdin, o.Plan = int64(len(c.Stdin)), o.command.Plan(c.Args)
	o.Plan.Data, o.Plan.Seconds = l.Memory+spare, int64(l.Computing/time.Second)*2+5
	for _, target := range slices.Sorted(maps.Keys(o.image.Sources)) {
		info, err := os.Stat(o.image.Sources[target])
		if err != nil {
			return err
		}
		o.Files = append(o.Files, vminit.File{Path: target, Size: info.Size()})
		o.Plan.Mounts = append(o.Plan.Mounts, confine.Mount{Source: path.Join(vminit.CommandRoot, target), Target: target})
	}
	return nil
}

// weight returns how much of the machine's memory an order takes, in bytes.
func (o *order) weight() (sum int64) {
	for _, f := range o.Files {
		sum += f.Size
	}
	return sum + 2*o.Stdin
}

// open opens a file of an order.
func (o *order) open(f vminit.File) (io.ReadCloser, error) {
	if f.Path == o.command.Inside {
		return io.NopCloser(o.file), nil
	}
	return os.Open(o.image.Sources[f.Path])
}

// stands returns an error if the command's file changed before it was read.
func (o *order) stands() error { return o.command.Check(o.file) }

// command runs a command in a machine of its own.
func (b *backend) command(ctx context.Context, c sandbox.Command, l core.Limits) (sandbox.Ended, error) {
	found, absent := b.Commands.Find(c.Name)
	if absent != nil {
		return sandbox.Ended{}, absent
	}
	o, err := newOrder(found, c, l)
	if errors.Is(err, confine.ErrOther) {
		return sandbox.Ended{}, hostcmd.Other(c.Name)
	}
	if err != nil {
		return sandbox.Ended{}, hostcmd.Unstartable(c.Name, err)
	}
	defer o.file.Close()
	err = b.prepared(ctx, forCommands)
	var m *vm
	if err == nil {
		m, err = b.another(ctx, forCommands)
	}
	switch {
	case ctx.Err() != nil:
		if m != nil {
			_ = m.Close()
			<-m.gone
		}
		return sandbox.Ended{}, hostcmd.Cancelled(c.Name)
	case err != nil:
		return sandbox.Ended{}, err
	}
	return m.become(ctx, o, c, l)
}

// prepared waits until there is a machine to copy or ctx ends. Making the first one takes longer than many programs
// may run; it continues without them.
func (b *backend) prepared(ctx context.Context, runtime string) error {
	made := make(chan error, 1)
	go func() {
		_, err := b.images[runtime]()
		made <- err
	}()
	select {
	case err := <-made:
		if err != nil {
			return unusable(err)
		}
	case <-ctx.Done():
	}
	return ctx.Err()
}

// become runs a command in the machine and waits for the end of both.
func (m *vm) become(whole context.Context, o *order, c sandbox.Command, l core.Limits) (sandbox.Ended, error) {
	ctx, cancel := context.WithCancel(whole)
	defer cancel()
	stop := context.AfterFunc(ctx, m.Kill)
	defer stop()
	l.Memory += o.weight()
	m.Limit(l)
	stdout, stderr := hostcmd.NewOutput(sandbox.MaxStdout, cancel), hostcmd.NewOutput(sandbox.MaxStderr, cancel)
	err := o.Send(m.wire, o.open, c.Stdin, o.stands)
	end := vminit.End{Signal: int(syscall.SIGKILL)} // for a command that writes nothing more
	if err == nil {
		err = hear(m.wire, stdout, stderr, &end)
	}
	if err != nil && !errors.Is(err, confine.ErrOther) {
		err = m.whyNot(err)
	}
	_ = m.Close()
	<-m.gone
	ended := hostcmd.Ended(codeOf(end), stdout, stderr)
	switch {
	case m.outgrown.Load():
		return ended, hostcmd.Starved(c.Name)
	case whole.Err() != nil:
		return ended, hostcmd.Cancelled(c.Name)
	case errors.Is(err, confine.ErrOther):
		return sandbox.Ended{}, hostcmd.Other(c.Name)
	case ended.Truncated:
		return ended, nil
	case err != nil:
		return sandbox.Ended{}, hostcmd.Unstartable(c.Name, err)
	}
	return ended, hostcmd.Unstarted(c.Name, ended)
}

// hear copies the output of a command until the machine reports how it ended.
func hear(wire io.Reader, stdout, stderr io.Writer, end *vminit.End) error {
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

func codeOf(end vminit.End) int {
	if end.Signal != 0 {
		return 128 + end.Signal
	}
	return end.Status
}
