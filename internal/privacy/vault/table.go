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

// table represents the entries of a session, in frames. Of those that are on disk it has in memory where they are,
// some 12 bytes for each, and the frames that were used last. Reading may be concurrent, and nothing else.
type table struct {
	limits   limits
	file     *file // where the frames are that aren't in memory
	types    map[string]*column
	slots    []slot   // the first one is none
	filling  uint32   // the slot of the frame to which entries are added; 0: there is none
	pending  []uint32 // slots of frames that are to be written, if there is a disk
	unsaved  int      // entries in them
	count    int      // of entries
	changes  int      // how often entries came or went
	volatile bool     // there is no disk
	cache    cache
}

// column describes what there is of one type.
type column struct {
	prefix  string // of its tokens
	seed    maphash.Seed
	values  offsets.ByHash   // places by value
	numbers offsets.ByNumber // places by number
	top     int              // the highest number that anybody has, or has taken
	count   int              // of entries
	ours    block            // numbers that only this process uses
	recent  recent
}

// block represents numbers that have been taken: from next to last.
type block struct{ next, last int }

// slot describes where a frame is.
type slot struct {
	frame atomic.Pointer[frame] // nil: it has to be read
	span                        // in the file
}

// A place is that of an entry: a slot, and where in the frame the entry is.
const (
	placeBits = 6 // of where in the frame
	maxSlots  = 1 << (32 - placeBits)
)

func newTable(f *file, l limits) *table {
	return &table{file: f, limits: l, types: map[string]*column{}, slots: make([]slot, 1), changes: 1, cache: cache{limit: l.cache}}
}

// successor returns an empty table in which the numbers that are taken in this one are so too.
func (t *table) successor(f *file) *table {
	next := newTable(f, t.limits)
	next.changes, next.volatile = t.changes+1, t.volatile
	for typ, c := range t.types {
		fresh := next.column(typ)
		fresh.top, fresh.ours = c.top, c.ours
	}
	return next
}

// column returns that of a type; one is made if there is none.
func (t *table) column(typ string) *column {
	c := t.types[typ]
	if c == nil {
		c = &column{prefix: "[" + strings.ToUpper(typ) + "_", seed: maphash.MakeSeed(), values: offsets.ByHash{Limit: t.limits.few}}
		t.types[typ] = c
	}
	return c
}

func (c *column) hash(value string) uint64 { return maphash.String(c.seed, value) }

func (c *column) token(number int) string {
	var room [48]byte
	return string(append(strconv.AppendInt(append(room[:0], c.prefix...), int64(number), 10), ']'))
}

// find returns the entry of a value with a hash, and its place, which is 0 if there is none.
func (t *table) find(c *column, h uint64, value string) (found record, place uint32, err error) {
	return t.search(c, h, func(other []byte) bool { return string(other) == value })
}

// search returns the entry among those whose value has a hash that is it.
func (t *table) search(c *column, h uint64, is func(value []byte) bool) (found record, place uint32, err error) {
	place = c.values.Find(h, func(place uint32) bool {
		r, wrong := t.record(place)
		if wrong != nil {
			err = wrong
			return false
		}
		found = r
		return is(r.value)
	})
	if err != nil {
		return record{}, 0, err // it may be what could not be read
	}
	return found, place, nil
}

// record returns the entry at a place.
func (t *table) record(place uint32) (record, error) {
	f, err := t.frame(place >> placeBits)
	if err != nil {
		return record{}, err
	}
	i := int(place & (1<<placeBits - 1))
	if i >= len(f.at) {
		return record{}, errForm
	}
	return f.record(i), nil
}

// frame returns that of a slot.
func (t *table) frame(i uint32) (*frame, error) {
	s := &t.slots[i]
	if f := s.frame.Load(); f != nil {
		if !f.used.Load() {
			f.used.Store(true)
		}
		return f, nil
	}
	plain, err := t.file.at(s.span)
	if err != nil {
		return nil, err
	}
	return t.cache.load(t.slots, i, plain)
}

var errSlots = errors.New("the session was changed too often")

// add adds an entry that has a number. again says that the number has its value already;
// else no number has.
func (t *table) add(c *column, h uint64, e *Entry, again bool) error {
	place, err := t.put(e, again)
	if err != nil {
		return err
	}
	if again {
		c.values.Replace(h, c.numbers.At(e.Number), place)
	} else {
		c.values.Insert(h, place)
	}
	t.enter(c, e.Number, place)
	return nil
}

// put adds to the frame that is being filled.
func (t *table) put(e *Entry, again bool) (place uint32, err error) {
	if t.filling == 0 || t.slots[t.filling].frame.Load().full() {
		if len(t.slots) == maxSlots {
			return 0, errSlots
		}
		t.begin()
	}
	f := t.slots[t.filling].frame.Load()
	f.append(e, again)
	if !t.volatile {
		t.unsaved++
	}
	return t.filling<<placeBits | uint32(len(f.at)-1), nil
}

// begin begins a frame.
func (t *table) begin() {
	if t.filling != 0 && t.volatile {
		t.cache.trim(t.slots[t.filling].frame.Load())
	}
	t.filling = uint32(len(t.slots))
	t.slots = append(t.slots, slot{})
	f := &frame{names: &names{}}
	if t.filling > 4 {
		f.body, f.at = make([]byte, 0, 2<<10), make([]uint16, 0, frameEntries)
	}
	t.slots[t.filling].frame.Store(f)
	if !t.volatile {
		t.pending = append(t.pending, t.filling)
	}
}

// enter has an entry found by its number. Where that was in use, it is by the new entry
// from now on.
func (t *table) enter(c *column, number int, place uint32) {
	if c.numbers.At(number) == 0 {
		c.count++
		t.count++
	}
	c.numbers.Set(number, place)
	c.top = max(c.top, number)
	t.changes++
}

// take takes in a frame that was read from the file.
func (t *table) take(f *frame, s span) error {
	if len(t.slots) == maxSlots {
		return errSlots
	}
	i := uint32(len(t.slots))
	t.slots = append(t.slots, slot{span: s})
	t.slots[i].frame.Store(f)
	t.cache.admit(t.slots, i, f)
	for n := range f.at {
		r := f.record(n)
		if err := t.takeRecord(&r, i<<placeBits|uint32(n)); err != nil {
			return err
		}
	}
	return nil
}

func (t *table) takeRecord(r *record, place uint32) error {
	c := t.column(r.typ)
	if len(r.value) == 0 {
		c.top = max(c.top, r.number)
		return nil
	}
	h := maphash.Bytes(c.seed, r.value)
	if old := c.numbers.At(r.number); old != 0 {
		before, err := t.record(old)
		if err != nil {
			return err
		}
		c.values.Replace(h, old, place)
		t.enter(c, r.number, place)
		if lacks(r.from, before.from) { // two processes have learnt something at once
			return t.learn(c, h, r, before.from)
		}
		return nil
	}
	_, other, err := t.search(c, h, func(other []byte) bool { return bytes.Equal(other, r.value) })
	if err != nil {
		return err
	}
	if other == 0 { // else two processes have met the value at once
		c.values.Insert(h, place)
	}
	t.enter(c, r.number, place)
	return nil
}

// lacks reports whether there is a server among from that is not known.
func lacks(known, from []string) bool {
	return slices.ContainsFunc(from, func(server string) bool { return !slices.Contains(known, server) })
}

// learn adds servers to an entry.
func (t *table) learn(c *column, h uint64, r *record, from []string) error {
	more := r.entry()
	more.From = slices.Compact(slices.Sorted(slices.Values(slices.Concat(r.from, from))))
	return t.add(c, h, more, true)
}

// insert is add of an entry that is new here.
func (t *table) insert(e *Entry) error {
	c := t.column(e.Type)
	return t.add(c, c.hash(e.Value), e, false)
}

// live gives every entry to do, which must not keep its value. It ends at an error.
func (t *table) live(do func(*record) error) error {
	for i := 1; i < len(t.slots); i++ {
		f, err := t.frame(uint32(i))
		if err != nil {
			return err
		}
		for n := range f.at {
			r := f.record(n)
			c := t.types[r.typ]
			if c.numbers.At(r.number) != uint32(i<<placeBits|n) {
				continue // something newer is, or it only says what is taken
			}
			if err := do(&r); err != nil {
				return err
			}
		}
	}
	return nil
}

// has reports whether there is a value that was told.
func (t *table) has(told func(string) bool) (bool, error) {
	err := t.live(func(r *record) error {
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

// without gives put all entries but those that were told, and returns how many these are.
func (t *table) without(told func(string) bool, put func(*Entry) error) (erased int, err error) {
	err = t.live(func(r *record) error {
		if told(string(r.value)) {
			erased++
			return nil
		}
		return put(r.entry())
	})
	return erased, err
}

// each gives the entries of a type in the order of their numbers, until do does not want more.
func (t *table) each(typ string, do func(*record) bool) (err error) {
	c := t.types[typ]
	if c == nil {
		return nil
	}
	for place := range c.numbers.All {
		r, err := t.record(place)
		if err != nil {
			return err
		}
		if !do(&r) {
			break
		}
	}
	return nil
}

// unsavedEntries returns those that are not on disk, without what was added to ones that are.
func (t *table) unsavedEntries() (all []*Entry) {
	known := map[string]int{}
	for _, i := range t.pending {
		f := t.slots[i].frame.Load()
		for n := range f.at {
			r := f.record(n)
			if len(r.value) == 0 {
				continue
			}
			at := r.typ + " " + strconv.Itoa(r.number)
			if was, ok := known[at]; ok {
				all[was] = r.entry()
			} else if !r.again {
				known[at] = len(all)
				all = append(all, r.entry())
			}
		}
	}
	return all
}

// save writes what is not on disk.
func (t *table) save() error {
	frames := make([]*frame, len(t.pending))
	for n, i := range t.pending {
		frames[n] = t.slots[i].frame.Load()
	}
	written, err := t.file.append(frames)
	if err != nil {
		return err
	}
	for n, i := range t.pending {
		t.slots[i].span = written[n]
		t.cache.trim(frames[n])
		t.cache.admit(t.slots, i, frames[n])
	}
	t.filling, t.pending, t.unsaved = 0, nil, 0
	return nil
}

// cache bounds the frames in memory that are on disk too. Those that were not used since it
// looked at them the last time go first.
type cache struct {
	mu      sync.Mutex
	limit   int // bytes
	bytes   int
	ring    []uint32 // slots of the frames
	hand    int
	sharing sharing
}

// load keeps the frame of a slot that was read.
func (c *cache) load(slots []slot, i uint32, plain []byte) (*frame, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := slots[i].frame.Load(); f != nil { // somebody else was faster
		return f, nil
	}
	f, err := decodeFrame(plain, &c.sharing)
	if err != nil {
		return nil, err
	}
	slots[i].frame.Store(f)
	c.keep(slots, i, f)
	return f, nil
}

// admit bounds a frame in a slot.
func (c *cache) admit(slots []slot, i uint32, f *frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(slots, i, f)
}

func (c *cache) keep(slots []slot, i uint32, f *frame) {
	for c.bytes += f.bytes(); c.bytes > c.limit && len(c.ring) > 0; {
		c.hand %= len(c.ring)
		s := &slots[c.ring[c.hand]]
		old := s.frame.Load()
		if old.used.Swap(false) {
			c.hand++
			continue
		}
		s.frame.Store(nil)
		c.bytes -= old.bytes()
		last := len(c.ring) - 1
		c.ring[c.hand] = c.ring[last]
		c.ring = c.ring[:last]
	}
	c.ring = append(c.ring, i)
}

// trim takes from a frame that gets no more entries what it does not need.
func (c *cache) trim(f *frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.body, f.at = slices.Clone(f.body), slices.Clone(f.at)
	f.names = c.sharing.names(f.names.appendTo(nil))
}
