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

// machinePorts holds the connections to one machine and to its monitor. The connections to QEMU are socket pairs,
// which have no names that other processes could find. Firecracker creates its own sockets.
type machinePorts struct {
	wire, control, monitor *os.File
	// far holds the monitor's ends of the connections. The monitor inherits them as descriptors 3, 4 and 5.
	far             []*os.File
	answers, events *bufio.Reader

	shared *shm.SharedMemory // memory that the machine shares with the engine; nil if it shares no memory

	// pid is the process id of the monitor once the monitor runs. over is closed when the monitor has ended.
	pid  int
	over chan struct{}
}

// maxLineLength bounds the length of a line from the monitor or from a machine, in bytes. Neither of them is trusted
// once a program runs in the machine. A longer line is an error and is not stored.
const maxLineLength = 64 << 10

func newPorts() (*machinePorts, error) {
	p := &machinePorts{}
	for _, near := range []**os.File{&p.wire, &p.control, &p.monitor} {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			p.closeAll()
			return nil, err
		}
		*near = os.NewFile(uintptr(pair[0]), "machine")
		p.far = append(p.far, os.NewFile(uintptr(pair[1]), "machine"))
	}
	p.answers, p.events = bufio.NewReaderSize(p.monitor, maxLineLength), bufio.NewReaderSize(p.control, maxLineLength)
	return p, nil
}

// closeProgramEnds closes this process's copies of the monitor's ends of the socket pairs, after the monitor has
// inherited them.
func (p *machinePorts) closeProgramEnds() {
	for _, f := range p.far {
		_ = f.Close()
	}
	p.far = nil
}

func (p *machinePorts) closeAll() {
	p.closeProgramEnds()
	for _, f := range []*os.File{p.wire, p.control, p.monitor} {
		if f != nil {
			_ = f.Close()
		}
	}
	_ = p.shared.Close()
}

// monitorCommand represents a command of QEMU's monitor protocol.
type monitorCommand struct {
	Execute   string `json:"execute"`
	Arguments any    `json:"arguments,omitempty"`
}

// monitorAnswer represents a message from QEMU's monitor: a return value, an error or an event.
type monitorAnswer struct {
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Desc string `json:"desc"`
	} `json:"error"`
	Event string `json:"event"`
}

// runMonitor lets QEMU's monitor execute commands one after the other and returns the last result. If the argument
// until is not empty, runMonitor also waits for the event of that name.
func (p *machinePorts) runMonitor(until string, commands ...monitorCommand) (last json.RawMessage, err error) {
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
	return p.readMonitor(until, len(commands))
}

// readMonitor reads messages from QEMU's monitor until the monitor has answered the given number of commands and, if
// the argument until is not empty, has reported the event of that name. It returns the result of the last command.
func (p *machinePorts) readMonitor(until string, commands int) (last json.RawMessage, err error) {
	happened := until == ""
	for n := 0; n < commands || !happened; {
		line, err := p.answers.ReadSlice('\n')
		if err != nil {
			return nil, fmt.Errorf("QEMU's monitor: %w", err)
		}
		var a monitorAnswer
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

// sendFile passes an open file to QEMU, together with the name by which later commands refer to it.
func (p *machinePorts) sendFile(name string, f *os.File) error {
	data, err := json.Marshal(monitorCommand{"getfd", map[string]string{"fdname": name}})
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
	_, err = p.readMonitor("", 1)
	return err
}
