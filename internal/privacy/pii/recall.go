package pii

import (
	"hash/maphash"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxBetween bounds the number of blanks and marks between two words of a known value.
const maxBetween = 4

// recalledValue represents a known value that was found in a text.
type recalledValue struct {
	start, end int
	typ        Type
}

// findRemembered searches for a known value that begins with the word w, or with a part of it. h is the word's hash.
func (sc *textScan) findRemembered(w textWord, h uint64) int {
	if w.sort&isHigh != 0 {
		h = foldedHash(sc.text[w.start:w.end])
	}
	for _, g := range sc.names {
		r := recalledValue{}
		if w.sort&isLetter == 0 {
			r = sc.recallNumber(g, w)
		}
		if r.end == 0 && len(g.dates) > 0 && (w.sort&isLetter == 0 || w.sort&isDigit == 0) {
			r = recalledValue{w.start, g.dateAt(sc.text, w.start), DateOfBirth}
		}
		if r.end == 0 && g.mayBegin(h) {
			r = sc.recall(g, w.start, w.end, runEnd)
		}
		if r.end == 0 && g.dense && w.sort&isHigh != 0 {
			r = sc.recallDense(g, w)
		}
		if end := sc.addRecalled(r); end > 0 {
			return end
		}
	}
	return sc.findPart(w)
}

// FindKnown appends the values in a text that known contains, and nothing else.
func (s *Scanner) FindKnown(dst []TypedSpan, known *KnownValues, text []byte) []TypedSpan {
	known.mu.RLock()
	defer known.mu.RUnlock()
	if !known.hasEntries() {
		return dst
	}
	v := plainView(text)
	if hasIgnorable(text) {
		v = v.withoutIgnorable()
	}
	sc := textScan{s: s, voc: s.tables.words, text: v.text, textHints: textHints{names: []*KnownValues{known}}}
	for i := 0; i < len(v.text); {
		if !isAlnumByte(v.text[i]) {
			i = markEnd(v.text, i)
			continue
		}
		w := textWord{start: i, end: spanEnd(v.text, i, isAlnum)}
		for _, b := range v.text[i:w.end] {
			w.sort |= class[b] & isAlnum
		}
		i = max(w.end, sc.findRemembered(w, wordHash(v.text, w.start, w.end)))
	}
	for _, f := range sc.out {
		f.Start, f.End = v.rawRange(f.Start, f.End)
		dst = append(dst, f)
	}
	return dst
}

func (sc *textScan) addRecalled(r recalledValue) int {
	if r.end == 0 {
		return 0
	}
	return sc.addFinding(max(r.start, sc.done), r.end, r.typ)
}

func foldedHash(word []byte) uint64 {
	var room [64]byte
	folded := appendFoldedWord(room[:0], word)
	return wordHash(folded, 0, len(folded))
}

// shortestPart is the length, in bytes, of the shortest part of a word that is looked up.
const shortestPart = 4

// findPart searches for a known value that is a part of the word w, or begins with one: Müllers, Mensah3, KwameMensah.
func (sc *textScan) findPart(w textWord) int {
	if w.end-w.start <= shortestPart || sc.opaque {
		return 0
	}
	if sc.text[w.end-1]|0x20 == 's' {
		if r := sc.recallPart(w.start, w.end-1); r.end == w.end-1 {
			return sc.addRecalled(r)
		}
	}
	if w.sort&(isLower|isUpper) != isLower|isUpper && w.sort&isDigit == 0 {
		return 0
	}
	for start := w.start; start < w.end; {
		end := partEnd(sc.text, start)
		if end-start >= shortestPart && end-start < w.end-w.start {
			if end := sc.addRecalled(sc.recallPart(start, end)); end > 0 {
				return end
			}
		}
		start = end
	}
	return 0
}

// recallPart searches for a known value that begins with a part of a word.
func (sc *textScan) recallPart(start, end int) recalledValue {
	h := uint64(0)
	for i, g := range sc.names {
		if i == 0 {
			if h = wordHash(sc.text, start, end); sc.hasHigh(start, end) {
				h = foldedHash(sc.text[start:end])
			}
		}
		if g.mayBegin(h) {
			if r := sc.recall(g, start, end, partEnd); r.end > 0 {
				return r
			}
		}
	}
	return recalledValue{}
}

func (sc *textScan) hasHigh(start, end int) bool {
	for _, b := range sc.text[start:end] {
		if b >= utf8.RuneSelf {
			return true
		}
	}
	return false
}

// recallDense searches for a known value in a run of letters of a script without spaces.
func (sc *textScan) recallDense(g *KnownValues, w textWord) recalledValue {
	for start := w.start; start < w.end; {
		_, size := utf8.DecodeRune(sc.text[start:])
		if sc.text[start] >= 0xE3 {
			for n, end := 0, start; n < 8 && end < w.end; n++ {
				_, size := utf8.DecodeRune(sc.text[end:])
				if end += size; n == 0 || end-start == w.end-w.start {
					continue
				}
				if g.mayBegin(foldedHash(sc.text[start:end])) {
					if r := sc.recall(g, start, end, runEnd); r.end > 0 {
						return r
					}
				}
			}
		}
		start += size
	}
	return recalledValue{}
}

func runEnd(text []byte, i int) int { return spanEnd(text, i, isAlnum) }

// partEnd returns the end of the part of a word at i: of its digits, or of its letters up to the next capital after a
// small letter.
func partEnd(text []byte, i int) int {
	if isDigitByte(byteAt(text, i)) {
		return spanEnd(text, i, isDigit)
	}
	j := i
	for j < len(text) && class[text[j]]&isLetter != 0 {
		if j > i && class[text[j]]&isUpper != 0 && class[text[j-1]]&(isLower|isHigh) != 0 {
			break
		}
		j++
	}
	return max(j, i+1)
}

// recall returns the longest known value that begins with the word from start to end. next returns the end of the
// word at an offset.
func (sc *textScan) recall(g *KnownValues, start, end int, next func([]byte, int) int) recalledValue {
	h := g.hashText(sc.text[start:end])
	e := g.words.find(h)
	counts := e.counts()
	if counts == 0 {
		return recalledValue{}
	}
	best := recalledValue{}
	if counts&1 != 0 && sc.isAllowed(e, start, end) {
		best = sc.withMarks(e, g, start, end)
	}
	for n, i := 2, end; counts>>1 != 0 && n <= maxWords; n++ {
		from := sc.nextWord(i)
		if from < 0 {
			break
		}
		if i = next(sc.text, from); i == from {
			break
		}
		h = chainHash(h, g.hashText(sc.text[from:i]))
		if counts>>(min(n, maxCount)-1)&1 != 0 {
			if e := g.words.find(h); e&isValue != 0 && sc.isAllowed(e, start, i) {
				best = sc.withMarks(e, g, start, i)
			}
		}
		if n < maxCount && counts>>n == 0 {
			break
		}
	}
	return best
}

// maxWords bounds the number of words of a value that are compared.
const maxWords = 200

func (g *KnownValues) hashText(word []byte) uint64 {
	var room [64]byte
	return maphash.Bytes(g.seed, appendFoldedWord(room[:0], word))
}

// nextWord returns the offset of the next word after a word that ends at i. It returns -1 if the words do not stand
// next to each other.
func (sc *textScan) nextWord(i int) int {
	for n := 0; n <= maxBetween && i < len(sc.text); n++ {
		if isAlnumByte(sc.text[i]) {
			return i
		}
		i = markEnd(sc.text, i)
	}
	return -1
}

// isAllowed reports whether a known word is to be found where it stands.
func (sc *textScan) isAllowed(e wordEntry, start, end int) bool {
	switch {
	case e&asWord != 0:
		return true
	case e&(asName|asWhole) == 0:
		return false
	}
	r, _ := utf8.DecodeRune(sc.text[start:])
	capital := !unicode.IsLower(r)
	if e&asName != 0 && capital {
		return true
	}
	return e&asWhole != 0 && (capital || !sc.key) && sc.isWhole(start, end)
}

// isWhole reports whether nothing but marks and blanks stands around a word in its text, or in its line.
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

// withMarks returns the range of a value. If the value as it was learned begins or ends with marks, the range
// includes those that stand next to it.
func (sc *textScan) withMarks(e wordEntry, g *KnownValues, start, end int) recalledValue {
	r := recalledValue{start: start, end: end}
	if k := e.kind(); k > 0 {
		r.typ = g.types[k-1]
	}
	if e&withMarks == 0 {
		return r
	}
	for n := 0; n < maxBetween && r.start > sc.done; n++ {
		c, size := utf8.DecodeLastRune(sc.text[:r.start])
		if !isNameMark(c) {
			break
		}
		r.start -= size
	}
	for n := 0; n < maxBetween && r.end < len(sc.text); n++ {
		c, size := utf8.DecodeRune(sc.text[r.end:])
		if !isNameMark(c) {
			break
		}
		r.end += size
	}
	return r
}

const notNameMarks = `"[]{},:\`

// isNameMark reports whether a value may begin or end with the mark r. Quotes and brackets of JSON are excluded.
func isNameMark(r rune) bool {
	return r > ' ' && r != utf8.RuneError && !strings.ContainsRune(notNameMarks, r) && !isWordRune(r) && !unicode.IsSpace(r)
}

// civilDate represents a date: the year, the month and the day.
type civilDate uint32

func makeDate(year, month, day int) civilDate {
	if year < 1800 || year > 2200 || month < 1 || month > 12 || day < 1 || day > 31 {
		return 0
	}
	return civilDate(year<<9 | month<<5 | day)
}

// addDate adds a date of birth. It returns false if the value is not a date that readDate understands.
func (g *KnownValues) addDate(value string) bool {
	for i := range len(value) {
		if i > 0 && isAlnumByte(value[i-1]) || !isAlnumByte(value[i]) {
			continue
		}
		dates, end := readDate([]byte(value), i)
		if end == 0 {
			continue
		}
		if g.dates == nil {
			g.dates = map[civilDate]bool{}
		}
		for _, d := range dates {
			if d != 0 {
				g.dates[d] = true
			}
		}
		g.hashValue("")
		return true
	}
	return false
}

// dateAt returns the end of a known date that begins at i, or 0.
func (g *KnownValues) dateAt(text []byte, i int) int {
	dates, end := readDate(text, i)
	if end == 0 {
		return 0
	}
	for _, d := range dates {
		if d != 0 && g.dates[d] {
			return end
		}
	}
	return 0
}

// readDate reads the date at i and returns the dates that it may mean, because the order of day and month and the
// century are not always known. The end is 0 if there is no date.
func readDate(text []byte, i int) (dates [4]civilDate, end int) {
	if isDigitByte(byteAt(text, i)) {
		var g digitGroups
		g.readGroups(text, i, i)
		switch {
		case g.n >= 1 && g.len[0] == 8:
			d := g.digits[:8]
			dates[0] = makeDate(parseNumber(d[:4]), parseNumber(d[4:6]), parseNumber(d[6:]))
			return dates, g.end[0]
		case g.n >= 3 && g.sep[1] == g.sep[2] && g.birthLike():
			return g.dates(), g.end[2]
		}
	}
	end = dateAt(text, i)
	if end == 0 {
		return dates, 0
	}
	year, month, day := 0, 0, 0
	for j := i; j < end; {
		next := spanEnd(text, j, isAlnum)
		switch word := text[j:next]; {
		case next == j:
			next++
		case isDigitByte(word[0]) && spanEnd(text, j, isDigit)-j > 2:
			year = parseNumber(word)
		case isDigitByte(word[0]):
			day = parseNumber(text[j:spanEnd(text, j, isDigit)])
		case month == 0:
			month = monthOf(word)
		}
		j = next
	}
	dates[0] = makeDate(year, month, day)
	return dates, end
}

// dates returns the dates that three groups of digits may mean.
func (g *digitGroups) dates() (all [4]civilDate) {
	d := g.digits[:]
	a, b, c := int(g.len[0]), int(g.len[1]), int(g.len[2])
	x, y, z := parseNumber(d[:a]), parseNumber(d[a:a+b]), parseNumber(d[a+b:a+b+c])
	switch {
	case a == 4:
		all[0] = makeDate(x, y, z)
	case c == 4:
		all[0], all[1] = makeDate(z, x, y), makeDate(z, y, x)
	default:
		all = [4]civilDate{makeDate(1900+z, x, y), makeDate(1900+z, y, x), makeDate(2000+z, x, y), makeDate(2000+z, y, x)}
	}
	return all
}

// monthOf returns the number of a month from its name or abbreviation, or 0.
func monthOf(name []byte) int {
	var room [64]byte
	folded := string(appendFoldedWord(room[:0], name))
	if len(folded) < 3 {
		return 0
	}
	if len(folded) >= 4 && folded[:4] == "juil" {
		return 7
	}
	return monthStarts[folded[:3]]
}

// monthStarts maps the first letters of the names in monthNames to the months.
var monthStarts = map[string]int{
	"jan": 1, "gen": 1, "ene": 1, "sty": 1, "feb": 2, "fev": 2, "lut": 2, "mar": 3, "maa": 3, "apr": 4, "avr": 4, "abr": 4,
	"kwi": 4, "may": 5, "mai": 5, "mei": 5, "maj": 5, "mag": 5, "jun": 6, "jui": 6, "giu": 6, "cze": 6, "jul": 7, "lug": 7,
	"lip": 7, "aug": 8, "aou": 8, "ago": 8, "sie": 8, "sep": 9, "set": 9, "wrz": 9, "oct": 10, "okt": 10, "out": 10,
	"ott": 10, "paz": 10, "nov": 11, "lis": 11, "dec": 12, "dez": 12, "dic": 12, "des": 12, "gru": 12,
}

// IsNumberType reports whether values of a type are numbers, so that they are compared by their digits.
func IsNumberType(t Type) bool { return t == Phone || t == CreditCard || t == SSN || t == NationalID }

const (
	leastDigits = 7
	mostDigits  = 24
)

// NumberDigits returns the digits of a number that identify it: without separators, and without the prefix 00. It
// returns "" if the value is not a number of 7 to 24 digits.
func NumberDigits(value string) string {
	digits := make([]byte, 0, mostDigits)
	for i := range len(value) {
		switch c := value[i]; {
		case isDigitByte(c) && len(digits) == mostDigits, class[c]&isLetter != 0:
			return ""
		case isDigitByte(c):
			digits = append(digits, c)
		}
	}
	if len(digits) > 2 && digits[0] == '0' && digits[1] == '0' {
		digits = digits[2:]
	}
	if len(digits) < leastDigits {
		return ""
	}
	return string(digits)
}

// addNumber adds a number, so that it is found with any separators. A phone number with a country code is also found
// without it.
func (g *KnownValues) addNumber(value string, k typeNumber) bool {
	digits := NumberDigits(value)
	if digits == "" {
		return false
	}
	g.putNumber(digits, k)
	if value[0] != '+' && value[0] != '0' {
		return true
	}
	for n := 1; n <= 3; n++ {
		if len(allTables().phones.codes[parseNumber([]byte(digits[:n]))]) > 0 && len(digits)-n >= leastDigits+1 {
			g.putNumber(digits[n:], k)
			g.putNumber("0"+digits[n:], k)
		}
	}
	return true
}

func (g *KnownValues) putNumber(digits string, k typeNumber) {
	g.numbers = true
	first := parseNumber([]byte(digits[:3]))
	g.digits[first>>6] |= 1 << (first & 63)
	g.words.add(maphash.String(g.seed, "#"+digits), isValue, k)
}

// numberType returns the type of a known number, or "".
func (g *KnownValues) numberType(digits []byte) Type {
	var room [mostDigits + 1]byte
	e := g.words.find(maphash.Bytes(g.seed, append(append(room[:0], '#'), digits...)))
	if e&isValue == 0 || e.kind() == 0 {
		return ""
	}
	return g.types[e.kind()-1]
}

func (g *KnownValues) mayBeNumber(digits []byte) bool {
	if len(digits) < 3 {
		return false
	}
	first := parseNumber(digits[:3])
	return g.digits[first>>6]>>(first&63)&1 != 0
}

// recallNumber searches for a known number that begins with the word w.
func (sc *textScan) recallNumber(g *KnownValues, w textWord) recalledValue {
	if !g.numbers || w.sort&isLetter != 0 || byteAt(sc.text, w.start-1) == '.' {
		return recalledValue{}
	}
	start := w.start
	if byteAt(sc.text, start-1) == '(' {
		start--
	}
	var n digitGroups
	if n.readGroups(sc.text, start, start); n.total < leastDigits {
		return recalledValue{}
	}
	digits := n.digits[:n.total]
	skip := 0
	if digits[0] == '0' && digits[1] == '0' {
		skip = 2
	}
	if !g.mayBeNumber(digits[skip:]) {
		return recalledValue{}
	}
	for k, total := n.n, n.total; k > 0; k-- {
		if total-skip >= leastDigits && !isAlnumByte(byteAt(sc.text, n.end[k-1])) {
			if t := g.numberType(digits[skip:total]); t != "" {
				if byteAt(sc.text, start-1) == '+' {
					start--
				}
				return recalledValue{max(start, sc.done), n.end[k-1], t}
			}
		}
		total -= int(n.len[k-1])
	}
	return recalledValue{}
}
