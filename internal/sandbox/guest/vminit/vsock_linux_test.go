package vminit

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestForwardHosts checks that forwardHosts connects a guest to one host after the other, as happens when a machine is
// saved and resumed. What the guest writes while no host is connected must arrive at the next host.
func TestForwardHosts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "host")
	listener, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(listener, &unix.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(listener, 1); err != nil {
		t.Fatal(err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	guest := os.NewFile(uintptr(pair[1]), "guest")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		forwardHosts(listener, pair[0])
	}()
	dial := func() net.Conn {
		host, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		return host
	}
	hear := func(from io.Reader, want []byte) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(from, got); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%v: %d bytes, not what was said", err, len(got))
		}
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	for range 3 {
		host := dial()
		go func() { _, _ = guest.Write(large) }()
		hear(host, large)
		go func() { _, _ = host.Write(large) }()
		hear(guest, large)
		_ = host.Close()
	}
	_, _ = guest.Write([]byte("said while nobody was there")) // or to a host that has gone, which is all the same
	host := dial()
	hear(host, []byte("said while nobody was there"))
	_ = guest.Close()
	if n, err := host.Read(make([]byte, 1)); n > 0 || err != io.EOF {
		t.Errorf("after the guest: %d bytes, %v", n, err)
	}
	<-ended
}
