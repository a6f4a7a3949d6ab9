//go:build !linux

package guest

import (
	"io"

	"retort/internal/sandbox/wire"
)

// portConn has no function on this system. It exists because shared code names the type.
type portConn struct {
	channelInbox
	conn *wire.FrameConn
	idle func()
}

func openPort(io.Reader, io.Writer) (p *portConn, ok bool) { return nil, false }

func (*portConn) hangUp() {}

func (*portConn) setEmulated() {}
