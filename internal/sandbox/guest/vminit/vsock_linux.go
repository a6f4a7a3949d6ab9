package vminit

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// openVsocks listens for connections from the host. The guest gets one end of a socket pair, and this process copies
// between the other end and the host's current connection. A direct connection of the guest could not be replaced
// when a copy of the machine is resumed.
func openVsocks() (control io.Writer, wire *os.File, err error) {
	listener, err := listenVsock(ControlVsock)
	if err != nil {
		return nil, nil, err
	}
	calls := &controlConn{listener: listener, there: make(chan struct{})}
	go calls.followHost()
	wires, err := listenVsock(WireVsock)
	if err != nil {
		return calls, nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return calls, nil, err
	}
	go forwardHosts(wires, pair[0])
	return calls, os.NewFile(uintptr(pair[1]), "wire"), nil
}

// listenVsock opens a socket that listens on a port of the machine's vsock.
func listenVsock(port uint32) (fd int, err error) {
	if fd, err = unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, fmt.Errorf("the machine has no vsock: %w", err)
	}
	if err = unix.Bind(fd, &unix.SockaddrVM{CID: unix.VMADDR_CID_ANY, Port: port}); err == nil {
		err = unix.Listen(fd, 1)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("listen for the host: %w", err)
	}
	return fd, nil
}

// acceptHost waits for a connection from the host.
func acceptHost(listener int) (int, error) {
	for {
		fd, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC)
		if err != unix.EINTR && err != unix.ECONNABORTED {
			return fd, err
		}
	}
}

// controlConn writes to the control connection that the host currently has open.
type controlConn struct {
	listener int

	mu    sync.Mutex
	conn  *os.File
	there chan struct{} // closed when the host has connected for the first time
}

// followHost handles the host's messages on its control connections, one connection after the other.
func (c *controlConn) followHost() {
	for {
		fd, err := acceptHost(c.listener)
		if err != nil {
			return
		}
		conn := os.NewFile(uintptr(fd), "control")
		c.mu.Lock()
		first := c.conn == nil
		c.conn = conn
		c.mu.Unlock()
		if first {
			close(c.there)
		}
		handleWakes(conn)
	}
}

// Write sends data to the host. If the host has no connection open, Write waits a limited time for a connection.
func (c *controlConn) Write(b []byte) (int, error) {
	select {
	case <-c.there:
	case <-time.After(portTimeout):
		return 0, os.ErrDeadlineExceeded
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn.Write(b)
}

// forwardHosts copies between the guest and the host's current connection until the guest closes its end. When the
// host connects again, it continues with the new connection.
func forwardHosts(listener, guest int) {
	for {
		host, err := acceptHost(listener)
		if err != nil {
			return
		}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			copyOneWay(guest, host)
		}()
		more := passOut(host, guest)
		_ = unix.Shutdown(host, unix.SHUT_RDWR)
		<-gone
		_ = unix.Close(host)
		if !more {
			return
		}
	}
}

const atOnce = 64 << 10

// copyOneWay copies data between two descriptors, in one direction, until one of them ends.
func copyOneWay(to, from int) {
	buffer := make([]byte, atOnce)
	for {
		n, err := unix.Read(from, buffer)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 || writeAll(to, buffer[:n]) != nil {
			return
		}
	}
}

// passOut copies the guest's output to the host until the guest or the host closes its connection. It returns true if
// the host has closed it. Output of the guest that was not read yet then waits for the host's next connection.
func passOut(host, guest int) (more bool) {
	buffer := make([]byte, atOnce)
	const ended = unix.POLLHUP | unix.POLLERR | unix.POLLRDHUP
	for {
		fds := []unix.PollFd{{Fd: int32(guest), Events: unix.POLLIN}, {Fd: int32(host), Events: unix.POLLRDHUP}}
		if _, err := unix.Poll(fds, -1); err == unix.EINTR {
			continue
		}
		if fds[1].Revents&ended != 0 {
			return true
		}
		n, err := unix.Read(guest, buffer)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 {
			return false
		}
		if writeAll(host, buffer[:n]) != nil {
			return true
		}
	}
}

func writeAll(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
