package vminit

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"retort/internal/sandbox/confine"
)

// runOrder waits for an order, the host's message with a command, runs the command, and sends back the output and how
// the command ended. It starts the child that becomes the command in advance, because that takes longest on an
// emulated processor.
func (c *MachineConfig) runOrder(wire *os.File) error {
	said := &partWriter{to: wire}
	cmd := exec.Command(Program, append([]string{confine.Argument}, c.Command...)...)
	cmd.Stdout, cmd.Stderr = said.kindWriter(PartStdout), said.kindWriter(PartStderr)
	input, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	plan, err := startChild(cmd)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(wire, Ready); err != nil {
		return err
	}
	awaitInput(wire) // the machine is saved here
	o, stdin, err := receiveOrder(bufio.NewReaderSize(wire, maxPart), CommandRoot)
	if err != nil {
		return fmt.Errorf("the order: %w", err)
	}
	go func() {
		_, _ = input.Write(stdin) // or as much as the command takes
		_ = input.Close()
	}()
	if err := sendPlan(plan, o.Plan); err != nil {
		return err
	}
	_ = cmd.Wait() // how it ended is in ProcessState
	end, err := json.Marshal(endOf(cmd))
	if err != nil {
		return err
	}
	_, err = said.kindWriter(PartEnd).Write(end)
	return err
}

// receiveOrder reads an order, the host's message with a command, and creates the files of the command below root.
func receiveOrder(r io.Reader, root string) (o CommandOrder, stdin []byte, err error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return o, nil, err
	}
	head := make([]byte, min(binary.BigEndian.Uint32(length[:]), maxOrder))
	if _, err := io.ReadFull(r, head); err != nil {
		return o, nil, err
	}
	if err := json.Unmarshal(head, &o); err != nil {
		return o, nil, err
	}
	for _, f := range o.Files {
		if err := f.makeFile(r, root); err != nil {
			return o, nil, err
		}
	}
	rest := make([]byte, o.Stdin+1)
	if _, err := io.ReadFull(r, rest); err != nil {
		return o, nil, err
	}
	if rest[o.Stdin] != standsBy {
		return o, nil, errors.New("the host did not confirm it")
	}
	return o, rest[:o.Stdin], nil
}

func (f OrderFile) makeFile(content io.Reader, root string) error {
	place := filepath.Join(root, f.Path)
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		return err
	}
	to, err := os.OpenFile(place, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.CopyN(to, content, f.Size)
	return errors.Join(err, to.Close())
}

// partWriter sends a command's result back in parts: pieces of its output, and the end of the command. It is safe for
// concurrent use.
type partWriter struct {
	mu sync.Mutex
	to io.Writer
}

// kindWriter returns a writer whose data is sent as parts of one kind.
func (p *partWriter) kindWriter(kind byte) io.Writer { return &kindPartWriter{p, kind} }

type kindPartWriter struct {
	*partWriter
	kind byte
}

func (p *kindPartWriter) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for done := 0; done < len(b); {
		piece := b[done:min(done+maxPart, len(b))]
		if _, err := p.to.Write(append(binary.BigEndian.AppendUint32([]byte{p.kind}, uint32(len(piece))), piece...)); err != nil {
			return done, err
		}
		done += len(piece)
	}
	return len(b), nil
}
