package redact

import (
	"hash/maphash"
	"html"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"retort/internal/privacy/offsets"
	"retort/internal/privacy/pii"
)

// valueOrigins records which servers have sent which values of the types that programs see. It finds values, pieces of
// long values and words of names in any spelling. It stores keyed hashes, which take 7 to 9 bytes for each server and
// form of a value.
type valueOrigins struct {
	mu      sync.Mutex
	seed    maphash.Seed
	servers []string
	types   map[pii.Type][]string // servers that have sent values of a type
	sent    offsets.ByHash        // hashes of a form together with the index of a server
	recent  [256]uint64           // hashes of values that were added recently, which addValue can skip
}

// addValue records that servers have sent a value. It ignores the markers for programs and the model.
func (o *valueOrigins) addValue(t pii.Type, value string, servers []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, server := range servers {
		if server == programSource || server == modelSource {
			continue
		}
		n := o.numberOf(server)
		if h := o.hashOf(string(t), value, n); o.recent[h%256] != h {
			o.recent[h%256] = h
			o.addTexts(t, value, n)
		}
		if !slices.Contains(o.types[t], server) {
			if o.types == nil {
				o.types = map[pii.Type][]string{}
			}
			o.types[t] = append(o.types[t], server)
		}
	}
}

func (o *valueOrigins) addTexts(t pii.Type, value string, server int) {
	for _, part := range findableParts(t, value) {
		for _, form := range pii.KnownForms(t, part) {
			if h := o.hashOf("", form, server); !o.hasHash(h) {
				o.sent.InsertOffset(h, max(1, uint32(h)))
			}
		}
	}
}

// findableParts returns a value and those parts of it that a search finds alone. These are the pieces of a long value
// and the words of a name. For a name of up to mostWords words, they include all sequences of successive words.
func findableParts(t pii.Type, value string) []string {
	parts := append(pii.KnownPieces(value), value)
	if t != pii.Name {
		return parts
	}
	words := nameWords(value)
	for n := 1; n <= len(words) && (n == 1 || len(words) <= mostWords); n++ {
		for i := 0; i+n <= len(words); i++ {
			parts = append(parts, strings.Join(words[i:i+n], " "))
		}
	}
	return parts
}

// mostWords is the maximum number of words of a name whose sequences are recorded.
const mostWords = 4

// nameWords returns the words of a name in their original spelling. In scripts without spaces, each character is a
// word.
func nameWords(name string) (words []string) {
	start := -1
	end := func(i int) {
		if start >= 0 {
			words = append(words, name[start:i])
		}
		start = -1
	}
	for i, r := range name {
		switch {
		case isDense(r):
			end(i)
			words = append(words, string(r))
		case !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && !unicode.Is(unicode.Cf, r):
			end(i)
		case start < 0:
			start = i
		}
	}
	end(len(name))
	return words
}

// isDense reports whether r belongs to Chinese, Japanese or Thai script, which have no spaces between words.
func isDense(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}

// numberOf returns the index of a server in o.servers. It appends a server that is new. The caller must hold mu.
func (o *valueOrigins) numberOf(server string) int {
	if o.seed == (maphash.Seed{}) {
		o.seed = maphash.MakeSeed()
	}
	n := slices.Index(o.servers, server)
	if n < 0 {
		n, o.servers = len(o.servers), append(o.servers, server)
	}
	return n
}

func (o *valueOrigins) hashOf(kind, text string, server int) uint64 {
	var h maphash.Hash
	h.SetSeed(o.seed)
	_, _ = h.WriteString(kind)
	_ = h.WriteByte(byte(server >> 8))
	_ = h.WriteByte(byte(server))
	_, _ = h.WriteString(text)
	return h.Sum64()
}

func (o *valueOrigins) hasHash(h uint64) bool {
	return o.sent.FindOffset(h, func(rest uint32) bool { return rest == max(1, uint32(h)) }) != 0
}

// hasOthers reports whether a server other than the given one has sent a value.
func (o *valueOrigins) hasOthers(server string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.servers, func(name string) bool { return name != server })
}

// of returns the servers that have sent a value in any spelling, either alone or as a part of a longer value.
func (o *valueOrigins) of(t pii.Type, value string) (servers []string) {
	forms := pii.KnownForms(t, value)
	o.mu.Lock()
	defer o.mu.Unlock()
	for n, server := range o.servers {
		if slices.ContainsFunc(forms, func(form string) bool { return o.hasHash(o.hashOf("", form, n)) }) {
			servers = append(servers, server)
		}
	}
	return servers
}

// ofType returns the servers that have sent values of a type.
func (o *valueOrigins) ofType(t pii.Type) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.types[t])
}

// foldedWords returns the words of a text in lower case, without accents and without characters that are not displayed.
// In scripts without spaces, each character is a word.
func foldedWords(text string) (words []string) {
	var word []rune
	end := func() {
		if len(word) > 0 {
			words, word = append(words, string(word)), word[:0]
		}
	}
	for _, r := range norm.NFKD.String(text) {
		switch {
		case unicode.Is(unicode.Mn, r), unicode.Is(unicode.Cf, r), r == 0x115F, r == 0x1160, r == 0x3164, r == 0xFFA0:
		case r == 'ß' || r == 'ẞ':
			word = append(word, 's', 's')
		case !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r):
			end()
		case isDense(r):
			end()
			words = append(words, string(r))
		default:
			word = append(word, unicode.ToLower(unicode.ToUpper(r)))
		}
	}
	end()
	return words
}

// SpokenMatcher returns a function that reports whether a text, such as the code of a program, contains a value. Letter
// case and accents do not matter. A value of up to spokenWords words must stand in the text as a whole. For a longer
// value, each sequence of spokenWords words must stand there. The text is read only once.
func SpokenMatcher(text string) func(value string) bool {
	if strings.ContainsRune(text, '\\') {
		text += "\n" + removeEscapes(text)
		if strings.Contains(text, `\\u`) { // JSON in a string
			text += "\n" + removeEscapes(strings.ReplaceAll(text, `\\u`, `\u`))
		}
	}
	words := foldedWords(text)
	seed, spoken := maphash.MakeSeed(), make(map[uint64]struct{}, spokenWords*len(words))
	hash := func(words []string) uint64 { return maphash.String(seed, strings.Join(words, " ")) }
	for i := range words {
		for n := 1; n <= min(spokenWords, len(words)-i); n++ {
			spoken[hash(words[i:i+n])] = struct{}{}
		}
	}
	return func(value string) bool {
		words := foldedWords(value)
		for i := 0; i == 0 || i+spokenWords <= len(words); i++ {
			if _, ok := spoken[hash(words[i:min(len(words), i+spokenWords)])]; !ok {
				return false
			}
		}
		return true
	}
}

// spokenWords is the number of successive words of a value that must stand together in the text.
const spokenWords = 3

// unescapeText decodes the percent-encoding and HTML escapes in a text. A space replaces bytes that are not valid
// UTF-8.
func unescapeText(text string) string {
	if strings.IndexByte(text, '&') >= 0 {
		text = html.UnescapeString(text)
	}
	if strings.IndexByte(text, '%') < 0 {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if b, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				out.WriteByte(byte(b))
				i += 2
				continue
			}
		}
		out.WriteByte(text[i])
	}
	return strings.ToValidUTF8(out.String(), " ")
}
