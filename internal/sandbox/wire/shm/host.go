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

// Supported is true if this machine supports memory that is shared with a guest.
const Supported = runtime.GOOS == "linux" && runtime.GOARCH == "amd64"

// SharedMemory represents the file through which a guest and the engine share memory.
type SharedMemory struct {
	file  *os.File
	nonce [8]byte
}

// HostEnd represents the engine's end of a connection. A guest that supports shared memory cuts its data into parts,
// each with a header. If the guest's first bytes are not such a header, HostEnd only passes on the stream.
type HostEnd struct {
	stream io.ReadWriter
	end    *RingEnd
	memory *SharedMemory

	begun, plain bool
	answered     bool        // the engine has seen data that the guest wrote to the memory
	proven       atomic.Bool // the guest has confirmed that it sees what the engine writes to the memory
}

// CreateMemory creates a file of Size bytes at path, which must not exist. Every user may write to the file, because
// the guest runs as another user. The caller must call RemoveName as soon as the guest has opened the file, and Close
// when the guest has ended.
func CreateMemory(path string) (*SharedMemory, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	first := make([]byte, usedSize) // the whole content, so that its disk space is allocated
	binary.LittleEndian.PutUint64(first[atMagic:], memoryMagic)
	_, _ = rand.Read(first[atNonce : atNonce+8]) // which does not fail
	return newMemory(f, first)
}

// CopyMemory works like CreateMemory, but for a guest in a copy of a saved virtual machine. The argument content is
// the content of the shared memory that SaveTo wrote when that machine was saved.
func CopyMemory(path string, content []byte) (*SharedMemory, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	return newMemory(f, content)
}

func openFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
}

func newMemory(f *os.File, content []byte) (*SharedMemory, error) {
	m := &SharedMemory{file: f}
	_, err := f.Write(content)
	if err = errors.Join(err, f.Truncate(Size), f.Chmod(0o666)); err == nil && len(content) != usedSize {
		err = fmt.Errorf("ring: memory of %d bytes", len(content))
	}
	if err != nil {
		_ = m.Close()
		return nil, err
	}
	m.nonce = [8]byte(content[atNonce:])
	return m, nil
}

// SaveTo writes the memory's content to a file, for CopyMemory. A nil SharedMemory writes nothing.
func (m *SharedMemory) SaveTo(path string) error {
	if m == nil {
		return nil
	}
	content := make([]byte, usedSize)
	if _, err := m.file.ReadAt(content, 0); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// FilePath returns the path of the file, or "" for a nil SharedMemory.
func (m *SharedMemory) FilePath() string {
	if m == nil {
		return ""
	}
	return m.file.Name()
}

// OpenedFile returns the open file of the memory, so that the caller can lock it.
func (m *SharedMemory) OpenedFile() *os.File { return m.file }

// RemoveName deletes the file's name, so that no other process can open it. The memory stays usable.
func (m *SharedMemory) RemoveName() {
	if m != nil {
		_ = os.Remove(m.FilePath())
	}
}

// Close releases the memory. The connection must not be read any more.
func (m *SharedMemory) Close() error {
	if m == nil {
		return nil
	}
	m.RemoveName()
	return m.file.Close()
}

// EmulatedCallTime is the value for NewHost's parameter soon if the guest's processor is emulated. Such a guest needs
// longer until it makes its next call.
const EmulatedCallTime = time.Millisecond

// NewHost returns the engine's end of a connection. Data that does not fit into the memory m is sent over stream. The
// argument soon is the time within which the guest's next call usually arrives. For that time the engine waits by
// spinning (polling without sleeping). If soon is zero, a default for real processors is used.
func NewHost(stream io.ReadWriter, m *SharedMemory, soon time.Duration) *HostEnd {
	h := &HostEnd{stream: stream, memory: m}
	h.end = newEnd(stream, &fileMemory{file: m.file}, toHost, toGuest, cmp.Or(soon, immediateTime))
	h.end.side = h
	return h
}

// Read implements io.Reader.
func (h *HostEnd) Read(b []byte) (int, error) {
	if !h.begun {
		if err := h.detectGuest(); err != nil {
			return 0, err
		}
		h.memory.RemoveName()
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

// detectGuest waits for the guest's first bytes and detects whether the guest supports shared memory.
func (h *HostEnd) detectGuest() error {
	r := &h.end.reader
	for len(r.in) == 0 {
		if err := h.end.ReadStream(); err != nil {
			return err
		}
	}
	h.begun, h.plain = true, !IsRingGuest(r.in)
	return nil
}

// IsRingGuest reports whether a guest supports shared memory, judging by the first bytes that the guest has sent.
func IsRingGuest(said []byte) bool { return len(said) > 0 && said[0]&(lengthMark>>24) != 0 }

// Write implements io.Writer. Before the first Read it sends over the stream, because it is not known yet whether the
// guest supports shared memory.
func (h *HostEnd) Write(b []byte) (int, error) {
	if h.plain || !h.begun {
		return h.stream.Write(b)
	}
	return h.end.Write(b)
}

// isUsable implements ringSide. It reports whether the guest has proved that it can access the memory.
func (h *HostEnd) isUsable() bool {
	var seen [8]byte
	if !h.proven.Load() && h.end.mem.readAt(atSeen, seen[:]) == nil && seen == h.memory.nonce {
		h.proven.Store(true)
	}
	return h.proven.Load()
}

// SendBell sends a bell over the stream: a message without data that wakes a sleeping guest. The guest must support
// shared memory. No other write to the stream may be in progress.
func SendBell(stream io.Writer) error {
	_, err := stream.Write(appendHeader(nil, 0, bellFrame))
	return err
}

// IsUsed reports whether data is sent through the memory. That is the case once the guest has proved that it can
// access the memory.
func (h *HostEnd) IsUsed() bool { return h.isUsable() }

// setMet implements ringSide. When the guest's answer has appeared in the shared memory, setMet writes a confirmation
// there. Both ends then know that the other one can access the memory.
func (h *HostEnd) setMet() {
	var answer [8]byte
	if h.answered || h.end.mem.readAt(atAnswer, answer[:]) != nil || answer != invertNonce(h.memory.nonce) {
		return
	}
	h.answered = true
	_ = h.end.mem.writeAt(atProven, h.memory.nonce[:])
}

func invertNonce(nonce [8]byte) [8]byte {
	for i := range nonce {
		nonce[i] = ^nonce[i]
	}
	return nonce
}

// spinningSides is the number of goroutines of this process that spin. It must stay below the number of processors.
var spinningSides atomic.Int32

// mayWait implements ringSide. It allows spinning only if a processor stays free.
func (*HostEnd) mayWait() (done func(), ok bool) {
	if int(spinningSides.Add(1)) >= runtime.GOMAXPROCS(0) {
		spinningSides.Add(-1)
		return nil, false
	}
	return func() { spinningSides.Add(-1) }, true
}

// pauseSpin implements ringSide. It lets other goroutines and threads run.
func (*HostEnd) pauseSpin(int) {
	runtime.Gosched()
	yieldProcessor()
}

// fileMemory accesses the shared memory by reading and writing its file, because the guest may truncate or change the
// file at any time.
type fileMemory struct {
	file  *os.File
	fence atomic.Uint32
}

func (m *fileMemory) loadWord(at int64) (uint32, error) {
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

func (m *fileMemory) storeWord(at int64, word uint32) error {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], word)
	return m.writeAt(at, b[:])
}

func (m *fileMemory) readAt(at int64, to []byte) error {
	if len(to) == 0 {
		return nil
	}
	_, err := m.file.ReadAt(to, at)
	return err
}

func (m *fileMemory) writeAt(at int64, from []byte) error {
	if len(from) == 0 {
		return nil
	}
	_, err := m.file.WriteAt(from, at)
	return err
}
