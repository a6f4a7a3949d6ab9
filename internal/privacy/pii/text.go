package pii

import "encoding/binary"

// hints describes what the place of a text tells about it.
type hints struct {
	words  uint64 // kinds of words in its key
	opaque bool   // an id, a hash, a version, an amount: nothing numeric is personal
	names  []*Gazetteer
	id32   *[32]byte // room for one id
}

// scan represents one pass over a text.
type scan struct {
	s     *Scanner
	voc   *vouching
	text  []byte
	out   []Finding
	first int // of out: those before are not of this text
	done  int // where the last finding ended
	hints
	near   [4]struct{ end, words int64 } // the last words that vouch, a ring
	nears  int
	recent [8]word // the last words, a ring
	count  uint
	noPEM  bool // no private key ends behind here
}

// word represents a run of letters and digits.
type word struct {
	start, end int
	sort       uint8 // classes of all its bytes
}

// reach sets how many bytes before a number a word may stand that vouches for it.
const reach = 48

// scan appends the findings of a text.
func (s *Scanner) scan(dst []Finding, text []byte, h hints) []Finding {
	first := len(dst)
	dst = s.known(dst, text, h)
	if len(s.shapes) > 0 {
		dst = s.shaped(dst, first, text)
	}
	return dst
}

// known appends the findings of a text that are of the types that everybody has.
func (s *Scanner) known(dst []Finding, text []byte, h hints) []Finding {
	sc := scan{s: s, voc: s.tables.words, text: text, out: dst, first: len(dst), hints: h}
	n := len(text)
	for i := 0; i < n; {
		c := class[text[i]]
		if c&isAlnum == 0 {
			if c&isTrigger == 0 {
				i++
			} else {
				i = sc.mark(i)
			}
			continue
		}
		w, x := word{start: i}, uint64(0)
		if i+8 <= n {
			x = binary.LittleEndian.Uint64(text[i:])
			var run int
			if run, w.sort = asciiWord(x); run > 0 {
				i += run
				c = class[at(text, i)]
			}
		} else {
			x = tail(text, i)
		}
		for c&isAlnum != 0 {
			w.sort |= c
			if i++; i == n {
				break
			}
			c = class[text[i]]
		}
		w.end = i
		hash := hashOf(x, w.end-w.start)
		if w.sort&(isLetter|isDigit) == isLower && w.end-w.start < shortestSecret && endsValue[at(text, i)] && !sc.tells(hash) {
			sc.remember(w)
			continue
		}
		i = max(i, sc.word(w, hash))
	}
	return sc.out
}

// remember keeps a word for those behind it.
func (sc *scan) remember(w word) {
	sc.recent[sc.count%uint(len(sc.recent))] = w
	sc.count++
}

// tells reports whether a list may have a word of this hash.
func (sc *scan) tells(h uint64) bool {
	for _, g := range sc.names {
		if g.begins(h) {
			return true
		}
	}
	return sc.s.tables.starts[h>>54]>>(h>>48&63)&1 != 0
}

// found appends a finding, unless it overlaps the one before. It returns where
// to go on.
func (sc *scan) found(start, end int, t Type) int {
	if start < sc.done || sc.s.off[t] {
		return 0
	}
	sc.out = append(sc.out, Finding{start, end, t})
	sc.done = end
	return end
}

// vouched returns the kinds of words before a place and in the key.
func (sc *scan) vouched(start int) (words uint64) {
	words = sc.words
	for i := max(0, sc.nears-len(sc.near)); i < sc.nears; i++ {
		if n := sc.near[i%len(sc.near)]; int(n.end) >= start-reach {
			words |= uint64(n.words)
		}
	}
	return words
}

// word looks at a run of letters and digits and returns where to go on, 0 for
// right behind it.
func (sc *scan) word(w word, hash uint64) int {
	sc.remember(w)
	if w.start < sc.done {
		return 0
	}
	if sc.s.tables.secrets.begins(sc.text, w.start) && !(w.end-w.start < shortestSecret && endsValue[at(sc.text, w.end)]) {
		if end := sc.secret(w.start); end > 0 {
			return end
		}
	}
	if w.sort&isDigit != 0 {
		if end := sc.remembered(w, hash); end > 0 {
			return end
		}
		if w.sort&isLetter == 0 {
			return sc.digits(w)
		}
		if end := sc.mixed(w); end > 0 {
			return end
		}
	} else if w.sort&isLower == 0 && w.end-w.start <= 6 {
		if end := sc.capitals(w); end > 0 {
			return end
		}
	}
	if end := sc.listed(w, hash); end > 0 {
		return end
	}
	if w.sort&(isLower|isUpper) == isLower|isUpper {
		return sc.humped(w)
	}
	return 0
}

// remembered looks a word with digits up among the values that are to be found
// wherever they stand.
func (sc *scan) remembered(w word, h uint64) int {
	for _, g := range sc.names {
		if !g.digits {
			continue
		}
		if g.begins(h) {
			if t, end := g.longest(sc.text, w.start, h); end > 0 {
				return sc.found(w.start, end, t)
			}
		}
	}
	return 0
}

// listed looks a word up in the lists.
func (sc *scan) listed(w word, h uint64) int {
	if at(sc.text, w.end) == ' ' && digit(at(sc.text, w.end+1)) && w.end-w.start >= 6 && !sc.opaque && capitalised(sc.text, w.start) {
		if end := sc.endsInStreet(w); end > 0 {
			return end
		}
	}
	for _, g := range sc.names {
		if g.begins(h) {
			if t, end := g.longest(sc.text, w.start, h); end > 0 {
				if end := sc.found(w.start, end, t); end > 0 {
					return end
				}
			}
		}
	}
	t := sc.s.tables
	if t.starts[h>>54]>>(h>>48&63)&1 == 0 {
		return 0
	}
	if t.people.active(h) {
		if role, end := t.people.longest(sc.text, w.start, h); end > 0 {
			if end := sc.person(w, role, end); end > 0 {
				return end
			}
		}
	}
	if !sc.voc.begins(h) {
		return 0
	}
	words, end := sc.voc.longest(sc.text, w.start, h)
	if end == 0 || at(sc.text, w.start-1) == '$' {
		return 0
	}
	sc.near[sc.nears%len(sc.near)] = struct{ end, words int64 }{int64(end), int64(words)}
	sc.nears++
	if words&(sc.voc.password|sc.voc.secret) != 0 {
		return sc.assigned(end, words)
	}
	if words&sc.voc.mac != 0 {
		if start, end := macOfThree(sc.text, end); end > 0 {
			return sc.found(start, end, MAC)
		}
	}
	if words&sc.voc.birth != 0 {
		if start, end := birthDate(sc.text, end); end > 0 {
			return sc.found(start, end, DateOfBirth)
		}
	}
	return 0
}

// mark looks at a byte that may be in the middle or at the head of something.
func (sc *scan) mark(i int) int {
	end := 0
	switch sc.text[i] {
	case 0xC2:
		return i + 2
	case 0xE2, 0xEF:
		return i + 3
	case '@':
		end = sc.email(i)
	case ':':
		end = sc.colon(i)
	case '+':
		end = sc.plus(i)
	case '(':
		end = sc.bracket(i)
	case '-':
		if end = sc.pem(i); end == 0 {
			end = sc.mac(i)
		}
	case '[':
		if end = sc.s.token(sc.text, i); end > 0 {
			sc.out = append(sc.out, Finding{i, end, ""})
			sc.done = end
		}
	}
	return max(end, i+1)
}

// before returns the n-th word before the place where the scan is, 1 for the last.
func (sc *scan) before(n int) (w word, ok bool) {
	if n > len(sc.recent) || uint(n) > sc.count {
		return word{}, false
	}
	return sc.recent[(sc.count-uint(n))%uint(len(sc.recent))], true
}
