// Package sanitize finds suspicious content in the texts with which a tool describes itself: instructions to the
// model that reads them, and characters that people do not see. It does no I/O. Its time is linear in the length of
// the input.
package sanitize

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Version must be increased whenever a text may be judged differently, because results are stored.
const Version = 3

// MaxText bounds the length of one text, in bytes.
const MaxText = 8 << 10

// Mark is the text that replaces removed text.
const Mark = "[removed by Retort]"

// TextFinding locates suspicious content in a text: a sentence, a block or single characters. Start and End are byte
// offsets in the original text.
type TextFinding struct {
	Rule       string // ID of a rule
	Reason     string
	Start, End int

	instead string // text that replaces a link
}

// TextScanner holds the compiled rules. It is safe for concurrent use.
type TextScanner struct {
	patterns []wordPattern
	words    map[string]int // number of each word that patterns use
	stems    []wordStem
	begins   [26][]wordStem  // stems by their first letter
	rare     [][]int         // by number of a word: the patterns whose rarest word it is
	anchors  [1 << 10]uint64 // bit set of hashes of the words of which every pattern needs one
	exact    map[string]bool // the words whose hashes are in anchors
	shapes   map[uint32]byte // hashes of the shapes (shapeOf) of long ones, with their first letters
	hints    [1 << 12]uint64 // bit set of hashes of these words in disguise, and of their shapes
	readers  sync.Pool       // pool of *reader, to reuse their buffers
}

// TextRule describes one kind of suspicious content.
type TextRule struct{ ID, Reason string }

// AllRules lists all rules.
func AllRules() []TextRule {
	list := make([]TextRule, 0, len(ruleFamilies)+len(signRules))
	for _, f := range ruleFamilies {
		list = append(list, TextRule{f.id, f.reason})
	}
	return append(list, signRules...)
}

// New returns the scanner of all rules. The first call compiles them, which takes about two milliseconds.
func New() *TextScanner { return compiledRules() }

var compiledRules = sync.OnceValue(compileRules)

func compileRules() *TextScanner {
	s := &TextScanner{exact: map[string]bool{}, shapes: map[uint32]byte{}, words: map[string]int{}, rare: make([][]int, 1)}
	for i, f := range ruleFamilies {
		for _, text := range f.patterns {
			for _, spelled := range expandPattern(text) {
				s.addPattern(i, spelled)
			}
		}
	}
	return s
}

// Scan returns the findings in a text, in order. The part of a text beyond MaxText is not examined and becomes one
// finding.
func (s *TextScanner) Scan(text string) []TextFinding {
	head := text
	if len(text) > MaxText {
		head = text[:runeStart(text, MaxText-len(Mark)-8)]
	}
	n := s.findNeeds(head)
	var found []TextFinding
	if n.characters {
		found = findCharacters(head)
	}
	if n.blocks {
		found = append(found, findBlocks(head)...)
	}
	if n.words {
		found = append(found, s.findSentences(head)...)
	}
	if n.links {
		found = append(found, findLinks(head)...)
	}
	if n.foreign {
		found = append(found, findForeign(head)...)
	}
	if n.codes {
		found = append(found, s.findDecoded(head)...)
	}
	if n.disguised {
		found = append(found, s.findDisguised(head)...)
	}
	if len(head) < len(text) {
		found = append(found, newFinding(tooLong, len(head), len(text)))
	}
	slices.SortStableFunc(found, func(a, b TextFinding) int { return cmp.Or(a.Start-b.Start, a.End-b.End) })
	return found
}

// CleanText returns a text with its findings removed. Scanning the result gives no findings.
func (s *TextScanner) CleanText(text string) (string, []TextFinding) {
	found := s.Scan(text)
	if len(found) == 0 {
		return text, nil
	}
	cleaned := removeFindings(text, found)
	for range 4 {
		again := s.Scan(cleaned)
		if len(again) == 0 {
			return cleaned, found
		}
		cleaned = removeFindings(cleaned, again)
	}
	return Mark, found
}

// textNeeds records which kinds of suspicious content a text must be searched for.
type textNeeds struct{ words, blocks, characters, links, codes, foreign, disguised bool }

// findNeeds reads a text once and decides which scans the text needs. It looks for the words that the rules require,
// for beginnings of signs such as tags, and for non-ASCII characters. In most texts it finds none of these, so that
// no further scan is needed.
func (s *TextScanner) findNeeds(text string) (n textNeeds) {
	word, run := newNeedReader(s, &n), 0
	n.codes = mayBeCoded(text)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch lower := c | 0x20; {
		case 'a' <= lower && lower <= 'z':
			word.addLetter(text, i, lower)
			run++
			continue
		case c == '\'':
			continue
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(text[i:])
			if f := foldLetter(r); f != 0 && (r < 0x250 || 0x1e00 <= r && r < 0x1f00) { // a Latin letter with a mark
				word.addFolded(f)
				i += size - 1
				continue
			}
			if isSuspicious(r) {
				return textNeeds{true, true, true, true, true, true, true}
			}
			n.foreign = n.foreign || 0x400 <= r && r < 0x530 || 0x3040 <= r && r < 0xd7b0
			i += size - 1
		case c < ' ' && c != '\n' && c != '\t', c == 0x7f:
			n.characters = true
		case c == '<' || c == '[' || c == '&' || c == '(' || c == '{':
			n.blocks = n.blocks || opensSign(text[i:])
			n.links = n.links || c == '<' || c == '['
		case c == '#' || c == ':':
			n.blocks = n.blocks || strings.HasPrefix(text[i:], "###") || endsWithSpeaker(text[:i])
		case '0' <= c && c <= '9', c == '+', c == '/', c == '=':
			run++
			n.words = n.words || isDisguised(text, i)
			word.end()
			continue
		case c == '@' || c == '$' || c == '!':
			n.words = n.words || isDisguised(text, i)
		}
		n.blocks = n.blocks || run > maxEncoded
		run = 0
		word.end()
	}
	word.end()
	n.blocks = n.blocks || run > maxEncoded
	return n
}

// needReader finds out which scans the words of a text need. It reads each letter once to hash the words, and
// compares the hashes with those of the words that rules require. Most texts contain none of these and need no slower
// scan.
type needReader struct {
	scanner *TextScanner
	needs   *textNeeds
	hash    uint32 // hash of the word so far, in lower case
	part    uint32 // hash of the last part of a word such as ignoreThis
	shape   uint32 // hash of the differences between neighbouring letters, which a shifted alphabet preserves
}

func newNeedReader(s *TextScanner, n *textNeeds) *needReader {
	return &needReader{scanner: s, needs: n, hash: fnvOffset, part: fnvOffset, shape: fnvOffset}
}

// addLetter adds the ASCII letter at i, whose lower case is lower.
func (w *needReader) addLetter(text string, i int, lower byte) {
	if c := text[i]; w.hash != fnvOffset {
		before := text[i-1]
		if c < 'a' && before >= 'a' {
			w.needs.words = w.needs.words || w.scanner.hasAnchor(w.part)
			w.part = fnvOffset
		}
		w.needs.words = w.needs.words || c >= 'a' && before < 'a' && i > 1 && 'A' <= text[i-2] && text[i-2] <= 'Z' // HTTPServer
		w.shape = (w.shape ^ letterStep(before|0x20, lower)) * fnvPrime
	}
	w.hash = (w.hash ^ uint32(lower)) * fnvPrime
	w.part = (w.part ^ uint32(lower)) * fnvPrime
}

// addFolded adds a letter with a mark, such as é, to the current word. f is the plain ASCII letter without the mark.
func (w *needReader) addFolded(f byte) {
	w.hash = (w.hash ^ uint32(f)) * fnvPrime
	w.part = (w.part ^ uint32(f)) * fnvPrime
}

// end ends the current word, if there is one.
func (w *needReader) end() {
	if w.hash == fnvOffset {
		return
	}
	n := w.needs
	n.words = n.words || w.scanner.hasAnchor(w.hash) || w.part != w.hash && w.scanner.hasAnchor(w.part)
	n.disguised = n.disguised || w.scanner.hasHint(w.hash) || w.scanner.hasHint(w.shape)
	w.hash, w.part, w.shape = fnvOffset, fnvOffset, fnvOffset
}

// isDisguised reports whether the character at i, which is not a letter, may be part of a disguised word, because
// letters surround it.
func isDisguised(text string, i int) bool {
	return text[i] != '/' && text[i] != '+' && text[i] != '=' && i+1 < len(text) && isLetter(text[i+1]) &&
		(i == 0 || isLetter(text[i-1]) || text[i-1] == ' ')
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// The parameters of the hash FNV-1a, which is used for words.
const (
	fnvOffset = 2166136261
	fnvPrime  = 16777619
)

func (s *TextScanner) addAnchor(word string) {
	s.addDisguises(word)
	hash := uint32(fnvOffset)
	for i := range len(word) {
		hash = (hash ^ uint32(word[i])) * fnvPrime
	}
	s.anchors[hash>>6&(1<<10-1)] |= 1 << (hash & 63)
}

func (s *TextScanner) hasAnchor(hash uint32) bool {
	return s.anchors[hash>>6&(1<<10-1)]&(1<<(hash&63)) != 0
}

// removeFindings removes findings from a text. Invisible characters are deleted, lookalike letters are replaced by
// the letters that they resemble, and everything else is replaced by Mark.
func removeFindings(text string, found []TextFinding) string {
	var b strings.Builder
	at := 0
	cut := false // the last thing written is a mark
	for _, f := range widestFindings(found) {
		if between := text[at:max(at, f.Start)]; between != "" {
			b.WriteString(between)
			cut = cut && strings.TrimSpace(between) == ""
		}
		at = max(at, f.End)
		switch f.Rule {
		case invisibleRule, bidiRule, controlRule:
			if strings.ContainsAny(text[f.Start:f.End], "\v\f\u0085\u2028\u2029") {
				b.WriteByte('\n')
			}
		case homoglyphRule:
			b.WriteString(foldWord(text[f.Start:f.End]))
			cut = false
		case linkRule.ID:
			b.WriteString(f.instead)
			cut = f.instead == Mark
		default:
			if !cut {
				b.WriteString(Mark)
			}
			cut = true
		}
	}
	b.WriteString(text[min(at, len(text)):])
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}

// widestFindings drops the findings that are contained in another finding, and returns the others in order.
func widestFindings(found []TextFinding) (list []TextFinding) {
	whole := slices.Clone(found)
	slices.SortStableFunc(whole, func(a, b TextFinding) int { return cmp.Or(a.Start-b.Start, b.End-a.End, findingRank(b)-findingRank(a)) })
	end := -1
	for _, f := range whole {
		if f.End <= end {
			continue
		}
		f.Start = max(f.Start, end)
		list = append(list, f)
		end = f.End
	}
	return list
}

// findingRank returns the priority of a finding. Of two findings at the same place, the one that removes more has
// priority.
func findingRank(f TextFinding) int {
	switch f.Rule {
	case invisibleRule, bidiRule, controlRule, homoglyphRule:
		return 0
	}
	return 1
}

// runeStart returns the offset of the first byte of the character that contains the byte at offset at.
func runeStart(text string, at int) int {
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}
