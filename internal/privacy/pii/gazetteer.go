package pii

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"retort/internal/privacy/offsets"
)

// KnownValues remembers names, companies and other values, so that a scan finds them again in free text. It stores
// keyed hashes and no text. A name of two words takes at most 40 bytes. The zero value is empty and ready to use. A
// KnownValues is safe for concurrent use. A scan takes no lock, so that a long text does not delay others.
//
// Values are compared unit by unit, in the form that appendFoldedWord returns. units.go says what a unit is. Between
// two units of a value, a text may have up to maxBetween blanks or marks.
type KnownValues struct {
	first atomic.Pointer[wordFilter] // contains the first unit of each value
	words wordSet                    // contains the units and the values
	types atomic.Pointer[[]Type]
	kinds atomic.Uint32     // the kinds of values in the list, as bits: hasWords and so on
	heads [1000]atomic.Bool // whether a known number begins with these three digits
	full  atomic.Bool       // reports that there is no room for more values of AddExact

	mu    sync.RWMutex   // guards the fields below, and additions to those above
	seen  offsets.ByHash // the values that were added; the place of a value is restOf its hash
	exact int            // number of different values given to AddExact, without numbers
	apart int            // number of different values given to AddSealed, and of numbers
	told  int            // number of different values given to Add
	most  int            // replaces MaxKnown in tests; 0 means MaxKnown
}

// The kinds of values in a KnownValues. A scan skips the searches for kinds that the list does not have.
const (
	hasWords   = 1 << iota // values that consist of units, that is, all except dates and numbers
	hasDense               // values that begin with a character for which isDense returns true
	hasDates               // dates of birth
	hasNumbers             // phone numbers and other values for which IsNumberType returns true
)

const (
	// MaxKnown is the number of values of AddExact for which a KnownValues has room. It equals the number of values
	// that the vault of a session can store, so that the list is not full before the vault is. Numbers and values of
	// AddSealed have room for another MaxKnown values, because nothing else would hide them. IsFull reports that there
	// is no room.
	MaxKnown = 2_000_000
	// maxEntries bounds the entries of words, and so the memory, if values have many words. A value usually has two
	// entries. Numbers and values of AddSealed may increase the number of entries to twice this limit.
	maxEntries = 3 * MaxKnown
)

// hasEntries reports whether any value was added.
func (g *KnownValues) hasEntries() bool { return g.kinds.Load() != 0 }

func (g *KnownValues) has(kind uint32) bool { return g.kinds.Load()&kind != 0 }

func (g *KnownValues) addKinds(kinds uint32) {
	if g.kinds.Load()&kinds != kinds {
		g.kinds.Or(kinds)
	}
}

func hashValue[T string | []byte](value T) uint64 { return maphash.String(wordSeed, string(value)) }

func (g *KnownValues) hasHash(h uint64) bool {
	return g.seen.FindOffset(h, func(rest uint32) bool { return rest == restOf(h) }) != 0
}

func restOf(h uint64) uint32 { return max(1, uint32(h)) }

// isNew reports whether a hash has not been seen before, and records that it was seen. The caller must hold mu.
func (g *KnownValues) isNew(h uint64) bool {
	if g.hasHash(h) {
		return false
	}
	g.seen.InsertOffset(h, restOf(h))
	return true
}

// hasValue reports whether Add has already received this value in the same spelling.
func (g *KnownValues) hasValue(value []byte) bool {
	h := maphash.Bytes(wordSeed, value)
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.hasHash(h)
}

// Add adds a name or company that was found under a key for names or companies. It ignores values with less than 3 or
// more than 100 bytes, values that begin with a mark, and single words for which isDistinctive returns false. A single
// word is found where it begins with a capital or is the whole text. A value of several words is found where reachOf
// says.
func (g *KnownValues) Add(t Type, value string) {
	if len(value) < 3 || len(value) > 100 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.told >= MaxKnown || g.words.n >= maxEntries || !g.isNew(hashValue(value)) {
		return
	}
	g.told++
	if !isAlnumByte(value[0]) {
		return
	}
	g.putText(t, value, asName)
}

// AddExact adds a value. Most values are found wherever they occur, in any letter case. Some values also occur in
// ordinary texts, so they are found only in some places: see reachOf. A word of a person's name is also found alone if
// it is a word of names: see putParts. A date of birth is found in other spellings of the same date. A number is found
// with other separators.
func (g *KnownValues) AddExact(t Type, value string) { g.addExact(t, value, 0, false) }

// AddSealed adds a value like AddExact, for types of data that programs do not see. A value with at least four
// characters is found everywhere except in identifiers (see isInIdentifier), even if it is a common word. This hides
// few ordinary words, because only a few values are added in this way. Values of digits only are found where
// sealedReach says.
func (g *KnownValues) AddSealed(t Type, value string) {
	if utf8.RuneCountInString(value) >= 4 {
		g.addExact(t, value, asWord, true)
		return
	}
	g.addExact(t, value, 0, true)
}

func (g *KnownValues) addExact(t Type, value string, reach wordEntry, sealed bool) {
	if g.addNumber(t, value) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.hasRoom(sealed) {
		g.noteFull() // Add may have used the room for words
		return
	}
	if value == "" || !g.isNew(^hashValue(value)) { // inverted: Add records the hash itself
		return
	}
	if t != DateOfBirth || !g.addDate(value) {
		g.putText(t, value, reach)
	}
	g.countExact(sealed)
}

// IsFull reports whether there is no room for more values of AddExact. Numbers may still have room.
func (g *KnownValues) IsFull() bool { return g.full.Load() }

// hasRoom reports whether there is room for one more value. apart selects the room for numbers and sealed values
// instead of the room for other values. The caller must hold mu.
func (g *KnownValues) hasRoom(apart bool) bool {
	if apart {
		return g.apart < cmp.Or(g.most, MaxKnown) && g.words.n < 2*maxEntries
	}
	return g.exact < cmp.Or(g.most, MaxKnown) && g.words.n < maxEntries
}

// countExact counts a value that was added. apart is true for numbers and sealed values. The caller must hold mu.
func (g *KnownValues) countExact(apart bool) {
	if apart {
		g.apart++
	} else {
		g.exact++
	}
	g.noteFull()
}

// noteFull makes IsFull return true if there is no room for more values. The caller must hold mu.
func (g *KnownValues) noteFull() {
	if !g.hasRoom(false) {
		g.full.Store(true)
	}
}

// maxKinds bounds the number of different types. A value of a further type is found as a value of the last type.
const maxKinds = 255

// numberOf returns the number that stands for a type in a wordEntry. It is the index of the type in g.types plus one,
// because 0 means that an entry has no type. A new type is appended to g.types. The caller must hold mu.
func (g *KnownValues) numberOf(t Type) typeNumber {
	var types []Type
	if known := g.types.Load(); known != nil {
		types = *known
	}
	i := slices.Index(types, t)
	if i < 0 {
		if len(types) == maxKinds {
			return maxKinds
		}
		i, types = len(types), append(slices.Clone(types), t)
		g.types.Store(&types)
	}
	return typeNumber(i + 1)
}

func (g *KnownValues) typeOf(e wordEntry) Type {
	if k := e.kind(); k > 0 {
		return (*g.types.Load())[k-1]
	}
	return ""
}

// putText stores a value that is neither a date nor a number. reach says how to decide where the value is found: 0 for
// reachOf, asWord for sealedReach, and asName for the rules of Add.
func (g *KnownValues) putText(t Type, value string, reach wordEntry) {
	text := plainValue(value)
	var room [32]textUnit
	units := appendUnits(room[:0], text)
	switch {
	case len(units) == 0:
		return
	case reach == asName && len(units) == 1:
		if !isDistinctive(string(text)) {
			return
		}
	case reach == asName:
		reach = reachOf(text, units)
	case reach == asWord:
		reach = sealedReach(text, units)
	default:
		reach = reachOf(text, units)
	}
	if reach == 0 {
		return
	}
	if len(units) == 1 && reach&asWord != 0 && t == Name && isSmallHandle(text) {
		reach = asName | asPart | isSmall
	}
	k := g.numberOf(t)
	g.putPieces(text, units, k, reach|marksOf(text, units))
	if t == Name && len(units) > 1 {
		g.putParts(text, units, k)
	}
}

// isSmallHandle reports whether a single word begins with a small letter and is not in the lists of names. Such a word
// may be the name of a program or an account instead of a person, for example "lodash".
func isSmallHandle(word []byte) bool { return isSmallLetter(word) && !isListedName(word) }

// marksOf returns the flags markBefore and markAfter for a value that begins or ends with a mark. The token of such a
// value also replaces the mark in a text, for example in "'t Hooft".
func marksOf(text []byte, units []textUnit) (flags wordEntry) {
	if r, _ := utf8.DecodeRune(text); units[0].start > 0 && isNameMark(r) {
		flags |= markBefore
	}
	if r, _ := utf8.DecodeLastRune(text); units[len(units)-1].end < len(text) && isNameMark(r) {
		flags |= markAfter
	}
	return flags
}

// putPieces stores the units of a value. It divides a value of more than maxUnits units into pieces of similar length,
// so that a search compares only a few units at each place of a text. flags say where the first piece is found. The
// other pieces are found directly after a finding.
func (g *KnownValues) putPieces(text []byte, units []textUnit, k typeNumber, flags wordEntry) {
	for piece := range piecesOf(units) {
		g.putPiece(text, piece, k, flags)
		flags = asRest | flags&markAfter
	}
}

// putPiece stores a piece of a value, which has at most maxUnits units. A search looks for the first unit, then for the
// whole piece. Scans run at the same time without a lock, so putPiece stores the entries in the reverse order.
func (g *KnownValues) putPiece(text []byte, units []textUnit, k typeNumber, flags wordEntry) {
	first := text[units[0].start:units[0].end]
	h := hashUnit(first)
	if chain := h; len(units) > 1 {
		for _, u := range units[1:] {
			chain = chainHash(chain, hashUnit(text[u.start:u.end]))
		}
		g.words.add(chain, flags|isValue, k)
		g.words.add(h, countBit(len(units)), 0)
	} else {
		g.words.add(h, flags|isValue|countBit(1), k)
	}
	g.indexFirst(first)
}

// indexFirst records that a value begins with this unit.
func (g *KnownValues) indexFirst(unit []byte) {
	kinds := uint32(hasWords)
	if r, _ := utf8.DecodeRune(unit); isDense(r) {
		kinds |= hasDense
	}
	g.addKinds(kinds)
	f := g.first.Load()
	if next := f.add(filterHash(unit)); next != f {
		g.first.Store(next)
	}
}

// mayBegin reports whether a value may begin with a unit that has the filterHash h. It can return true although no
// value begins with the unit.
func (g *KnownValues) mayBegin(h uint64) bool { return g.first.Load().has(h) }
