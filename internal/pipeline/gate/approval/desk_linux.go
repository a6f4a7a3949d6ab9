package approval

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// canTell says that this system tells who is at the other end of a socket.
func canTell() error { return nil }

func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT)
}

// trusted refuses whoever can't be the person at this machine.
func trusted(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var peer *syscall.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil {
		return err
	}
	switch {
	case failed != nil:
		return failed
	case int(peer.Uid) != os.Getuid():
		return errors.New("only the user who runs this engine can answer")
	case descends(int(peer.Pid), os.Getpid()):
		return errors.New("what the engine has started can't answer, nor can what that has started")
	}
	return nil
}

// descends reports whether a process is ancestor or was started by it, or that
// nobody can tell.
func descends(pid, ancestor int) bool {
	for range 1000 {
		if pid == ancestor {
			return true
		}
		if pid == 1 {
			return false
		}
		parent, err := parentOf(pid)
		if err != nil {
			return true
		}
		if parent == 0 {
			return false // the first process of this namespace
		}
		pid = parent
	}
	return true
}

func parentOf(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	end := strings.LastIndexByte(string(text), ')') // names may have anything in them
	fields := strings.Fields(string(text[end+1:]))
	if len(fields) < 2 {
		return 0, errors.New("no parent")
	}
	return strconv.Atoi(fields[1])
}

// place is where a socket is. Addresses of sockets are short: a long path is named
// by its open directory.
type place struct {
	path string
	dir  *os.File
}

func placeIn(dir, name string) (*place, error) {
	const most = 100
	p := &place{path: filepath.Join(dir, name)}
	if len(p.path) <= most {
		return p, nil
	}
	opened, err := os.Open(dir)
	p.dir = opened
	return p, err
}

func (p *place) address() string {
	if p.dir == nil {
		return p.path
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", p.dir.Fd(), filepath.Base(p.path))
}

func (p *place) close() {
	if p.dir != nil {
		_ = p.dir.Close()
	}
}
