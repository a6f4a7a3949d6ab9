package pii

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"retort/internal/privacy/offsets"
)

// KnownValues stores names, companies and other values, so that they are found again in free text. The zero value is
// empty and ready to use. It is safe for concurrent use.
type KnownValues struct {
	mu    sync.RWMutex
	first [1 << 10]uint64 // bits of the hashes of first words
	// lengths maps the hash of a word to the length, in bytes, of the values that begin with this word. If these
	// values have different lengths, it instead maps the hash to 256 plus an index. The element of the field several
	// at this index lists all the lengths, longest first. Words with equal hashes share one entry.
	lengths offsets.ByHash
	several [][]uint8
	// values maps the hash of a normalised spelling (see appendNormalized) to the offset, in the field text, of the
	// first value with this spelling. Hashes are used because many names may begin with the same word, and comparing
	// all of these with a text would be slow.
	values offsets.ByHash
	// text stores the values one after another, in pages. Each value begins with the offset of the next value with
	// the same normalised spelling, as a u32, or 0 if none is found. Then follow one byte each for the type, the
	// number of stored spellings and their length, and the spelling in lower case. If only the exact spelling must be
	// found, that spelling follows, too.
	text  [][]byte
	types []Type
	seed  maphash.Seed
	seen  offsets.ByHash // hashes of the values given: 26 bits and the low 32
	added int            // number of values given to Add
	exact int            // number of values given to AddExact
	// digits is set if any value begins with a digit.
	digits bool
}

// maxKnown bounds the number of values given to Add and, separately, to AddExact. Each name takes about 60 bytes of
// memory. Values beyond it are not found in free text.
const maxKnown = 1 << 17

// hasEntries reports whether any value was added by Add or AddExact.
func (g *KnownValues) hasEntries() bool { return g.added+g.exact > 0 }

// hashValue returns a hash that identifies the value. Its seed is random, so that collisions cannot be predicted.
func (g *KnownValues) hashValue(value string) uint64 {
	if g.seed == (maphash.Seed{}) {
		g.seed = maphash.MakeSeed()
	}
	return maphash.String(g.seed, value)
}

// hasValue reports whether value was already given to Add.
func (g *KnownValues) hasValue(value []byte) bool {
	return g.hasEntries() && g.hasHash(maphash.Bytes(g.seed, value))
}

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

// Add adds a value. If it is a person's name, Add also adds the family name on its own. Values that are too short are
// ignored, and so are common words.
func (g *KnownValues) Add(t Type, value string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.addValue(t, value)
}

func (g *KnownValues) addValue(t Type, value string) {
	if len(value) < 3 || len(value) > 100 || g.added >= maxKnown || !g.isNew(g.hashValue(value)) {
		return
	}
	g.added++
	words := strings.Fields(value)
	if len(words) == 0 || !isAlnumByte(value[0]) {
		return
	}
	if len(words) == 1 && !isDistinctive(value) {
		return
	}
	g.putValue(foldCase(strings.Join(words, " ")), t, singleWord(words))
	if last := words[len(words)-1]; t == Name && len(words) > 1 && isDistinctive(last) && g.isNew(g.hashValue(last)) {
		g.added++
		g.putValue(foldCase(last), t, last)
	}
}

func singleWord(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return ""
}

// foldCase converts s to the lower case that all word lists use. It changes only ASCII and Latin-1 letters.
func foldCase(s string) string {
	var room [64]byte
	return string(appendFolded(room[:0], []byte(s)))
}

// appendFolded appends the foldCase form of s to dst, which must be empty.
func appendFolded(dst, s []byte) []byte {
	b := append(dst, s...)
	for i, c := range b {
		switch {
		case c-'A' < 26:
			b[i] = c | 0x20
		case i > 0 && b[i-1] == 0xC3 && c >= 0x80 && c < 0x9F:
			b[i] = c | 0x20
		}
	}
	return b
}

// AddExact adds a value that is found wherever it occurs as whole words, in any letter case, even if it is a common
// word. If it is a person's name, AddExact also adds the family name, unless that is a common word. Values of fewer
// than four or more than 200 bytes are ignored.
func (g *KnownValues) AddExact(t Type, value string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(value) < 4 || len(value) > 200 || g.isFull() {
		return
	}
	if !g.isNew(^g.hashValue(value)) { // inverted, since Add stores the hash itself
		return
	}
	g.exact++
	words := strings.Join(strings.Fields(value), " ")
	if words == "" || !isAlnumByte(words[0]) {
		return
	}
	g.digits = g.digits || isDigitByte(words[0])
	g.putValue(foldCase(words), t, "")
	if all := strings.Fields(words); t == Name && len(all) > 1 && isDistinctive(all[len(all)-1]) {
		g.putValue(foldCase(all[len(all)-1]), t, "")
	}
}

// HasExact reports whether AddExact would do nothing, either because value was added before or because there is no
// room.
func (g *KnownValues) HasExact(value string) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.hasEntries() && (g.hasHash(^maphash.String(g.seed, value)) || g.isFull())
}

// IsFull reports whether there is no room for more values.
func (g *KnownValues) IsFull() bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.isFull()
}

func (g *KnownValues) isFull() bool { return g.added >= maxKnown || g.exact >= maxKnown }

// isDistinctive reports whether the single word w is distinctive enough to be searched for on its own. It must have
// at least four characters, begin with a capital, contain no digits and not be a common word.
func isDistinctive(w string) bool {
	if utf8.RuneCountInString(w) < 4 || !isCapitalised([]byte(w), 0) || strings.ContainsAny(w, "0123456789.@/_") {
		return false
	}
	text := []byte(w)
	h := wordHash(text, 0, len(text))
	if words, end := vouchers().longestMatch(text, 0, h); end > 0 && words != 0 {
		return false
	}
	role, end := people().longestMatch(text, 0, h)
	return end == 0 || role&(roleStop|roleTitle|roleGreeting|roleCompany|roleSignoff) == 0 && !isCommonWord(w)
}

// isCommonWord reports whether w is a common word that also occurs as a family name or company, so that on its own it
// does not indicate a person.
func isCommonWord(w string) bool {
	return bytes.Contains([]byte(commonWords), []byte(" "+foldCase(w)+" "))
}

const commonWords = " long young green brown black white king page may june april grace hope rose will mark bill rich frank dean chase cook baker price stone wood woods field fields bush banks brooks rivers lane park parks " +
	"hill hills ford bell ball cross day days early east west north south english french german swift small short little love moon star stars summer winter snow rain storm wise best good goods gold silver sharp strong major minor " +
	"power powers case cases bond bonds cash read reader reed ring rush sun sunday monday test tests user users admin guest owner manager system service group company name names person contact null none unknown other others default " +
	"sales support team bot app apps engineering platform department dept operations ops marketing finance human resources customer customers client security network it hr legal public private global local info office home work main test demo sample example acme data files open closed active pending draft done high normal true false yes apple orange target square block slack notion linear stripe shell delta meta visa oracle gap "

// maxAlike bounds the number of values that share a normalised spelling. If there are more of them, the others are
// not stored.
const maxAlike = 16

// putValue stores a value of type t. words is the value in lower case. If exact is not empty, only text with exactly
// that spelling will be found.
func (g *KnownValues) putValue(words string, t Type, exact string) {
	typ := slices.Index(g.types, t)
	if typ < 0 {
		typ, g.types = len(g.types), append(g.types, t)
	}
	var room [256]byte
	spelling := appendNormalized(room[:0], []byte(words))
	key := maphash.Bytes(g.seed, spelling)
	n, last := 0, uint32(0)
	for at := g.findPlace(key, spelling); at != 0; n++ {
		next, k := g.entryAt(at)
		if k.typ == t && string(k.words) == words && string(k.exact) == exact {
			return
		}
		last, at = at, next
	}
	if n >= maxAlike || typ > 255 {
		return
	}
	place := g.writeEntry(byte(typ), words, exact)
	if last == 0 {
		g.values.InsertOffset(key, place)
	} else {
		binary.LittleEndian.PutUint32(g.entryText(last), place)
	}
	g.indexFirstWord(words)
}

// pageBits sets the size of one page of KnownValues.text to 1<<pageBits bytes.
const pageBits = 16

// writeEntry appends a value to KnownValues.text and returns its offset there.
func (g *KnownValues) writeEntry(typ byte, words, exact string) uint32 {
	times := byte(1)
	if exact != "" {
		times = 2
	}
	last := len(g.text) - 1
	switch {
	case last < 0:
		g.text, last = [][]byte{make([]byte, 1, 64)}, 0 // offset 0 means none
	case len(g.text[last])+7+len(words)+len(exact) > 1<<pageBits:
		g.text, last = append(g.text, make([]byte, 0, 1<<pageBits)), last+1
	}
	page := g.text[last]
	place := uint32(last<<pageBits + len(page))
	page = append(page, 0, 0, 0, 0, typ, times, byte(len(words)))
	g.text[last] = append(append(page, words...), exact...)
	return place
}

// findPlace returns the offset in KnownValues.text of the first value with this normalised spelling, or 0. h is the
// hash of the spelling.
func (g *KnownValues) findPlace(h uint64, spelling []byte) uint32 {
	return g.values.FindOffset(h, func(place uint32) bool {
		var room [256]byte
		_, k := g.entryAt(place)
		return bytes.Equal(appendNormalized(room[:0], k.words), spelling)
	})
}

// indexFirstWord records the length of a value under the hash of its first word.
func (g *KnownValues) indexFirstWord(words string) {
	h := wordHash([]byte(words), 0, spanEnd([]byte(words), 0, isAlnum))
	g.first[h>>54] |= 1 << (h >> 48 & 63)
	n, was := uint8(len(words)), g.lengthsOf(h)
	switch {
	case was == 0:
		g.lengths.InsertOffset(h, uint32(n))
	case was < 256:
		if was != uint32(n) {
			g.lengths.ReplaceOffset(h, was, 256+uint32(len(g.several)))
			g.several = append(g.several, []uint8{max(uint8(was), n), min(uint8(was), n)})
		}
	default:
		all := &g.several[was-256]
		if i, ok := slices.BinarySearchFunc(*all, n, func(a, b uint8) int { return int(b) - int(a) }); !ok {
			*all = slices.Insert(*all, i, n)
		}
	}
}

func (g *KnownValues) lengthsOf(h uint64) uint32 {
	return g.lengths.FindOffset(h, func(uint32) bool { return true })
}

// knownValue represents a stored value of KnownValues when it is looked up.
type knownValue struct {
	typ          Type
	words, exact []byte // exact is set if only this spelling is to be found
}

// entryAt returns the value at an offset in KnownValues.text, and the offset of the next value with the same
// normalised spelling.
func (g *KnownValues) entryAt(place uint32) (next uint32, k knownValue) {
	t := g.entryText(place)
	n := int(t[6])
	k = knownValue{typ: g.types[t[4]], words: t[7 : 7+n]}
	if t[5] == 2 {
		k.exact = t[7+n : 7+2*n]
	}
	return binary.LittleEndian.Uint32(t), k
}

func (g *KnownValues) entryText(place uint32) []byte {
	return g.text[place>>pageBits][place&(1<<pageBits-1):]
}

// mayBegin reports whether a value may begin with a word that has this hash. It can return true although no value
// does.
func (g *KnownValues) mayBegin(h uint64) bool { return g.first[h>>54]>>(h>>48&63)&1 != 0 }

// longestMatch returns the type and the end of the longest known value that begins at the offset start of a text. The
// argument h is the hash of the word at start. The end is 0 if no known value begins there.
func (g *KnownValues) longestMatch(text []byte, start int, h uint64) (t Type, end int) {
	n := g.lengthsOf(h)
	if n < 256 {
		return g.typeOfSpelling(text, start, int(n))
	}
	for _, n := range g.several[n-256] {
		if t, end := g.typeOfSpelling(text, start, int(n)); end > 0 {
			return t, end
		}
	}
	return "", 0
}

// typeOfSpelling looks for a known value in the n bytes of a text from the offset start on. It returns the type and
// the end of this value. The end is 0 if the bytes are no known value.
func (g *KnownValues) typeOfSpelling(text []byte, start, n int) (t Type, end int) {
	if end := start + n; n == 0 || end > len(text) || class[byteAt(text, end)]&isAlnum != 0 && text[end] < 0x80 {
		return "", 0
	}
	var room [256]byte
	spelling := appendNormalized(room[:0], text[start:start+n])
	for place := g.findPlace(maphash.Bytes(g.seed, spelling), spelling); place != 0; {
		next, k := g.entryAt(place)
		if n := phraseEnd(text, start, k.words); n > 0 && (len(k.exact) == 0 || bytes.Equal(text[start:n], k.exact)) {
			return k.typ, n
		}
		place = next
	}
	return "", 0
}

// appendNormalized appends s in lower case, with each of the separators - _ ' and . replaced by a space.
func appendNormalized(dst, s []byte) []byte {
	b := appendFolded(dst, s)
	for i, c := range b {
		if c == '-' || c == '_' || c == '\'' || c == '.' {
			b[i] = ' '
		}
	}
	return b
}
