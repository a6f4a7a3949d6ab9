package isolatetest

import (
	"errors"

	"golang.org/x/sys/unix"
)

// proxyPort is where programs with a network find the proxy on the loopback device.
const proxyPort = 3128

// connecting says whether a connection can be made to an address of IPv4.
func connecting(name string, port int, address ...byte) attempt {
	return attempt{name, func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		err = unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte(address)})
		if !errors.Is(err, unix.EINPROGRESS) {
			return err
		}
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		if n, err := unix.Poll(ready, 2000); n == 0 || err != nil {
			return errors.New("nobody answers")
		}
		code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err != nil || code != 0 {
			return unix.Errno(code)
		}
		return nil
	}}
}

// networkAttempts are ways out of a network. Only the proxy's may be open, and only where
// there is one.
func networkAttempts() []attempt {
	list := []attempt{
		connecting("the proxy", proxyPort, 127, 0, 0, 1), connecting("another port", 22, 127, 0, 0, 1), connecting("another loopback address", proxyPort, 127, 0, 0, 2), connecting("an address elsewhere", 443, 198, 51, 100, 1), connecting("the engine's port", 7337, 127, 0, 0, 1),
		calling("a socket: IPv4 raw", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP), calling("a socket: MPTCP", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 262), calling("a socket: SCTP", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 132),
		calling("a socket: ping", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP), calling("a socket: SEQPACKET", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_SEQPACKET, 0),
	}
	return append(list, attempt{"listen", func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		return unix.Listen(fd, 1)
	}})
}
