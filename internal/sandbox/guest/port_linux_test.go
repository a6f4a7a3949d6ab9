package guest

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"retort/internal/devel/testenv"
	"retort/internal/sandbox/wire"
)

// ports lists the kinds of ports by name. Each value is a function that opens the files of a port: one file for both
// directions, as in a virtual machine, or two.
var ports = map[string]func(*testing.T) (in, out, hostIn, hostOut *os.File){
	"a socket": func(t *testing.T) (in, out, hostIn, hostOut *os.File) {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		guest, host := os.NewFile(uintptr(pair[0]), "guest"), os.NewFile(uintptr(pair[1]), "host")
		return guest, guest, host, host
	},
	"pipes": func(t *testing.T) (in, out, hostIn, hostOut *os.File) {
		in, hostOut, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if hostIn, out, err = os.Pipe(); err != nil {
			t.Fatal(err)
		}
		return in, out, hostIn, hostOut
	},
}

// both combines the two directions of a connection into one io.ReadWriter.
type both struct{ in, out *os.File }

func (b both) Read(data []byte) (int, error)  { return b.in.Read(data) }
func (b both) Write(data []byte) (int, error) { return b.out.Write(data) }
func (b both) Close() error {
	_ = b.in.Close()
	_ = b.out.Close()
	return nil
}

// eachPort runs a test with each kind of port, and with the host's end of its connection.
func eachPort(t *testing.T, test func(t *testing.T, p *portConn, host *wire.FrameConn)) {
	for name, files := range ports {
		t.Run(name, func(t *testing.T) {
			in, out, hostIn, hostOut := files(t)
			p, ok := openPort(in, out)
			if !ok {
				t.Fatal("this is no port")
			}
			host := wire.NewConn(both{hostIn, hostOut})
			t.Cleanup(func() { _, _ = host.Close(), both{in, out}.Close() })
			p.conn.Accept(wire.GuestSizes())
			host.Accept(wire.FrameSizes{wire.KindCall: 16 << 20})
			test(t, p, host)
		})
	}
}

func result(id uint32, size int) wire.Frame {
	return wire.Frame{Kind: wire.KindResult, ID: id, Body: bytes.Repeat([]byte("1"), size)}
}

// TestPortBothFull checks that no deadlock occurs if both sides send more than the connection can hold and the host
// reads nothing before it has sent everything.
func TestPortBothFull(t *testing.T) { eachPort(t, portBothFull) }

func portBothFull(t *testing.T, p *portConn, host *wire.FrameConn) {
	const frames, size = 64, 256 << 10
	done := make(chan error, 1)
	go func() {
		err := host.SendFrame(wire.Frame{Kind: wire.KindStart})
		for i := range frames {
			if err == nil {
				err = host.SendFrame(result(uint32(i), size))
			}
		}
		for range frames {
			if err == nil {
				_, err = host.Read()
			}
		}
		done <- err
	}()
	if f, ok, _ := p.waitFrame(time.Time{}); !ok || f.Kind != wire.KindStart {
		t.Fatalf("%v %v", f.Kind, ok)
	}
	for i := range frames {
		if err := p.conn.SendFrame(wire.Frame{Kind: wire.KindCall, ID: uint32(i), Body: make([]byte, size)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range frames {
		if f, ok, open := p.waitFrame(time.Time{}); !ok || !open || f.ID != uint32(i) || len(f.Body) != size {
			t.Fatalf("frame %d: %d, %d bytes, %v %v", i, f.ID, len(f.Body), ok, open)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestPortWaits checks that a port reports whether frames have arrived, returns them in order, and closes at an
// unexpected frame.
func TestPortWaits(t *testing.T) { eachPort(t, portWaits) }

func portWaits(t *testing.T, p *portConn, host *wire.FrameConn) {
	if _, ok, open := p.waitFrame(time.Now().Add(time.Millisecond)); ok || !open || p.hasFrame() {
		t.Errorf("something came, or the host is gone: %v %v", ok, open)
	}
	for _, f := range []wire.Frame{{Kind: wire.KindStart}, result(1, 5), result(2, 5)} {
		if err := host.SendFrame(f); err != nil {
			t.Fatal(err)
		}
	}
	if !p.hasFrame() {
		t.Error("nothing has come")
	}
	for i := range uint32(3) {
		f, ok, open := p.waitFrame(time.Time{})
		if !ok || !open || f.ID != i {
			t.Errorf("frame %d: %v %v %v", i, f, ok, open)
		}
	}
	if _, ok, open := p.takeFrame(); ok || !open {
		t.Errorf("%v %v", ok, open)
	}
	_ = host.SendFrame(wire.Frame{Kind: wire.KindStart}) // a second program
	if _, ok, open := p.waitFrame(time.Time{}); ok || open {
		t.Errorf("a second program came: %v %v", ok, open)
	}
}

// TestPortGone checks that waitFrame returns if the host closes the connection.
func TestPortGone(t *testing.T) { eachPort(t, portGone) }

func portGone(t *testing.T, p *portConn, host *wire.FrameConn) {
	go host.Close()
	if _, ok, open := p.waitFrame(time.Time{}); ok || open {
		t.Errorf("%v %v", ok, open)
	}
	if _, ok, open := p.waitFrame(time.Time{}); ok || open {
		t.Errorf("the host is back: %v %v", ok, open)
	}
}

// TestPortHangUp checks that hangUp returns when the host closes the connection, but not because of unread data.
func TestPortHangUp(t *testing.T) { eachPort(t, portHangUp) }

func portHangUp(t *testing.T, p *portConn, host *wire.FrameConn) {
	if err := host.SendFrame(result(1, 5)); err != nil {
		t.Fatal(err)
	}
	if p.pollEvents(unix.POLLIN, time.Time{}) != nil || p.hungUp(&unix.Timespec{}) {
		t.Error("unread data from the host is taken for a hang-up")
	}
	gone := make(chan struct{})
	go func() {
		p.hangUp()
		close(gone)
	}()
	_ = host.Close()
	testenv.Receive(t, gone, "hangUp to return after the host has closed")
}

// TestOpenPort checks that openPort rejects files that are not pipes, sockets or a single device.
func TestOpenPort(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer nothing.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for what, to := range map[string]io.Writer{"a buffer": &bytes.Buffer{}, "a file": file, "a device beside a pipe": nothing} {
		if _, ok := openPort(in, to); ok {
			t.Error(what, "is a port")
		}
	}
}
