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

// KnownValues remembers names, companies and other values, so that they are found again in free text. It stores keyed
// hashes and no text: at most 40 bytes for a name of two words. The zero value is empty and ready to use. It is safe
// for concurrent use. A scan takes no lock, so that long texts do not delay others.
//
// Values are compared unit by unit, in the form of appendFoldedWord. Between the units of a value, a text may have up
// to maxBetween blanks or marks.
type KnownValues struct {
	first atomic.Pointer[wordFilter] // of the first units of values
	words wordSet
	types atomic.Pointer[[]Type]
	kinds atomic.Uint32     // what kinds of values there are: hasWords and so on
	heads [1000]atomic.Bool // the first three digits of known numbers
	full  atomic.Bool       // there is no room for more values of AddExact

	mu    sync.RWMutex   // guards the fields below, and additions to those above
	seen  offsets.ByHash // hashes of the values given: 26 bits and the low 32
	exact int            // number of values given to AddExact, without numbers
	apart int            // number of values given to AddSealed, and of numbers
	told  int            // number of values given to Add
	most  int            // tests: the number of values for which there is room; 0 means MaxKnown
}

// The kinds of values that a KnownValues has, as bits.
const (
	hasWords = 1 << iota
	hasDense // in a script without spaces between words
	hasDates
	hasNumbers
)

const (
	// MaxKnown is the number of values for which KnownValues has room, so that it is not full before the vault of a
	// session is. IsFull reports that there is no room. As many numbers and sealed values have room of their own,
	// because nothing else would hide them.
	MaxKnown = 2_000_000
	// maxEntries bounds the memory if values have many words. Two entries are usual. Together with numbers and sealed
	// values there may be twice as many.
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

// isNew reports whether a hash has not been seen before, and marks it as seen.
func (g *KnownValues) isNew(h uint64) bool {
	if g.hasHash(h) {
		return false
	}
	g.seen.InsertOffset(h, restOf(h))
	return true
}

// hasValue reports whether value was already given to Add.
func (g *KnownValues) hasValue(value []byte) bool {
	h := maphash.Bytes(wordSeed, value)
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.hasHash(h)
}

// Add adds a value that a key has told to be personal. It ignores values that are too short, and single words that are
// common. A single word is found where it begins with a capital.
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

// AddExact adds a value that is found wherever it occurs as whole words, in any letter case. Some values are found only
// in some places, because they occur in other texts too: see reachOf. The words of a person's name are found alone if
// they are words of names: see putParts. Dates of birth are found in other spellings of the same date, and numbers
// with other separators.
func (g *KnownValues) AddExact(t Type, value string) { g.addExact(t, value, 0, false) }

// AddSealed adds a value like AddExact. If it has at least four characters, it is found everywhere, even if it is a
// common word, because only a few values are added in this way: those of types that programs do not see. Digits only
// are found as sealedReach says.
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
	if value == "" || !g.hasRoom(sealed) || !g.isNew(^hashValue(value)) { // inverted, since Add stores the hash itself
		return
	}
	if t != DateOfBirth || !g.addDate(value) {
		g.putText(t, value, reach)
	}
	g.countExact(sealed)
}

// IsFull reports whether there is no room for more values of AddExact other than numbers.
func (g *KnownValues) IsFull() bool { return g.full.Load() }

// hasRoom reports whether there is room for one more value. apart is set for numbers and sealed values.
func (g *KnownValues) hasRoom(apart bool) bool {
	if apart {
		return g.apart < cmp.Or(g.most, MaxKnown) && g.words.n < 2*maxEntries
	}
	return g.exact < cmp.Or(g.most, MaxKnown) && g.words.n < maxEntries
}

// countExact counts a value that was added. apart is that of hasRoom.
func (g *KnownValues) countExact(apart bool) {
	if apart {
		g.apart++
	} else {
		g.exact++
	}
	if !g.hasRoom(false) {
		g.full.Store(true)
	}
}

// maxKinds bounds the number of types. Values of further types are found as values of the last one.
const maxKinds = 255

// numberOf returns the number of a type in g.types, plus one.
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

// putText stores a value, which is found as reachOf says. reach widens that, or is asName if a single word is to be
// found only with a capital.
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
		reach = reachOf(t, text, units)
	case reach == asWord:
		reach = sealedReach(t, text, units)
	default:
		reach = reachOf(t, text, units)
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

// isSmallHandle reports whether a value of one word in lower case may be the name of a program or an account, and not
// of a person.
func isSmallHandle(word []byte) bool { return isSmallLetter(word) && !isListedName(word) }

// marksOf returns whether a value begins or ends with a mark, so that its token replaces the mark, too.
func marksOf(text []byte, units []textUnit) (flags wordEntry) {
	if r, _ := utf8.DecodeRune(text); units[0].start > 0 && isNameMark(r) {
		flags |= markBefore
	}
	if r, _ := utf8.DecodeLastRune(text); units[len(units)-1].end < len(text) && isNameMark(r) {
		flags |= markAfter
	}
	return flags
}

// putPieces stores the units of a value. A value of more than maxUnits units is stored in pieces of similar length,
// so that a search compares only a few units at each place of a text.
func (g *KnownValues) putPieces(text []byte, units []textUnit, k typeNumber, flags wordEntry) {
	for piece := range piecesOf(units) {
		g.putPiece(text, piece, k, flags)
		flags = asRest | flags&markAfter
	}
}

// putPiece stores at most maxUnits units of a value. Its parts are stored before its first unit, because a search
// looks for the first unit first.
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

// indexFirst records that some value begins with this unit.
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

// mayBegin reports whether a value may begin with a unit that has this filterHash. It can return true although no
// value does.
func (g *KnownValues) mayBegin(h uint64) bool { return g.first.Load().has(h) }
