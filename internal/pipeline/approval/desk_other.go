//go:build !linux

package approval

import (
	"errors"
	"net"
	"path/filepath"
)

var errNoDesk = errors.New(
	"retort approvals needs Linux, where Retort can identify the process at the other end of a socket; answer in the client or in the terminal of retort run",
)

func canTell() error { return errNoDesk }

func isRefused(error) bool { return false }

type connectedProcess struct{}

func askerAt(*net.UnixConn) (connectedProcess, error) { return connectedProcess{}, errNoDesk }

func (connectedProcess) CheckTerminal() error { return errNoDesk }

func (connectedProcess) Close() {}

type socketPlace struct{ path string }

func placeIn(dir, name string) (*socketPlace, error) {
	return &socketPlace{filepath.Join(dir, name)}, nil
}

func (p *socketPlace) socketAddress() string { return p.path }

func (p *socketPlace) close() {}
