package approval

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"retort/internal/base/reaper"
)

// canTell returns nil, because Linux can tell which process is at the other end of a socket. On other systems it
// returns an error.
func canTell() error { return nil }

func isRefused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT)
}

// connectedProcess describes the process that has connected to the approval socket.
type connectedProcess struct{ *reaper.SocketPeer }

// askerAt identifies the process at the other end of a connection. It returns an error for a process of another user,
// or one that an engine has started.
func askerAt(c *net.UnixConn) (connectedProcess, error) {
	p, err := reaper.PeerOf(c)
	if err != nil {
		return connectedProcess{}, err
	}
	if p.UID != os.Getuid() {
		err = errors.New("only the user who runs this engine can answer")
	} else {
		err = p.CheckOrigin()
	}
	if err != nil {
		p.Close()
		return connectedProcess{}, err
	}
	return connectedProcess{p}, nil
}

// socketPlace holds the path of a socket. If the path is longer than the system allows for sockets, it also holds the
// socket's folder as an open file, so that a short path through /proc/self/fd leads to the socket.
type socketPlace struct {
	path string
	dir  *os.File
}

func placeIn(dir, name string) (*socketPlace, error) {
	const most = 100
	p := &socketPlace{path: filepath.Join(dir, name)}
	if len(p.path) <= most {
		return p, nil
	}
	opened, err := os.Open(dir)
	p.dir = opened
	return p, err
}

func (p *socketPlace) socketAddress() string {
	if p.dir == nil {
		return p.path
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", p.dir.Fd(), filepath.Base(p.path))
}

func (p *socketPlace) close() {
	if p.dir != nil {
		_ = p.dir.Close()
	}
}
