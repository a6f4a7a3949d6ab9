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

// valueOrigins records which servers have sent values that programs see, and words of names. It finds them in other
// spellings than those in which they were sent. It stores keyed hashes, of 7 to 9 bytes for a value and server.
type valueOrigins struct {
	mu      sync.Mutex
	seed    maphash.Seed
	servers []string
	types   map[pii.Type][]string // the servers that have sent values of a type
	sent    offsets.ByHash        // hashes of texts with the number of a server
	recent  [256]uint64           // hashes of values that were added lately
}

// addValue records that servers have sent a value.
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
	texts := []string{originKey(t, value)}
	if t == pii.Name {
		texts = append(texts, foldedWords(value)...)
	}
	for _, text := range texts {
		if h := o.hashOf("", text, server); !o.hasHash(h) {
			o.sent.InsertOffset(h, max(1, uint32(h)))
		}
	}
}

// numberOf returns the number of a server. The first time it adds the server.
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

// of returns the servers that have sent a value in any spelling, or else all words of it. If it is not known who has
// sent the value, it returns all servers that have sent values of its type.
func (o *valueOrigins) of(t pii.Type, value string) (servers []string) {
	whole, words := originKey(t, value), foldedWords(value)
	o.mu.Lock()
	defer o.mu.Unlock()
	for n, server := range o.servers {
		isSent := func(text string) bool { return o.hasHash(o.hashOf("", text, n)) }
		if isSent(whole) || t == pii.Name && len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return !isSent(w) }) {
			servers = append(servers, server)
		}
	}
	if len(servers) == 0 {
		return slices.Clone(o.types[t])
	}
	return servers
}

// originKey returns the form in which values of a type are compared: for dates of birth their numbers in any order,
// otherwise their words.
func originKey(t pii.Type, value string) string {
	words := foldedWords(value)
	if t != pii.DateOfBirth {
		return strings.Join(words, " ")
	}
	var numbers []string
	for _, word := range words {
		switch month := monthNumber(word); {
		case month > 0:
			numbers = append(numbers, strconv.Itoa(month))
		case len(word) == 8 && strings.Trim(word, "0123456789") == "":
			numbers = append(numbers, word[:4], strings.TrimLeft(word[4:6], "0"), strings.TrimLeft(word[6:], "0"))
		case word[0] >= '0' && word[0] <= '9':
			numbers = append(numbers, strings.TrimLeft(strings.TrimRight(word, "abcdefghijklmnopqrstuvwxyz"), "0"))
		}
	}
	slices.Sort(numbers)
	return strings.Join(numbers, "-")
}

const monthNames = "jan feb mar apr may jun jul aug sep oct nov dec "

// monthNumber returns the number of a month from its English name, or 0.
func monthNumber(word string) int {
	if len(word) < 3 || word[0] <= '9' {
		return 0
	}
	if i := strings.Index(monthNames, word[:3]+" "); i >= 0 {
		return i/4 + 1
	}
	return 0
}

// foldedWords returns the words of a text in lower case, without accents and without characters that are not displayed.
// In scripts without spaces each character is a word.
func foldedWords(text string) (words []string) {
	var word []rune
	end := func() {
		if len(word) > 0 {
			words, word = append(words, string(word)), word[:0]
		}
	}
	for _, r := range norm.NFKD.String(text) {
		switch {
		case unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Cf, r) || r == 0x115F || r == 0x1160 || r == 0x3164 || r == 0xFFA0:
		case r == 'ß' || r == 'ẞ':
			word = append(word, 's', 's')
		case !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r):
			end()
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
			end()
			words = append(words, string(r))
		default:
			word = append(word, unicode.ToLower(unicode.ToUpper(r)))
		}
	}
	end()
	return words
}

// SpokenMatcher returns a function that reports whether a text, such as the code of a program, contains a value in any
// letter case, with or without accents. It reads the text once.
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

// spokenWords is the number of successive words of a value that have to stand together in the text.
const spokenWords = 3

// unescapeText decodes percent-encoding and HTML in a text.
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
