package confine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// listenerDescriptor is the number of the descriptor over which a child with network access sends its listener to the
// parent.
const listenerDescriptor = 4

// openNetwork opens a listener in the network namespace of this process, which has only a loopback device, and sends
// the listener to the parent. The parent accepts the connections outside the sandbox. Afterwards no process in the
// sandbox has the listener open.
func (p *SandboxPlan) openNetwork() error {
	if p.Network != Handed || p.Weak {
		return nil
	}
	defer unix.Close(listenerDescriptor)
	if err := raiseLoopback(); err != nil {
		return fmt.Errorf("loopback device: %w", err)
	}
	fd, err := listenProxyPort()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendmsg(listenerDescriptor, []byte{0}, unix.UnixRights(fd), nil, 0)
}

// listenProxyPort opens a listening socket at ProxyPort.
func listenProxyPort() (fd int, err error) {
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if err = unix.Bind(fd, &unix.SockaddrInet4{Port: ProxyPort, Addr: [4]byte{127, 0, 0, 1}}); err == nil {
		err = unix.Listen(fd, 128)
	}
	if err != nil {
		_ = unix.Close(fd)
	}
	return fd, err
}

func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}
