package pii

import (
	"bytes"
	"hash/maphash"
	"unicode"
	"unicode/utf8"
)

// civilDate represents a date. From the highest bits down, it holds the year, four bits for the month and five bits for
// the day. 0 means that there is no date.
type civilDate uint32

func makeDate(year, month, day int) civilDate {
	if year < 1800 || year > 2200 || month < 1 || month > 12 || day < 1 || day > 31 {
		return 0
	}
	return civilDate(year<<9 | month<<5 | day)
}

func (d civilDate) hash() uint64 {
	return maphash.Bytes(wordSeed, []byte{'@', byte(d), byte(d >> 8), byte(d >> 16)})
}

// datesRead lists the dates that a text may mean. There can be several, because the order of day and month is not
// always known. Unused elements are 0.
type datesRead [3]civilDate

// addDate adds all dates that a date of birth may mean. It returns false if value contains no date that readDate
// understands. The caller must hold mu.
func (g *KnownValues) addDate(value string) bool {
	dates, ok := datesIn(plainValue(value))
	if !ok {
		return false
	}
	k := g.numberOf(DateOfBirth)
	for _, d := range dates {
		if d != 0 {
			g.words.add(d.hash(), isValue, k)
		}
	}
	g.addKinds(hasDates)
	return true
}

// datesIn returns the dates that the first date in a value may mean. It returns false if the value contains no date.
func datesIn(value []byte) (datesRead, bool) {
	for i := range value {
		if i > 0 && isAlnumByte(value[i-1]) || !isAlnumByte(value[i]) {
			continue
		}
		if dates, end := readDate(value, i, false); end > 0 {
			return dates, true
		}
	}
	return datesRead{}, false
}

func (g *KnownValues) hasDate(dates datesRead) bool {
	for _, d := range dates {
		if d != 0 && g.words.find(d.hash())&isValue != 0 {
			return true
		}
	}
	return false
}

// recallDigits returns the known number or date that begins with the digits w, or an empty recalledValue. w is a run of
// digits inside a word, for example in "ref4111111111111111".
func (sc *textScan) recallDigits(w textWord) (r recalledValue) {
	if sc.kinds&hasNumbers != 0 {
		r = sc.recallNumber(w)
	}
	if sc.kinds&hasDates != 0 && mayBeDate(sc.text, w) {
		r = longer(r, sc.recallDate(w))
	}
	return r
}

// recallDate returns the known date of birth that begins with the word w, or an empty recalledValue.
func (sc *textScan) recallDate(w textWord) recalledValue {
	before := class[byteAt(sc.text, w.start-1)]
	dates, end := readDate(sc.text, w.start, sc.opaque || before&(isUpper|isLower) != 0)
	for _, g := range sc.names {
		if end > 0 && g.hasDate(dates) {
			return recalledValue{w.start, end, DateOfBirth}
		}
	}
	return recalledValue{}
}

// mayBeDate reports whether a date may begin with the word w. It is for words with digits, for example "10", "10th",
// "1o", "1960", "19600110" or "19600110T0815".
func mayBeDate(text []byte, w textWord) bool {
	next := byteAt(text, w.end)
	switch n := w.end - w.start; {
	case !isDigitByte(text[w.start]):
		return false
	case w.sort&isLetter != 0:
		first := spanEnd(text, w.start, isDigit) - w.start
		isOrdinal := n == first+2 || n == first+1 && text[w.end-1]|0x20 == 'o'
		return first == 8 && text[w.start+8] == 'T' || first <= 2 && isOrdinal
	default:
		return n == 8 || (n <= 2 || n == 4) && (sepOf[next] != 0 || next >= utf8.RuneSelf)
	}
}

// readDate reads the date at i. It returns the dates that it may mean and the offset of its end, which is 0 if there is
// no date. opaque is true where versions and ids are to be expected. Then the year must have four digits, and it must
// be first if the date has no separators.
func readDate(text []byte, i int, opaque bool) (dates datesRead, end int) {
	if isDigitByte(byteAt(text, i)) {
		var g digitGroups
		g.readGroups(text, i, i)
		switch {
		case g.n >= 1 && g.len[0] == 8:
			if next := byteAt(text, g.end[0]); isAlnumByte(next) && next < utf8.RuneSelf && next != 'T' {
				return dates, 0
			}
			return readDigits(g.digits[:8], opaque), g.end[0]
		case g.n >= 3 && g.sep[1] == g.sep[2] && g.birthLike():
			if four := g.len[0] == 4 || g.len[2] == 4; !four && (opaque || g.n > 3 && g.sep[3] == g.sep[1]) {
				return dates, 0
			}
			return g.dates(), g.end[2]
		}
	}
	end = dateAt(text, i)
	if end == 0 {
		return dates, 0
	}
	return readNamedMonth(text, i, end), end
}

// readNamedMonth reads the date from i to end, which contains the name of a month.
func readNamedMonth(text []byte, i, end int) (dates datesRead) {
	year, month, day := 0, 0, 0
	for i < end {
		next := spanEnd(text, i, isAlnum)
		switch word := text[i:next]; {
		case next == i:
			next++
		case isDigitByte(word[0]) && spanEnd(text, i, isDigit)-i > 2:
			year = parseNumber(word)
		case isDigitByte(word[0]):
			day = parseNumber(text[i:spanEnd(text, i, isDigit)])
		case month == 0:
			month = monthOf(word)
		}
		i = next
	}
	dates[0] = makeDate(year, month, day)
	return dates
}

// readDigits reads a date of eight digits without separators. The year may be first or last. If opaque is true, it must
// be first.
func readDigits(d []byte, opaque bool) (dates datesRead) {
	dates[0] = makeDate(parseNumber(d[:4]), parseNumber(d[4:6]), parseNumber(d[6:]))
	if !opaque {
		x, y, year := parseNumber(d[:2]), parseNumber(d[2:4]), parseNumber(d[4:])
		dates[1], dates[2] = makeDate(year, x, y), makeDate(year, y, x)
	}
	return dates
}

// latestYear is the latest year of this century that two digits mean: 30 means 2030, and 31 means 1931.
const latestYear = 30

// dates returns the dates that the first three groups of digits may mean.
func (g *digitGroups) dates() (all datesRead) {
	d := g.digits[:]
	a, b, c := int(g.len[0]), int(g.len[1]), int(g.len[2])
	x, y, z := parseNumber(d[:a]), parseNumber(d[a:a+b]), parseNumber(d[a+b:a+b+c])
	switch {
	case a == 4:
		all[0] = makeDate(x, y, z)
		return all
	case c == 4:
	case z <= latestYear:
		z += 2000
	default:
		z += 1900
	}
	all[0] = makeDate(z, y, x)
	if g.sep[1] != '.' { // with points, the day is always first
		all[1] = makeDate(z, x, y)
	}
	return all
}

// monthOf returns the number of a month, 1 to 12, from its name or abbreviation in one of several languages. It returns
// 0 for other words.
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

// monthStarts maps the first three letters of the names in monthNames to the numbers of the months.
var monthStarts = map[string]int{
	"jan": 1, "gen": 1, "ene": 1, "sty": 1, "feb": 2, "fev": 2, "lut": 2, "mar": 3, "maa": 3, "apr": 4, "avr": 4,
	"abr": 4, "kwi": 4, "may": 5, "mai": 5, "mei": 5, "maj": 5, "mag": 5, "jun": 6, "jui": 6, "giu": 6, "cze": 6,
	"jul": 7, "lug": 7, "lip": 7, "aug": 8, "aou": 8, "ago": 8, "sie": 8, "sep": 9, "set": 9, "wrz": 9, "oct": 10,
	"okt": 10, "out": 10, "ott": 10, "paz": 10, "nov": 11, "lis": 11, "dec": 12, "dez": 12, "dic": 12, "des": 12,
	"gru": 12,
}

// IsNumberType reports whether the values of a type are numbers, which are compared only by their digits.
func IsNumberType(t Type) bool { return t == Phone || t == CreditCard || t == SSN || t == NationalID }

const (
	leastDigits = 7  // minimum number of digits of a known number
	leastOpaque = 9  // the same where ids, counts and prices are to be expected
	mostDigits  = 24 // maximum number of digits of a known number
)

// NumberDigits returns the digits of a number by which it is compared with others. It leaves out separators, the prefix
// 00 and a zero in brackets, as in "+49 (0)89". It returns "" if the value contains a letter or does not have 7 to 24
// digits.
func NumberDigits(value string) string {
	var room [mostDigits]byte
	return string(appendDigits(room[:0], []byte(value)))
}

// appendDigits appends the result of NumberDigits to dst, which must be empty. It returns nil instead of "".
func appendDigits(dst, value []byte) []byte {
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case isDigitByte(c):
			if len(dst) == mostDigits {
				return nil
			}
			dst = append(dst, c)
		case c == '(' && bytes.HasPrefix(value[i:], []byte("(0)")):
			i += 2
		case class[c]&(isUpper|isLower) != 0:
			return nil
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(value[i:])
			if unicode.IsLetter(r) {
				return nil
			}
			i += n - 1
		}
	}
	if bytes.HasPrefix(dst, []byte("00")) {
		dst = dst[2:]
	}
	if len(dst) < leastDigits {
		return nil
	}
	return dst
}

// addNumber adds a number, so that it is found with any separators. It stores a phone number that begins with + or 00
// without its country code if at least eight digits remain. Then the number is found with and without the code.
// addNumber returns false if values of the type are not numbers, or if NumberDigits does not accept value.
func (g *KnownValues) addNumber(t Type, value string) bool {
	if !IsNumberType(t) {
		return false
	}
	var room [mostDigits]byte
	digits := appendDigits(room[:0], []byte(value))
	if len(digits) == 0 {
		return false
	}
	flags := asWord
	if t == Phone && (value[0] == '+' || value[:2] == "00") {
		if n := codeLength(digits); len(digits)-n > leastDigits {
			digits, flags = digits[n:], asName
		}
	}
	if g.storedNumber(digits)&flags != 0 {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.hasRoom(true) {
		g.putNumber(digits, flags, g.numberOf(t))
		g.countExact(true)
	}
	return true
}

// codeLength returns the length of the country code with which the digits of a phone number begin. If they begin with
// no known code, it returns the number of digits.
func codeLength(digits []byte) int {
	codes := allTables().phones.codes
	for n := 1; n <= 3; n++ {
		if len(codes[parseNumber(digits[:n])]) > 0 {
			return n
		}
	}
	return len(digits)
}

func (g *KnownValues) putNumber(digits []byte, flags wordEntry, k typeNumber) {
	g.words.add(hashNumber(digits), flags|isValue, k)
	if head := &g.heads[parseNumber(digits[:3])]; !head.Load() {
		head.Store(true)
	}
	g.addKinds(hasNumbers)
}

func hashNumber(digits []byte) uint64 {
	var room [mostDigits + 1]byte
	return maphash.Bytes(wordSeed, append(append(room[:0], '#'), digits...))
}

// number returns the entry of a known number, or 0. The entry has the flag asWord if digits are the complete number. If
// the number is stored without its country code, the digits may begin with any country code.
func (g *KnownValues) number(digits []byte) wordEntry {
	e := g.storedNumber(digits)
	if e&asWord == 0 && len(digits) > leastDigits {
		if with := g.storedNumber(digits[codeLength(digits):]); with&asName != 0 {
			return with | asWord
		}
	}
	return e
}

func (g *KnownValues) storedNumber(digits []byte) wordEntry {
	if len(digits) < leastDigits || !g.heads[parseNumber(digits[:3])].Load() {
		return 0
	}
	return g.words.find(hashNumber(digits))
}

// recallNumber returns the known number that begins with the word w, which consists of digits, or an empty
// recalledValue. Next to a letter, it requires at least nine digits. Under a key for ids and after a decimal point, it
// also requires that all groups of digits that follow w belong to the number, so that parts of other numbers stay.
func (sc *textScan) recallNumber(w textWord) recalledValue {
	next := byteAt(sc.text, w.end)
	if w.end-w.start < leastDigits && sepOf[next] == 0 && next != ')' && next != '(' && next < utf8.RuneSelf {
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
	before, least := byteAt(sc.text, start-1), leastDigits
	all := sc.opaque || before == '.' && isDigitByte(byteAt(sc.text, start-2))
	if all || class[before]&(isUpper|isLower) != 0 {
		least = leastOpaque
	}
	for _, g := range sc.names {
		if k, t := sc.groupsKnown(g, &n, least, all); k > 0 {
			if before == '+' {
				start--
			}
			return recalledValue{max(start, sc.done), n.end[k-1], t}
		}
	}
	return recalledValue{}
}

// groupsKnown returns how many groups of n, from the first on, form a known number with at least least digits. It also
// returns the type of the number. If all is true, only all groups together count. The results are 0 and "" if there is
// no such number.
func (sc *textScan) groupsKnown(g *KnownValues, n *digitGroups, least int, all bool) (int, Type) {
	total := n.total
	for k := n.n; k > 0; k-- {
		digits := n.digits[:total]
		total -= int(n.len[k-1])
		next := class[byteAt(sc.text, n.end[k-1])]
		if next&isDigit != 0 || next&(isUpper|isLower) != 0 && len(digits) < leastOpaque {
			continue
		}
		if t := g.numberType(digits, least); t != "" {
			return k, t
		}
		if all {
			break
		}
	}
	return 0, ""
}

// numberType returns the type of the known number with these digits, or "". There must be at least least digits. They
// may begin with 00. Those of a phone number that is stored without its country code may begin with a 0.
func (g *KnownValues) numberType(digits []byte, least int) Type {
	if len(digits) < least {
		return ""
	}
	if bytes.HasPrefix(digits, []byte("00")) {
		digits = digits[2:]
	}
	e := g.number(digits)
	if e == 0 && len(digits) > 0 && digits[0] == '0' {
		if e = g.number(digits[1:]); e&asName == 0 {
			return ""
		}
	}
	if e&isValue == 0 {
		return ""
	}
	return g.typeOf(e)
}
