package vminit

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"retort/internal/sandbox/confine"
)

const (
	// Ready is the first message of a machine for commands. It means that the machine waits for a CommandOrder.
	Ready = "retort machine: waiting for a command\n"
	// CommandRoot is the folder in the machine in which the files of a CommandOrder are created.
	CommandRoot = "/command"
)

// CommandOrder describes the single command that a machine for commands runs. The host sends, one after the other:
// the length of the order's JSON in four bytes, the JSON, the contents of the files, the standard input, and one byte
// that confirms the order. The machine starts nothing without that byte.
type CommandOrder struct {
	Files []OrderFile
	Plan  confine.SandboxPlan // confinement of the command; the sources of its mounts are relative to CommandRoot
	Stdin int64               // size of the standard input, in bytes
}

// OrderFile describes a file that is created in the machine for a command. Every user may read and execute it.
type OrderFile struct {
	Path string // absolute path of the file for the command
	Size int64  // size of the file, in bytes
}

// The kinds of parts in which a machine sends back a command's result. The parts carry the command's output while it
// is written, and then the end of the command as JSON. Each part consists of a byte for its kind, its length as four
// bytes in big-endian order, and the data.
const (
	PartStdout = 'o'
	PartStderr = 'e'
	PartEnd    = 'x'
)

const (
	maxOrder = 1 << 20  // maximum size of an order's JSON, in bytes
	maxPart  = 64 << 10 // maximum size of one part, in bytes
	standsBy = '\n'
)

// SendTo sends the order to the machine. It opens each file with the function open, in their order, and closes it.
// After all files it calls the function stands, which checks that the files have not changed. If stands returns an
// error, the order is not confirmed, so the machine does not run it.
func (o *CommandOrder) SendTo(to io.Writer, open func(OrderFile) (io.ReadCloser, error), stdin []byte, stands func() error) error {
	head, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if len(head) > maxOrder {
		return fmt.Errorf("its arguments exceed %d bytes", maxOrder)
	}
	w := bufio.NewWriterSize(to, maxPart)
	_, _ = w.Write(binary.BigEndian.AppendUint32(nil, uint32(len(head))))
	_, _ = w.Write(head)
	for _, f := range o.Files {
		if err := f.sendFile(w, open); err != nil {
			return err
		}
	}
	if err := stands(); err != nil {
		return err
	}
	_, _ = w.Write(stdin)
	_ = w.WriteByte(standsBy)
	return w.Flush() // also returns the error of earlier writes
}

func (f OrderFile) sendFile(w io.Writer, open func(OrderFile) (io.ReadCloser, error)) error {
	from, err := open(f)
	if err != nil {
		return err
	}
	_, err = io.CopyN(w, from, f.Size)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%s became shorter while Retort read it", f.Path)
	}
	return errors.Join(err, from.Close())
}

// ReadPart reads the next part that a machine sends. A part is a piece of a command's result. ReadPart returns an
// error if the input is not a valid part.
func ReadPart(r *bufio.Reader) (kind byte, data []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	switch kind = head[0]; {
	case kind != PartStdout && kind != PartStderr && kind != PartEnd:
		return 0, nil, fmt.Errorf("the machine sent an unknown kind of part: %q", kind)
	case n > maxPart:
		return 0, nil, fmt.Errorf("the machine announced a part of %d bytes", n)
	}
	data = make([]byte, n)
	_, err = io.ReadFull(r, data)
	return kind, data, err
}
