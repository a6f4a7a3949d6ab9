package pii

import (
	"unicode"
	"unicode/utf8"
)

// shortestStem is the minimum length, in bytes, of a word that is also found with an ending, for example "Müller" in
// "Müllers". The ending does not count. It is also the minimum length of a value that is found as a part of an ordinary
// word: see leastPart.
const shortestStem = 4

// leastInIDs is the minimum length, in bytes, of a value that is found as a part of a word that may be an id or data.
const leastInIDs = 6

// recallStem returns the known value that the text has from start to end together with an ending, or an empty
// recalledValue. For example, it finds "Müller" in "Müllers" and "Mensah" in "Mensah3". It finds only values of one
// unit. least means the same as in recall. high is true if there may be letters beyond ASCII.
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

// unitHash returns the filterHash of the unit from start to end. It is faster if high is false, which means that the
// unit is ASCII.
func (sc *textScan) unitHash(start, end int, high bool) uint64 {
	if high {
		return filterHash(sc.text[start:end])
	}
	return wordHash(sc.text, start, end)
}

// stemEnd returns the offset at which a unit ends if an s, or else all digits, are cut off at its end. It returns 0 if
// there is nothing to cut off.
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

// findInMixedWord searches the word w for known values, from the end of the last finding on. The word is ASCII and has
// letters. It returns the offset at which the scan continues, or 0 if it found nothing.
func (sc *textScan) findInMixedWord(w textWord) (found int) {
	switch {
	case w.sort&(isLower|isUpper) == isLower|isUpper:
		if spanEnd(sc.text, w.start+1, isLower) >= w.end {
			return 0
		}
		return sc.findInParts(w)
	case w.sort&isDigit == 0:
		return 0
	case isDigitByte(sc.text[w.start]) && sc.done <= w.start:
		if run := sc.partAround(w, w.start); run.end-run.start >= leastOpaque {
			found = sc.addRecalled(sc.recallDigits(run))
		}
		found = max(found, sc.addRecalled(sc.recallAfterDigits(w)))
	}
	return max(found, sc.findInID(w))
}

// findInID searches a word of digits and letters of one case for known values, for example "x1dubois". A number must
// have at least leastOpaque digits or be the end of the word. It returns the offset at which the scan continues, or 0
// if it found nothing.
func (sc *textScan) findInID(w textWord) (found int) {
	for i := max(w.start, sc.done) + leastInIDs - 1; i < w.end; i += leastInIDs {
		part := sc.partAround(w, i)
		switch n := part.end - part.start; {
		case n >= leastOpaque && part.sort == isDigit:
			found = max(found, sc.addRecalled(sc.recallDigits(part)))
		case n >= leastInIDs && part.sort != isDigit:
			found = max(found, sc.addRecalled(sc.recallPart(part.start, part.end, leastInIDs, w.sort)))
		}
		i = max(part.end, sc.done) - 1
	}
	if sc.done < w.end && isDigitByte(sc.text[w.end-1]) {
		found = max(found, sc.addRecalled(sc.recallDigits(sc.partAround(w, w.end-1))))
	}
	return found
}

// partAround returns the run of digits or of ASCII letters around the offset i. It does not extend beyond the start of
// w or into the last finding.
func (sc *textScan) partAround(w textWord, i int) textWord {
	start, sort := i, uint8(isDigit)
	if !isDigitByte(sc.text[i]) {
		sort = isUpper | isLower
	}
	for start > max(w.start, sc.done) && class[sc.text[start-1]]&sort != 0 {
		start--
	}
	return textWord{start, spanEnd(sc.text, i, sort), sort}
}

// findInParts searches for known values that begin with a part of the word w, for example in "KwameMensahHanneDubois",
// "TeamMensah" or "ref4111111111111111". It returns the offset at which the scan continues, or 0 if it found nothing.
func (sc *textScan) findInParts(w textWord) (found int) {
	start, least := max(w.start, sc.done), leastPart(w)
	end := partEnd(sc.text, start)
	if start == w.start && end >= w.end && !isDigitByte(sc.text[start]) {
		return 0
	}
	for start < w.end {
		next := partEnd(sc.text, end)
		var r recalledValue
		if isDigitByte(sc.text[start]) {
			if end >= w.end || end-start >= leastOpaque {
				r = sc.recallDigits(textWord{start, min(end, w.end), isDigit})
			}
		} else if r = sc.recallPart(start, end, least, w.sort); r.end == 0 && next <= w.end && isPrefix(sc.text[start:end]) {
			r = sc.recallPart(start, next, least, w.sort)
		}
		found = max(found, sc.addRecalled(r))
		if start, end = end, next; start < sc.done {
			start, end = sc.done, partEnd(sc.text, sc.done)
		}
	}
	return found
}

// isPrefix reports whether a part of a word may be the beginning of a name with a capital inside, for example of
// "McDonald" or "FitzRoy".
func isPrefix(part []byte) bool {
	n := len(part)
	return n >= 2 && n <= 4 && class[part[0]]&isUpper != 0 && class[part[1]]&isLower != 0
}

// leastPart returns the minimum length, in bytes, of a value that is found as a part of the word w. It is larger for
// words that may be ids or data, because short parts of these are equal to names by chance.
func leastPart(w textWord) int {
	if n := w.end - w.start; n > 48 || n > 12 && w.sort&isDigit != 0 {
		return leastInIDs
	}
	return shortestStem
}

// recallAfterDigits returns the known value that follows the digits at the beginning of the word w, for example in
// "3mensah", or an empty recalledValue.
func (sc *textScan) recallAfterDigits(w textWord) recalledValue {
	start := spanEnd(sc.text, w.start, isDigit)
	if end := spanEnd(sc.text, start, isLetter); end < w.end && end-start < shortestStem {
		return recalledValue{} // this excludes most ids
	}
	return sc.recallPart(start, w.end, leastPart(w), w.sort)
}

// recallPart returns the longest known value that begins with the part of a word from start to end, or an empty
// recalledValue. least means the same as in recall. sort holds the classes of the bytes in the word.
func (sc *textScan) recallPart(start, end, least int, sort uint8) (best recalledValue) {
	if end-start < 2 {
		return best
	}
	h := sc.unitHash(start, end, sort&isHigh != 0)
	if sc.filters[0].has(h) || sc.filters[1].has(h) {
		for _, g := range sc.names {
			if g.mayBegin(h) {
				best = longer(best, sc.recall(g, start, end, least))
			}
		}
	}
	if best.end == 0 && end-start > shortestStem && stemEnd(sc.text, start, end) > 0 {
		return sc.recallStem(start, end, least, sort&isHigh != 0)
	}
	return best
}

// recallLast returns the known value of several units whose last unit is the beginning of the unit from from to to, or
// an empty recalledValue. The last unit may be followed by an ending, or may consist of one or two parts of the word.
// before is the chainHash of the other units, and start is their offset.
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

// isUnitAt reports whether the character at i can belong to a unit.
func isUnitAt(text []byte, i int) bool {
	if i >= len(text) || text[i] < utf8.RuneSelf {
		return isAlnumByte(byteAt(text, i))
	}
	_, n := decodeLetter(text[i:])
	return n > 0
}

// nextPart returns what nextUnit returns for i. If glued is true and i is inside a word, it returns the next part of
// this word instead.
func (sc *textScan) nextPart(i int, glued bool) (start, end int) {
	if glued && isUnitAt(sc.text, i) {
		if r, _ := utf8.DecodeLastRune(sc.text[:i]); !isDense(r) {
			return i, partEnd(sc.text, i)
		}
	}
	return nextUnit(sc.text, i)
}

// partEnd returns the end of the part of a word that begins at i. Digits are one part. Letters are one part up to the
// next capital that follows a small letter. So "McDonald" has the parts "Mc" and "Donald".
func partEnd(text []byte, i int) int {
	if isDigitByte(byteAt(text, i)) {
		return spanEnd(text, i, isDigit)
	}
	j := spanEnd(text, spanEnd(text, i, isUpper), isLower)
	if byteAt(text, j) >= utf8.RuneSelf {
		j = mixedPartEnd(text, i)
	}
	return max(j, i+1)
}

// mixedPartEnd works like partEnd for letters of which some are beyond ASCII.
func mixedPartEnd(text []byte, i int) int {
	small := false
	for j := i; j < len(text); {
		if c := class[text[j]]; text[j] < utf8.RuneSelf {
			if c&isLetter == 0 || small && c&isUpper != 0 {
				return j
			}
			small = c&isLower != 0
			j++
			continue
		}
		r, n := decodeLetter(text[j:])
		if n == 0 || j > i && isDense(r) || small && unicode.IsUpper(r) {
			return j
		}
		if j += n; isDense(r) {
			return denseEnd(text, j)
		}
		small = unicode.IsLower(r) || small && unicode.IsMark(r)
	}
	return len(text)
}

// isAllowedAlone reports whether the value of one unit with the entry e may be found from start to end. least means the
// same as in recall. A part of a word must have the flag asWord. If a letter stands beside it, it must be a name,
// because other values also are words of identifiers, for example the company "Orbit" in "OrbitClient".
func (sc *textScan) isAllowedAlone(g *KnownValues, e wordEntry, start, end, least int) bool {
	if least == 0 {
		return sc.isAllowed(g, e, start, end, true)
	}
	if e&asWord == 0 || end-start < least {
		return false
	}
	besideLetter := (class[byteAt(sc.text, start-1)]|class[byteAt(sc.text, end)])&isLetter != 0
	return !besideLetter || g.typeOf(e) == Name
}
