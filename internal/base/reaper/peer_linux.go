package reaper

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNoTerminal is the error that CheckTerminal returns for a process that is not in the foreground of a terminal.
var ErrNoTerminal = errors.New("approval needs a terminal, and the answering process is not in the foreground of one")

// SocketPeer represents the process at the other end of a socket.
type SocketPeer struct {
	UID int // effective user id of the process
	processHandle
	start uint64
}

// PeerOf returns the process at the other end of the connection c. The caller must close the result.
func PeerOf(c *net.UnixConn) (*SocketPeer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	p := &SocketPeer{processHandle: processHandle{fd: -1}}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = p.identifySocket(int(fd)) }); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, failed
	}
	s, err := ReadStat(p.pid)
	if err != nil || s.isDead() {
		p.Close()
		return nil, errLineage
	}
	p.start = s.Start
	return p, nil
}

// identifySocket identifies the process at the other end of a socket. Since Linux 6.5 the kernel provides a process
// descriptor, which stays valid when the process has ended. Older kernels provide only the process id, which may by
// now belong to another process.
func (p *SocketPeer) identifySocket(socket int) error {
	credentials, err := unix.GetsockoptUcred(socket, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return err
	}
	p.UID, p.pid = int(credentials.Uid), int(credentials.Pid)
	if p.pid <= 0 {
		return errLineage // it is in a container that sees more than this process
	}
	fd, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	if err == unix.ENOPROTOOPT {
		fd, err = unix.PidfdOpen(p.pid, 0)
	}
	switch err {
	case nil:
		p.fd = fd
		unix.CloseOnExec(fd)
	case unix.ENOSYS: // before Linux 5.3
	default:
		return errLineage
	}
	return nil
}

// Close releases the descriptor of p.
func (p *SocketPeer) Close() { p.closeHandle() }

// CheckOrigin returns an error if an engine has started the peer, if the peer runs in a container, or if its origin
// cannot be determined.
func (p *SocketPeer) CheckOrigin() error {
	if err := CheckOrigin(p.pid); err != nil {
		return err
	}
	own, err := countNamespaces(os.Getpid())
	if err != nil {
		return err
	}
	its, err := countNamespaces(p.pid)
	if err != nil {
		return err
	}
	if its != own {
		return errors.New("a process in a container may not answer")
	}
	return p.checkAlive()
}

// CheckTerminal returns ErrNoTerminal unless the peer is in the foreground of its controlling terminal, where a
// person can type. It also returns an error if an engine has started the terminal's session.
func (p *SocketPeer) CheckTerminal() error {
	s, err := ReadStat(p.pid)
	if err != nil {
		return errLineage
	}
	if s.Terminal == 0 || s.Foreground != s.Group {
		return ErrNoTerminal
	}
	leader, err := ReadStat(s.Session)
	if err != nil || leader.Terminal != s.Terminal {
		return ErrNoTerminal
	}
	if err := CheckOrigin(leader.PID); err != nil {
		return err
	}
	return p.checkAlive()
}

// checkAlive returns an error if the peer has ended. In that case its process id may already belong to another
// process.
func (p *SocketPeer) checkAlive() error {
	s, err := ReadStat(p.pid)
	if err != nil || s.isDead() || s.Start != p.start || p.sendSignal(0) == unix.ESRCH {
		return errLineage
	}
	return nil
}

// countNamespaces returns the number of nested PID namespaces that a process is in. It counts from the namespace that
// this process's /proc shows.
func countNamespaces(pid int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, errLineage
	}
	for line := range strings.Lines(string(status)) {
		if ids, ok := strings.CutPrefix(line, "NSpid:"); ok {
			return len(strings.Fields(ids)), nil
		}
	}
	return 0, nil // before Linux 4.1
}
