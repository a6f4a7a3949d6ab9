//go:build !linux

package guest

import (
	"io"

	"retort/internal/sandbox/wire"
)

// port does nothing on this system: ports are for virtual machines, whose kernel is Linux.
type port struct {
	channel
	conn *wire.Conn
	idle func()
}

func openPort(io.Reader, io.Writer) (p *port, ok bool) { return nil, false }

func (*port) hangUp() {}

func (*port) emulated() {}
