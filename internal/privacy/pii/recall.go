package pii

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// recalledValue represents a known value that was found in a text, from the offset start to the offset end. If end is
// 0, nothing was found.
type recalledValue struct {
	start, end int
	typ        Type
}

// FindKnown appends the known values in a text to dst, in order. Unlike FindText, it does not search for other personal
// data.
func (s *Scanner) FindKnown(dst []TypedSpan, known *KnownValues, text []byte) []TypedSpan {
	if !known.hasEntries() {
		return dst
	}
	v := plainView(text)
	if hasUnplain(text) {
		v = v.withoutUnplain()
	}
	sc := textScan{s: s, voc: s.tables.words, text: v.text, textHints: textHints{}.withNames([]*KnownValues{known})}
	for i := 0; i < len(v.text); {
		if !isAlnumByte(v.text[i]) {
			i = markEnd(v.text, i)
			continue
		}
		w := textWord{start: i, end: spanEnd(v.text, i, isAlnum)}
		for _, b := range v.text[i:w.end] {
			w.sort |= class[b] & isAlnum
		}
		switch {
		case i >= sc.done:
			i = sc.findRemembered(w, wordHash(v.text, w.start, w.end))
		case w.end > sc.done && w.sort&isHigh != 0:
			i = sc.findInRun(w)
		}
		i = max(w.end, i)
	}
	for _, f := range sc.out {
		f.Start, f.End = v.rawRange(f.Start, f.End)
		dst = append(dst, f)
	}
	return dst
}

// findRemembered searches the word w for known values. A value may begin at the start of the word or inside it, and may
// extend over the following words. h is the wordHash of w. It returns the offset at which the scan continues, or 0 if
// it found nothing.
func (sc *textScan) findRemembered(w textWord, h uint64) int {
	if w.sort&isHigh != 0 {
		return sc.findInRun(w)
	}
	r := sc.recallAt(w.start, w.end, h)
	digits := w.sort&isLetter == 0
	if digits && sc.kinds&hasNumbers != 0 {
		r = longer(r, sc.recallNumber(w))
	}
	if sc.kinds&hasDates != 0 && (mayBeDate(sc.text, w) || w.sort&isDigit == 0 && months().mayBegin(h)) {
		r = longer(r, sc.recallDate(w))
	}
	if r.end == 0 && w.end-w.start > shortestStem && !digits {
		r = sc.recallStem(w.start, w.end, 0, false)
	}
	found := sc.addRecalled(r)
	if sc.done < w.end && !digits {
		found = max(found, sc.findInMixedWord(w))
	}
	return found
}

// longer returns the value that ends later in the text, or r if both end at the same offset.
func longer(r, other recalledValue) recalledValue {
	if other.end > r.end {
		return other
	}
	return r
}

// findInRun searches for known values in a word with letters beyond ASCII. In a script without spaces between words,
// the word can contain several values. It returns the offset at which the scan continues, or 0 if it found nothing.
func (sc *textScan) findInRun(w textWord) (found int) {
	for i := w.start; i < w.end; {
		end := unitEnd(sc.text, i)
		if end == i {
			i = markEnd(sc.text, i)
			continue
		}
		if sc.text[i] >= 0xE0 && sc.kinds&hasDense == 0 {
			if r, _ := utf8.DecodeRune(sc.text[i:]); isDense(r) {
				i = end
				continue
			}
		}
		if i >= sc.done {
			h := filterHash(sc.text[i:end])
			r := sc.recallAt(i, end, h)
			if sc.kinds&hasDates != 0 && months().mayBegin(h) {
				r = longer(r, sc.recallDate(textWord{i, end, w.sort}))
			}
			if r.end == 0 && end-i > shortestStem {
				r = sc.recallStem(i, end, 0, true)
			}
			if found = max(found, sc.addRecalled(r)); sc.done < end {
				found = max(found, sc.findInParts(textWord{i, end, w.sort}))
			}
		}
		i = end
	}
	if found > 0 {
		return max(w.end, found)
	}
	return 0
}

// addRecalled adds a known value to the findings. If another known value begins inside of r and ends after it,
// addRecalled also adds the rest of that value, so that no part of it stays readable. It returns the offset at which
// the scan continues, or 0 if r is empty or was not added.
func (sc *textScan) addRecalled(r recalledValue) int {
	if r.end == 0 || sc.addFinding(max(r.start, sc.done), r.end, r.typ) == 0 {
		return 0
	}
	for i := unitEnd(sc.text[:r.end], r.start); i < sc.done; {
		start, end := nextUnit(sc.text, i)
		if start < 0 || start >= sc.done {
			break
		}
		if o := sc.recallAt(start, end, filterHash(sc.text[start:end])); o.end > sc.done {
			if from, _ := nextUnit(sc.text, sc.done); from >= 0 && from < o.end {
				sc.addFinding(from, o.end, o.typ)
			}
		}
		i = end
	}
	return sc.done
}

// recallAt returns the longest known value that begins with the unit from start to end. h is the filterHash of the
// unit.
func (sc *textScan) recallAt(start, end int, h uint64) (best recalledValue) {
	for _, g := range sc.names {
		if g.mayBegin(h) {
			best = longer(best, sc.recall(g, start, end, 0))
		}
	}
	return best
}

// recall returns the longest value of g that begins with the unit or the part of a word from start to end. For a unit,
// least is 0. For a part of a word, least is the minimum length in bytes at which a value of a single part is found.
func (sc *textScan) recall(g *KnownValues, start, end, least int) (best recalledValue) {
	h := hashUnit(sc.text[start:end])
	e := g.words.find(h)
	counts := e.counts()
	if counts&1 != 0 && sc.isAllowedAlone(g, e, start, end, least) {
		best = sc.recalled(g, e, start, end)
	}
	for n, i := 1, end; counts>>n != 0; n++ {
		from, to := sc.nextPart(i, least > 0)
		if from < 0 {
			break
		}
		before := h
		h = chainHash(before, hashUnit(sc.text[from:to]))
		if counts>>n&1 != 0 {
			if r := sc.recallChain(g, h, start, to, false); r.end > 0 {
				best = r
			} else {
				best = longer(best, sc.recallLast(g, before, start, from, to))
			}
		}
		i = to
	}
	return best
}

// recallChain returns the value of several units that the text has from start to end, or an empty recalledValue if
// there is no such value or it must not be found at this place. h is the chainHash of the units. glued means that the
// last unit is only a part of a word in the text. Then the value must have the flag asWord.
func (sc *textScan) recallChain(g *KnownValues, h uint64, start, end int, glued bool) recalledValue {
	e := g.words.find(h)
	if e&isValue == 0 || glued && e&asWord == 0 || !sc.isAllowed(g, e, start, end, false) {
		return recalledValue{}
	}
	return sc.recalled(g, e, start, end)
}

// recalled returns a recalledValue for the value with the entry e, which the text has from start to end. If the value
// was added with a mark at its beginning or end, the range includes a mark that stands there.
func (sc *textScan) recalled(g *KnownValues, e wordEntry, start, end int) recalledValue {
	if e&markBefore != 0 {
		if c, size := utf8.DecodeLastRune(sc.text[:start]); isNameMark(c) && start-size >= sc.done {
			start -= size
		}
	}
	if e&markAfter != 0 {
		if c, size := utf8.DecodeRune(sc.text[end:]); isNameMark(c) {
			end += size
		}
	}
	return recalledValue{start, end, g.typeOf(e)}
}

const notNameMarks = `"[]{},:\`

// isNameMark reports whether a known value may begin or end with the mark r. Letters, blanks and the quotes and
// brackets of JSON are excluded.
func isNameMark(r rune) bool {
	return r > ' ' && r != utf8.RuneError && !strings.ContainsRune(notNameMarks, r) && !isLetterRune(r) &&
		!unicode.IsSpace(r)
}

// isAllowed reports whether the value with the entry e may be found from start to end. This depends on the flags of e,
// on the first letter of the text there, and on the characters around it. single is true for a value of one unit.
func (sc *textScan) isAllowed(g *KnownValues, e wordEntry, start, end int, single bool) bool {
	if e&asWord != 0 {
		if end-start < leastOpaque && hasOnlyDigits(sc.text[start:end]) {
			return !sc.opaque && !sc.isInNumber(start, end)
		}
		return !single || !sc.isInIdentifier(g.typeOf(e), start, end)
	}
	if e&asRest != 0 && sc.follows(start) {
		return true
	}
	r, _ := utf8.DecodeRune(sc.text[start:])
	capital := !unicode.IsLower(r)
	switch {
	case e&asName != 0 && capital && (!isDense(r) || sc.isAlone(start, end)),
		e&asPart != 0 && (capital || e&isSmall != 0) && !sc.isGlued(start, end):
		return true
	case e&asName != 0:
		return sc.isWhole(start, end)
	case e&asWhole != 0:
		return capital && !(sc.opaque && unicode.IsDigit(r)) && sc.isWhole(start, end)
	}
	return false
}

// isInNumber reports whether the digits from start to end belong to a number with a point, for example to a price or a
// version.
func (sc *textScan) isInNumber(start, end int) bool {
	return byteAt(sc.text, start-1) == '.' && isDigitByte(byteAt(sc.text, start-2)) ||
		byteAt(sc.text, end) == '.' && isDigitByte(byteAt(sc.text, end+1))
}

// isInIdentifier reports whether a single word is probably a part of an identifier instead of a value of the type t.
// Words of companies and addresses also occur in keys, for example "orbit_id". Words such as the password "postgres"
// also occur in names of variables, for example "POSTGRES_DB". Names of people are never taken for parts of identifiers
// here.
func (sc *textScan) isInIdentifier(t Type, start, end int) bool {
	word := sc.text[start:end]
	switch {
	case t == Name:
		return false
	case t == Company || t == Address:
		return sc.key && isSmallLetter(word) && sc.isGlued(start, end)
	case spanEnd(word, 0, isLetter) < len(word):
		return false
	}
	return sc.key && sc.isGlued(start, end) ||
		byteAt(sc.text, start-1) == '_' && isAlnumByte(byteAt(sc.text, start-2)) ||
		byteAt(sc.text, end) == '_' && isAlnumByte(byteAt(sc.text, end+1))
}

// follows reports whether only blanks and marks, at most maxBetween, stand between the last finding and start.
func (sc *textScan) follows(start int) bool {
	if sc.done == 0 || len(sc.out) == sc.first {
		return false
	}
	from, _ := nextUnit(sc.text, sc.done)
	return from == start
}

// isAlone reports whether no letter or digit stands directly before start or at end.
func (sc *textScan) isAlone(start, end int) bool {
	if end < len(sc.text) && unitEnd(sc.text, end) > end {
		return false
	}
	if start == 0 {
		return true
	}
	r, n := utf8.DecodeLastRune(sc.text[:start])
	if r < utf8.RuneSelf {
		return !isAlnumByte(byte(r))
	}
	_, size := decodeLetter(sc.text[start-n:])
	return size == 0
}

// gluing lists the marks that join the words of identifiers, paths and addresses.
const gluing = "_./\\@$#"

// isGlued reports whether the word from start to end is a part of an identifier, a path or an address. Then one of the
// gluing marks stands between the word and a letter. In a key of an object, the mark may also stand between the word
// and a digit, and a hyphen directly beside the word suffices.
func (sc *textScan) isGlued(start, end int) bool {
	before, after, glued := byteAt(sc.text, start-1), byteAt(sc.text, end), uint8(isLetter)
	if sc.key {
		if before == '-' || after == '-' {
			return true
		}
		glued = isAlnum
	}
	return strings.IndexByte(gluing, before) >= 0 && class[byteAt(sc.text, start-2)]&glued != 0 ||
		strings.IndexByte(gluing, after) >= 0 && class[byteAt(sc.text, end+1)]&glued != 0
}

// isWhole reports whether the range from start to end is the whole text or the whole line. At most maxBetween blanks
// and marks may stand on either side.
func (sc *textScan) isWhole(start, end int) bool {
	for n := 0; start > 0 && sc.text[start-1] != '\n'; n++ {
		if start--; n == maxBetween || isAlnumByte(sc.text[start]) {
			return false
		}
	}
	for n := 0; end < len(sc.text) && sc.text[end] != '\n'; n++ {
		if n == maxBetween || isAlnumByte(sc.text[end]) {
			return false
		}
		end++
	}
	return true
}

// mayHoldValue reports whether a key of an object may contain a known value of one of the lists, so that it must be
// searched. It returns true if the key is longer than 40 bytes, has a character other than letters and underscores, or
// has a word with which a known value may begin.
func mayHoldValue(key []byte, names []*KnownValues) bool {
	for i := 0; i < len(key); {
		if class[key[i]]&(isUpper|isLower) == 0 {
			if key[i] != '_' {
				return true
			}
			i++
			continue
		}
		end := spanEnd(key, i, isUpper|isLower)
		whole := wordHash(key, i, end)
		stem := wordHash(key, i, max(i+1, end-1))
		for start := i; start < end; start = partEnd(key, start) {
			part := wordHash(key, start, partEnd(key, start))
			for _, g := range names {
				if g.mayBegin(whole) || g.mayBegin(part) || g.mayBegin(stem) {
					return true
				}
			}
		}
		i = end
	}
	return len(key) > 40
}

// claimKnownNumber adds a claim for a JSON number that equals a known number or date of birth. It reports whether it
// added one. So that other numbers stay numbers, all digits of the known number are required, and under a key such as
// "id" at least nine digits.
func (w *documentWalker) claimKnownNumber(d *jsonDoc, node *docNode, p *docPath, digits []byte) bool {
	n := len(digits)
	if n < leastDigits || n > mostDigits || !w.known.has(hasNumbers|hasDates) || !hasOnlyDigits(digits) {
		return false
	}
	opaque := p.opaque && p.typ == ""
	if e := w.known.number(digits); e&asWord != 0 && (!opaque || n >= leastOpaque) {
		if t := w.known.typeOf(e); !w.s.off[t] {
			w.claimNumber(d, node, t)
			return true
		}
	}
	if n == 8 && !w.s.off[DateOfBirth] && w.known.hasDate(readDigits(digits, opaque)) {
		w.claimNumber(d, node, DateOfBirth)
		return true
	}
	return false
}
