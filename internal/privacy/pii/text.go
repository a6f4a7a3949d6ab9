package pii

import "encoding/binary"

// textHints holds what the context of a text, such as its JSON key, implies about the text.
type textHints struct {
	words   uint64                // kinds of words in its key
	opaque  bool                  // the text is an id, a hash, a version or an amount: its numbers are rarely personal
	key     bool                  // the text is a key of an object
	names   []*KnownValues        // lists of known values to search for
	filters [maxLists]*wordFilter // the field first of each list in names
	kinds   uint32                // kinds of values in names, as bits: hasWords and so on
	id32    *[32]byte             // buffer for one id
}

// maxLists is the maximum number of lists of known values that a scan uses: one from the settings and one of the
// session.
const maxLists = 2

// withNames returns the hints with lists of known values. The scan searches for these values.
func (h textHints) withNames(names []*KnownValues) textHints {
	h.names = names
	for i, g := range names {
		h.filters[i] = g.first.Load()
		h.kinds |= g.kinds.Load()
	}
	return h
}

// textScan holds the state of one scan of a text for personal data.
type textScan struct {
	s     *Scanner
	voc   *contextWords
	text  []byte
	out   []TypedSpan
	first int // index in out of this text's first finding
	done  int // where the last finding ended
	textHints
	near   [4]struct{ end, words int64 } // the last context words, a ring
	nears  int
	recent [8]textWord // the last words, a ring
	count  uint
	noPEM  bool // no private key ends after this point
}

// textWord represents a run of letters and digits.
type textWord struct {
	start, end int
	sort       uint8 // classes of all its bytes
}

// contextReach is the largest distance, in bytes, between a context word and the number that it describes.
const contextReach = 48

// appendFindings appends the findings in a text, including those of custom types.
func (s *Scanner) appendFindings(dst []TypedSpan, text []byte, h textHints) []TypedSpan {
	first := len(dst)
	dst = s.appendKnown(dst, text, h)
	if len(s.shapes) > 0 {
		dst = s.findCustom(dst, first, text)
	}
	return dst
}

// appendKnown appends those findings in a text that have a built-in type.
func (s *Scanner) appendKnown(dst []TypedSpan, text []byte, h textHints) []TypedSpan {
	sc := textScan{s: s, voc: s.tables.words, text: text, out: dst, first: len(dst), textHints: h}
	n := len(text)
	for i := 0; i < n; {
		c := class[text[i]]
		if c&isAlnum == 0 {
			if c&isTrigger == 0 {
				i++
			} else {
				i = sc.scanMark(i)
			}
			continue
		}
		w, x := textWord{start: i}, uint64(0)
		if i+8 <= n {
			x = binary.LittleEndian.Uint64(text[i:])
			var run int
			if run, w.sort = asciiWord(x); run > 0 {
				i += run
				c = class[byteAt(text, i)]
			}
		} else {
			x = tailBytes(text, i)
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
		if w.sort&(isLetter|isDigit) == isLower && w.end-w.start < shortestSecret && endsValue[byteAt(text, i)] && !sc.mayBeListed(hash) {
			sc.rememberWord(w)
			continue
		}
		i = max(i, sc.scanWord(w, hash))
	}
	return sc.out
}

// rememberWord stores a word as context for the words after it.
func (sc *textScan) rememberWord(w textWord) {
	sc.recent[sc.count%uint(len(sc.recent))] = w
	sc.count++
}

// mayBeListed reports whether any word list may contain a word that has the hash h. It can return true although no
// list contains the word.
func (sc *textScan) mayBeListed(h uint64) bool {
	if sc.filters[0].has(h) || sc.filters[1].has(h) {
		return true
	}
	return sc.s.tables.starts[h>>54]>>(h>>48&63)&1 != 0
}

// addFinding appends a finding and returns the offset at which the scan continues. It returns 0 if the finding
// overlaps the previous one, or if the scanner does not search for its type.
func (sc *textScan) addFinding(start, end int, t Type) int {
	if start < sc.done || sc.s.off[t] {
		return 0
	}
	sc.out = append(sc.out, TypedSpan{start, end, t})
	sc.done = end
	return end
}

// contextBefore returns the kinds of context words that apply to a number at start, as bits. A context word applies
// if it is in the number's key, or among the last words that are at most contextReach bytes before the number.
func (sc *textScan) contextBefore(start int) (words uint64) {
	words = sc.words
	for i := max(0, sc.nears-len(sc.near)); i < sc.nears; i++ {
		if n := sc.near[i%len(sc.near)]; int(n.end) >= start-contextReach {
			words |= uint64(n.words)
		}
	}
	return words
}

// scanWord searches for personal data that begins or ends with the word w. It returns the offset at which the scan
// continues, or 0 if that is directly after the word.
func (sc *textScan) scanWord(w textWord, hash uint64) int {
	sc.rememberWord(w)
	if w.start < sc.done {
		if w.end > sc.done && w.sort&isHigh != 0 && len(sc.names) > 0 {
			return sc.findInRun(w)
		}
		return 0
	}
	if sc.s.tables.secrets.mayBegin(sc.text, w.start) && !(w.end-w.start < shortestSecret && endsValue[byteAt(sc.text, w.end)]) {
		if end := sc.findSecret(w.start); end > 0 {
			return end
		}
	}
	if len(sc.names) > 0 {
		if end := sc.findRemembered(w, hash); end > 0 {
			return end
		}
	}
	if w.sort&isDigit != 0 {
		if w.sort&isLetter == 0 {
			return sc.findInDigits(w)
		}
		if end := sc.findInMixed(w); end > 0 {
			return end
		}
	} else if w.sort&isLower == 0 && w.end-w.start <= 6 {
		if end := sc.findAtCapitals(w); end > 0 {
			return end
		}
	}
	if end := sc.findListed(w, hash); end > 0 {
		return end
	}
	if w.sort&(isLower|isUpper) == isLower|isUpper {
		return sc.findHumped(w)
	}
	return 0
}

// findListed looks the word w up in the lists of known values, names and context words. It then searches for the
// kinds of personal data that the entries of these lists suggest.
func (sc *textScan) findListed(w textWord, h uint64) int {
	if byteAt(sc.text, w.end) == ' ' && isDigitByte(byteAt(sc.text, w.end+1)) && w.end-w.start >= 6 && !sc.opaque &&
		isCapitalised(sc.text, w.start) {
		if end := sc.endsInStreet(w); end > 0 {
			return end
		}
	}
	t := sc.s.tables
	if t.starts[h>>54]>>(h>>48&63)&1 == 0 {
		return 0
	}
	if t.people.hasRole(h) {
		if role, end := t.people.longestMatch(sc.text, w.start, h); end > 0 {
			if end := sc.findPerson(w, role, end); end > 0 {
				return end
			}
		}
	}
	if !sc.voc.mayBegin(h) {
		return 0
	}
	words, end := sc.voc.longestMatch(sc.text, w.start, h)
	if end == 0 || byteAt(sc.text, w.start-1) == '$' {
		return 0
	}
	sc.near[sc.nears%len(sc.near)] = struct{ end, words int64 }{int64(end), int64(words)}
	sc.nears++
	if words&(sc.voc.password|sc.voc.secret) != 0 {
		return sc.findAssigned(end, words)
	}
	if words&sc.voc.mac != 0 {
		if start, end := macOfThree(sc.text, end); end > 0 {
			return sc.addFinding(start, end, MAC)
		}
	}
	if words&sc.voc.birth != 0 {
		if start, end := birthDate(sc.text, end); end > 0 {
			return sc.addFinding(start, end, DateOfBirth)
		}
	}
	return 0
}

// scanMark searches for personal data at a punctuation byte, such as @ or +. It returns the offset at which the scan
// continues.
func (sc *textScan) scanMark(i int) int {
	end := 0
	switch sc.text[i] {
	case 0xC2:
		return i + 2
	case 0xE2, 0xEF:
		return i + 3
	case '@':
		end = sc.findEmail(i)
	case ':':
		end = sc.findAtColon(i)
	case '+':
		end = sc.findAtPlus(i)
	case '(':
		end = sc.findAtBracket(i)
	case '-':
		if end = sc.findPEM(i); end == 0 {
			end = sc.findMAC(i)
		}
	case '[':
		if end = sc.s.tokenEnd(sc.text, i); end > 0 {
			sc.out = append(sc.out, TypedSpan{i, end, ""})
			sc.done = end
		}
	}
	return max(end, i+1)
}

// wordBefore returns one of the words that the scan has read: for n = 1 the newest word, for n = 2 the word before
// it.
func (sc *textScan) wordBefore(n int) (w textWord, ok bool) {
	if n > len(sc.recent) || uint(n) > sc.count {
		return textWord{}, false
	}
	return sc.recent[(sc.count-uint(n))%uint(len(sc.recent))], true
}
