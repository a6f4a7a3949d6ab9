//go:build !linux

package guest

import (
	"io"

	"retort/internal/sandbox/wire"
)

// portConn does nothing on this system: ports are for virtual machines, whose kernel is Linux.
type portConn struct {
	channelInbox
	conn *wire.FrameConn
	idle func()
}

func openPort(io.Reader, io.Writer) (p *portConn, ok bool) { return nil, false }

func (*portConn) hangUp() {}

func (*portConn) setEmulated() {}
