package pii

import (
	"math/bits"
	"sync/atomic"
)

// wordEntry is one entry of a wordSet. Its upper 35 bits are the tag, which is a part of the hash. Below are 12 bits
// for counts, 8 bits for a type and 9 bits for flags. 0 means that there is no entry.
type wordEntry uint64

const (
	// asWord marks a value that is found anywhere, in any letter case. For a number, it means that the stored digits
	// are complete.
	asWord wordEntry = 1 << iota
	// asName marks a value that is found where it begins with a capital or is the whole text. For a number, it means
	// that the digits are stored without the country code.
	asName
	// asPart marks a word of a person's name that is found alone. It must begin with a capital and not be in an
	// identifier.
	asPart
	// asWhole marks a value that is found only where it begins with a capital and is the whole text.
	asWhole
	// asRest marks a piece of a long value after the first piece. It is found directly after another finding.
	asRest
	// isSmall is set in addition to asPart if the word began with a small letter when it was added. Then it needs no
	// capital in a text.
	isSmall
	// markBefore and markAfter mark a value that begins or ends with a mark, for example "'t Hooft".
	markBefore
	markAfter
	// isValue marks the entry of a complete value or piece. An entry without it says how values begin, or stands for a
	// word of a name.
	isValue

	typeShift  = 9
	countShift = 17
	maxUnits   = 12 // maximum number of units of a piece
	tagShift   = 29
)

func (e wordEntry) kind() typeNumber { return typeNumber(e >> typeShift & 0xFF) }

// counts returns how many units the values that begin with this unit have. Bit 0 is set if there is a value of one
// unit, bit 1 for two units, and so on.
func (e wordEntry) counts() uint { return uint(e >> countShift & (1<<maxUnits - 1)) }

func countBit(units int) wordEntry { return 1 << (countShift + units - 1) }

// wordSet maps hashes to entries. It takes about 11 bytes per entry. It consists of many small tables that grow one by
// one, so that growing needs little extra memory. The hashes must be keyed, because words with equal hashes count as
// equal. One goroutine at a time may add entries. Others may find entries at the same time, without a lock.
type wordSet struct {
	shards [1 << setBits]setShard
	n      int
}

const (
	setBits    = 8
	fewEntries = 128 // up to this size, a table doubles when it grows
)

type setShard struct {
	entries atomic.Pointer[[]atomic.Uint64]
	n       int
}

// splitWordHash returns the index of the table for a hash, and the part of the hash that the table stores.
func splitWordHash(h uint64) (shard uint64, tag wordEntry) {
	return h >> (64 - setBits), wordEntry(h<<setBits) >> tagShift << tagShift
}

// findTag returns the index and the content of the entry with a tag. If there is no such entry, it returns the index of
// the free place for it, and 0. The search begins at an index that depends only on the tag, so that a table can grow
// without the complete hashes.
func findTag(entries []atomic.Uint64, tag wordEntry) (int, wordEntry) {
	place, _ := bits.Mul64(uint64(tag), uint64(len(entries)))
	for i := int(place); ; {
		if e := wordEntry(entries[i].Load()); e == 0 || e>>tagShift<<tagShift == tag {
			return i, e
		}
		if i++; i == len(entries) {
			i = 0
		}
	}
}

// find returns the entry that is stored for a hash. It returns 0 if the set has no such entry.
func (w *wordSet) find(h uint64) wordEntry {
	i, tag := splitWordHash(h)
	entries := w.shards[i].entries.Load()
	if entries == nil {
		return 0
	}
	_, e := findTag(*entries, tag)
	return e
}

// add adds flags and a type to the entry for a hash, and creates the entry if needed. flags may include bits of
// countBit. If the entry already has a type, it keeps that type.
func (w *wordSet) add(h uint64, flags wordEntry, kind typeNumber) {
	shard, tag := splitWordHash(h)
	s := &w.shards[shard]
	if entries := s.entries.Load(); entries == nil || (s.n+1)*8 > len(*entries)*7 {
		s.grow()
	}
	entries := *s.entries.Load()
	i, e := findTag(entries, tag)
	if e == 0 {
		e = tag
		s.n++
		w.n++
	}
	if e.kind() == 0 {
		e |= wordEntry(kind) << typeShift
	}
	entries[i].Store(uint64(e | flags))
}

// grow doubles a small table and enlarges a larger one by a quarter.
func (s *setShard) grow() {
	var old []atomic.Uint64
	if entries := s.entries.Load(); entries != nil {
		old = *entries
	}
	more := len(old) / 4
	if len(old) <= fewEntries {
		more = max(4, len(old))
	}
	entries := make([]atomic.Uint64, len(old)+more)
	for i := range old {
		if e := wordEntry(old[i].Load()); e != 0 {
			place, _ := findTag(entries, e>>tagShift<<tagShift)
			entries[place].Store(uint64(e))
		}
	}
	s.entries.Store(&entries)
}

// wordFilter quickly excludes most words with which no known value begins. It has one bit for each value of the upper
// bits of filterHash.
type wordFilter struct {
	bits  []atomic.Uint64
	shift uint
	n     int // number of words that were added
}

func newWordFilter(bits uint) *wordFilter {
	return &wordFilter{bits: make([]atomic.Uint64, 1<<(bits-6)), shift: 64 - bits}
}

const (
	filterBits    = 16 // number of bits of the hash that a new filter uses
	filterGrowth  = 3
	maxFilterBits = filterBits + 2*filterGrowth
)

func (f *wordFilter) has(h uint64) bool {
	if f == nil {
		return false
	}
	i := h >> (f.shift & 63)
	return f.bits[i>>6].Load()>>(i&63)&1 != 0
}

// add adds a hash and returns the filter that contains it. If an eighth of the bits were set, this is a new, larger
// filter, unless f has the maximum size.
func (f *wordFilter) add(h uint64) *wordFilter {
	if f == nil {
		f = newWordFilter(filterBits)
	}
	if f.has(h) {
		return f
	}
	if f.n > len(f.bits)*8 && f.shift > 64-maxFilterBits {
		f = f.grown()
	}
	i := h >> f.shift
	f.bits[i>>6].Or(1 << (i & 63))
	f.n++
	return f
}

// grown returns a filter with eight bits in place of each bit of f. It sets all eight if the bit was set, because the
// hashes are no longer known.
func (f *wordFilter) grown() *wordFilter {
	next := newWordFilter(64 - f.shift + filterGrowth)
	for i := range uint64(len(f.bits)) * 64 {
		if f.bits[i>>6].Load()>>(i&63)&1 != 0 {
			next.bits[i>>3].Or(0xFF << (i & 7 * 8))
		}
	}
	return next
}
