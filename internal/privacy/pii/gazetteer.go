package pii

import (
	"bytes"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"retort/internal/privacy/offsets"
)

// KnownValues remembers names, companies and other values, so that they are found again in free text. It stores keyed
// hashes and no text: at most 40 bytes for a name of two words. The zero value is empty and ready to use. It is safe
// for concurrent use.
//
// Values are compared word by word, in the form of appendFoldedWord. Between the words of a value, a text may have up
// to four blanks or marks.
type KnownValues struct {
	mu    sync.RWMutex
	first [1 << 10]uint64 // bits of wordHash of the first words of values
	words *wordSet
	types []Type
	seed  maphash.Seed
	seen  offsets.ByHash // hashes of the values given: 26 bits and the low 32
	added int            // number of values given
	most  int            // tests: the number of values for which there is room; 0 means MaxKnown
	dense bool           // some value is in a script without spaces between words
	// dates contains the known dates of birth, and digits the first three digits of known numbers, as bits.
	dates   map[civilDate]bool
	numbers bool
	digits  [1000/64 + 1]uint64
}

// MaxKnown is the number of values for which KnownValues has room. The following values are not found in free text,
// which IsFull reports.
const MaxKnown = 2_000_000

// hasEntries reports whether any value was added.
func (g *KnownValues) hasEntries() bool { return g.added > 0 }

// hashValue returns a hash that identifies the value. Its seed is random, so that collisions cannot be predicted.
func (g *KnownValues) hashValue(value string) uint64 {
	if g.words == nil {
		g.seed, g.words = maphash.MakeSeed(), &wordSet{}
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
// ignored, and so are common words. A value of one word is found where it begins with a capital.
func (g *KnownValues) Add(t Type, value string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.addValue(t, value)
}

func (g *KnownValues) addValue(t Type, value string) {
	if len(value) < 3 || len(value) > 100 || g.isFull() || !g.isNew(g.hashValue(value)) {
		return
	}
	g.added++
	words := valueWords(value)
	if len(words) == 0 || !isAlnumByte(value[0]) || len(words) == 1 && !isDistinctive(value) {
		return
	}
	k := g.numberOf(t)
	if len(words) == 1 {
		g.putWord(words[0], k, asName)
		return
	}
	g.putValue(words, k, 0)
	if last := words[len(words)-1]; t == Name && isDistinctive(last) {
		g.putWord(last, k, asName)
	}
}

// AddExact adds a value that is found wherever it occurs as whole words, in any letter case, and where it is the whole
// text. Each word of a person's name is found, too. Short words are found where they begin with a capital, and words
// that are also common words only where they are the whole text. Dates of birth are found in other spellings of the
// same date, and numbers with other separators.
func (g *KnownValues) AddExact(t Type, value string) {
	g.addExact(t, value, 0)
}

// AddSealed adds a value like AddExact. It is found even if it is a common word, because only a few values are added
// in this way: those of types that programs do not see.
func (g *KnownValues) AddSealed(t Type, value string) {
	if utf8.RuneCountInString(value) >= 4 {
		g.addExact(t, value, asWord)
	} else {
		g.addExact(t, value, 0)
	}
}

func (g *KnownValues) addExact(t Type, value string, reach wordEntry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if value == "" || g.isFull() || !g.isNew(^g.hashValue(value)) { // inverted, since Add stores the hash itself
		return
	}
	g.added++
	k := g.numberOf(t)
	if t == DateOfBirth {
		if g.addDate(value) {
			return
		}
	}
	if IsNumberType(t) && g.addNumber(value, k) {
		return
	}
	words := valueWords(value)
	if len(words) == 0 {
		return
	}
	flags := isValue
	if r, _ := utf8.DecodeRuneInString(value); !isWordRune(r) || !isWordRune(lastRune(value)) {
		flags |= withMarks
	}
	if len(words) == 1 {
		g.putWord(words[0], k, flags|reach|reachOf(words[0], true))
		return
	}
	g.putValue(words, k, flags)
	if t == Name {
		for _, word := range words {
			g.putWord(word, k, reachOf(word, false))
		}
	}
}

func lastRune(s string) rune {
	r, _ := utf8.DecodeLastRuneInString(s)
	return r
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// reachOf returns where a known word is found. whole is set if the word is the complete value.
func reachOf(word string, whole bool) wordEntry {
	switch n := utf8.RuneCountInString(word); {
	case isStopWord(word):
		if whole {
			return asWhole
		}
		return 0
	case isCommonWord(word):
		return asWhole
	case !whole && strings.Trim(word, "0123456789") == "":
		return 0
	case n >= 4 || isUnspacedScript(word):
		return asWord | asName | asWhole
	case n >= 2 && word[0] < utf8.RuneSelf && !isDigitByte(word[0]):
		return asName | asWhole
	}
	return asWhole
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

func (g *KnownValues) isFull() bool {
	if g.most > 0 {
		return g.added >= g.most
	}
	return g.added >= MaxKnown
}

// valueWords returns the runs of letters and digits of a value, as the scanner sees them.
func valueWords(value string) (words []string) {
	text := []byte(value)
	if hasIgnorable(text) {
		text = plainView(text).withoutIgnorable().text
	}
	for i := 0; i < len(text); {
		end := spanEnd(text, i, isAlnum)
		if end == i {
			i = markEnd(text, i)
			continue
		}
		words, i = append(words, string(text[i:end])), end
	}
	return words
}

// markEnd returns the end of the character at i, which is not part of a word.
func markEnd(text []byte, i int) int {
	if text[i] < utf8.RuneSelf {
		return i + 1
	}
	_, n := utf8.DecodeRune(text[i:])
	return i + n
}

// isDistinctive reports whether the single word w is distinctive enough to be searched for on its own. It must have
// at least four characters, begin with a capital, contain no digits and not be a common word.
func isDistinctive(w string) bool {
	if utf8.RuneCountInString(w) < 4 || !isCapitalised([]byte(w), 0) || strings.ContainsAny(w, "0123456789.@/_") {
		return false
	}
	return !isStopWord(w) && !isCommonWord(w)
}

// isStopWord reports whether w is a word of grammar, or one that commonly stands beside names, such as Mr or GmbH.
func isStopWord(w string) bool {
	text := []byte(w)
	h := wordHash(text, 0, len(text))
	if words, end := vouchers().longestMatch(text, 0, h); end == len(text) && words != 0 {
		return true
	}
	if particles[strings.ToLower(w)] {
		return true
	}
	role, end := people().longestMatch(text, 0, h)
	return end == len(text) && role&(roleStop|roleTitle|roleGreeting|roleCompany|roleSignoff|roleParticle) != 0
}

// particles are words of family names that are found only as a part of these.
var particles = map[string]bool{"van": true, "von": true, "de": true, "der": true, "den": true, "del": true, "la": true, "le": true,
	"el": true, "al": true, "da": true, "dos": true, "di": true, "du": true, "bin": true, "ibn": true, "yes": true, "no": true}

// isCommonWord reports whether w is a common word that also occurs in names, so that on its own it does not indicate
// a person.
func isCommonWord(w string) bool {
	var room [64]byte
	folded := appendFoldedWord(room[:0], []byte(w))
	return bytes.Contains([]byte(commonWords), append(append([]byte{' '}, folded...), ' '))
}

const commonWords = " long young green brown black white king page may june april grace hope rose will mark bill rich frank dean chase cook baker price stone wood woods field fields bush banks brooks rivers lane park parks " +
	"hill hills ford bell ball cross day days early east west north south english french german swift small short little love moon star stars summer winter snow rain storm wise best good goods gold silver sharp strong major minor " +
	"power powers case cases bond bonds cash read reader reed ring rush sun sunday monday test tests user users admin guest owner manager system service group company name names person contact null none unknown other others default " +
	"sales support team bot app apps engineering platform department dept operations ops marketing finance human resources customer customers client security network it hr legal public private global local info office home work main test demo sample example acme data files open closed active pending draft done high normal true false yes apple orange target square block slack notion linear stripe shell delta meta visa oracle gap " +
	"art bay cat dot don eve guy jack jay jet joy kit max nick pat peg rob ray rod ruby sue val " +
	"amber angel autumn austin bank basil beau bishop blossom brave brook carol carter chance charity charm christian church clay cliff coral crystal daisy dawn diamond drew duke earl fern finn forest fox gene genesis glen hazel heather " +
	"hunter iris ivy jade jasmine jordan justice lily madison mason melody mercy miles misty norm olive paris pearl penny piper poppy prince rain raven robin rocky rusty sage sandy scout sierra sky skip stormy sunny trinity trip " +
	"victor virginia wade walker ward wolf archer butcher carpenter cooper fisher gardener hall harvest marks mason miller porter potter price rice ripper sellers shepherd singer speaker stock taylor turner weaver webb worker write an at do so go us it on "

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

// numberOf returns the number of a type in g.types, plus one.
func (g *KnownValues) numberOf(t Type) typeNumber {
	i := slices.Index(g.types, t)
	if i < 0 {
		if len(g.types) == 255 {
			return 0 // found, but of no type that anything hides
		}
		i, g.types = len(g.types), append(g.types, t)
	}
	return typeNumber(i + 1)
}

// putValue stores a value of several words. If all of them are common words, it is found only where it begins with a
// capital, or is the whole text.
func (g *KnownValues) putValue(words []string, k typeNumber, flags wordEntry) {
	h, reach := uint64(0), asName|asWhole
	for i, word := range words {
		if !isStopWord(word) && !isCommonWord(word) {
			reach |= asWord
		}
		one := g.hashWord(word)
		if h = chainHash(h, one); i == 0 {
			g.words.add(one, countBit(len(words)), 0)
			g.indexFirst(word)
		}
	}
	g.words.add(h, flags|reach|isValue, k)
}

// putWord stores a word that is found on its own.
func (g *KnownValues) putWord(word string, k typeNumber, flags wordEntry) {
	if flags == 0 {
		return
	}
	g.words.add(g.hashWord(word), flags|countBit(1), k)
	g.indexFirst(word)
}

func (g *KnownValues) hashWord(word string) uint64 {
	var room [64]byte
	return maphash.Bytes(g.seed, appendFoldedWord(room[:0], []byte(word)))
}

// chainHash returns the hash of a value's first words from the hash of all but the last of them and the hash of the
// last word.
func chainHash(before, word uint64) uint64 {
	if before == 0 {
		return word
	}
	return (before*0x9E3779B97F4A7C15 + 0x7F4A7C15 ^ word) * 0xD6E8FEB86659FD93
}

// indexFirst records that some value begins with this word.
func (g *KnownValues) indexFirst(word string) {
	var room [64]byte
	folded := appendFoldedWord(room[:0], []byte(word))
	if len(folded) == 0 {
		return
	}
	h := wordHash(folded, 0, len(folded))
	g.first[h>>54] |= 1 << (h >> 48 & 63)
	g.dense = g.dense || isUnspacedScript(word)
}

// mayBegin reports whether a value may begin with a word that has this hash. It can return true although no value
// does.
func (g *KnownValues) mayBegin(h uint64) bool { return g.first[h>>54]>>(h>>48&63)&1 != 0 }
