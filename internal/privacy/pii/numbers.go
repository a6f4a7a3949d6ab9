package pii

import "bytes"

// digitGroups represents a number as people write it: groups of digits with single separators between them.
type digitGroups struct {
	n, total int
	start    int      // of a bracket or + before the digits
	len      [9]uint8 // of each run
	end      [9]int   // of each run
	sep      [9]byte  // before each run
	digits   [24]byte
	brackets bool
}

// readGroups reads the groups of a number from i, where a digit or an opening bracket must be.
func (g *digitGroups) readGroups(text []byte, start, i int) {
	g.start = start
	sep := byte(0)
	if byteAt(text, i) == '(' {
		i, g.brackets = i+1, true
	}
	for g.n < len(g.len) {
		end := i
		for end < len(text) && isDigitByte(text[end]) {
			end++
		}
		n := end - i
		if n == 0 || g.total+n > len(g.digits) {
			return
		}
		copy(g.digits[g.total:], text[i:end])
		g.len[g.n], g.end[g.n], g.sep[g.n] = uint8(n), end, sep
		g.total, g.n = g.total+n, g.n+1
		sep, i = g.readSeparator(text, end)
		if sep == 0 {
			return
		}
	}
}

// readSeparator returns the separator between two groups and the start of the next group.
func (g *digitGroups) readSeparator(text []byte, i int) (sep byte, next int) {
	sep = byteAt(text, i)
	switch sep {
	case ' ', '-', '.', '/':
		i++
		if byteAt(text, i) == '(' && sep != '/' {
			i, g.brackets = i+1, true
		} else if sep == ' ' && byteAt(text, i) == '-' && byteAt(text, i+1) == ' ' {
			i += 2
		}
	case ')':
		if !g.brackets {
			return 0, i
		}
		if i++; byteAt(text, i) == ' ' || byteAt(text, i) == '-' {
			i++
		}
	case '(':
		i, g.brackets = i+1, true
	case 0xC2:
		if byteAt(text, i+1) != 0xA0 {
			return 0, i
		}
		sep, i = ' ', i+2
	default:
		return 0, i
	}
	if !isDigitByte(byteAt(text, i)) {
		return 0, i
	}
	return sep, i
}

// digitCount returns the number of digits in the first k groups.
func (g *digitGroups) digitCount(k int) (n int) {
	for _, l := range g.len[:k] {
		n += int(l)
	}
	return n
}

// hasLengths reports whether the first groups of a number have the given numbers of digits, in this order.
func (g *digitGroups) hasLengths(lengths ...uint8) bool {
	return g.n >= len(lengths) && bytes.Equal(g.len[:len(lengths)], lengths)
}

// findInDigits finds a personal number that begins with the word w, which consists of digits.
func (sc *textScan) findInDigits(w textWord) int {
	n, next := w.end-w.start, byteAt(sc.text, w.end)
	if n < 7 && !manyFollow(sc.text, w.end, next, n) {
		if len(sc.s.short) > 0 {
			return sc.shortPhone(w.start)
		}
		return 0
	}
	if n > 24 {
		return 0
	}
	if n <= 3 && next == '.' {
		if end := sc.findIPv4(w.start); end > 0 {
			return end
		}
	}
	if n == 2 && next == '-' { // more than a phone number that begins so
		if end := sc.findMAC(w.end); end > 0 {
			return end
		}
	}
	if n == 4 && (next == ' ' || next == '-' || next == '.') { // a card has more groups than an id that begins so
		var g digitGroups
		if g.readGroups(sc.text, w.start, w.start); g.n >= 3 && g.dateGroups() == 0 {
			if end := sc.findCard(&g); end > 0 {
				return end
			}
		}
	}
	if end := sc.findID(w, &sc.s.idForms().digits[min(n, 23)][sepOf[next]]); end > 0 {
		return end
	}
	if n > 19 || sc.opaque && sc.words == 0 {
		return 0
	}
	var g digitGroups
	if g.readGroups(sc.text, w.start, w.start); g.total < 7 {
		return sc.shortPhone(w.start)
	}
	if k := g.dateGroups(); k > 0 {
		return g.end[k-1]
	}
	if end := sc.findCard(&g); end > 0 {
		return end
	}
	return sc.findPhone(&g, false)
}

// findID finds a personal ID that begins at the word w. It tries only the patterns in the list l.
func (sc *textScan) findID(w textWord, l *formList) int {
	if len(l.all) == 0 {
		return 0
	}
	fs, words := l.alone, sc.contextBefore(w.start)
	if words&l.words != 0 {
		fs = l.all
	}
	for i := range fs {
		f := &fs[i]
		if !f.alone {
			if words&f.words == 0 {
				continue
			}
		} else if sc.opaque && sc.words&f.words == 0 || f.spaced && hasMoreGroups(sc.text, w.start, len(f.pattern)) {
			continue
		}
		end, n := f.matchAt(sc.text, w.start, nil)
		if end == 0 || !isClosed(sc.text, w.start, end) {
			continue
		}
		if f.rule.valid != nil {
			if sc.id32 == nil {
				sc.id32 = new([32]byte)
			}
			f.matchAt(sc.text, w.start, sc.id32)
			if !f.rule.valid(sc.id32[:n]) {
				continue
			}
		}
		if end = sc.addFinding(w.start, end, f.rule.typ); end > 0 {
			return end
		}
	}
	return 0
}

// manyFollow reports whether a word of n digits, together with the text that follows it at i, can be long enough for
// a personal number. The word and this text must have at least seven digits and capital letters in total. Four are
// enough if the word has at most three digits and a dot follows, because an IP address may begin there.
func manyFollow(text []byte, i int, next byte, n int) bool {
	if sepOf[next] == 0 && next != 0xC2 {
		return false
	}
	least := 7
	if next == '.' && n <= 3 {
		least = 4
	}
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case class[c]&(isDigit|isUpper) != 0:
			if n++; n >= least {
				return true
			}
		case c != ' ' && c != '-' && c != '.' && c != '/' && c != '(' && c != ')' && c != '+' && c != 0xC2 && c != 0xA0:
			return false
		}
	}
	return false
}

// hasMoreGroups reports whether a match of n bytes is only a part of a longer number. That is the case if a space and
// another digit directly precede or follow the match.
func hasMoreGroups(text []byte, start, n int) bool {
	return byteAt(text, start+n) == ' ' && isDigitByte(byteAt(text, start+n+1)) ||
		byteAt(text, start-1) == ' ' && isDigitByte(byteAt(text, start-2))
}

// dateGroups returns how many groups at the beginning form a date, or 0 if they do not.
func (g *digitGroups) dateGroups() int {
	if g.n < 3 || g.sep[1] != g.sep[2] || g.sep[1] == ')' {
		return 0
	}
	d := g.digits[:]
	switch {
	case g.hasLengths(4, 2, 2):
		if isYYYYMMDD(d) {
			return 3
		}
	case g.hasLengths(2, 2, 4) && g.sep[1] != ' ':
		if isYear(parseNumber(d[4:8])) && (isDDMMYY(d) || isDate(parseNumber(d[:2]), parseNumber(d[2:4]))) {
			return 3
		}
	case g.hasLengths(8) && g.sep[1] == '-':
		if isYYYYMMDD(d) {
			return 1
		}
	}
	return 0
}

// namedCard finds a card number after a word or key such as "card". It must have 15 to 19 digits in one group, or 12
// to 19 in at least three groups of which the first has four. Its checksum may be wrong, because mistyped and
// invented numbers are hidden too.
func (sc *textScan) namedCard(g *digitGroups) int {
	k := 1
	for k < g.n && (g.sep[k] == ' ' || g.sep[k] == '-' || g.sep[k] == '.') && g.sep[k] == g.sep[1] && g.len[k] >= 2 && g.len[k] <= 7 {
		k++
	}
	n := g.digitCount(k)
	fits := k == 1 && n >= 15 || k >= 3 && g.len[0] == 4 && n >= 12
	if !fits || n > 19 || !isClosed(sc.text, g.start, g.end[k-1]) || sc.contextBefore(g.start)&sc.voc.card == 0 {
		return 0
	}
	return sc.addFinding(g.start, g.end[k-1], CreditCard)
}

// findCard finds a payment card number at the beginning of a number of several groups. It recognises the card number
// by its checksum or by a word before it.
func (sc *textScan) findCard(g *digitGroups) int {
	if end := sc.realCard(g); end > 0 {
		return end
	}
	return sc.namedCard(g)
}

// realCard finds a card number with the prefix of a known issuer and a valid checksum.
func (sc *textScan) realCard(g *digitGroups) int {
	if g.n == 1 || g.len[0] > 6 || g.sep[1] != ' ' && g.sep[1] != '-' {
		n := int(g.len[0])
		if n < 12 || !isCard(g.digits[:n]) || !isClosed(sc.text, g.start, g.end[0]) {
			return 0
		}
		if n != 16 && !(n == 15 && g.digits[0] == '3') || sc.opaque || isCount(sc.text, g.start, g.end[0]) {
			if sc.contextBefore(g.start)&sc.voc.card == 0 {
				return 0
			}
		}
		return sc.addFinding(g.start, g.end[0], CreditCard)
	}
	for k := g.n; k >= 3; k-- {
		n := g.digitCount(k)
		if n < 12 || n > 19 || g.len[0] != 4 || !g.isUniform(k) || !isCard(g.digits[:n]) || !isClosed(sc.text, g.start, g.end[k-1]) {
			continue
		}
		return sc.addFinding(g.start, g.end[k-1], CreditCard)
	}
	return 0
}

// isCount reports whether a number is probably a count or other machine data, and not an ID. It judges by the text
// around the number. For example, it returns true if another number is next to it, or if it is a JSON value without
// quotes.
func isCount(text []byte, start, end int) bool {
	b, c := byteAt(text, start-1), byteAt(text, start-2)
	return b == ' ' && isDigitByte(c) || b == ':' && c == '"' || b == ' ' && c == ':' && byteAt(text, start-3) == '"' || b == '[' ||
		b == '=' ||
		byteAt(text, end) == ' ' && isDigitByte(byteAt(text, end+1))
}

// isUniform reports whether all separators between the first k groups are the same.
func (g *digitGroups) isUniform(k int) bool {
	for _, s := range g.sep[1:k] {
		if s != g.sep[1] {
			return false
		}
	}
	return true
}

// findInMixed finds a personal number or a wallet address that begins with the word w, which has letters and digits.
func (sc *textScan) findInMixed(w textWord) int {
	n := w.end - w.start
	if n >= 25 {
		if end := sc.findWallet(w); end > 0 {
			return end
		}
	}
	if w.sort&isHigh != 0 {
		return 0
	}
	if n >= 4 && class[sc.text[w.start]]&class[sc.text[w.start+1]]&isUpper != 0 && isDigitByte(sc.text[w.start+2]) &&
		isDigitByte(sc.text[w.start+3]) {
		if end := sc.findIBAN(w.start); end > 0 {
			return end
		}
	}
	if n >= 15 && n <= 34 && w.sort&isUpper == 0 && class[sc.text[w.start]]&class[sc.text[w.start+1]]&isLower != 0 &&
		isDigitByte(sc.text[w.start+2]) &&
		isDigitByte(sc.text[w.start+3]) {
		if end := sc.findIBAN(w.start); end > 0 {
			return end
		}
	}
	if n < 24 && w.sort&isLower == 0 {
		return sc.findID(w, &sc.s.idForms().mixed[n][sepOf[byteAt(sc.text, w.end)]])
	}
	return 0
}

// findAtCapitals finds an ID that begins with the short word w, which has only capitals.
func (sc *textScan) findAtCapitals(w textWord) int {
	next := byteAt(sc.text, w.end)
	if next != ' ' && next != '-' && next != '.' || !isAlnumByte(byteAt(sc.text, w.end+1)) {
		return 0
	}
	return sc.findID(w, &sc.s.idForms().capitals[w.end-w.start][sepOf[next]])
}

func (s *Scanner) idForms() *formIndex { return s.tables.ids }

// findIBAN finds an IBAN at start, written in one piece or in groups.
func (sc *textScan) findIBAN(start int) int {
	text := sc.text
	want := ibanLength(text[start]&^0x20, text[start+1]&^0x20)
	if want == 0 || isAlnumByte(byteAt(text, start-1)) {
		return 0
	}
	var id [34]byte
	n, i := 0, start
	for n < want && i < len(text) {
		b := text[i]
		if (b == ' ' || b == '-') && n >= 4 && isAlnumByte(byteAt(text, i+1)) {
			i++
			continue
		}
		if class[b]&(isUpper|isLower|isDigit) == 0 {
			return 0
		}
		id[n] = b
		n, i = n+1, i+1
	}
	if n < want || isAlnumByte(byteAt(text, i)) {
		return 0
	}
	if mod97(id[:4], mod97(id[4:n], 0)) != 1 {
		return 0
	}
	return sc.addFinding(start, i, IBAN)
}
