// Package shm connects two processes through shared memory while both are awake. A stream between them carries the
// rest: large data, data for which the memory has no room, and bells, which wake a sleeping process. Shared memory is
// faster, because a stream between a sandbox and the engine may pass through a daemon, a shim and a user-space
// kernel, each of which must wake the next.
//
// The data is cut into parts. A part has a header of eight bytes: its length with the highest bit set, and its
// number, both in big-endian order. Parts are numbered from 0 in each direction. Each part is sent either through the
// memory or over the stream, and the reader takes the part with the next number from either. A part of length 0 over
// the stream is a bell. It has no number and means that the memory has data.
//
// The memory is a file that the host has created. It contains a page of control words, and a ring buffer for each
// direction. The words have the byte order of x86-64, and the ring buffers rely on that processor's order of stores.
// Other processors are not supported.
//
// The host does not map the file but reads and writes it, so that a guest cannot crash it by truncating the file. It
// trusts no word in the file. Neither side sends through the memory before both have seen each other's control words
// in it.
package shm

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Descriptor is the number of the file descriptor on which a guest finds the shared memory.
const Descriptor = 100

// Size is the size of the shared memory file, in bytes. The space after the rings is reserved.
const Size = 256 << 10

const (
	usedSize    = pageSize + 2*ringSize // number of bytes of the file that are in use
	pageSize    = 4096
	ringSize    = 64 << 10 // size in bytes of the ring buffer for one direction; must be a power of two
	headerSize  = 8
	maxRingPart = ringSize / 4 // maximum length of a part in a ring, in bytes; longer parts are sent over the stream
	maxPart     = 1 << 30      // maximum length of any part, in bytes
	lengthMark  = 1 << 31      // bit that is set in the length field of each part's header
	bellFrame   = ^uint32(0)   // value in place of a part's number that marks a bell
)

// atMagic and the following constants are offsets of the control words in the shared memory file. Each end of the
// connection writes only its own words, which are in cache lines of their own.
const (
	atMagic  = 0  // written by the host: a constant that marks a shared memory file, followed by a random number
	atNonce  = 8  // the host's random number, eight bytes
	atAnswer = 64 // written by the guest: the host's random number with all bits inverted
	atProven = 16 // written by the host after it has seen the guest's answer: the random number again
	atSeen   = 72 // written by the guest after it has seen atProven: the random number again
	toHost   = 1024
	toGuest  = 2048
	// writtenOffset and the following constants are offsets of control words that exist once for each direction.
	writtenOffset  = 0   // written by the writer: position of the end of the ring's data, modulo 2³²
	streamedOffset = 4   // written by the writer: number of parts that it has sent over the stream
	takenOffset    = 128 // written by the reader: position of the beginning of the ring's data, modulo 2³²
	sleepsOffset   = 256 // written by the reader: a counter that is odd while the reader sleeps
)

const memoryMagic = 0x676e6972_746f7465 // the bytes of "etotring"

// memoryAccess reads and writes the shared memory for one end. The other end sees stores in the order of the calls. A
// load is executed only after earlier stores are visible to the other end.
type memoryAccess interface {
	loadWord(at int64) (uint32, error)
	loadTwo(at int64) (first, second uint32, err error) // loads the word at the offset and the next word together
	storeWord(at int64, word uint32) error
	readAt(at int64, to []byte) error
	writeAt(at int64, from []byte) error
}

// ErrBroken means that the other side violates the protocol.
var ErrBroken = errors.New("protocol violation: shared memory")

func brokenError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBroken, fmt.Sprintf(format, args...))
}

// RingEnd represents one end of a connection. One goroutine may read while another one writes.
type RingEnd struct {
	stream io.ReadWriter
	mem    memoryAccess // nil if this connection has no shared memory
	side   ringSide
	waits  *spinPolicy
	reader ringReader
	writer ringWriter
}

// ringSide contains the operations of a RingEnd that differ between host and guest.
type ringSide interface {
	// isUsable reports whether the other end has proved that it can access the memory.
	isUsable() bool
	// setMet is called after each read from the stream.
	setMet()
	// mayWait reports whether this end may spin now. If so, the caller must call done after spinning.
	mayWait() (done func(), ok bool)
	// pauseSpin is called in round n of spinning. It may yield the processor.
	pauseSpin(n int)
}

type ringReader struct {
	base, data     int64 // offsets in the file: of the direction's control words, and of its ring
	taken          uint32
	announcedTaken uint32 // the value of taken that was last written to the memory for the other side
	sleeps         uint32
	next           uint32 // the number of the next part to read
	parts          uint32 // number of parts that have arrived over the stream
	records        []byte // bytes that were copied from the ring and not parsed yet
	buffer         []byte // memory that the field in points into
	in             []byte // bytes that were read from the stream and not parsed yet
	held           []byte // data received so far of the part that is arriving over the stream
	missingBytes   int    // number of bytes of that part that have not arrived yet
}

type ringWriter struct {
	base, data  int64
	written     uint32
	streamed    uint32
	next        uint32
	belledSleep uint32 // value of the reader's sleep counter for which a bell was last sent
	peerSlept   bool   // the other side was asleep at the previous write
	record      []byte
}

func newEnd(stream io.ReadWriter, mem memoryAccess, in, out int64, soon time.Duration) *RingEnd {
	e := &RingEnd{stream: stream, mem: mem, waits: newPatience(soon)}
	e.reader.base, e.reader.data, e.reader.buffer = in, dataOf(in), make([]byte, maxRingPart)
	e.writer.base, e.writer.data = out, dataOf(out)
	return e
}

func dataOf(direction int64) int64 {
	if direction == toHost {
		return pageSize
	}
	return pageSize + ringSize
}

// Read implements io.Reader. It returns an error of the stream only after all data that arrived before the error.
func (e *RingEnd) Read(b []byte) (int, error) {
	r := &e.reader
	for {
		if len(r.held) > 0 {
			n := copy(b, r.held)
			r.held = r.held[n:]
			return n, nil
		}
		if r.missingBytes > 0 {
			n, err := e.stream.Read(b[:min(len(b), r.missingBytes)])
			r.missingBytes -= n
			return n, err
		}
		if ok, err := e.HasInput(); err != nil {
			return 0, err
		} else if ok {
			continue
		}
		if err := e.waitForInput(); err != nil {
			return 0, err
		}
	}
}

// waitForInput waits until the memory or the stream may have input. It spins first, if that has paid before.
func (e *RingEnd) waitForInput() error {
	came, comes := e.spinForInput(time.Time{})
	if came || !comes && e.PrepareSleep() {
		return nil
	}
	err := e.ReadStream()
	e.EndSleep()
	if err == nil {
		return nil
	}
	ok, other := e.HasInput() // the last words may be in the ring
	if ok {
		return nil
	}
	return cmp.Or(other, err)
}

// HasInput reports whether Read can return data that has already arrived in the memory or was read from the stream.
// It also returns true if only the beginning of a part has arrived so far.
func (e *RingEnd) HasInput() (bool, error) {
	r := &e.reader
	if len(r.held) > 0 || r.missingBytes > 0 {
		return true, nil
	}
	if len(r.records) == 0 {
		if err := e.takeFromRing(); err != nil {
			return false, err
		}
	}
	if ok, err := r.takeRecord(); ok || err != nil {
		return ok, err
	}
	return r.takePart()
}

// takeFromRing copies the new data in the ring to this end's own memory.
func (e *RingEnd) takeFromRing() error {
	r := &e.reader
	if e.mem == nil || len(r.records) > 0 {
		return nil
	}
	end, err := e.mem.loadWord(r.base + writtenOffset)
	if err != nil {
		return err
	}
	n := end - r.taken
	switch {
	case n == 0:
		return nil
	case n > ringSize:
		return brokenError("%d bytes in a ring of %d", n, ringSize)
	}
	records := make([]byte, n)
	first := min(n, ringSize-r.taken%ringSize)
	if err := e.mem.readAt(r.data+int64(r.taken%ringSize), records[:first]); err != nil {
		return err
	}
	if err := e.mem.readAt(r.data, records[first:]); err != nil {
		return err
	}
	r.records, r.taken = records, end
	if r.taken-r.announcedTaken > ringSize/4 {
		r.announcedTaken = r.taken
		return e.mem.storeWord(r.base+takenOffset, r.taken)
	}
	return nil
}

// takeRecord takes the next part (a header and its data) from the bytes that were read from the ring. It returns
// false if these bytes do not begin with the next part.
func (r *ringReader) takeRecord() (bool, error) {
	if len(r.records) == 0 {
		return false, nil
	}
	if len(r.records) < headerSize {
		return false, brokenError("%d bytes for a header", len(r.records))
	}
	n, number, err := parseHeader(r.records)
	if err != nil || number != r.next {
		return false, err
	}
	end := headerSize + padLength(n)
	if n == 0 || n > maxRingPart || end > len(r.records) {
		return false, brokenError("a part of %d bytes in %d", n, len(r.records))
	}
	r.held, r.records = r.records[headerSize:headerSize+n], r.records[end:]
	r.next++
	return true, nil
}

// takePart takes the next part (a header and its data) from the bytes that were read from the stream. It returns true
// if the part's header was among these bytes. The rest of the part may still be missing.
func (r *ringReader) takePart() (bool, error) {
	for len(r.in) >= headerSize {
		n, number, err := parseHeader(r.in)
		switch {
		case err != nil:
			return false, err
		case number == bellFrame && n == 0:
			r.in = r.in[headerSize:]
			continue
		case n == 0:
			return false, brokenError("an empty part")
		case number != r.next && len(r.records) > 0:
			return false, brokenError("part %d is missing", r.next)
		case number != r.next:
			return false, nil // those before it are in the ring
		}
		r.in = r.in[headerSize:]
		here := min(n, len(r.in))
		r.held, r.in, r.missingBytes = r.in[:here], r.in[here:], n-here
		r.next++
		r.parts++
		return true, nil
	}
	return false, nil
}

func parseHeader(header []byte) (n int, number uint32, err error) {
	length := binary.BigEndian.Uint32(header)
	if length&lengthMark == 0 {
		return 0, 0, brokenError("a header without its mark")
	}
	return int(length &^ lengthMark), binary.BigEndian.Uint32(header[4:]), nil
}

func padLength(n int) int { return (n + headerSize - 1) &^ (headerSize - 1) }

// ReadStream reads from the stream and blocks until data arrives. It must not be called while HasInput returns true.
func (e *RingEnd) ReadStream() error {
	r := &e.reader
	if len(r.in) >= headerSize {
		return brokenError("part %d is missing", r.next)
	}
	have := copy(r.buffer, r.in)
	n, err := e.stream.Read(r.buffer[have:])
	r.in = r.buffer[:have+n]
	e.side.setMet()
	if n > 0 {
		return nil
	}
	return err
}

const checksPerClockRead = 16 // number of input checks between two readings of the clock

// SpinUntil spins for a short time, if spinning has paid before. It stops at the deadline, unless the deadline is
// zero. It reports whether data has arrived in the ring.
func (e *RingEnd) SpinUntil(deadline time.Time) bool {
	came, _ := e.spinForInput(deadline)
	return came
}

// SetEmulated makes a guest's end spin for longer, because each check takes longer on an emulated processor. It must
// be called before the first read.
func (e *RingEnd) SetEmulated() { e.waits = newPatience(EmulatedCallTime) }

// spinForInput waits for input by spinning, if spinning has paid before. came is true if data is in the ring. comes
// is true if data is arriving over the stream.
func (e *RingEnd) spinForInput(deadline time.Time) (came, comes bool) {
	r := &e.reader
	if e.mem == nil || len(r.records) > 0 || !e.side.isUsable() || !e.waits.shouldSpin() {
		return false, false
	}
	done, ok := e.side.mayWait()
	if !ok {
		return false, false
	}
	defer done()
	began := time.Now()
	for n := 0; ; n++ {
		for range checksPerClockRead {
			if came, comes = e.checkInput(); came || comes {
				e.waits.recordWait(time.Since(began))
				return came, comes
			}
		}
		now := time.Now()
		if took := now.Sub(began); took > e.waits.most || !deadline.IsZero() && now.After(deadline) {
			e.waits.recordWait(took)
			return false, false
		}
		e.side.pauseSpin(n)
	}
}

// checkInput reports whether data is in the ring (came) and whether data is arriving over the stream (comes).
func (e *RingEnd) checkInput() (came, comes bool) {
	end, parts, err := e.mem.loadTwo(e.reader.base + writtenOffset)
	return err == nil && end != e.reader.taken, err != nil || parts != e.reader.parts
}

// PrepareSleep tells the other end that this end will sleep and must be woken with a bell. It returns true if data
// has arrived in the meantime. This end then stays awake.
func (e *RingEnd) PrepareSleep() (came bool) {
	if e.mem == nil || len(e.reader.records) > 0 {
		return false
	}
	e.reader.sleeps |= 1
	if e.mem.storeWord(e.reader.base+sleepsOffset, e.reader.sleeps) != nil {
		return false
	}
	end, err := e.mem.loadWord(e.reader.base + writtenOffset)
	if err != nil || end == e.reader.taken {
		return false
	}
	e.EndSleep()
	return true
}

// EndSleep tells the other end that this end is awake again.
func (e *RingEnd) EndSleep() {
	if e.reader.sleeps&1 != 0 {
		e.reader.sleeps++
		_ = e.mem.storeWord(e.reader.base+sleepsOffset, e.reader.sleeps)
	}
}

// Write implements io.Writer.
func (e *RingEnd) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if ok, err := e.putPart(b); ok || err != nil {
		return len(b), err
	}
	n := 0
	for part := range slices.Chunk(b, maxPart) {
		if err := e.sendPart(part); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

// sendPart writes a part to the stream.
func (e *RingEnd) sendPart(b []byte) error {
	w := &e.writer
	w.streamed++
	if e.mem != nil {
		_ = e.mem.storeWord(w.base+streamedOffset, w.streamed)
	}
	header := appendHeader(w.record[:0], len(b), w.next)
	w.next++
	if len(b) <= maxRingPart { // one write of both
		w.record = append(header, b...)
		_, err := e.stream.Write(w.record)
		return err
	}
	if _, err := e.stream.Write(header); err != nil {
		return err
	}
	_, err := e.stream.Write(b)
	return err
}

func appendHeader(to []byte, n int, number uint32) []byte {
	to = binary.BigEndian.AppendUint32(to, lengthMark|uint32(n))
	return binary.BigEndian.AppendUint32(to, number)
}

// putPart writes a part into the ring if there is room. It reports whether it has written the part.
func (e *RingEnd) putPart(b []byte) (bool, error) {
	w := &e.writer
	size := uint32(headerSize + padLength(len(b)))
	if e.mem == nil || !e.side.isUsable() || len(b) > maxRingPart {
		return false, nil
	}
	begin, err := e.mem.loadWord(w.base + takenOffset)
	if used := w.written - begin; err != nil || used > ringSize || ringSize-used < size {
		return false, nil //nolint:nilerr // the stream is there
	}
	w.record = append(appendHeader(w.record[:0], len(b), w.next), b...)
	w.record = append(w.record, noPart[:int(size)-len(w.record)]...)
	first := min(size, ringSize-w.written%ringSize)
	if e.mem.writeAt(w.data+int64(w.written%ringSize), w.record[:first]) != nil || e.mem.writeAt(w.data, w.record[first:]) != nil {
		return false, nil
	}
	if e.mem.storeWord(w.base+writtenOffset, w.written+size) != nil {
		return false, nil
	}
	w.next++
	w.written += size
	return true, e.wakePeer()
}

// noPart is used as padding: it fills the space after a part in a ring, because each part must begin at a multiple of
// headerSize.
var noPart [headerSize]byte

// wakePeer sends a bell over the stream if the other end sleeps, unless a bell has already been sent to it.
func (e *RingEnd) wakePeer() error {
	w := &e.writer
	state, err := e.mem.loadWord(w.base + sleepsOffset)
	peerSlept := w.peerSlept
	if w.peerSlept = state&1 != 0; peerSlept && !w.peerSlept {
		e.waits.notePeerAwake()
	}
	if err != nil || !w.peerSlept || state == w.belledSleep {
		return nil //nolint:nilerr // a side without shared memory is always awake
	}
	w.belledSleep = state
	_, err = e.stream.Write(appendHeader(w.record[:0], 0, bellFrame))
	return err
}
