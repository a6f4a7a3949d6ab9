package vm

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"retort/internal/sandbox/wire/shm"
)

// ports holds the connections with one machine and with its monitor. QEMU's are socket pairs, which have no names
// that others could find. Firecracker makes its own.
type ports struct {
	wire, control, monitor *os.File
	far                    []*os.File // the monitor's ends, its descriptors 3, 4 and 5
	answers, events        *bufio.Reader

	shared *shm.Memory // nil if the machine shares none

	// Of the program, once it runs: its number, and when it has ended.
	pid  int
	over chan struct{}
}

// longest bounds a line from a machine, which is not trusted once a program runs in it, or from the monitor. A longer
// line is an error and is not stored.
const longest = 64 << 10

func newPorts() (*ports, error) {
	p := &ports{}
	for _, near := range []**os.File{&p.wire, &p.control, &p.monitor} {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			p.close()
			return nil, err
		}
		*near = os.NewFile(uintptr(pair[0]), "machine")
		p.far = append(p.far, os.NewFile(uintptr(pair[1]), "machine"))
	}
	p.answers, p.events = bufio.NewReaderSize(p.monitor, longest), bufio.NewReaderSize(p.control, longest)
	return p, nil
}

// started closes this process's copies of the monitor's ends.
func (p *ports) started() {
	for _, f := range p.far {
		_ = f.Close()
	}
	p.far = nil
}

func (p *ports) close() {
	p.started()
	for _, f := range []*os.File{p.wire, p.control, p.monitor} {
		if f != nil {
			_ = f.Close()
		}
	}
	_ = p.shared.Close()
}

// command is a command of QEMU's monitor protocol.
type command struct {
	Execute   string `json:"execute"`
	Arguments any    `json:"arguments,omitempty"`
}

// answer is a message of the monitor: a return value, an error or an event.
type answer struct {
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Desc string `json:"desc"`
	} `json:"error"`
	Event string `json:"event"`
}

// tell makes the monitor execute commands one after the other and returns the last result. Unless until is empty, it
// also waits for the event of that name.
func (p *ports) tell(until string, commands ...command) (last json.RawMessage, err error) {
	var text []byte
	for _, c := range commands {
		data, err := json.Marshal(c)
		if err != nil {
			return nil, err
		}
		text = append(append(text, data...), '\n')
	}
	if _, err := p.monitor.Write(text); err != nil {
		return nil, err
	}
	return p.hear(until, len(commands))
}

// hear waits for the answers to commands and for an event.
func (p *ports) hear(until string, commands int) (last json.RawMessage, err error) {
	happened := until == ""
	for n := 0; n < commands || !happened; {
		line, err := p.answers.ReadSlice('\n')
		if err != nil {
			return nil, fmt.Errorf("QEMU's monitor: %w", err)
		}
		var a answer
		if err := json.Unmarshal(line, &a); err != nil {
			return nil, err
		}
		switch {
		case a.Error != nil:
			return nil, errors.New("QEMU: " + a.Error.Desc)
		case a.Event != "":
			happened = happened || a.Event == until
		case a.Return != nil:
			last = a.Return
			n++
		}
	}
	return last, nil
}

// give sends QEMU an open file under a name.
func (p *ports) give(name string, f *os.File) error {
	data, err := json.Marshal(command{"getfd", map[string]string{"fdname": name}})
	if err != nil {
		return err
	}
	raw, err := p.monitor.SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Write(func(fd uintptr) bool {
		err = unix.Sendmsg(int(fd), append(data, '\n'), unix.UnixRights(int(f.Fd())), nil, 0)
		return err != unix.EAGAIN
	})
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	_, err = p.hear("", 1)
	return err
}
