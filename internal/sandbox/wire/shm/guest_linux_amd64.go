package shm

import (
	"encoding/binary"
	"io"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// NewGuest returns the guest's end of a connection, or nil if the file that is open as descriptor is not a shared
// memory file. The memory begins at the current offset of that file. NewGuest maps the memory and closes the
// descriptor, so that the program cannot use the file itself.
func NewGuest(stream io.ReadWriter, descriptor int) *RingEnd {
	var stat unix.Stat_t
	if unix.Fstat(descriptor, &stat) != nil || stat.Mode&unix.S_IFMT == unix.S_IFREG && stat.Size != Size {
		return nil
	}
	at, err := unix.Seek(descriptor, 0, io.SeekCurrent)
	if err != nil {
		return nil
	}
	mapped, err := unix.Mmap(descriptor, at, Size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil
	}
	_ = unix.Close(descriptor)
	if binary.LittleEndian.Uint64(mapped[atMagic:]) != memoryMagic {
		_ = unix.Munmap(mapped)
		return nil
	}
	g := &guestSide{memory: mapped, nonce: [8]byte(mapped[atNonce:])}
	answer := invertNonce(g.nonce)
	copy(mapped[atAnswer:], answer[:])
	e := newEnd(stream, g.memory, toGuest, toHost, immediateTime)
	e.side = g
	return e
}

// guestSide accesses the shared memory for the guest. It has no method for unmapping the memory, because the guest
// ends by exiting.
type guestSide struct {
	memory mappedMemory
	nonce  [8]byte
	proven atomic.Bool
}

func (g *guestSide) isUsable() bool {
	if !g.proven.Load() && [8]byte(g.memory[atProven:]) == g.nonce {
		copy(g.memory[atSeen:], g.nonce[:])
		g.proven.Store(true)
	}
	return g.proven.Load()
}

func (*guestSide) setMet() {}

func (*guestSide) mayWait() (done func(), ok bool) { return func() {}, true }

// pauseSpin implements ringSide. It yields the processor in every 64th round of polling, which is about every ten
// microseconds.
func (*guestSide) pauseSpin(n int) {
	if n%64 == 63 {
		yieldProcessor()
	}
}

// yieldProcessor lets another thread run on this processor.
func yieldProcessor() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

type mappedMemory []byte

func (m mappedMemory) wordAt(at int64) *uint32 { return (*uint32)(unsafe.Pointer(&m[at])) }

func (m mappedMemory) loadWord(at int64) (uint32, error) { return atomic.LoadUint32(m.wordAt(at)), nil }

func (m mappedMemory) loadTwo(at int64) (uint32, uint32, error) {
	return atomic.LoadUint32(m.wordAt(at)), atomic.LoadUint32(m.wordAt(at + 4)), nil
}

func (m mappedMemory) storeWord(at int64, word uint32) error {
	atomic.StoreUint32(m.wordAt(at), word)
	return nil
}

func (m mappedMemory) readAt(at int64, to []byte) error {
	copy(to, m[at:])
	return nil
}

func (m mappedMemory) writeAt(at int64, from []byte) error {
	copy(m[at:], from)
	return nil
}
