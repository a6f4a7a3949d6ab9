package pii

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// phraseLexicon maps words and phrases to values and finds them in a text, ignoring case. A bit table excludes most
// words without a map lookup.
type phraseLexicon[T any] struct {
	first   [1 << 10]uint64
	entries map[uint64][]lexiconEntry[T]
}

type lexiconEntry[T any] struct {
	words string // in lower case; a blank stands for any single separator
	value T
}

// addPhrase adds a phrase, which must be in lower case.
func (l *phraseLexicon[T]) addPhrase(words string, value T) {
	if l.entries == nil {
		l.entries = map[uint64][]lexiconEntry[T]{}
	}
	end := spanEnd([]byte(words), 0, isAlnum)
	h := wordHash([]byte(words), 0, end)
	l.first[h>>54] |= 1 << (h >> 48 & 63)
	l.entries[h] = append(l.entries[h], lexiconEntry[T]{words, value})
}

// mayBegin reports whether a phrase may begin with a word that has this hash. It can return true although no phrase
// does.
func (l *phraseLexicon[T]) mayBegin(h uint64) bool { return l.first[h>>54]>>(h>>48&63)&1 != 0 }

// longestMatch returns the value and the end of the longest phrase that begins at the offset start of a text. The
// argument h is the hash of the word at start. The end is 0 if no phrase begins there.
func (l *phraseLexicon[T]) longestMatch(text []byte, start int, h uint64) (value T, end int) {
	for _, e := range l.entries[h] {
		if n := phraseEnd(text, start, e.words); n > end {
			value, end = e.value, n
		}
	}
	return value, end
}

// phraseEnd returns the end of a phrase that begins at start. The text must contain the phrase there as whole words,
// in any letter case. Otherwise phraseEnd returns 0.
func phraseEnd[T string | []byte](text []byte, start int, words T) int {
	i := start
	for j := range len(words) {
		if i >= len(text) {
			return 0
		}
		if b := text[i]; words[j] == ' ' {
			if b != ' ' && b != '-' && b != '_' && b != '\'' && b != '.' {
				return 0
			}
		} else if b != words[j] && !(b-'A' < 26 && b|0x20 == words[j]) &&
			!(b >= 0x80 && b < 0x9F && byteAt(text, i-1) == 0xC3 && b|0x20 == words[j]) {
			return 0
		}
		i++
	}
	if i < len(text) && class[text[i]]&isAlnum != 0 && !(text[i] >= 0x80 && isUnspacedScript(words)) {
		return 0
	}
	return i
}

// isUnspacedScript reports whether words are in a script without spaces between words.
func isUnspacedScript[T string | []byte](words T) bool {
	r, _ := utf8.DecodeLastRuneInString(string(words))
	return r >= 0x2E80
}

//go:embed words.txt
var wordList string

// contextWords finds words, such as "passport" or "tax", that say what the number after them is. Each kind of word
// has a bit.
type contextWords struct {
	phraseLexicon[uint64]
	kinds map[string]uint64
	// phone is the bit of the kind "phone". This field and the following ones contain the bits of the kinds that the
	// scanner itself uses.
	phone, card, bank, passport, licence, birth, mac, wallet, version, password, secret, address uint64
}

var vouchers = sync.OnceValue(func() *contextWords {
	v := &contextWords{kinds: map[string]uint64{}}
	phrases := map[string]uint64{}
	for line := range strings.Lines(wordList) {
		kind, words, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		bit := v.bitFor(kind)
		for w := range strings.SplitSeq(words, ",") {
			phrases[strings.Map(blankMarks, strings.TrimSpace(w))] |= bit
		}
	}
	for p, bits := range phrases {
		for _, spelling := range phraseSpellings(p) {
			v.addPhrase(spelling, bits)
		}
	}
	v.phone, v.card, v.bank = v.kindBit("phone"), v.kindBit("card"), v.kindBit("bank")
	v.passport, v.licence, v.birth = v.kindBit("passport"), v.kindBit("licence"), v.kindBit("birth")
	v.address = v.kindBit("address")
	v.mac, v.wallet, v.version = v.kindBit("mac"), v.kindBit("wallet"), v.kindBit("version")
	v.password, v.secret = v.kindBit("password"), v.kindBit("secret")
	return v
})

// phraseSpellings returns a lower-case phrase and, if it has letters beyond U+00FF, also its capitalised forms. They
// are needed because lookups ignore case only up to U+00FF.
func phraseSpellings(p string) []string {
	all := []string{p}
	for _, q := range []string{capitalLatin(p), strings.ToUpper(p)} {
		if strings.IndexFunc(p, func(r rune) bool { return r > 0xFF }) >= 0 && !slices.Contains(all, q) {
			all = append(all, q)
		}
	}
	return all
}

func blankMarks(r rune) rune {
	if r == '-' || r == '_' || r == '\'' || r == '.' {
		return ' '
	}
	return r
}

// ownBits is the number of kinds of context words that do not share their bit with other kinds.
const ownBits = 40

// bitFor returns the bit of a kind and assigns one if needed. The first ownBits kinds each get a bit of their own.
// Later kinds share bits, which does no harm because their numbers have different checksums.
func (v *contextWords) bitFor(kind string) uint64 {
	if v.kinds[kind] == 0 {
		n := len(v.kinds)
		if n >= ownBits {
			n = ownBits + (n-ownBits)%(64-ownBits)
		}
		v.kinds[kind] = 1 << n
	}
	return v.kinds[kind]
}

// kindBit returns the bit of a kind. It panics if no word has this kind, because that would be a mistake in this
// package.
func (v *contextWords) kindBit(name string) uint64 {
	if v.kinds[name] == 0 {
		panic("pii: no words of the kind " + name)
	}
	return v.kinds[name]
}
