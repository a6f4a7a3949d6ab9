package sanitize

import (
	"slices"
	"strings"
)

// wordPattern represents a pattern for the words of one sentence. It is a sequence of steps. Each step matches one
// word of a set, after at most a fixed number of other words.
type wordPattern struct {
	family int
	steps  []patternStep
}

type patternStep struct {
	gap   int
	words [wordSets]uint64 // numbers of the words, as bits
	stems []int
}

// Bounds on the number of words and patterns, in sets of 64 bits with one bit each. A test fails if they are too
// small.
const (
	wordSets    = 16
	patternSets = 8
)

// wordStem is the beginning of a group of words, such as ignor for ignore and ignoring.
type wordStem struct {
	text   string
	number int
}

// addPattern compiles a pattern, which consists of steps separated by blanks. A step has the form a|b|c*, where *
// matches any ending. ~N allows N other words before the next step. @ marks the step with the rarest words: a
// sentence without any of them is not examined.
func (s *TextScanner) addPattern(family int, text string) {
	p := wordPattern{family: family}
	gap := 0
	for field := range strings.FieldsSeq(text) {
		if n, ok := strings.CutPrefix(field, "~"); ok {
			gap = int(n[0] - '0')
			if len(n) > 1 {
				gap = gap*10 + int(n[1]-'0')
			}
			continue
		}
		field, rare := strings.CutPrefix(field, "@")
		st := patternStep{gap: gap}
		for word := range strings.SplitSeq(field, "|") {
			n := s.internWord(&st, word)
			if rare {
				s.addAnchor(word)
				s.rare[n] = append(s.rare[n], len(s.patterns))
			}
		}
		p.steps = append(p.steps, st)
		gap = 0
	}
	s.patterns = append(s.patterns, p)
}

// internWord adds a word of a pattern to the step st, which is a set of words, and returns the number that stands for
// the word. A word that other patterns use has the same number there. For a stem such as ignor* it returns 0.
func (s *TextScanner) internWord(st *patternStep, word string) int {
	if begins, ok := strings.CutSuffix(word, "*"); ok {
		i := slices.IndexFunc(s.stems, func(x wordStem) bool { return x.text == begins })
		if i < 0 {
			i = len(s.stems)
			s.stems = append(s.stems, wordStem{begins, i + 1})
			s.begins[begins[0]-'a'] = append(s.begins[begins[0]-'a'], s.stems[i])
		}
		st.stems = append(st.stems, s.stems[i].number)
		return 0
	}
	n, ok := s.words[word]
	if !ok {
		n = len(s.words) + 1
		s.words[word] = n
		s.rare = append(s.rare, nil)
	}
	st.words[n/64] |= 1 << (n % 64)
	return n
}

// expandPattern returns the patterns with the placeholders {file} and {value} replaced by each of their alternatives.
func expandPattern(text string) []string {
	for name, rows := range map[string][]string{"{file}": secretFiles, "{value}": secretValues} {
		if before, after, found := strings.Cut(text, name); found {
			all := make([]string, len(rows))
			for i, row := range rows {
				all[i] = before + row + after
			}
			return all
		}
	}
	return []string{text}
}

func (st *patternStep) acceptsToken(t wordToken) bool {
	return st.words[t.word/64]>>(t.word%64)&1 != 0 || t.stem != 0 && slices.Contains(st.stems, t.stem)
}

// matchesWords reports whether the words of a sentence match the steps of the pattern. It reads the words once. If
// several partial matches reach the same step, it keeps only the last one, which leaves the most room for the next
// step.
func (p *wordPattern) matchesWords(words []wordToken) bool {
	var ends [16]int // 1 + where each step was last reached, 0 if it was not
	last := len(p.steps) - 1
	for j, t := range words {
		if t.word == 0 && t.stem == 0 {
			continue
		}
		for k := last; k >= 0; k-- {
			if k > 0 && (ends[k-1] == 0 || j-ends[k-1] > p.steps[k].gap) || !p.steps[k].acceptsToken(t) {
				continue
			}
			if k == last {
				return true
			}
			ends[k] = j + 1
		}
	}
	return false
}

// findSentences finds the sentences that match a pattern. Sentences without any of the required rare words are
// skipped.
func (s *TextScanner) findSentences(text string) (found []TextFinding) {
	r, ok := s.readers.Get().(*wordReader)
	if !ok {
		r = &wordReader{TextScanner: s}
	}
	defer s.readers.Put(r)
	for start := 0; start < len(text); {
		end := endOfSentence(text, start)
		if s.findNeeds(text[start:end]).words {
			words := r.readWords(text[start:end])
			if rule, ok := s.judgeSentence(words); ok {
				found = append(found, newFinding(rule, start+words[0].start, sentenceEnd(text, start+words[len(words)-1].end)))
			}
		}
		start = end
	}
	return found
}

// endOfSentence returns the end of the sentence that starts at start, including its final punctuation.
func endOfSentence(text string, start int) int {
	for i := start; i < len(text); i++ {
		switch c := text[i]; {
		case c == '.' || c == '!' || c == '?':
			if i+1 == len(text) || text[i+1] <= ' ' || strings.IndexByte(`"')*_`, text[i+1]) >= 0 {
				return i + 1
			}
		case c == '\n' && isParagraphEnd(text[i+1:]):
			return i + 1
		case c == 0xe3 || c == 0xef || c == 0xe2:
			for _, stop := range []string{"。", "！", "？", "\u2028", "\u2029"} {
				if strings.HasPrefix(text[i:], stop) {
					return i + len(stop)
				}
			}
		}
	}
	return len(text)
}

// isParagraphEnd reports whether a newline ends the sentence before it.
func isParagraphEnd(text string) bool {
	rest := strings.TrimLeft(text[:min(len(text), 40)], " \t\r")
	if rest == "" {
		return true
	}
	switch c := rest[0]; c {
	case '\n', '-', '*', '#', '<', '>', '|', '`':
		return true
	default:
		return '0' <= c && c <= '9' || strings.HasPrefix(rest, "•")
	}
}

// judgeSentence matches a sentence against those patterns whose rarest words it contains. If several patterns match,
// it returns the rule of the pattern whose family comes first in ruleFamilies.
func (s *TextScanner) judgeSentence(words []wordToken) (TextRule, bool) {
	var tried [patternSets]uint64 // as bits
	best := len(ruleFamilies)
	for _, t := range words {
		for _, i := range s.rare[t.word] {
			if tried[i/64]>>(i%64)&1 != 0 || s.patterns[i].family >= best {
				continue
			}
			tried[i/64] |= 1 << (i % 64)
			if p := &s.patterns[i]; p.matchesWords(words) {
				best = p.family
			}
		}
	}
	if best == len(ruleFamilies) {
		return TextRule{}, false
	}
	return TextRule{ruleFamilies[best].id, ruleFamilies[best].reason}, true
}

// sentenceEnd skips the punctuation that ends a sentence, with closing quotes and brackets.
func sentenceEnd(text string, at int) int {
	for at < len(text) && strings.IndexByte(".!?:;,\"'`)*_~/\\", text[at]) >= 0 {
		at++
	}
	return at
}

func newFinding(r TextRule, start, end int) TextFinding {
	return TextFinding{Rule: r.ID, Reason: r.Reason, Start: start, End: end}
}
