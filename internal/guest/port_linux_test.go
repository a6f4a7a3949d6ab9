package guest

import (
	"bytes"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"retort/internal/wire"
)

// portHere is a port whose other side is a connection of the test's.
func portHere(t *testing.T) (*port, *wire.Conn) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	far := os.NewFile(uintptr(pair[1]), "host")
	t.Cleanup(func() { _ = unix.Close(pair[0]); _ = far.Close() })
	p, host := newPort(pair[0]), wire.NewConn(far)
	p.conn.Accept(wire.GuestSizes())
	host.Accept(wire.Sizes{wire.KindCall: 16 << 20})
	return p, host
}

func result(id uint32, size int) wire.Frame {
	return wire.Frame{Kind: wire.KindResult, ID: id, Body: bytes.Repeat([]byte("1"), size)}
}

// TestPortBothFull has both sides send more than fits between them, while the host listens
// only when it could send all it has.
func TestPortBothFull(t *testing.T) {
	const frames, size = 64, 256 << 10
	p, host := portHere(t)
	done := make(chan error, 1)
	go func() {
		err := host.Send(wire.Frame{Kind: wire.KindStart})
		for i := range frames {
			if err == nil {
				err = host.Send(result(uint32(i), size))
			}
		}
		for range frames {
			if err == nil {
				_, err = host.Read()
			}
		}
		done <- err
	}()
	go func() {
		<-time.After(20 * time.Second)
		_ = unix.Shutdown(p.fd, unix.SHUT_RDWR) // so that it fails rather than hangs
	}()
	if f, ok, _ := p.wait(time.Time{}); !ok || f.Kind != wire.KindStart {
		t.Fatalf("%v %v", f.Kind, ok)
	}
	for i := range frames {
		if err := p.conn.Send(wire.Frame{Kind: wire.KindCall, ID: uint32(i), Body: make([]byte, size)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range frames {
		if f, ok, open := p.wait(time.Time{}); !ok || !open || f.ID != uint32(i) || len(f.Body) != size {
			t.Fatalf("frame %d: %d, %d bytes, %v %v", i, f.ID, len(f.Body), ok, open)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestPortWaits shows when a port has something, and when it has nothing any more.
func TestPortWaits(t *testing.T) {
	p, host := portHere(t)
	if _, ok, open := p.wait(time.Now().Add(10 * time.Millisecond)); ok || !open || p.some() {
		t.Errorf("something came, or the host is gone: %v %v", ok, open)
	}
	for _, f := range []wire.Frame{{Kind: wire.KindStart}, result(1, 5), result(2, 5)} {
		if err := host.Send(f); err != nil {
			t.Fatal(err)
		}
	}
	if !p.some() {
		t.Error("nothing has come")
	}
	for i := range uint32(3) {
		f, ok, open := p.wait(time.Time{})
		if !ok || !open || f.ID != i {
			t.Errorf("frame %d: %v %v %v", i, f, ok, open)
		}
	}
	if _, ok, open := p.take(); ok || !open {
		t.Errorf("%v %v", ok, open)
	}
	_ = host.Send(wire.Frame{Kind: wire.KindStart}) // a second program
	if _, ok, open := p.wait(time.Time{}); ok || open {
		t.Errorf("a second program came: %v %v", ok, open)
	}
}

// TestPortGone has the host go while it is waited for.
func TestPortGone(t *testing.T) {
	p, host := portHere(t)
	time.AfterFunc(10*time.Millisecond, func() { _ = host.Close() })
	if _, ok, open := p.wait(time.Time{}); ok || open {
		t.Errorf("%v %v", ok, open)
	}
	if _, ok, open := p.wait(time.Time{}); ok || open {
		t.Errorf("the host is back: %v %v", ok, open)
	}
}

// TestOpenPort takes nothing for a port that is not one.
func TestOpenPort(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	if _, ok := openPort(in, out); ok {
		t.Error("a pipe is a port")
	}
	if _, ok := openPort(in, &bytes.Buffer{}); ok {
		t.Error("a buffer is a port")
	}
}
