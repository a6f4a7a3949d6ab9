package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"retort/internal/core"
	"retort/internal/sandbox"
)

// proxyPort is the port on the loopback device at which programs with network access reach their proxy.
const proxyPort = 3128

// connectAttempt returns an attempt to connect to an IPv4 address. It waits until the peer sends something or closes
// the connection, which proves that the peer has accepted it.
func connectAttempt(name string, port int, address ...byte) escapeAttempt {
	return escapeAttempt{name, func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err = unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte(address)}); errors.Is(err, unix.EINPROGRESS) {
			err = waitConnected(fd)
		}
		if err == nil {
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		}
		return err
	}}
}

// waitConnected waits until a non-blocking connection is established. It returns an error if the connection fails or
// takes longer than two seconds.
func waitConnected(fd int) error {
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 2000); n == 0 || err != nil {
		return errors.New("nobody answers")
	}
	code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil || code != 0 {
		return unix.Errno(code)
	}
	return nil
}

// networkAttempts returns attempts to reach a network. A sandbox must block all of them, except the connection to the
// proxy if the program has one.
func networkAttempts() []escapeAttempt {
	list := []escapeAttempt{
		connectAttempt("the proxy", proxyPort, 127, 0, 0, 1), connectAttempt("another port", 22, 127, 0, 0, 1),
		connectAttempt("another loopback address", proxyPort, 127, 0, 0, 2),
		connectAttempt("an address elsewhere", 443, 198, 51, 100, 1),
		connectAttempt("the engine's port", 7337, 127, 0, 0, 1),
		syscallAttempt("a socket: IPv4 raw", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP),
		syscallAttempt("a socket: MPTCP", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 262),
		syscallAttempt("a socket: SCTP", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 132),
		syscallAttempt("a socket: ping", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP),
		syscallAttempt("a socket: SEQPACKET", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_SEQPACKET, 0),
	}
	list = append(list, escapeAttempt{"open the memory of the first process", func() error {
		fd, err := unix.Open("/proc/1/mem", unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}})
	return append(list, escapeAttempt{"listen", func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		return unix.Listen(fd, 1)
	}})
}

// echoProxy implements a ToolHost and ConnectionProxy that sends a greeting on each connection and then echoes what
// it receives.
type echoProxy struct {
	sandbox.HostFunc
	served atomic.Int64
}

func (p *echoProxy) ServeConn(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	p.served.Add(1)
	_, _ = io.WriteString(conn, "hello")
	_, _ = io.Copy(conn, conn)
}

// NetworkedEscapes works like CheckEscapes, for a guest whose programs have network access. Unlike all others, two
// attempts must succeed: creating an IPv4 socket, and connecting to the proxy if the ToolHost is a ConnectionProxy.
// The argument leftOut names attempts to skip.
func NetworkedEscapes(t *testing.T, b sandbox.Backend, runtime string, leftOut ...string) {
	t.Helper()
	h := &echoProxy{HostFunc: echo}
	code := strings.Join(append([]string{makeSecret(t)}, leftOut...), "\n")
	open := []string{"OPEN a socket: IPv4", "OPEN the proxy"}
	var rest []string
	for line := range strings.Lines(triedWith(t, b, runtime, code, h)) {
		if i := slices.Index(open, strings.TrimSpace(line)); i >= 0 {
			open = slices.Delete(open, i, i+1)
			continue
		}
		rest = append(rest, line)
	}
	CheckProbe(t, strings.Join(rest, ""), 100)
	if len(open) > 0 || h.served.Load() != 1 {
		t.Errorf("closed: %v; %d connections arrived", open, h.served.Load())
	}
	// Without a Proxy a connection may be established, because something listens, but it ends immediately. What
	// matters is that it leads nowhere.
	h.served.Store(0)
	triedWith(t, b, runtime, code, echo)
	if h.served.Load() != 0 {
		t.Error("there is a proxy for an invalid host")
	}
}

// networkCode is a Python program that opens several connections concurrently while it makes calls with large results.
// It stops reading one of the connections.
const networkCode = `
import asyncio, hashlib, os, socket, threading
at = os.environ["HTTPS_PROXY"].rpartition("/")[2].split(":")
at = (at[0], int(at[1]))
def greeted(s):
    text = b""
    while len(text) < 5:
        text += s.recv(5 - len(text))
    assert text == b"hello", text
def whole(n):
    want = bytes([n]) * (700_000 + n)
    s = socket.socket()
    s.connect(at)
    greeted(s)
    def send():
        s.sendall(want)
        s.shutdown(socket.SHUT_WR)
    sender = threading.Thread(target=send)
    sender.start()
    got = b""
    while True:
        some = s.recv(1 << 16)
        if not some:
            break
        got += some
    sender.join()
    s.close()
    done.append(got == want)
done = []
stuck = socket.socket()
stuck.connect(at)
greeted(stuck)
stuck.settimeout(0.2)
try:
    while True:
        stuck.sendall(b"x" * 100_000)
except TimeoutError:
    pass
threads = [threading.Thread(target=whole, args=(n,)) for n in range(8)]
for t in threads:
    t.start()
lengths = [len(search_tools("x" * 100_000)["query"]) for _ in range(5)]
for t in threads:
    t.join()
for n in range(200):
    s = socket.socket()
    s.connect(at)
    greeted(s)
    s.close()
result = [len(done), all(done), sum(lengths)]
`

// CheckConnections tests the network connections of a Python program. They must carry data unchanged, and must not
// block each other or concurrent calls.
func CheckConnections(t *testing.T, b sandbox.Backend) {
	t.Helper()
	large := sandbox.HostFunc(func(_ context.Context, c core.ToolCall) (core.CallResult, error) {
		return core.CallResult{Value: bytes.Clone(c.Arguments)}, nil
	})
	h := &echoProxy{HostFunc: large}
	l := core.Limits{Timeout: hangTimeout, Memory: 256 << 20}.WithDefaults(core.DefaultLimits())
	s, err := b.Prepare(context.Background(), sandbox.SandboxSpec{Runtime: "python", Limits: l, Proxied: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Run(context.Background(), core.CheckedProgram{Code: networkCode, Name: "program", Limits: l}, h)
	if err != nil || r.Status != core.StatusOK || string(r.Value) != "[8,true,500000]" {
		t.Errorf("%v %s %s %v\n%s", err, r.Status, r.Value, r.Error, r.Output)
	}
	if n := h.served.Load(); n != 209 {
		t.Errorf("%d connections arrived", n)
	}
}
