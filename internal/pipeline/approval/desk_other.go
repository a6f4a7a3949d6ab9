//go:build !linux

package approval

import (
	"errors"
	"net"
	"path/filepath"
)

var errNoDesk = errors.New("retort approvals needs Linux, which identifies the process at the other end of a socket; answer in the client or in the terminal of retort run")

func canTell() error { return errNoDesk }

func refused(error) bool { return false }

type asker struct{}

func askerAt(*net.UnixConn) (asker, error) { return asker{}, errNoDesk }

func (asker) CheckTerminal() error { return errNoDesk }

func (asker) Close() {}

type place struct{ path string }

func placeIn(dir, name string) (*place, error) { return &place{filepath.Join(dir, name)}, nil }

func (p *place) address() string { return p.path }

func (p *place) close() {}
