// Package offsets maps hashes and numbers to places, using little memory for very many entries. A place is a 32-bit
// number whose meaning the caller decides, for example the offset of a record in a file. The place 0 means that there
// is no entry.
package offsets

import (
	"cmp"
	"slices"
)

// ByHash maps hashes to places, which are 32-bit numbers such as offsets in a file. The zero value is empty and ready
// to use. A small ByHash is a Go map. A large one stores only 26 bits of each hash, so it cannot tell some hashes
// apart, and the caller must check that the item at the place is the wanted one. A large ByHash takes 7 to 9 bytes
// per place. It consists of 1,024 small hash tables that grow one by one, so that growing needs little extra memory.
type ByHash struct {
	Limit int // from how many places on it is large; Few if it is 0
	few   map[uint64]uint32
	many  *[1 << shardBits]hashShard
}

const (
	shardBits = 10
	// Few is the number of entries from which on a ByHash uses less memory per entry. It then moves its entries from
	// a Go map to hash tables that store only a part of each hash. The field Limit of a ByHash can set another
	// number.
	Few = 4096
)

// hashShard is one of the small hash tables of which a large ByHash consists. It uses linear probing. It stores only
// a part of each hash, the tag, and orders its entries by tag, so that it can grow without knowing the full hashes.
type hashShard struct {
	tags   []uint16
	places []uint32 // 0: nothing is here
	n      int
}

func splitHash(h uint64) (i int, tag uint16) {
	return int(h >> (64 - shardBits)), uint16(h >> (48 - shardBits))
}

// FindOffset returns the first place that is stored for the hash and that the given function accepts. It returns 0 if
// there is no such place.
func (x *ByHash) FindOffset(h uint64, is func(place uint32) bool) uint32 {
	if x.many == nil {
		if place := x.few[h]; place != 0 && is(place) {
			return place
		}
		return 0
	}
	i, tag := splitHash(h)
	s := &x.many[i]
	if i := s.findTag(tag, is); i >= 0 {
		return s.places[i]
	}
	return 0
}

// InsertOffset adds a place for a hash. In a small ByHash, it replaces the place that was stored for the same hash.
// In a large one, a hash can have several places.
func (x *ByHash) InsertOffset(h uint64, place uint32) {
	if x.many != nil {
		i, tag := splitHash(h)
		x.many[i].insertTag(tag, place)
		return
	}
	if x.few == nil {
		x.few = map[uint64]uint32{}
	}
	if x.few[h] = place; len(x.few) < cmp.Or(x.Limit, Few) {
		return
	}
	x.many = new([1 << shardBits]hashShard)
	for h, place := range x.few {
		i, tag := splitHash(h)
		x.many[i].insertTag(tag, place)
	}
	x.few = nil
}

// ReplaceOffset replaces the place old, which is stored for a hash, by another place. It does nothing if old is not
// stored for this hash.
func (x *ByHash) ReplaceOffset(h uint64, old, place uint32) {
	if x.many == nil {
		if x.few[h] == old {
			x.few[h] = place
		}
		return
	}
	i, tag := splitHash(h)
	s := &x.many[i]
	if i := s.findTag(tag, func(p uint32) bool { return p == old }); i >= 0 {
		s.places[i] = place
	}
}

// bestPosition returns the position in the hash table at which the search for a tag begins. The tag is the part of a
// hash that the table stores.
func (s *hashShard) bestPosition(tag uint16) int { return int(uint64(tag) * uint64(len(s.tags)) >> 16) }

func (s *hashShard) findTag(tag uint16, is func(place uint32) bool) int {
	if s.n == 0 {
		return -1
	}
	for i := s.bestPosition(tag); ; {
		if s.places[i] == 0 {
			return -1
		}
		if s.tags[i] == tag && is(s.places[i]) {
			return i
		}
		if i++; i == len(s.tags) {
			i = 0
		}
	}
}

func (s *hashShard) insertTag(tag uint16, place uint32) {
	if s.n >= len(s.tags)-len(s.tags)/8 {
		s.growTable()
	}
	i := s.bestPosition(tag)
	for s.places[i] != 0 {
		if i++; i == len(s.tags) {
			i = 0
		}
	}
	s.tags[i], s.places[i] = tag, place
	s.n++
}

func (s *hashShard) growTable() {
	old := *s
	places := slices.Grow([]uint32(nil), len(old.tags)+max(8, len(old.tags)/8))
	places = places[:cap(places)] // all of what was allocated
	clear(places)
	*s = hashShard{tags: make([]uint16, len(places)), places: places}
	for i, place := range old.places {
		if place != 0 {
			s.insertTag(old.tags[i], place)
		}
	}
}

// ByNumber maps non-negative numbers to places, which are 32-bit numbers such as offsets in a file. The zero value is
// empty and ready to use.
type ByNumber struct{ pages []*offsetPage }

// offsetPage holds the entries of a ByNumber for pageSize consecutive numbers. Each entry maps a number to an offset
// or another place. An entry takes only two bytes while the places on the page are close together, as they are if
// places are assigned in the order of the numbers.
type offsetPage struct {
	base uint32
	near [pageSize]uint16 // how far above base, from 1 on; 0: no place
	far  *[pageSize]uint32
}

const pageSize = 512

func (p *offsetPage) placeAt(i int) uint32 {
	if p.far != nil {
		return p.far[i]
	}
	if p.near[i] == 0 {
		return 0
	}
	return p.base + uint32(p.near[i])
}

func (p *offsetPage) setPlace(i int, place uint32) {
	if p.far == nil {
		if p.base == 0 {
			p.base = place - 1
		}
		if above := place - p.base; above-1 < 1<<16-1 { // a place below wraps around
			p.near[i] = uint16(above)
			return
		}
		var far [pageSize]uint32
		for i := range far {
			far[i] = p.placeAt(i)
		}
		p.far = &far
	}
	p.far[i] = place
}

// OffsetAt returns the place stored for a number, or 0 if no place is stored.
func (n *ByNumber) OffsetAt(number int) uint32 {
	if i := number / pageSize; i < len(n.pages) && n.pages[i] != nil {
		return n.pages[i].placeAt(number % pageSize)
	}
	return 0
}

// Set stores the place of a number. It replaces the place that was stored before.
func (n *ByNumber) Set(number int, place uint32) {
	i := number / pageSize
	if i >= len(n.pages) {
		n.pages = append(n.pages, make([]*offsetPage, i+1-len(n.pages))...)
	}
	if n.pages[i] == nil {
		n.pages[i] = new(offsetPage)
	}
	n.pages[i].setPlace(number%pageSize, place)
}

// AllOffsets yields the places in the order of the numbers, until yield returns false.
func (n *ByNumber) AllOffsets(yield func(place uint32) bool) {
	for _, p := range n.pages {
		for i := 0; p != nil && i < pageSize; i++ {
			if place := p.placeAt(i); place != 0 && !yield(place) {
				return
			}
		}
	}
}
