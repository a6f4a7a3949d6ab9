package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"retort/internal/devel/testenv"
)

func frameBytes(f Frame) []byte {
	return append(append(appendHeader(nil, f), f.Head...), f.Body...)
}

func TestFrames(t *testing.T) {
	sizes := FrameSizes{KindCall: 3 << 20, KindOutput: 10}
	for _, f := range []Frame{
		{Kind: KindCall},
		{Kind: KindCall, ID: 1<<32 - 1, Head: []byte(`{"tool":"t"}`), Body: []byte("body")},
		{Kind: KindCall, Body: bytes.Repeat([]byte("x"), 3<<20)},
		{Kind: KindOutput, Body: []byte("0123456789")},
	} {
		got, err := readFrame(bufio.NewReader(bytes.NewReader(frameBytes(f))), sizes, nil)
		if err != nil || got.Kind != f.Kind || got.ID != f.ID || !bytes.Equal(got.Head, f.Head) || !bytes.Equal(got.Body, f.Body) {
			t.Errorf("%v: %v, %v", f.Kind, got, err)
		}
	}
}

func TestBadFrames(t *testing.T) {
	sizes := FrameSizes{KindCall: 100, KindOutput: 100}
	whole := frameBytes(Frame{Kind: KindCall, Head: []byte("{}"), Body: []byte("b")})
	lengths := func(length, head uint32) []byte {
		b := binary.BigEndian.AppendUint32(nil, length)
		b = append(b, byte(KindOutput), 0, 0, 0, 0)
		return binary.BigEndian.AppendUint32(b, head)
	}
	for name, test := range map[string]struct {
		data []byte
		want string
	}{
		"empty":           {nil, "EOF"},
		"half a header":   {whole[:5], "unexpected EOF"},
		"half a body":     {whole[:len(whole)-1], "unexpected EOF"},
		"not accepted":    {frameBytes(Frame{Kind: KindDone}), `unexpected frame "done"`},
		"unknown":         {frameBytes(Frame{Kind: 200}), `unexpected frame "kind 200"`},
		"too large":       {frameBytes(Frame{Kind: KindOutput, Body: make([]byte, 101)}), "at most 100"},
		"too large call":  {frameBytes(Frame{Kind: KindCall, Body: make([]byte, 101)}), "more than the 100 bytes allowed"},
		"half of it":      {frameBytes(Frame{Kind: KindCall, Body: make([]byte, 101)})[:50], "unexpected EOF"},
		"4 GB":            {lengths(1<<32-1, 0), "at most 100"},
		"too short":       {lengths(8, 0), "impossible lengths"},
		"head beyond end": {lengths(20, 12), "impossible lengths"},
	} {
		_, err := readFrame(bufio.NewReader(bytes.NewReader(test.data)), sizes, nil)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLengthAloneCostsNothing checks that the header of a large frame, without its data, makes readFrame allocate
// little memory.
func TestLengthAloneCostsNothing(t *testing.T) {
	var header []byte
	header = binary.BigEndian.AppendUint32(header, 1<<30)
	header = append(header, byte(KindCall), 0, 0, 0, 0, 0, 0, 0, 0)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readFrame(bufio.NewReader(bytes.NewReader(header)), FrameSizes{KindCall: 1 << 30}, nil)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, io.ErrUnexpectedEOF) || after.TotalAlloc-before.TotalAlloc > 16<<20 {
		t.Errorf("%v after allocating %d bytes", err, after.TotalAlloc-before.TotalAlloc)
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add(frameBytes(Frame{Kind: KindCall, ID: 7, Head: []byte(`{}`), Body: []byte("x")}))
	f.Add(frameBytes(Frame{Kind: KindReady}))
	f.Add([]byte{0, 0, 0, 9, 4, 0, 0, 0, 0, 0, 0, 0, 1})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 4})
	sizes := FrameSizes{KindCall: 1 << 10, KindReady: 16}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bufio.NewReader(bytes.NewReader(data))
		rest := data
		for {
			frame, err := readFrame(r, sizes, nil)
			if err != nil {
				return
			}
			if most, known := sizes[frame.Kind]; !known || len(frame.Head)+len(frame.Body) > most {
				t.Fatalf("accepted %v with %d bytes", frame.Kind, len(frame.Head)+len(frame.Body))
			}
			again := frameBytes(frame)
			if !bytes.HasPrefix(rest, again) {
				t.Fatalf("%x was read as %x", rest, again)
			}
			rest = rest[len(again):]
		}
	})
}

// slowWriter counts the writes to it. The first write blocks until the channel release is closed.
type slowWriter struct {
	release chan struct{}
	mu      sync.Mutex
	writes  int
	data    bytes.Buffer
}

func (w *slowWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	first := w.writes == 0
	w.writes++
	w.data.Write(b)
	w.mu.Unlock()
	if first {
		<-w.release
	}
	return len(b), nil
}

func (w *slowWriter) Read([]byte) (int, error) { return 0, io.EOF }
func (w *slowWriter) Close() error             { return nil }

// TestWritersAreBatched checks that frames that are sent while a write is in progress are written together.
func TestWritersAreBatched(t *testing.T) {
	w := &slowWriter{release: make(chan struct{})}
	c := NewConn(w)
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Go(func() {
			if err := c.SendFrame(CallFrame(uint32(i), CallHead{Tool: "t"}, []byte("{}"))); err != nil {
				t.Error(err)
			}
		})
	}
	testenv.WaitUntil(t, "all have left their frames to the writer", func() bool {
		c.mu.Lock()
		queued := c.queued
		c.mu.Unlock()
		w.mu.Lock()
		gone := w.data.Len()
		w.mu.Unlock()
		return queued+gone >= 1000*(headerSize+len(`{"tool":"t"}{}`))
	})
	close(w.release)
	wg.Wait()
	if w.writes > 3 {
		t.Errorf("%d writes", w.writes)
	}
	seen := map[uint32]bool{}
	r := bufio.NewReader(&w.data)
	for {
		f, err := readFrame(r, FrameSizes{KindCall: 100}, nil)
		if err != nil {
			break
		}
		seen[f.ID] = true
	}
	if len(seen) != 1000 {
		t.Errorf("%d frames arrived", len(seen))
	}
}

// TestLargeAndSmall checks that frames of many sizes arrive unchanged and in order.
func TestLargeAndSmall(t *testing.T) {
	a, b := net.Pipe()
	from, to := NewConn(a), NewConn(b)
	to.Accept(FrameSizes{KindOutput: 4 << 20})
	sizes := []int{0, 1, copyBelow - 1, copyBelow, gatherBytes, 3 << 20, 5, 100_000}
	go func() {
		for i, n := range sizes {
			_ = from.QueueFrame(Frame{Kind: KindOutput, ID: uint32(i), Head: bytes.Repeat([]byte("h"), n/3), Body: bytes.Repeat([]byte{byte(i)}, n)})
		}
		_ = from.Flush()
		_ = from.Close()
	}()
	for i, n := range sizes {
		f, err := to.Read()
		if err != nil || f.ID != uint32(i) || len(f.Head) != n/3 || !bytes.Equal(f.Body, bytes.Repeat([]byte{byte(i)}, n)) {
			t.Fatalf("frame %d: %d and %d bytes, %v", i, len(f.Head), len(f.Body), err)
		}
	}
	if _, err := to.Read(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// TestWritersGiveUp checks that Close ends goroutines that are blocked in SendFrame because the other side does not
// read.
func TestWritersGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := net.Pipe()
		c := NewConn(a)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				for c.SendFrame(OutputFrame(make([]byte, 200<<10))) == nil {
				}
			})
		}
		synctest.Wait() // until nobody can write any more
		_ = c.Close()
		wg.Wait()
		if c.Close() != nil {
			t.Error("the second Close failed")
		}
	})
}

func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var expired []time.Duration
		started := time.Now()
		note := func() { expired = append(expired, time.Since(started)) }
		c := startClock(100*time.Millisecond, note)
		first, second := c.pauseClock(), c.pauseClock()
		time.Sleep(150 * time.Millisecond)
		first()
		first()
		time.Sleep(50 * time.Millisecond)
		second()
		time.Sleep(time.Second)
		synctest.Wait()
		if want := []time.Duration{300 * time.Millisecond}; !slices.Equal(expired, want) {
			t.Errorf("expired at %v, want %v", expired, want)
		}
		c = startClock(time.Millisecond, note)
		c.stopClock()
		c.pauseClock()()
		time.Sleep(time.Second)
		synctest.Wait()
		if len(expired) != 1 {
			t.Error("a stopped clock expired")
		}
	})
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1023: "1023 bytes", 1024: "1 kB", 1536: "1.5 kB", 512 << 20: "512 MB", 300 << 30: "300 GB", 1 << 50: "1024 TB"} {
		if got := FormatBytes(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
