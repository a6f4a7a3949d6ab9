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

// maxConnections bounds the concurrent connections of a program.
const maxConnections = 128

// addNetwork changes a child's confinement plan so that the child can reach the network proxy. It adds the
// environment variables that name the proxy, and mounts a file of trusted certificates if the host has one.
func addNetwork(n *interpreter.ProxyNetwork, p *confine.SandboxPlan) {
	env, authorities := n.ProxyEnvironment(p.Env, confine.ProxyPort)
	p.Network, p.Env = confine.Handed, env
	if authorities != "" {
		p.Mounts = append(p.Mounts, confine.PlanMount{Source: authorities, Target: interpreter.CertificatesPath})
	}
}

// allowLoopback lets a child bring up the loopback device of its own network namespace. The child loses this
// capability when it executes the interpreter.
func allowLoopback(a *syscall.SysProcAttr) {
	if len(a.AmbientCaps) > 0 {
		a.AmbientCaps = append(a.AmbientCaps, unix.CAP_NET_ADMIN)
	}
}

// descriptorPair returns the two ends of a socket pair over which a child can send descriptors to this process. The
// child gets the end far, and this process keeps the end near.
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

// receivedListener returns the network listener that a child sent before it was ready, or nil if the child sent none.
func (c *guestChild) receivedListener() net.Listener {
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

// ForwardConnections implements warmpool.ConnectionForwarder.
func (c *guestChild) ForwardConnections(proxy sandbox.ConnectionProxy) (shut func()) {
	l := c.receivedListener()
	if l == nil {
		return func() {}
	}
	if proxy == nil {
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
