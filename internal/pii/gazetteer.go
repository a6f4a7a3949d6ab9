package pii

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Gazetteer remembers names and companies, so that they are found again in free
// text. The zero value is empty and ready; it is safe for concurrent use.
type Gazetteer struct {
	mu    sync.RWMutex
	first [1 << 10]uint64 // bits of the hashes of first words
	// lengths are those of values in bytes, by the hash of the first word, longest first.
	lengths map[uint64][]uint8
	// values are by their spelling as folded writes it. Many names may begin with one word,
	// so they are not looked for one by one.
	values map[string][]entry[known]
	seen   map[string]bool
	exact  map[string]bool // that were given to Exact
	// digits says that a value begins with a digit.
	digits bool
}

// known is what a gazetteer knows of a value.
type known struct {
	typ   Type
	exact string // single words are found in this spelling only
}

// maxKnown bounds a gazetteer. What comes later is not found again in free text.
const maxKnown = 1 << 17

// Add remembers a value. Of a person's name the family name is remembered too.
// What is too short, or a common word, is passed over.
func (g *Gazetteer) Add(t Type, value string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.add(t, value)
}

func (g *Gazetteer) add(t Type, value string) {
	if len(value) < 3 || len(value) > 100 || len(g.seen) >= maxKnown || g.seen[value] {
		return
	}
	if g.seen == nil {
		g.seen = map[string]bool{}
	}
	g.seen[value] = true
	words := strings.Fields(value)
	if len(words) == 0 || !alnum(value[0]) {
		return
	}
	if len(words) == 1 && !telling(value) {
		return
	}
	g.put(lower(strings.Join(words, " ")), known{t, single(words)})
	if last := words[len(words)-1]; t == Name && len(words) > 1 && telling(last) && !g.seen[last] {
		g.seen[last] = true
		g.put(lower(last), known{t, last})
	}
}

func single(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return ""
}

// lower folds as lexicons compare.
func lower(s string) string {
	var room [64]byte
	return string(lowered(room[:0], []byte(s)))
}

// lowered appends what lower makes of s to dst, which is empty.
func lowered(dst, s []byte) []byte {
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

// Exact remembers a value that is to be found wherever it stands by itself, in any case
// of its letters, however common it looks; of a person's name the family name too, unless
// that is common. It has at least four bytes.
func (g *Gazetteer) Exact(t Type, value string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(value) < 4 || len(value) > 200 || len(g.seen) >= maxKnown || g.exact[value] {
		return
	}
	if g.exact == nil {
		g.exact = map[string]bool{}
	}
	words := strings.Join(strings.Fields(value), " ")
	if words == "" || !alnum(words[0]) {
		return
	}
	g.exact[value] = true
	g.digits = g.digits || digit(words[0])
	g.put(lower(words), known{typ: t})
	if all := strings.Fields(words); t == Name && len(all) > 1 && telling(all[len(all)-1]) {
		g.put(lower(all[len(all)-1]), known{typ: t})
	}
}

// telling says whether a single word may be looked for by itself: it begins with
// a capital, has no digits, and is no common word.
func telling(w string) bool {
	if utf8.RuneCountInString(w) < 4 || !capitalised([]byte(w), 0) || strings.ContainsAny(w, "0123456789.@/_") {
		return false
	}
	text := []byte(w)
	h := wordHash(text, 0, len(text))
	if words, end := vouchers().longest(text, 0, h); end > 0 && words != 0 {
		return false
	}
	role, end := people().longest(text, 0, h)
	return end == 0 || role&(roleStop|roleTitle|roleGreeting|roleCompany|roleSignoff) == 0 && !common(w)
}

// common words are family names and companies too. Alone they tell nothing.
func common(w string) bool {
	return bytes.Contains([]byte(commonWords), []byte(" "+lower(w)+" "))
}

const commonWords = " long young green brown black white king page may june april grace hope rose will mark bill rich frank dean chase cook baker price stone wood woods field fields bush banks brooks rivers lane park parks " +
	"hill hills ford bell ball cross day days early east west north south english french german swift small short little love moon star stars summer winter snow rain storm wise best good goods gold silver sharp strong major minor " +
	"power powers case cases bond bonds cash read reader reed ring rush sun sunday monday test tests user users admin guest owner manager system service group company name names person contact null none unknown other others default " +
	"sales support team bot app apps engineering platform department dept operations ops marketing finance human resources customer customers client security network it hr legal public private global local info office home work main test demo sample example acme data files open closed active pending draft done high normal true false yes apple orange target square block slack notion linear stripe shell delta meta visa oracle gap "

// maxAlike bounds the values that differ in nothing but their separators.
const maxAlike = 16

// put adds a value in lower case.
func (g *Gazetteer) put(words string, k known) {
	if g.values == nil {
		g.lengths, g.values = map[uint64][]uint8{}, map[string][]entry[known]{}
	}
	key := string(folded(nil, []byte(words)))
	alike, e := g.values[key], entry[known]{words, k}
	if len(alike) >= maxAlike || slices.Contains(alike, e) {
		return
	}
	g.values[key] = append(alike, e)
	h := wordHash([]byte(words), 0, span([]byte(words), 0, isAlnum))
	g.first[h>>54] |= 1 << (h >> 48 & 63)
	n := uint8(min(len(words), 255))
	if i, ok := slices.BinarySearchFunc(g.lengths[h], n, func(a, b uint8) int { return int(b) - int(a) }); !ok {
		g.lengths[h] = slices.Insert(g.lengths[h], i, n)
	}
}

// begins says whether a value may begin with a word of this hash.
func (g *Gazetteer) begins(h uint64) bool { return g.first[h>>54]>>(h>>48&63)&1 != 0 }

// longest is the type of the longest value that begins at a word, and its end.
func (g *Gazetteer) longest(text []byte, start int, h uint64) (t Type, end int) {
	var room [256]byte
	for _, n := range g.lengths[h] {
		end := start + int(n)
		if end > len(text) || class[at(text, end)]&isAlnum != 0 && text[end] < 0x80 {
			continue
		}
		for _, e := range g.values[string(folded(room[:0], text[start:end]))] {
			if n := phraseEnd(text, start, e.words); n > 0 && (e.value.exact == "" || string(text[start:n]) == e.value.exact) {
				return e.value.typ, n
			}
		}
	}
	return "", 0
}

// folded appends s in lower case, with blanks for what phrases take for one.
func folded(dst, s []byte) []byte {
	b := lowered(dst, s)
	for i, c := range b {
		if c == '-' || c == '_' || c == '\'' || c == '.' {
			b[i] = ' '
		}
	}
	return b
}
