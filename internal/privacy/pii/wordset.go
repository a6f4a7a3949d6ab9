package pii

import "math/bits"

// wordEntry is one entry of a wordSet. The upper 36 bits are a part of the hash. Below are 14 bits for numbers of
// words, 8 bits for a type, and 6 bits for flags. The entry 0 means that there is none.
type wordEntry uint64

const (
	// asWord marks a word that is found anywhere, in any case.
	asWord wordEntry = 1 << iota
	// asName marks a word that is found where it begins with a capital, or is the whole text.
	asName
	// asWhole marks a word that is found only where it is the whole text.
	asWhole
	// withMarks marks a value that begins or ends with a mark, such as 't Hooft.
	withMarks
	// isValue marks a complete value, other than a part of one.
	isValue
	// present is set in every entry.
	present

	typeShift  = 6
	countShift = 14
	maxCount   = 14 // words of a value that are counted; the last bit stands for more
	tagShift   = 28
)

func (e wordEntry) kind() typeNumber { return typeNumber(e >> typeShift & 0xFF) }

// counts returns the numbers of words of the values that begin with this word, as bits: bit 0 for one word.
func (e wordEntry) counts() uint { return uint(e >> countShift & (1<<maxCount - 1)) }

func countBit(words int) wordEntry { return 1 << (countShift + min(words, maxCount) - 1) }

// wordSet maps hashes to entries, in about 11 bytes per entry. It consists of many small tables that grow one by one,
// so that growing needs little extra memory. The hashes must be keyed, because equal hashes count as equal words.
type wordSet struct {
	shards [1 << setBits]setShard
	n      int
}

const setBits = 8

type setShard struct {
	entries []wordEntry
	n       int
}

// split returns the table for a hash, and the part of the hash that the table stores.
func (w *wordSet) split(h uint64) (s *setShard, tag wordEntry) {
	return &w.shards[h>>(64-setBits)], wordEntry(h<<setBits) >> tagShift << tagShift
}

// place returns the position at which the search for a tag begins. It depends on nothing but the tag, so that a table
// can grow without knowing the hashes.
func (s *setShard) place(tag wordEntry) int {
	place, _ := bits.Mul64(uint64(tag), uint64(len(s.entries)))
	return int(place)
}

// find returns the position of the entry with a tag, or of the free place for it.
func (s *setShard) find(tag wordEntry) int {
	for i := s.place(tag); ; {
		if e := s.entries[i]; e == 0 || e>>tagShift<<tagShift == tag {
			return i
		}
		if i++; i == len(s.entries) {
			i = 0
		}
	}
}

// find returns the entry of a hash, or 0.
func (w *wordSet) find(h uint64) wordEntry {
	s, tag := w.split(h)
	if s.n == 0 {
		return 0
	}
	return s.entries[s.find(tag)]
}

// add adds flags, numbers of words and a type to the entry of a hash. If the entry has a type, that stays.
func (w *wordSet) add(h uint64, flags wordEntry, kind typeNumber) {
	s, tag := w.split(h)
	if (s.n+1)*8 > len(s.entries)*7 {
		s.grow()
	}
	e := &s.entries[s.find(tag)]
	if *e == 0 {
		*e = tag | present
		s.n++
		w.n++
	}
	if e.kind() == 0 {
		*e |= wordEntry(kind) << typeShift
	}
	*e |= flags
}

// grow makes room for a quarter as many entries again.
func (s *setShard) grow() {
	old := s.entries
	s.entries = make([]wordEntry, len(old)+max(4, len(old)/4))
	for _, e := range old {
		if e != 0 {
			s.entries[s.find(e>>tagShift<<tagShift)] = e
		}
	}
}
