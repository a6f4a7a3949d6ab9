package shm

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync/atomic"
	"time"
)

// Supported says whether there are rings on this machine.
const Supported = runtime.GOOS == "linux" && runtime.GOARCH == "amd64"

// Memory is the file that a guest shares with the engine.
type Memory struct {
	file  *os.File
	nonce [8]byte
}

// Host is the engine's side of a connection. A guest that begins with anything but a part
// knows nothing of rings: to it, the Host is the stream.
type Host struct {
	stream io.ReadWriter
	end    *End
	memory *Memory

	begun, plain bool
	answered     bool        // what the guest writes is seen
	proven       atomic.Bool // and what is written, the guest sees
}

// Create makes a file of Size bytes, which must not exist: another user, who is the guest, may
// write it. Hide must be called as soon as the guest has opened it, Close when it has gone.
func Create(path string) (*Memory, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	first := make([]byte, used) // all of it, so that there is a place for it on the disk
	binary.LittleEndian.PutUint64(first[atMagic:], magic)
	_, _ = rand.Read(first[atNonce : atNonce+8]) // which does not fail
	return newMemory(f, first)
}

// Copy is Create for a guest that is a copy, with all of its machine: content is what Save wrote
// of the memory of what it is a copy of.
func Copy(path string, content []byte) (*Memory, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	return newMemory(f, content)
}

func open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
}

func newMemory(f *os.File, content []byte) (*Memory, error) {
	m := &Memory{file: f}
	_, err := f.Write(content)
	if err = errors.Join(err, f.Truncate(Size), f.Chmod(0o666)); err == nil && len(content) != used {
		err = fmt.Errorf("ring: memory of %d bytes", len(content))
	}
	if err != nil {
		_ = m.Close()
		return nil, err
	}
	m.nonce = [8]byte(content[atNonce:])
	return m, nil
}

// Save writes the memory into a file, for Copy. There is nothing to write if there is none.
func (m *Memory) Save(path string) error {
	if m == nil {
		return nil
	}
	content := make([]byte, used)
	if _, err := m.file.ReadAt(content, 0); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// Path is where the file was made; empty if there is none.
func (m *Memory) Path() string {
	if m == nil {
		return ""
	}
	return m.file.Name()
}

// File is the file itself, for who locks it.
func (m *Memory) File() *os.File { return m.file }

// Hide takes the file's name away: who has not opened it cannot any more.
func (m *Memory) Hide() {
	if m != nil {
		_ = os.Remove(m.Path())
	}
}

// Close gives the memory back, once nobody wants to read what the guest has said.
func (m *Memory) Close() error {
	if m == nil {
		return nil
	}
	m.Hide()
	return m.file.Close()
}

// Emulated is how long the next call of a guest may take that runs on an emulated processor, to
// come at once.
const Emulated = time.Millisecond

// NewHost is the side of the engine. What comes over stream is the guest's, for whose next call
// it may wait awake for soon; zero means the time that a processor takes.
func NewHost(stream io.ReadWriter, m *Memory, soon time.Duration) *Host {
	h := &Host{stream: stream, memory: m}
	h.end = newEnd(stream, &fileMemory{file: m.file}, toHost, toGuest, cmp.Or(soon, atOnce))
	h.end.side = h
	return h
}

// Read implements io.Reader.
func (h *Host) Read(b []byte) (int, error) {
	if !h.begun {
		if err := h.begin(); err != nil {
			return 0, err
		}
		h.memory.Hide()
	}
	if !h.plain {
		return h.end.Read(b)
	}
	if r := &h.end.reader; len(r.in) > 0 {
		n := copy(b, r.in)
		r.in = r.in[n:]
		return n, nil
	}
	return h.stream.Read(b)
}

// begin sees by the first byte with whom it speaks.
func (h *Host) begin() error {
	r := &h.end.reader
	for len(r.in) == 0 {
		if err := h.end.Listen(); err != nil {
			return err
		}
	}
	h.begun, h.plain = true, !Begins(r.in)
	return nil
}

// Begins says whether a guest whose first bytes are these knows of rings.
func Begins(said []byte) bool { return len(said) > 0 && said[0]&(marked>>24) != 0 }

// Write implements io.Writer. Who has not read before does not know with whom it speaks.
func (h *Host) Write(b []byte) (int, error) {
	if h.plain || !h.begun {
		return h.stream.Write(b)
	}
	return h.end.Write(b)
}

// usable implements side: the guest has seen what could only be seen in the memory.
func (h *Host) usable() bool {
	var seen [8]byte
	if !h.proven.Load() && h.end.mem.read(atSeen, seen[:]) == nil && seen == h.memory.nonce {
		h.proven.Store(true)
	}
	return h.proven.Load()
}

// Nudge rings the bell of a guest that knows of rings, for nothing. Nobody may be writing to its
// stream.
func Nudge(stream io.Writer) error {
	_, err := stream.Write(appendHeader(nil, 0, bell))
	return err
}

// Used says whether the guest sees what is written into the memory, which is then used.
func (h *Host) Used() bool { return h.usable() }

// met implements side.
func (h *Host) met() {
	var answer [8]byte
	if h.answered || h.end.mem.read(atAnswer, answer[:]) != nil || answer != inverted(h.memory.nonce) {
		return
	}
	h.answered = true
	_ = h.end.mem.write(atProven, h.memory.nonce[:])
}

func inverted(nonce [8]byte) [8]byte {
	for i := range nonce {
		nonce[i] = ^nonce[i]
	}
	return nonce
}

// awake counts those who wait awake in this process: one processor is left to the others.
var awake atomic.Int32

// mayWait implements side.
func (*Host) mayWait() (done func(), ok bool) {
	if int(awake.Add(1)) >= runtime.GOMAXPROCS(0) {
		awake.Add(-1)
		return nil, false
	}
	return func() { awake.Add(-1) }, true
}

// pause implements side.
func (*Host) pause(int) {
	runtime.Gosched()
	yield()
}

// fileMemory is memory that is read and written as a file. A guest can do with it what it
// likes.
type fileMemory struct {
	file  *os.File
	fence atomic.Uint32
}

func (m *fileMemory) load(at int64) (uint32, error) {
	var word [4]byte
	m.fence.Add(1) // nothing is loaded before what was stored can be seen
	_, err := m.file.ReadAt(word[:], at)
	return binary.LittleEndian.Uint32(word[:]), err
}

func (m *fileMemory) loadTwo(at int64) (uint32, uint32, error) {
	var words [8]byte
	_, err := m.file.ReadAt(words[:], at)
	return binary.LittleEndian.Uint32(words[:]), binary.LittleEndian.Uint32(words[4:]), err
}

func (m *fileMemory) store(at int64, word uint32) error {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], word)
	return m.write(at, b[:])
}

func (m *fileMemory) read(at int64, to []byte) error {
	if len(to) == 0 {
		return nil
	}
	_, err := m.file.ReadAt(to, at)
	return err
}

func (m *fileMemory) write(at int64, from []byte) error {
	if len(from) == 0 {
		return nil
	}
	_, err := m.file.WriteAt(from, at)
	return err
}
