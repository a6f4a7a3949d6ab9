package process

import (
	"context"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"retort/internal/sandbox"
	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/interpreter"
)

// maxConnections is how many of a program's connections are taken at once.
const maxConnections = 128

// join adds a network to a plan.
func join(n *interpreter.Network, p *confine.Plan) {
	env, authorities := n.Join(p.Env, confine.ProxyPort)
	p.Network, p.Env = confine.Handed, env
	if authorities != "" {
		p.Mounts = append(p.Mounts, confine.Mount{Source: authorities, Target: interpreter.CertificatesPath})
	}
}

// networked gives a child the right to raise the loopback device of its own namespace, where
// it keeps no other over exec.
func networked(a *syscall.SysProcAttr) {
	if len(a.AmbientCaps) > 0 {
		a.AmbientCaps = append(a.AmbientCaps, unix.CAP_NET_ADMIN)
	}
}

// descriptorPair is a way for descriptors from a child (far) to here (near).
func descriptorPair() (near, far *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "listener"), os.NewFile(uintptr(fds[1]), "listener"), nil
}

func closeFile(f *os.File) {
	if f != nil {
		_ = f.Close()
	}
}

// received is the listener that a child has sent before it was ready; nil if it has none.
func (c *child) received() net.Listener {
	if c.listener == nil {
		return nil
	}
	raw, err := c.listener.SyscallConn()
	if err != nil {
		return nil
	}
	var found net.Listener
	err = raw.Control(func(fd uintptr) {
		data, control := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
		_, n, _, _, err := unix.Recvmsg(int(fd), data, control, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
		if err == nil {
			found = listenerIn(control[:n])
		}
	})
	if err != nil {
		return nil
	}
	return found
}

func listenerIn(control []byte) net.Listener {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil || len(messages) != 1 {
		return nil
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil
	}
	f := os.NewFile(uintptr(fds[0]), "listener")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil
	}
	return l
}

// lead leads the connections that the program opens to its proxy to h, if it is one, until
// shut is called, which returns when none is left.
func (c *child) lead(h sandbox.Host) (shut func()) {
	l := c.received()
	if l == nil {
		return func() {}
	}
	proxy, ok := h.(sandbox.Proxy)
	if !ok {
		_ = l.Close()
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		free := make(chan struct{}, maxConnections)
		for {
			free <- struct{}{}
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				proxy.ServeConn(ctx, conn)
				<-free
			})
		}
	})
	return func() {
		cancel()
		_ = l.Close()
		all.Wait()
	}
}
