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

// obey waits for an order, runs its command and sends its output and how it ended. The child that becomes the command
// is started in advance, because starting it takes longest on an emulated processor.
func (c *Config) obey(wire *os.File) error {
	said := &parts{to: wire}
	cmd := exec.Command(Program, append([]string{confine.Argument}, c.Command...)...)
	cmd.Stdout, cmd.Stderr = said.of(PartStdout), said.of(PartStderr)
	input, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	plan, err := start(cmd)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(wire, Ready); err != nil {
		return err
	}
	awaitInput(wire) // the machine is saved here
	o, stdin, err := receive(bufio.NewReaderSize(wire, maxPart), CommandRoot)
	if err != nil {
		return fmt.Errorf("the order: %w", err)
	}
	go func() {
		_, _ = input.Write(stdin) // or as much as the command takes
		_ = input.Close()
	}()
	if err := tell(plan, o.Plan); err != nil {
		return err
	}
	_ = cmd.Wait() // how it ended is in ProcessState
	end, err := json.Marshal(endOf(cmd))
	if err != nil {
		return err
	}
	_, err = said.of(PartEnd).Write(end)
	return err
}

// receive reads an order and creates its files below root.
func receive(r io.Reader, root string) (o Order, stdin []byte, err error) {
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
		if err := f.make(r, root); err != nil {
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

func (f File) make(content io.Reader, root string) error {
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

// parts writes the parts that are sent back. It is used by several goroutines.
type parts struct {
	mu sync.Mutex
	to io.Writer
}

// of returns a writer of parts of one kind.
func (p *parts) of(kind byte) io.Writer { return &part{p, kind} }

type part struct {
	*parts
	kind byte
}

func (p *part) Write(b []byte) (int, error) {
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
