package pii

import "bytes"

// groups holds runs of digits with single separators between, as numbers are written for people.
type groups struct {
	n, total int
	start    int      // of a bracket or + before the digits
	len      [9]uint8 // of each run
	end      [9]int   // of each run
	sep      [9]byte  // before each run
	digits   [24]byte
	brackets bool
}

// read takes the runs from i, which is at a digit or an opening bracket.
func (g *groups) read(text []byte, start, i int) {
	g.start = start
	sep := byte(0)
	if at(text, i) == '(' {
		i, g.brackets = i+1, true
	}
	for g.n < len(g.len) {
		end := i
		for end < len(text) && digit(text[end]) {
			end++
		}
		n := end - i
		if n == 0 || g.total+n > len(g.digits) {
			return
		}
		copy(g.digits[g.total:], text[i:end])
		g.len[g.n], g.end[g.n], g.sep[g.n] = uint8(n), end, sep
		g.total, g.n = g.total+n, g.n+1
		sep, i = g.separator(text, end)
		if sep == 0 {
			return
		}
	}
}

// separator returns what stands between two runs, and where the next begins.
func (g *groups) separator(text []byte, i int) (sep byte, next int) {
	sep = at(text, i)
	switch sep {
	case ' ', '-', '.', '/':
		i++
		if at(text, i) == '(' && sep != '/' {
			i, g.brackets = i+1, true
		} else if sep == ' ' && at(text, i) == '-' && at(text, i+1) == ' ' {
			i += 2
		}
	case ')':
		if !g.brackets {
			return 0, i
		}
		if i++; at(text, i) == ' ' || at(text, i) == '-' {
			i++
		}
	case '(':
		i, g.brackets = i+1, true
	case 0xC2:
		if at(text, i+1) != 0xA0 {
			return 0, i
		}
		sep, i = ' ', i+2
	default:
		return 0, i
	}
	if !digit(at(text, i)) {
		return 0, i
	}
	return sep, i
}

// sum returns the number of digits of the first k runs.
func (g *groups) sum(k int) (n int) {
	for _, l := range g.len[:k] {
		n += int(l)
	}
	return n
}

// shape compares the lengths of the first runs.
func (g *groups) shape(lengths ...uint8) bool {
	return g.n >= len(lengths) && bytes.Equal(g.len[:len(lengths)], lengths)
}

// digits looks at a word of digits.
func (sc *scan) digits(w word) int {
	n, next := w.end-w.start, at(sc.text, w.end)
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
		if end := sc.ipv4(w.start); end > 0 {
			return end
		}
	}
	if n == 2 && next == '-' { // more than a phone number that begins so
		if end := sc.mac(w.end); end > 0 {
			return end
		}
	}
	if n == 4 && (next == ' ' || next == '-' || next == '.') { // a card has more groups than an id that begins so
		var g groups
		if g.read(sc.text, w.start, w.start); g.n >= 3 && g.date() == 0 {
			if end := sc.card(&g); end > 0 {
				return end
			}
		}
	}
	if end := sc.id(w, &sc.s.ids().digits[min(n, 23)][sepOf[next]]); end > 0 {
		return end
	}
	if n > 19 || sc.opaque && sc.words == 0 {
		return 0
	}
	var g groups
	if g.read(sc.text, w.start, w.start); g.total < 7 {
		return sc.shortPhone(w.start)
	}
	if k := g.date(); k > 0 {
		return g.end[k-1]
	}
	if end := sc.card(&g); end > 0 {
		return end
	}
	return sc.phone(&g, false)
}

// id tries spellings at a word.
func (sc *scan) id(w word, l *formList) int {
	if len(l.all) == 0 {
		return 0
	}
	fs, words := l.alone, sc.vouched(w.start)
	if words&l.words != 0 {
		fs = l.all
	}
	for i := range fs {
		f := &fs[i]
		if !f.alone {
			if words&f.words == 0 {
				continue
			}
		} else if sc.opaque && sc.words&f.words == 0 || f.spaced && grouped(sc.text, w.start, len(f.pattern)) {
			continue
		}
		end, n := f.match(sc.text, w.start, nil)
		if end == 0 || !closed(sc.text, w.start, end) {
			continue
		}
		if f.rule.valid != nil {
			if sc.id32 == nil {
				sc.id32 = new([32]byte)
			}
			f.match(sc.text, w.start, sc.id32)
			if !f.rule.valid(sc.id32[:n]) {
				continue
			}
		}
		if end = sc.found(w.start, end, f.rule.typ); end > 0 {
			return end
		}
	}
	return 0
}

// manyFollow reports whether enough stands at i, behind n digits, for a number with separators or an id: seven digits
// and capitals with the n, or four for an address of a network.
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

// grouped reports whether more groups of digits stand around a spelling with blanks.
func grouped(text []byte, start, n int) bool {
	return at(text, start+n) == ' ' && digit(at(text, start+n+1)) || at(text, start-1) == ' ' && digit(at(text, start-2))
}

// date returns the number of runs at the head that are a date, 0 if they are none.
func (g *groups) date() int {
	if g.n < 3 || g.sep[1] != g.sep[2] || g.sep[1] == ')' {
		return 0
	}
	d := g.digits[:]
	switch {
	case g.shape(4, 2, 2):
		if yyyymmdd(d) {
			return 3
		}
	case g.shape(2, 2, 4) && g.sep[1] != ' ':
		if year(number(d[4:8])) && (ddmmyy(d) || date(number(d[:2]), number(d[2:4]))) {
			return 3
		}
	case g.shape(8) && g.sep[1] == '-':
		if yyyymmdd(d) {
			return 1
		}
	}
	return 0
}

// namedCard looks for a number that a word or a key before it calls a card's: 15 to 19 digits in one run, or 12 to 19 in
// groups of which the first has four. Its checksum need not hold: a mistyped or an invented number is hidden like a real one.
func (sc *scan) namedCard(g *groups) int {
	k := 1
	for k < g.n && (g.sep[k] == ' ' || g.sep[k] == '-' || g.sep[k] == '.') && g.sep[k] == g.sep[1] && g.len[k] >= 2 && g.len[k] <= 7 {
		k++
	}
	n := g.sum(k)
	fits := k == 1 && n >= 15 || k >= 3 && g.len[0] == 4 && n >= 12
	if !fits || n > 19 || !closed(sc.text, g.start, g.end[k-1]) || sc.vouched(g.start)&sc.voc.card == 0 {
		return 0
	}
	return sc.found(g.start, g.end[k-1], CreditCard)
}

// card looks for a payment card in the first runs.
func (sc *scan) card(g *groups) int {
	if end := sc.realCard(g); end > 0 {
		return end
	}
	return sc.namedCard(g)
}

// realCard looks for a number that an issuer may have given, with the checksum.
func (sc *scan) realCard(g *groups) int {
	if g.n == 1 || g.len[0] > 6 || g.sep[1] != ' ' && g.sep[1] != '-' {
		n := int(g.len[0])
		if n < 12 || !card(g.digits[:n]) || !closed(sc.text, g.start, g.end[0]) {
			return 0
		}
		if n != 16 && !(n == 15 && g.digits[0] == '3') || sc.opaque || counted(sc.text, g.start, g.end[0]) {
			if sc.vouched(g.start)&sc.voc.card == 0 {
				return 0
			}
		}
		return sc.found(g.start, g.end[0], CreditCard)
	}
	for k := g.n; k >= 3; k-- {
		n := g.sum(k)
		if n < 12 || n > 19 || g.len[0] != 4 || !g.uniform(k) || !card(g.digits[:n]) || !closed(sc.text, g.start, g.end[k-1]) {
			continue
		}
		return sc.found(g.start, g.end[k-1], CreditCard)
	}
	return 0
}

// counted reports whether a bare number stands as numbers of programs do: in a column of numbers, or in JSON without
// quotes.
func counted(text []byte, start, end int) bool {
	b, c := at(text, start-1), at(text, start-2)
	return b == ' ' && digit(c) || b == ':' && c == '"' || b == ' ' && c == ':' && at(text, start-3) == '"' || b == '[' || b == '=' || at(text, end) == ' ' && digit(at(text, end+1))
}

// uniform reports whether the first k runs are joined by one separator.
func (g *groups) uniform(k int) bool {
	for _, s := range g.sep[1:k] {
		if s != g.sep[1] {
			return false
		}
	}
	return true
}

// mixed looks at a word of letters and digits.
func (sc *scan) mixed(w word) int {
	n := w.end - w.start
	if n >= 25 {
		if end := sc.wallet(w); end > 0 {
			return end
		}
	}
	if w.sort&isHigh != 0 {
		return 0
	}
	if n >= 4 && class[sc.text[w.start]]&class[sc.text[w.start+1]]&isUpper != 0 && digit(sc.text[w.start+2]) && digit(sc.text[w.start+3]) {
		if end := sc.iban(w.start); end > 0 {
			return end
		}
	}
	if n >= 15 && n <= 34 && w.sort&isUpper == 0 && class[sc.text[w.start]]&class[sc.text[w.start+1]]&isLower != 0 && digit(sc.text[w.start+2]) && digit(sc.text[w.start+3]) {
		if end := sc.iban(w.start); end > 0 {
			return end
		}
	}
	if n < 24 && w.sort&isLower == 0 {
		return sc.id(w, &sc.s.ids().mixed[n][sepOf[at(sc.text, w.end)]])
	}
	return 0
}

// capitals looks at a short word of capitals before a group of something else.
func (sc *scan) capitals(w word) int {
	next := at(sc.text, w.end)
	if next != ' ' && next != '-' && next != '.' || !alnum(at(sc.text, w.end+1)) {
		return 0
	}
	return sc.id(w, &sc.s.ids().capitals[w.end-w.start][sepOf[next]])
}

func (s *Scanner) ids() *forms { return s.tables.ids }

// iban reads an account number at start, compact or in groups.
func (sc *scan) iban(start int) int {
	text := sc.text
	want := ibanLength(text[start]&^0x20, text[start+1]&^0x20)
	if want == 0 || alnum(at(text, start-1)) {
		return 0
	}
	var id [34]byte
	n, i := 0, start
	for n < want && i < len(text) {
		b := text[i]
		if (b == ' ' || b == '-') && n >= 4 && alnum(at(text, i+1)) {
			i++
			continue
		}
		if class[b]&(isUpper|isLower|isDigit) == 0 {
			return 0
		}
		id[n] = b
		n, i = n+1, i+1
	}
	if n < want || alnum(at(text, i)) {
		return 0
	}
	if mod97(id[:4], mod97(id[4:n], 0)) != 1 {
		return 0
	}
	return sc.found(start, i, IBAN)
}
