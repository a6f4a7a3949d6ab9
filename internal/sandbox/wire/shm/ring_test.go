//go:build linux && amd64

package shm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"retort/internal/devel/testenv"
)

// pair holds both ends of a connection, their shared memory and the guest's end of the stream.
type pair struct {
	host   *HostEnd
	guest  *RingEnd
	memory *SharedMemory
	stream net.Conn // the guest's end of the stream
}

func made(t testing.TB) *SharedMemory {
	t.Helper()
	m, err := CreateMemory(filepath.Join(t.TempDir(), "ring"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// openDescriptor opens a file and returns its descriptor.
func openDescriptor(t testing.TB, path string) int {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// newStream returns the two ends of a new stream.
func newStream(t testing.TB) (a, b net.Conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "")
		if ends[i], err = net.FileConn(f); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		t.Cleanup(func() { _ = ends[i].Close() })
	}
	return ends[0], ends[1]
}

// newMeetingPair creates a connection and sends the first message from the guest to the host.
func newMeetingPair(t testing.TB) *pair {
	t.Helper()
	a, b := newStream(t)
	m := made(t)
	p := &pair{NewHost(a, m, 0), NewGuest(b, openDescriptor(t, m.FilePath())), m, b}
	if p.guest == nil {
		t.Fatal("no guest")
	}
	say(t, p.guest, "hello")
	expect(t, p.host, "hello")
	if _, err := os.Stat(m.FilePath()); !os.IsNotExist(err) {
		t.Error("the file has a name although the guest has opened it:", err)
	}
	return p
}

// say writes a text in one write and fails the test if that is impossible.
func say(t testing.TB, to io.Writer, what string) {
	t.Helper()
	if n, err := to.Write([]byte(what)); n != len(what) || err != nil {
		t.Fatalf("%d of %q, %v", n, what, err)
	}
}

func expect(t testing.TB, from io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(from, got); err != nil || string(got) != want {
		t.Fatalf("%q, %v; want %q", got, err, want)
	}
}

// talk exchanges messages until both ends use the shared memory.
func (p *pair) talk(t testing.TB) {
	t.Helper()
	for range 3 {
		say(t, p.guest, "ping")
		expect(t, p.host, "ping")
		say(t, p.host, "pong")
		expect(t, p.guest, "pong")
	}
	if !p.host.isUsable() || !p.guest.side.isUsable() {
		t.Fatal("they do not use the ring")
	}
}

// TestDataOfManySizes checks that data of many sizes arrives unchanged in both directions at the same time, even if
// reader and writer pause at random.
func TestDataOfManySizes(t *testing.T) {
	p := newMeetingPair(t)
	p.talk(t)
	const total = 8 << 20
	said := func(seed uint64) []byte {
		b := make([]byte, total)
		r := rand.NewChaCha8([32]byte{byte(seed)})
		_, _ = r.Read(b)
		return b
	}
	send := func(to io.Writer, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		for rest := said(seed); len(rest) > 0; {
			n := min(len(rest), 1+r.IntN([]int{8, 100, 5000, 40_000, 300_000}[r.IntN(5)]))
			if _, err := to.Write(rest[:n]); err != nil {
				t.Error(err)
				return
			}
			if rest = rest[n:]; r.IntN(20) == 0 {
				pause(r)
			}
		}
	}
	heard := make(chan error, 2)
	hear := func(from io.Reader, seed uint64) {
		r, got, part := rand.New(rand.NewPCG(seed, 1)), []byte(nil), make([]byte, 100_000)
		for len(got) < total {
			n, err := from.Read(part[:1+r.IntN(len(part))])
			if got = append(got, part[:n]...); err != nil {
				heard <- err
				return
			}
			if r.IntN(50) == 0 {
				pause(r)
			}
		}
		if !bytes.Equal(got, said(seed)) {
			heard <- errors.New("it heard something else")
			return
		}
		heard <- nil
	}
	go send(p.host, 1)
	go send(p.guest, 2)
	go hear(p.guest, 1)
	go hear(p.host, 2)
	for range 2 {
		if err := testenv.Receive(t, heard, "what was said"); err != nil {
			t.Error(err)
		}
	}
	if p.host.end.reader.taken == 0 || p.host.end.reader.parts < 2 {
		t.Errorf("%d bytes in the ring, %d parts beside it", p.host.end.reader.taken, p.host.end.reader.parts)
	}
}

// pause yields the processor for a random time, in which the other side keeps polling or falls asleep.
func pause(r *rand.Rand) {
	for range r.IntN(2000) {
		runtime.Gosched()
	}
}

// TestSleepingReaderWakes checks that a sleeping reader is always woken when data arrives, in both directions.
func TestSleepingReaderWakes(t *testing.T) {
	p := newMeetingPair(t)
	p.talk(t)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 50 {
		from, to, end := io.Reader(p.host), io.Writer(p.guest), p.guest
		if i%2 == 0 {
			from, to, end = p.guest, p.host, p.host.end
		}
		got := make(chan string, 1)
		go func() {
			b := make([]byte, 8)
			n, _ := from.Read(b)
			got <- string(b[:n])
		}()
		if i%5 < 2 { // otherwise, ring at any moment while it falls asleep
			testenv.WaitUntil(t, "the other side sleeps", func() bool {
				state, err := end.mem.loadWord(end.writer.base + sleepsOffset)
				return err == nil && state&1 != 0
			})
		}
		pause(random)
		if _, err := to.Write([]byte("wake up")); err != nil {
			t.Fatal(err)
		}
		if s := testenv.Receive(t, got, "the bell"); s != "wake up" {
			t.Fatalf("%q", s)
		}
	}
}

// TestReadAfterClose checks that data written before the stream is closed can still be read.
func TestReadAfterClose(t *testing.T) {
	p := newMeetingPair(t)
	p.talk(t)
	for _, s := range []string{"last", " words"} {
		if _, err := p.guest.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	_ = p.stream.Close()
	got, err := io.ReadAll(p.host)
	if string(got) != "last words" || err != nil {
		t.Fatalf("%q %v", got, err)
	}
}

// TestPlainStream checks that a HostEnd passes data on unchanged for a guest without shared memory.
func TestPlainStream(t *testing.T) {
	a, b := newStream(t)
	h := NewHost(a, made(t), 0)
	say(t, b, "\x00hello")
	expect(t, h, "\x00hello")
	if _, err := h.Write([]byte("plain")); err != nil {
		t.Fatal(err)
	}
	expect(t, b, "plain")
}

// TestForeignFiles checks that a copy of the memory's file and other files are not used as the shared memory.
func TestForeignFiles(t *testing.T) {
	a, b := newStream(t)
	m := made(t)
	data, err := os.ReadFile(m.FilePath())
	copied := filepath.Join(t.TempDir(), "copy")
	if err != nil || os.WriteFile(copied, data, 0o600) != nil {
		t.Fatal(err)
	}
	p := &pair{NewHost(a, m, 0), NewGuest(b, openDescriptor(t, copied)), m, b}
	for range 20 {
		say(t, p.guest, "ping")
		expect(t, p.host, "ping")
		say(t, p.host, "pong")
		expect(t, p.guest, "pong")
	}
	if p.host.isUsable() || p.guest.side.isUsable() {
		t.Error("they use it")
	}
	for _, other := range []string{"/dev/null", os.Args[0]} {
		fd, err := unix.Open(other, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if NewGuest(b, fd) != nil {
			t.Errorf("%s is taken for memory", other)
		}
	}
}

// TestHostile checks that the host does not crash, and returns ErrBroken or another error, if a guest truncates the
// memory's file or writes invalid data to the memory or the stream.
func TestHostile(t *testing.T) {
	part := func(n, number uint32, more ...byte) []byte {
		return append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, n), number), more...)
	}
	word := func(w uint32) []byte { return binary.LittleEndian.AppendUint32(nil, w) }
	const mine = pageSize // where a guest's ring begins
	for _, c := range []struct {
		name   string
		ring   []byte
		end    uint32
		stream []byte
	}{
		{"more than there is", nil, ringSize + 1, nil},
		{"less than nothing", nil, ^uint32(0), nil},
		{"no mark", part(4, 1, 1, 2, 3, 4, 0, 0, 0, 0), 16, nil},
		{"an empty part", part(lengthMark, 1), 8, nil},
		{"half a header", part(lengthMark|4, 1), 4, nil},
		{"a part beyond the end", part(lengthMark|9, 1), 16, nil},
		{"a large part", part(lengthMark|maxRingPart+1, 1), ringSize, nil},
		{"a part twice", nil, 0, part(lengthMark|1, 0, 'x')},
		{"a part too early", nil, 0, part(lengthMark|1, 7, 'x')},
		{"one in each", part(lengthMark|1, 9, 'x', 0, 0, 0, 0, 0, 0, 0), 16, part(lengthMark|1, 8, 'x')},
		{"one that is missing", part(lengthMark|1, 9, 'x', 0, 0, 0, 0, 0, 0, 0), 16, nil},
		{"no mark over the stream", nil, 0, part(1, 1, 'x')},
		{"an empty part over the stream", nil, 0, part(lengthMark, 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newMeetingPair(t)
			f := p.memory.file
			for at, b := range map[int64][]byte{mine: c.ring, toHost + writtenOffset: word(c.end)} {
				if _, err := f.WriteAt(b, at); err != nil {
					t.Fatal(err)
				}
			}
			go func() {
				_, _ = p.stream.Write(c.stream)
				if len(c.stream) == 0 {
					_ = p.stream.Close()
				}
			}()
			if n, err := p.host.Read(make([]byte, 100)); !errors.Is(err, ErrBroken) && (c.name != "one that is missing" || err != io.EOF) {
				t.Errorf("%d bytes, %v", n, err)
			}
		})
	}
	t.Run("a smaller file", func(t *testing.T) {
		p := newMeetingPair(t)
		p.talk(t)
		if err := p.memory.file.Truncate(0); err != nil {
			t.Fatal(err)
		}
		if _, err := p.host.Write([]byte("over the stream")); err != nil {
			t.Error(err)
		}
		if n, err := p.host.Read(make([]byte, 100)); n != 0 || err == nil {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
}

// FuzzHost checks that reading from a HostEnd ends, whatever the memory and the stream contain.
func FuzzHost(f *testing.F) {
	hello := append(binary.BigEndian.AppendUint32(nil, lengthMark|5), "\x00\x00\x00\x00hello"...)
	f.Add(hello, uint32(16), []byte("\x80\x00\x00\x04\x00\x00\x00\x01abcd\x00\x00\x00\x00"))
	f.Add(hello, uint32(0), []byte{})
	f.Add([]byte("\x00plain"), uint32(1), []byte{1})
	f.Fuzz(func(t *testing.T, stream []byte, end uint32, ring []byte) {
		m := made(t)
		_, _ = m.file.WriteAt(ring[:min(len(ring), ringSize)], pageSize)
		_, _ = m.file.WriteAt(binary.LittleEndian.AppendUint32(nil, end), toHost+writtenOffset)
		h := NewHost(struct {
			io.Reader
			io.Writer
		}{bytes.NewReader(stream), io.Discard}, m, 0)
		n, err := io.Copy(io.Discard, h)
		if n > int64(len(stream)+ringSize) {
			t.Errorf("%d bytes out of %d (%v)", n, len(stream)+ringSize, err)
		}
	})
}

func BenchmarkTurn(b *testing.B) {
	for _, kind := range []string{"ring", "stream"} {
		b.Run(kind, func(b *testing.B) {
			p := newMeetingPair(b)
			host, guest := io.ReadWriter(p.host), io.ReadWriter(p.guest)
			if kind == "stream" {
				host, guest = newStream(b)
			}
			go func() {
				buffer := make([]byte, 200)
				for {
					n, err := host.Read(buffer)
					if err != nil {
						return
					}
					_, _ = host.Write(buffer[:n])
				}
			}()
			buffer := make([]byte, 200)
			for b.Loop() {
				_, _ = guest.Write(buffer[:100])
				if _, err := io.ReadFull(guest, buffer[:100]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
