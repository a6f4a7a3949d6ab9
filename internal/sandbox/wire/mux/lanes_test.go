package mux

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"retort/internal/devel/testenv"
)

// newMuxPair returns two connected StreamMuxes, near and far. The function accept is called for each stream that far
// opens, so it runs at near's end.
func newMuxPair(t *testing.T, accept func(*MuxStream)) (near, far *StreamMux) {
	t.Helper()
	a, b := net.Pipe()
	near, far = New(a, accept), New(b, nil)
	var ended sync.WaitGroup
	for _, m := range []*StreamMux{near, far} {
		ended.Go(func() { _ = m.ServeFrames() })
	}
	t.Cleanup(func() {
		_, _ = a.Close(), b.Close()
		ended.Wait()
	})
	return near, far
}

func random(n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	return data
}

// TestStreams checks that many concurrent streams (also called lanes) carry data unchanged in both directions, and that
// closing one direction of a stream keeps the other open.
func TestStreams(t *testing.T) {
	echo := func(l *MuxStream) {
		defer l.Close()
		data, err := io.ReadAll(l)
		if err == nil {
			_, _ = l.Write(data)
		}
	}
	near, far := newMuxPair(t, echo)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			l, err := far.Open()
			if err != nil {
				t.Error(err)
				return
			}
			defer l.Close()
			want := random(3*windowSize + rand.IntN(windowSize))
			go func() {
				_, _ = l.Write(want)
				_ = l.CloseWrite()
			}()
			if got, err := io.ReadAll(l); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d of %d bytes, %v", len(got), len(want), err)
			}
		})
	}
	want := random(5 * windowSize)
	all.Go(func() { _, _ = near.FirstStream().Write(want) })
	got := make([]byte, len(want))
	if _, err := io.ReadFull(far.FirstStream(), got); err != nil || !bytes.Equal(got, want) {
		t.Error(err)
	}
	all.Wait()
	for _, m := range []*StreamMux{near, far} {
		testenv.WaitUntil(t, "all lanes but the first are closed", func() bool { m.mu.Lock(); defer m.mu.Unlock(); return len(m.lanes) == 1 })
	}
}

// TestUnreadLane checks that a stream that is not read blocks no other stream and stores at most windowSize bytes.
func TestUnreadLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened := make(chan *MuxStream, 1)
		_, far := newMuxPair(t, func(l *MuxStream) { opened <- l })
		l, err := far.Open()
		if err != nil {
			t.Fatal(err)
		}
		_ = l.SetWriteDeadline(time.Now().Add(time.Minute))
		if n, err := l.Write(random(2 * windowSize)); n != windowSize || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d bytes, %v", n, err)
		}
		unread := <-opened
		synctest.Wait()
		if unread.waiting != windowSize {
			t.Errorf("%d bytes wait", unread.waiting)
		}
		other, err := far.Open()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = other.Write([]byte("x"))
		b := make([]byte, 2)
		if n, err := (<-opened).Read(b); n != 1 || err != nil {
			t.Error(n, err)
		}
		_ = unread.Close()
		if _, err := l.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, io.ErrClosedPipe) {
			t.Error(err)
		}
	})
}

func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := newMuxPair(t, nil)
		l := near.FirstStream()
		_ = l.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := l.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		_ = l.SetDeadline(time.Time{})
		go func() {
			time.Sleep(time.Hour)
			_, _ = far.FirstStream().Write([]byte("x"))
		}()
		if n, err := l.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Error(n, err)
		}
		_ = l.Close()
		if _, err := l.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

// TestMaxStreams checks that at most MaxStreams streams can be open. Another stream can be opened only after one was
// closed.
func TestMaxStreams(t *testing.T) {
	_, far := newMuxPair(t, func(l *MuxStream) { _, _ = io.Copy(io.Discard, l); _ = l.Close() })
	var open []*MuxStream
	for range MaxStreams {
		l, err := far.Open()
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, l)
	}
	if _, err := far.Open(); !errors.Is(err, errFull) {
		t.Error(err)
	}
	for _, l := range open {
		_ = l.Close()
	}
	testenv.WaitUntil(t, "there is room for a lane", func() bool {
		l, err := far.Open()
		if err == nil {
			_ = l.Close()
		}
		return err == nil
	})
}

func frame(kind byte, id, n uint32, data string) string {
	b := binary.BigEndian.AppendUint32([]byte{kind}, id)
	return string(binary.BigEndian.AppendUint32(b, n)) + data
}

// TestViolations checks that a protocol violation ends the connection and all its streams.
func TestViolations(t *testing.T) {
	full := frame(kindData, 0, maxFrameData, strings.Repeat("x", maxFrameData))
	for name, sent := range map[string]string{
		"no kind":             frame(0, 0, 0, ""),
		"another kind":        frame(kindClose+1, 0, 0, ""),
		"a long frame":        frame(kindData, 0, maxFrameData+1, ""),
		"too much":            strings.Repeat(full, windowSize/maxFrameData) + full,
		"room from nowhere":   frame(kindWindow, 0, 1, ""),
		"much room":           frame(kindWindow, 0, 1<<31, ""),
		"the first stream":    frame(kindOpen, 0, 0, ""),
		"a lane twice":        frame(kindOpen, 5, 0, "") + frame(kindOpen, 5, 0, ""),
		"a lane from before":  frame(kindOpen, 5, 0, "") + frame(kindOpen, 4, 0, ""),
		"more lanes than fit": lanesFrom(MaxStreams + 1),
	} {
		a, b := net.Pipe()
		m := New(a, func(l *MuxStream) {})
		go func() { _, _ = io.WriteString(b, sent) }()
		err := m.ServeFrames()
		if err == nil || !strings.HasPrefix(err.Error(), "mux: ") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := io.Copy(io.Discard, m.FirstStream()); err != nil {
			t.Errorf("%s: the first lane: %v", name, err)
		}
		if _, err := m.FirstStream().Write([]byte("x")); err == nil {
			t.Errorf("%s: the first lane takes more", name)
		}
		_ = b.Close()
	}
}

func lanesFrom(n int) string {
	var s strings.Builder
	for i := range n {
		s.WriteString(frame(kindOpen, uint32(i+1), 0, ""))
	}
	return s.String()
}

// TestOpeningRefused checks that a StreamMux without accept treats the opening of a stream as a protocol violation.
func TestOpeningRefused(t *testing.T) {
	a, b := net.Pipe()
	go func() { _, _ = io.WriteString(b, frame(kindOpen, 1, 0, "")) }()
	if err := New(a, nil).ServeFrames(); err == nil || !strings.HasPrefix(err.Error(), "mux: ") {
		t.Error(err)
	}
}

func TestBeginning(t *testing.T) {
	stream := frame(kindData, 0, 2, "ab") + frame(kindData, 0, 0, "") + frame(kindData, 0, 3, "cde")
	for _, in := range []io.Reader{strings.NewReader(stream), iotest.OneByteReader(strings.NewReader(stream))} {
		if got, err := io.ReadAll(PeekFirst(in)); err != nil || string(got) != "abcde" {
			t.Errorf("%q, %v", got, err)
		}
	}
	for _, other := range []string{frame(kindOpen, 1, 0, ""), frame(kindData, 1, 1, "x"), frame(kindEnd, 0, 0, "")} {
		if got, err := io.ReadAll(PeekFirst(strings.NewReader(frame(kindData, 0, 1, "a") + other))); err == nil || string(got) != "a" {
			t.Errorf("%q, %v", got, err)
		}
	}
}
