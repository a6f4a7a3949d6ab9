package pii

import (
	"unicode"
	"unicode/utf8"
)

// shortestStem is the length, in bytes, of the shortest word that is found with an ending.
const shortestStem = 4

// recallStem returns the known value of one unit that the unit from start to end consists of, together with an ending:
// Müllers, Mensah3. least is that of recall. high is set if the unit may have letters beyond ASCII.
func (sc *textScan) recallStem(start, end, least int, high bool) (best recalledValue) {
	stem := stemEnd(sc.text, start, end)
	if stem-start < shortestStem {
		return best
	}
	h := sc.unitHash(start, stem, high)
	for _, g := range sc.names {
		if !g.mayBegin(h) {
			continue
		}
		e := g.words.find(hashUnit(sc.text[start:stem]))
		if e.counts()&1 != 0 && sc.isAllowedAlone(g, e, start, stem, least) {
			best = longer(best, sc.recalled(g, e, start, stem))
		}
	}
	return best
}

// unitHash returns the filterHash of the unit from start to end.
func (sc *textScan) unitHash(start, end int, high bool) uint64 {
	if high {
		return filterHash(sc.text[start:end])
	}
	return wordHash(sc.text, start, end)
}

// stemEnd returns the end of a unit without an s or digits at its end, or 0 if it has none of these.
func stemEnd(text []byte, start, end int) int {
	if text[end-1]|0x20 == 's' {
		return end - 1
	}
	stem := end
	for stem > start && isDigitByte(text[stem-1]) {
		stem--
	}
	if stem == end {
		return 0
	}
	return stem
}

// mayHaveParts reports whether the word w, which is ASCII, is one to search in its parts: it has both small letters and
// capitals, or it has letters and digits and begins with a digit or may contain a known number.
func (sc *textScan) mayHaveParts(w textWord) bool {
	switch {
	case w.sort&(isLower|isUpper) == isLower|isUpper:
		return true
	case w.sort&isDigit == 0 || w.sort&isLetter == 0:
		return false
	case isDigitByte(sc.text[w.start]):
		return true
	}
	return sc.kinds&(hasNumbers|hasDates) != 0 && hasLongNumber(sc.text, w)
}

// hasLongNumber reports whether eight digits stand together in the word w, or digits before a separator at its end.
func hasLongNumber(text []byte, w textWord) bool {
	if isDigitByte(text[w.end-1]) && sepOf[byteAt(text, w.end)] != 0 {
		return true
	}
	const n = 8
	for i := w.start + n - 1; i < w.end; i += n {
		if !isDigitByte(text[i]) {
			continue
		}
		start := i
		for start > w.start && isDigitByte(text[start-1]) {
			start--
		}
		if i = spanEnd(text, i, isDigit); i-start >= n {
			return true
		}
		i--
	}
	return false
}

// findInParts searches for known values that begin with a part of the word w: KwameMensahHanneDubois, TeamMensah,
// 3mensah, ref4111111111111111.
func (sc *textScan) findInParts(w textWord) (found int) {
	least, humps := leastPart(w), w.sort&isHigh != 0 || w.sort&(isLower|isUpper) == isLower|isUpper
	for start := max(w.start, sc.done); start < w.end; {
		end := min(partEnd(sc.text, start), w.end)
		var r recalledValue
		switch {
		case isDigitByte(sc.text[start]):
			r = sc.recallDigits(textWord{start, end, isDigit})
		case start == w.start && end == w.end:
			return 0
		case humps:
			if r = sc.recallPart(start, end, least, w.sort); r.end == 0 && end < w.end { // McDonald
				r = sc.recallPart(start, min(partEnd(sc.text, end), w.end), least, w.sort)
			}
		case spanEnd(sc.text, w.start, isDigit) == start:
			r = sc.recallPart(start, w.end, least, w.sort)
		}
		if r.end > 0 {
			found = max(found, sc.addFinding(max(r.start, sc.done), r.end, r.typ))
		}
		start = max(end, sc.done)
	}
	return found
}

// leastPart returns the length of the shortest part of the word w that is found on its own. In words that may be ids
// or data, short parts are names by chance.
func leastPart(w textWord) int {
	if n := w.end - w.start; n > 48 || n > 12 && w.sort&isDigit != 0 {
		return 6
	}
	return shortestStem
}

// recallPart returns the longest known value that begins with the part of a word from start to end.
func (sc *textScan) recallPart(start, end, least int, sort uint8) (best recalledValue) {
	h := sc.unitHash(start, end, sort&isHigh != 0)
	for _, g := range sc.names {
		if g.mayBegin(h) {
			best = longer(best, sc.recall(g, start, end, least))
		}
	}
	if best.end == 0 && end-start > shortestStem {
		return sc.recallStem(start, end, least, sort&isHigh != 0)
	}
	return best
}

// recallLast returns the known value of several units that ends in the unit from from to to: before an ending, or after
// one or two parts of a word. before is the hash of the units before it.
func (sc *textScan) recallLast(g *KnownValues, before uint64, start, from, to int) recalledValue {
	if stem := stemEnd(sc.text, from, to); stem > from {
		if r := sc.recallChain(g, chainHash(before, hashUnit(sc.text[from:stem])), start, stem, false); r.end > 0 {
			return r
		}
	}
	for n, end := 0, from; n < 2 && isUnitAt(sc.text, end); n++ {
		if end = partEnd(sc.text, end); end == to {
			continue
		}
		if r := sc.recallChain(g, chainHash(before, hashUnit(sc.text[from:end])), start, end, true); r.end > 0 {
			return r
		}
	}
	return recalledValue{}
}

// isUnitAt reports whether a character of a unit is at i.
func isUnitAt(text []byte, i int) bool {
	if i >= len(text) || text[i] < utf8.RuneSelf {
		return isAlnumByte(byteAt(text, i))
	}
	_, n := decodeLetter(text[i:])
	return n > 0
}

// nextPart returns the next part of the word that goes on at i, or the next unit.
func (sc *textScan) nextPart(i int) (start, end int) {
	if isUnitAt(sc.text, i) {
		return i, partEnd(sc.text, i)
	}
	return nextUnit(sc.text, i)
}

// partEnd returns the end of the part of a word at i: of its digits, or of its letters up to the next capital after a
// small letter.
func partEnd(text []byte, i int) int {
	if isDigitByte(byteAt(text, i)) {
		return spanEnd(text, i, isDigit)
	}
	j, small := i, false
	for j < len(text) {
		if c := class[text[j]]; text[j] < utf8.RuneSelf {
			if c&isLetter == 0 || small && c&isUpper != 0 {
				break
			}
			small = c&isLower != 0
			j++
			continue
		}
		r, n := decodeLetter(text[j:])
		if n == 0 || j > i && isDense(r) || small && unicode.IsUpper(r) {
			break
		}
		if j += n; isDense(r) {
			return denseEnd(text, j)
		}
		small = unicode.IsLower(r) || small && unicode.IsMark(r)
	}
	return max(j, i+1)
}

// isAllowedAlone reports whether a known value of one unit is to be found where it stands. least is that of recall. A
// part of a word must be found anywhere, and must not be a word of an identifier.
func (sc *textScan) isAllowedAlone(g *KnownValues, e wordEntry, start, end, least int) bool {
	if least == 0 {
		return sc.isAllowed(g, e, start, end, true)
	}
	if e&asWord == 0 || end-start < least {
		return false
	}
	besideLetter := (class[byteAt(sc.text, start-1)]|class[byteAt(sc.text, end)])&isLetter != 0
	return !besideLetter || !isInIdentifiers(g.typeOf(e))
}
