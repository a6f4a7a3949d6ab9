package vault

import (
	"bytes"
	"errors"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"retort/internal/privacy/offsets"
)

// entryTable holds the entries of a session in frames. For frames on disk, only an index (about 12 bytes per entry)
// and the most recently used frames are in memory. It is safe for concurrent reads only.
type entryTable struct {
	limits   sessionLimits
	file     *sessionFile // holds the frames that are not in memory
	types    map[string]*typeColumn
	slots    []frameSlot // the first one is unused
	filling  uint32      // the slot of the frame to which entries are added, or 0
	pending  []uint32    // slots of frames still to be written to disk
	unsaved  int         // entries in them
	count    int         // of entries
	changes  int         // number of changes to entries
	volatile bool        // kept in memory only
	cache    frameCache
}

// typeColumn indexes the entries of a session whose values have one type of personal data.
type typeColumn struct {
	prefix  string // of its tokens
	seed    maphash.Seed
	values  offsets.ByHash   // places by value
	numbers offsets.ByNumber // places by number
	top     int              // the highest number used or reserved by any process
	count   int              // of entries
	ours    numberBlock      // numbers that only this process uses
	recent  recentTokens
}

// numberBlock represents a block of token numbers that this process has reserved. The field next holds the lowest
// number of the block that is still unused, and the field last holds the block's highest number.
type numberBlock struct{ next, last int }

// frameSlot refers to one frame of entries, which is in memory or only in the file.
type frameSlot struct {
	frame     atomic.Pointer[entryFrame] // nil: it has to be read
	frameSpan                            // in the file
}

// A place is a number that refers to an entry in the table. Its low placeBits bits are the entry's index in a frame,
// and the other bits are the frame's slot.
const (
	placeBits = 6 // of where in the frame
	maxSlots  = 1 << (32 - placeBits)
)

func newTable(f *sessionFile, l sessionLimits) *entryTable {
	return &entryTable{
		file: f, limits: l, types: map[string]*typeColumn{}, slots: make([]frameSlot, 1), changes: 1,
		cache: frameCache{limit: l.cache},
	}
}

// newSuccessor returns an empty table for the file f, which is to replace this table. The new table keeps the numbers
// that this table has reserved.
func (t *entryTable) newSuccessor(f *sessionFile) *entryTable {
	next := newTable(f, t.limits)
	next.changes, next.volatile = t.changes+1, t.volatile
	for typ, c := range t.types {
		fresh := next.columnOf(typ)
		fresh.top, fresh.ours = c.top, c.ours
	}
	return next
}

// columnOf returns the typeColumn that indexes all entries of a type, and creates it if it does not exist. The form of
// tokens, such as [EMAIL_1], is defined here and in tokenText. parseToken, pii.Scanner.FindTokens and the regular
// expressions of the pipeline and of skills recognise it.
func (t *entryTable) columnOf(typ string) *typeColumn {
	c := t.types[typ]
	if c == nil {
		c = &typeColumn{prefix: "[" + strings.ToUpper(typ) + "_", seed: maphash.MakeSeed(), values: offsets.ByHash{Limit: t.limits.few}}
		t.types[typ] = c
	}
	return c
}

func (c *typeColumn) hashValue(value string) uint64 { return maphash.String(c.seed, value) }

func (c *typeColumn) tokenText(number int) string {
	var room [48]byte
	return string(append(strconv.AppendInt(append(room[:0], c.prefix...), int64(number), 10), ']'))
}

// findValue returns the entry of a value, whose hash is h, and the place (number) that refers to the entry in this
// table. The place is 0 if the value is unknown.
func (t *entryTable) findValue(c *typeColumn, h uint64, value string) (found frameRecord, place uint32, err error) {
	return t.searchHash(c, h, func(other []byte) bool { return string(other) == value })
}

// searchHash returns the first entry with this hash whose value the given function accepts, and the place (number)
// that refers to the entry. The place is 0 if there is no such entry.
func (t *entryTable) searchHash(c *typeColumn, h uint64, is func(value []byte) bool) (found frameRecord, place uint32, err error) {
	place = c.values.FindOffset(h, func(place uint32) bool {
		r, wrong := t.recordAt(place)
		if wrong != nil {
			err = wrong
			return false
		}
		found = r
		return is(r.value)
	})
	if err != nil {
		return frameRecord{}, 0, err // the unreadable entry may be the one
	}
	return found, place, nil
}

// recordAt returns the entry at a place, which is a number that refers to an entry of the table.
func (t *entryTable) recordAt(place uint32) (frameRecord, error) {
	f, err := t.frameAt(place >> placeBits)
	if err != nil {
		return frameRecord{}, err
	}
	i := int(place & (1<<placeBits - 1))
	if i >= len(f.at) {
		return frameRecord{}, errForm
	}
	return f.recordAt(i), nil
}

// frameAt returns the frame of slot i, and reads it from the file if it is not in memory.
func (t *entryTable) frameAt(i uint32) (*entryFrame, error) {
	s := &t.slots[i]
	if f := s.frame.Load(); f != nil {
		if !f.used.Load() {
			f.used.Store(true)
		}
		return f, nil
	}
	plain, err := t.file.readFrameAt(s.frameSpan)
	if err != nil {
		return nil, err
	}
	return t.cache.loadFrame(t.slots, i, plain)
}

var errSlots = errors.New("the session has reached its maximum number of changes")

// addEntry adds an entry whose number is set. If again is set, the entry replaces an earlier one with the same number
// and value. Otherwise the number must be unused.
func (t *entryTable) addEntry(c *typeColumn, h uint64, e *TokenEntry, again bool) error {
	place, err := t.putEntry(e, again)
	if err != nil {
		return err
	}
	if again {
		c.values.ReplaceOffset(h, c.numbers.OffsetAt(e.Number), place)
	} else {
		c.values.InsertOffset(h, place)
	}
	t.indexEntry(c, e.Number, place)
	return nil
}

// putEntry appends an entry to the current frame and returns its place, the number that refers to the entry. It
// starts a new frame if the current one is full.
func (t *entryTable) putEntry(e *TokenEntry, again bool) (place uint32, err error) {
	if t.filling == 0 || t.slots[t.filling].frame.Load().isFull() {
		if len(t.slots) == maxSlots {
			return 0, errSlots
		}
		t.beginFrame()
	}
	f := t.slots[t.filling].frame.Load()
	f.appendEntry(e, again)
	if !t.volatile {
		t.unsaved++
	}
	return t.filling<<placeBits | uint32(len(f.at)-1), nil
}

// beginFrame starts a new frame, to which the next entries are added.
func (t *entryTable) beginFrame() {
	if t.filling != 0 && t.volatile {
		t.cache.trimFrame(t.slots[t.filling].frame.Load())
	}
	t.filling = uint32(len(t.slots))
	t.slots = append(t.slots, frameSlot{})
	f := &entryFrame{names: &frameNames{}}
	if t.filling > 4 {
		f.body, f.at = make([]byte, 0, 2<<10), make([]uint16, 0, frameEntries)
	}
	t.slots[t.filling].frame.Store(f)
	if !t.volatile {
		t.pending = append(t.pending, t.filling)
	}
}

// indexEntry records which place in the table refers to the entry with this number. If the table already knows an
// older version of the entry, the new place replaces the old one.
func (t *entryTable) indexEntry(c *typeColumn, number int, place uint32) {
	if c.numbers.OffsetAt(number) == 0 {
		c.count++
		t.count++
	}
	c.numbers.Set(number, place)
	c.top = max(c.top, number)
	t.changes++
}

// addFrame adds a frame that was read from the file and indexes its entries.
func (t *entryTable) addFrame(f *entryFrame, s frameSpan) error {
	if len(t.slots) == maxSlots {
		return errSlots
	}
	i := uint32(len(t.slots))
	t.slots = append(t.slots, frameSlot{frameSpan: s})
	t.slots[i].frame.Store(f)
	t.cache.admitFrame(t.slots, i, f)
	for n := range f.at {
		r := f.recordAt(n)
		if err := t.takeRecord(&r, i<<placeBits|uint32(n)); err != nil {
			return err
		}
	}
	return nil
}

func (t *entryTable) takeRecord(r *frameRecord, place uint32) error {
	c := t.columnOf(r.typ)
	if len(r.value) == 0 {
		c.top = max(c.top, r.number)
		return nil
	}
	h := maphash.Bytes(c.seed, r.value)
	if old := c.numbers.OffsetAt(r.number); old != 0 {
		before, err := t.recordAt(old)
		if err != nil {
			return err
		}
		c.values.ReplaceOffset(h, old, place)
		t.indexEntry(c, r.number, place)
		if lacksServer(r.from, before.from) { // two processes added servers concurrently
			return t.addServers(c, h, r, before.from)
		}
		return nil
	}
	_, other, err := t.searchHash(c, h, func(other []byte) bool { return bytes.Equal(other, r.value) })
	if err != nil {
		return err
	}
	if other == 0 { // otherwise two processes minted the value concurrently
		c.values.InsertOffset(h, place)
	}
	t.indexEntry(c, r.number, place)
	return nil
}

// lacksServer reports whether at least one of the servers in the argument from is missing from the servers in the
// argument known.
func lacksServer(known, from []string) bool {
	return slices.ContainsFunc(from, func(server string) bool { return !slices.Contains(known, server) })
}

// addServers stores a new version of an entry to which the given servers are added.
func (t *entryTable) addServers(c *typeColumn, h uint64, r *frameRecord, from []string) error {
	more := r.toEntry()
	more.From = slices.Compact(slices.Sorted(slices.Values(slices.Concat(r.from, from))))
	return t.addEntry(c, h, more, true)
}

// insertEntry adds an entry whose value this table does not have yet.
func (t *entryTable) insertEntry(e *TokenEntry) error {
	c := t.columnOf(e.Type)
	return t.addEntry(c, c.hashValue(e.Value), e, false)
}

// eachLive calls do with the current version of every entry and stops at the first error. do must not keep the
// entry's value.
func (t *entryTable) eachLive(do func(*frameRecord) error) error {
	for i := 1; i < len(t.slots); i++ {
		f, err := t.frameAt(uint32(i))
		if err != nil {
			return err
		}
		for n := range f.at {
			r := f.recordAt(n)
			c := t.types[r.typ]
			if c.numbers.OffsetAt(r.number) != uint32(i<<placeBits|n) {
				continue // something newer is, or it only says what is taken
			}
			if err := do(&r); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasMatch reports whether the given function accepts any value in the table.
func (t *entryTable) hasMatch(told func(string) bool) (bool, error) {
	err := t.eachLive(func(r *frameRecord) error {
		if told(string(r.value)) {
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}

var errFound = errors.New("found")

// copyExcept copies the entries of the table by calling the function put with each of them. It leaves out the entries
// whose values are to be forgotten, for which the function told returns true, and returns their number.
func (t *entryTable) copyExcept(told func(string) bool, put func(*TokenEntry) error) (erased int, err error) {
	err = t.eachLive(func(r *frameRecord) error {
		if told(string(r.value)) {
			erased++
			return nil
		}
		return put(r.toEntry())
	})
	return erased, err
}

// eachOfType calls do with the entries of a type in the order of their numbers, until do returns false.
func (t *entryTable) eachOfType(typ string, do func(*frameRecord) bool) (err error) {
	c := t.types[typ]
	if c == nil {
		return nil
	}
	for place := range c.numbers.AllOffsets {
		r, err := t.recordAt(place)
		if err != nil {
			return err
		}
		if !do(&r) {
			break
		}
	}
	return nil
}

// unsavedEntries returns the new entries that are not on disk yet. Changes to entries that are on disk are not
// included.
func (t *entryTable) unsavedEntries() (all []*TokenEntry) {
	known := map[string]int{}
	for _, i := range t.pending {
		f := t.slots[i].frame.Load()
		for n := range f.at {
			r := f.recordAt(n)
			if len(r.value) == 0 {
				continue
			}
			at := r.typ + " " + strconv.Itoa(r.number)
			if was, ok := known[at]; ok {
				all[was] = r.toEntry()
			} else if !r.again {
				known[at] = len(all)
				all = append(all, r.toEntry())
			}
		}
	}
	return all
}

// saveFrames writes the pending frames to disk.
func (t *entryTable) saveFrames() error {
	frames := make([]*entryFrame, len(t.pending))
	for n, i := range t.pending {
		frames[n] = t.slots[i].frame.Load()
	}
	written, err := t.file.appendFrames(frames)
	if err != nil {
		return err
	}
	for n, i := range t.pending {
		t.slots[i].frameSpan = written[n]
		t.cache.trimFrame(frames[n])
		t.cache.admitFrame(t.slots, i, frames[n])
	}
	t.filling, t.pending, t.unsaved = 0, nil, 0
	return nil
}

// frameCache bounds the memory for frames that are on disk and also kept in memory. When it needs room, it removes
// frames that were not used since its last pass.
type frameCache struct {
	mu      sync.Mutex
	limit   int // bytes
	bytes   int
	ring    []uint32 // slots of the frames
	hand    int
	sharing nameSharing
}

// loadFrame decodes a frame that was read from disk and caches it in slot i. If another goroutine has cached the same
// frame meanwhile, loadFrame returns the cached one.
func (c *frameCache) loadFrame(slots []frameSlot, i uint32, plain []byte) (*entryFrame, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := slots[i].frame.Load(); f != nil { // another reader has loaded it
		return f, nil
	}
	f, err := decodeFrame(plain, &c.sharing)
	if err != nil {
		return nil, err
	}
	slots[i].frame.Store(f)
	c.keepFrame(slots, i, f)
	return f, nil
}

// admitFrame counts the size of a frame, which is in the given slot, towards the cache's limit.
func (c *frameCache) admitFrame(slots []frameSlot, i uint32, f *entryFrame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keepFrame(slots, i, f)
}

func (c *frameCache) keepFrame(slots []frameSlot, i uint32, f *entryFrame) {
	for c.bytes += f.memorySize(); c.bytes > c.limit && len(c.ring) > 0; {
		c.hand %= len(c.ring)
		s := &slots[c.ring[c.hand]]
		old := s.frame.Load()
		if old.used.Swap(false) {
			c.hand++
			continue
		}
		s.frame.Store(nil)
		c.bytes -= old.memorySize()
		last := len(c.ring) - 1
		c.ring[c.hand] = c.ring[last]
		c.ring = c.ring[:last]
	}
	c.ring = append(c.ring, i)
}

// trimFrame releases the spare capacity of a frame to which no more entries are added.
func (c *frameCache) trimFrame(f *entryFrame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.body, f.at = slices.Clone(f.body), slices.Clone(f.at)
	f.names = c.sharing.sharedNames(f.names.appendTo(nil))
}
