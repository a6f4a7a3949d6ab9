// Package shm connects two processes through shared memory while both are awake. A stream
// between them carries the rest: what is large, what finds no room in the memory, and the
// bells that wake a sleeping side. Between a sandbox and the engine a stream may pass through
// a daemon, a shim and a user-space kernel, each of which must wake the next. Shared memory
// is read directly.
//
// The data is cut into parts. A part has a header of eight bytes: its length with the
// highest bit set, and its number, both big-endian. Parts are numbered from 0 in each
// direction. Each is sent either through the memory or over the stream, and the reader takes
// the next number from wherever it is. A part of length 0 over the stream is a bell: it has no
// number, and says that something is in the memory.
//
// The memory is a file that the host has created: a page of control words, and a ring of bytes
// for each direction. The words have the byte order of x86-64, and the ring relies on that
// processor's order of stores. Other processors are not supported.
//
// The host does not map the file but reads and writes it, so that a guest cannot crash it by
// truncating the file, and it trusts no word in it. Nothing is sent through the memory before
// each side has seen what the other has written there.
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

// Descriptor is the descriptor on which a guest finds the file.
const Descriptor = 100

// Size is the size of the file, in bytes. The space after the rings is reserved.
const Size = 256 << 10

const (
	used       = page + 2*capacity // used bytes of the file
	page       = 4096
	capacity   = 64 << 10 // size of the ring of a direction, in bytes; a power of two
	headerSize = 8
	large      = capacity / 4 // longer parts are sent over the stream
	largest    = 1 << 30      // maximum length of a part
	marked     = 1 << 31      // bit that is set in the length of a header
	bell       = ^uint32(0)   // takes the place of a part's number
)

// Offsets of the control words. Each side writes only its own words. They are on a cache line of their own.
const (
	atMagic  = 0  // by the host: magic, then a random number
	atNonce  = 8  // eight bytes
	atAnswer = 64 // by the guest: the number, inverted
	atProven = 16 // by the host after it has seen the answer: the number again
	atSeen   = 72 // by the guest after it has seen that: the number
	toHost   = 1024
	toGuest  = 2048
	// Offsets relative to the start of a direction.
	written  = 0   // by the writer: the end of the ring's data, modulo 2³²
	streamed = 4   // by the writer: number of parts sent over the stream
	taken    = 128 // by the reader: the beginning of the ring's data
	sleeps   = 256 // by the reader: odd while it sleeps
)

const magic = 0x676e6972_746f7465 // "etotring"

// memory is a side's access to the file. The other side sees stores in the order of the calls. A load is not done
// before earlier stores are visible.
type memory interface {
	load(at int64) (uint32, error)
	loadTwo(at int64) (first, second uint32, err error) // both words at once
	store(at int64, word uint32) error
	read(at int64, to []byte) error
	write(at int64, from []byte) error
}

// ErrBroken means that the other side violates the protocol.
var ErrBroken = errors.New("protocol violation: shared memory")

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBroken, fmt.Sprintf(format, args...))
}

// End represents one end of a connection. One goroutine may read while another one writes.
type End struct {
	stream io.ReadWriter
	mem    memory // nil without shared memory
	side   side
	waits  *patience
	reader reader
	writer writer
}

// side has the operations in which host and guest differ.
type side interface {
	// usable reports whether the other side is known to see the memory.
	usable() bool
	// met is called when data has come over the stream.
	met()
	// mayWait reports whether this side may spin now. If so, done must be called afterwards.
	mayWait() (done func(), ok bool)
	// pause is called in the n-th round of spinning. It may yield the processor.
	pause(n int)
}

type reader struct {
	base, data int64 // offsets of the direction's words and bytes
	taken      uint32
	told       uint32 // the value of taken that the other side knows
	sleeps     uint32
	next       uint32 // the number of the next part
	parts      uint32 // number of parts that came over the stream
	records    []byte // copied from the ring, not yet parsed
	buffer     []byte // holds in
	in         []byte // data of the stream, not yet parsed
	held       []byte // part that is arriving: its data so far
	rest       int    // and the number of bytes that are still to come
}

type writer struct {
	base, data int64
	written    uint32
	streamed   uint32
	next       uint32
	rung       uint32 // the sleep for which a bell was sent
	slept      bool   // the other side slept the last time
	record     []byte
}

func newEnd(stream io.ReadWriter, mem memory, in, out int64, soon time.Duration) *End {
	e := &End{stream: stream, mem: mem, waits: newPatience(soon)}
	e.reader.base, e.reader.data, e.reader.buffer = in, dataOf(in), make([]byte, large)
	e.writer.base, e.writer.data = out, dataOf(out)
	return e
}

func dataOf(direction int64) int64 {
	if direction == toHost {
		return page
	}
	return page + capacity
}

// Read implements io.Reader. It returns an error of the stream only after all data that came before it.
func (e *End) Read(b []byte) (int, error) {
	r := &e.reader
	for {
		if len(r.held) > 0 {
			n := copy(b, r.held)
			r.held = r.held[n:]
			return n, nil
		}
		if r.rest > 0 {
			n, err := e.stream.Read(b[:min(len(b), r.rest)])
			r.rest -= n
			return n, err
		}
		if ok, err := e.Ready(); err != nil {
			return 0, err
		} else if ok {
			continue
		}
		if err := e.wait(); err != nil {
			return 0, err
		}
	}
}

// wait waits until there may be input.
func (e *End) wait() error {
	came, comes := e.await(time.Time{})
	if came || !comes && e.Sleep() {
		return nil
	}
	err := e.Listen()
	e.Wake()
	if err == nil {
		return nil
	}
	ok, other := e.Ready() // the last words may be in the ring
	if ok {
		return nil
	}
	return cmp.Or(other, err)
}

// Ready reports whether Read has data without waiting, apart from the rest of a part that is still arriving. It does
// not read the stream.
func (e *End) Ready() (bool, error) {
	r := &e.reader
	if len(r.held) > 0 || r.rest > 0 {
		return true, nil
	}
	if len(r.records) == 0 {
		if err := e.look(); err != nil {
			return false, err
		}
	}
	if ok, err := r.record(); ok || err != nil {
		return ok, err
	}
	return r.part()
}

// look copies the new content of the ring.
func (e *End) look() error {
	r := &e.reader
	if e.mem == nil || len(r.records) > 0 {
		return nil
	}
	end, err := e.mem.load(r.base + written)
	if err != nil {
		return err
	}
	n := end - r.taken
	switch {
	case n == 0:
		return nil
	case n > capacity:
		return broken("%d bytes in a ring of %d", n, capacity)
	}
	records := make([]byte, n)
	first := min(n, capacity-r.taken%capacity)
	if err := e.mem.read(r.data+int64(r.taken%capacity), records[:first]); err != nil {
		return err
	}
	if err := e.mem.read(r.data, records[first:]); err != nil {
		return err
	}
	r.records, r.taken = records, end
	if r.taken-r.told > capacity/4 {
		r.told = r.taken
		return e.mem.store(r.base+taken, r.taken)
	}
	return nil
}

// record takes the next part out of the ring if it is there.
func (r *reader) record() (bool, error) {
	if len(r.records) == 0 {
		return false, nil
	}
	if len(r.records) < headerSize {
		return false, broken("%d bytes for a header", len(r.records))
	}
	n, number, err := parse(r.records)
	if err != nil || number != r.next {
		return false, err
	}
	end := headerSize + padded(n)
	if n == 0 || n > large || end > len(r.records) {
		return false, broken("a part of %d bytes in %d", n, len(r.records))
	}
	r.held, r.records = r.records[headerSize:headerSize+n], r.records[end:]
	r.next++
	return true, nil
}

// part takes the next part from the stream's data if its header has arrived.
func (r *reader) part() (bool, error) {
	for len(r.in) >= headerSize {
		n, number, err := parse(r.in)
		switch {
		case err != nil:
			return false, err
		case number == bell && n == 0:
			r.in = r.in[headerSize:]
			continue
		case n == 0:
			return false, broken("an empty part")
		case number != r.next && len(r.records) > 0:
			return false, broken("part %d is missing", r.next)
		case number != r.next:
			return false, nil // those before it are in the ring
		}
		r.in = r.in[headerSize:]
		here := min(n, len(r.in))
		r.held, r.in, r.rest = r.in[:here], r.in[here:], n-here
		r.next++
		r.parts++
		return true, nil
	}
	return false, nil
}

func parse(header []byte) (n int, number uint32, err error) {
	length := binary.BigEndian.Uint32(header)
	if length&marked == 0 {
		return 0, 0, broken("a header without its mark")
	}
	return int(length &^ marked), binary.BigEndian.Uint32(header[4:]), nil
}

func padded(n int) int { return (n + headerSize - 1) &^ (headerSize - 1) }

// Listen reads from the stream and blocks until there is data. It must not be called while Read has data without
// waiting.
func (e *End) Listen() error {
	r := &e.reader
	if len(r.in) >= headerSize {
		return broken("part %d is missing", r.next)
	}
	have := copy(r.buffer, r.in)
	n, err := e.stream.Read(r.buffer[have:])
	r.in = r.buffer[:have+n]
	e.side.met()
	if n > 0 {
		return nil
	}
	return err
}

const between = 16 // checks between two readings of the clock

// Await spins for a short time if that has paid before, but not beyond deadline unless that is zero. It reports
// whether data has come into the ring.
func (e *End) Await(deadline time.Time) bool {
	came, _ := e.await(deadline)
	return came
}

// Emulated makes a guest's end spin for longer, because each check takes longer on an emulated processor. It must be
// called before the first read.
func (e *End) Emulated() { e.waits = newPatience(Emulated) }

// await spins if that has paid before. came reports whether data is in the ring, and comes whether data is coming
// over the stream.
func (e *End) await(deadline time.Time) (came, comes bool) {
	r := &e.reader
	if e.mem == nil || len(r.records) > 0 || !e.side.usable() || !e.waits.worthwhile() {
		return false, false
	}
	done, ok := e.side.mayWait()
	if !ok {
		return false, false
	}
	defer done()
	began := time.Now()
	for n := 0; ; n++ {
		for range between {
			if came, comes = e.news(); came || comes {
				e.waits.judge(time.Since(began))
				return came, comes
			}
		}
		now := time.Now()
		if took := now.Sub(began); took > e.waits.most || !deadline.IsZero() && now.After(deadline) {
			e.waits.judge(took)
			return false, false
		}
		e.side.pause(n)
	}
}

// news checks whether data is in the ring (came) or coming over the stream (comes).
func (e *End) news() (came, comes bool) {
	end, parts, err := e.mem.loadTwo(e.reader.base + written)
	return err == nil && end != e.reader.taken, err != nil || parts != e.reader.parts
}

// Sleep tells the other side that from now on this side must be woken with a bell. It returns true if data has come
// before that. This side then stays awake.
func (e *End) Sleep() (came bool) {
	if e.mem == nil || len(e.reader.records) > 0 {
		return false
	}
	e.reader.sleeps |= 1
	if e.mem.store(e.reader.base+sleeps, e.reader.sleeps) != nil {
		return false
	}
	end, err := e.mem.load(e.reader.base + written)
	if err != nil || end == e.reader.taken {
		return false
	}
	e.Wake()
	return true
}

// Wake tells the other side that this side is awake again.
func (e *End) Wake() {
	if e.reader.sleeps&1 != 0 {
		e.reader.sleeps++
		_ = e.mem.store(e.reader.base+sleeps, e.reader.sleeps)
	}
}

// Write implements io.Writer.
func (e *End) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if ok, err := e.put(b); ok || err != nil {
		return len(b), err
	}
	n := 0
	for part := range slices.Chunk(b, largest) {
		if err := e.send(part); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

// send writes a part to the stream.
func (e *End) send(b []byte) error {
	w := &e.writer
	w.streamed++
	if e.mem != nil {
		_ = e.mem.store(w.base+streamed, w.streamed)
	}
	header := appendHeader(w.record[:0], len(b), w.next)
	w.next++
	if len(b) <= large { // one write of both
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
	to = binary.BigEndian.AppendUint32(to, marked|uint32(n))
	return binary.BigEndian.AppendUint32(to, number)
}

// put writes a part into the ring if there is room.
func (e *End) put(b []byte) (bool, error) {
	w := &e.writer
	size := uint32(headerSize + padded(len(b)))
	if e.mem == nil || !e.side.usable() || len(b) > large {
		return false, nil
	}
	begin, err := e.mem.load(w.base + taken)
	if used := w.written - begin; err != nil || used > capacity || capacity-used < size {
		return false, nil //nolint:nilerr // the stream is there
	}
	w.record = append(appendHeader(w.record[:0], len(b), w.next), b...)
	w.record = append(w.record, none[:int(size)-len(w.record)]...)
	first := min(size, capacity-w.written%capacity)
	if e.mem.write(w.data+int64(w.written%capacity), w.record[:first]) != nil || e.mem.write(w.data, w.record[first:]) != nil {
		return false, nil
	}
	if e.mem.store(w.base+written, w.written+size) != nil {
		return false, nil
	}
	w.next++
	w.written += size
	return true, e.ring()
}

// none marks the space between the parts in a ring.
var none [headerSize]byte

// ring sends a bell if the other side sleeps.
func (e *End) ring() error {
	w := &e.writer
	state, err := e.mem.load(w.base + sleeps)
	slept := w.slept
	if w.slept = state&1 != 0; slept && !w.slept {
		e.waits.urge()
	}
	if err != nil || !w.slept || state == w.rung {
		return nil //nolint:nilerr // a side without shared memory is always awake
	}
	w.rung = state
	_, err = e.stream.Write(appendHeader(w.record[:0], 0, bell))
	return err
}
