package pii

import (
	"strings"
	"sync"
)

// monthNames lists month names and their abbreviations in several languages.
const monthNames = `january february march april may june july august september october november december jan feb mar apr jun jul aug sep sept oct nov dec
	januar februar märz mai juni juli oktober dezember okt dez mär janvier février mars avril juin juillet août septembre octobre novembre décembre
	enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre
	janeiro fevereiro março maio junho julho setembro outubro novembro dezembro januari februari maart mei augustus augusti maj marts desember
	stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia`

var months = sync.OnceValue(func() *phraseLexicon[bool] {
	l := &phraseLexicon[bool]{}
	for _, m := range strings.Fields(monthNames) {
		l.addPhrase(m, true)
		if folded := string(appendFoldedWord(nil, []byte(m))); folded != m {
			l.addPhrase(folded, true)
		}
	}
	return l
})

// dateAt returns the end of the date at i, or 0 if none is found. The date may be all digits or contain the name of a
// month.
func dateAt(text []byte, i int) int {
	if isDigitByte(byteAt(text, i)) {
		var g digitGroups
		g.readGroups(text, i, i)
		if g.n >= 3 && g.sep[1] == g.sep[2] && g.birthLike() {
			if end := g.end[2]; !isAlnumByte(byteAt(text, end)) || byteAt(text, end) == 'T' {
				return end
			}
		}
		if g.n >= 1 && g.len[0] <= 2 { // 4 July 1976, 4. Juli 1976, 4th-July-1976, 4 de julio de 1976, 1.º enero 1976
			j := gapEnd(text, skipByte(text, ordinalEnd(text, g.end[0]), '.'))
			j = blanksEnd(text, jointEnd(text, j), 1)
			if m := monthEnd(text, j); m > j {
				m = gapEnd(text, skipByte(text, skipByte(text, m, '.'), ','))
				return yearAt(text, blanksEnd(text, jointEnd(text, m), 1))
			}
		}
		return 0
	}
	m := monthEnd(text, i) // July 4, 1976
	if m == i {
		return 0
	}
	j := gapEnd(text, skipByte(text, m, '.'))
	end := spanEnd(text, j, isDigit)
	if end == j || end-j > 2 {
		return 0
	}
	if s := spanEnd(text, end, isLetter); s-end == 2 {
		end = s
	}
	return yearAt(text, gapEnd(text, skipByte(text, end, ',')))
}

// gapEnd returns the offset after the gap at i between two parts of a date. A gap is one hyphen, or at most one blank.
func gapEnd(text []byte, i int) int {
	if next := skipByte(text, i, '-'); next > i {
		return next
	}
	return blanksEnd(text, i, 1)
}

// ordinalEnd returns the offset just after an ordinal suffix that begins at i, for example after the "th" of "4th". It
// returns i if no suffix begins there.
func ordinalEnd(text []byte, i int) int {
	for _, letters := range []string{"st", "nd", "rd", "th", "er", "º", ".º", "o"} {
		if end := i + len(letters); end < len(text) && equalFold(text[i:end], letters) {
			return end
		}
	}
	return i
}

// birthLike reports whether a number of three groups of digits can be a date of birth. The year is the first or the
// last group, and the other two are the month and the day.
func (g *digitGroups) birthLike() bool {
	d := g.digits[:]
	a, b := int(g.len[0]), int(g.len[1])
	switch c := int(g.len[2]); {
	case a == 4 && b <= 2 && c <= 2:
		return isYear(parseNumber(d[:4])) && isDate(parseNumber(d[4:4+b]), parseNumber(d[4+b:4+b+c]))
	case a <= 2 && b <= 2 && (c == 4 || c == 2):
		x, y := parseNumber(d[:a]), parseNumber(d[a:a+b])
		return (isDate(x, y) || isDate(y, x)) && (c == 2 || isYear(parseNumber(d[a+b:a+b+4])))
	}
	return false
}

func jointEnd(text []byte, i int) int {
	for _, w := range []string{"de ", "of "} {
		if i+len(w) < len(text) && equalFold(text[i:i+len(w)], w) {
			return i + len(w)
		}
	}
	return i
}

// monthEnd returns the end of the month name at i, or i itself if none is found.
func monthEnd(text []byte, i int) int {
	end := spanEnd(text, i, isAlnum)
	h, l := wordHash(text, i, end), months()
	if l.mayBegin(h) {
		if _, end := l.longestMatch(text, i, h); end > 0 {
			return end
		}
	}
	if spanEnd(text, i, isUpper|isLower) < end && end-i < 24 && isMonth(text[i:end]) {
		return end
	}
	return i
}

// isMonth reports whether a word is the name or abbreviation of a month, in any letter case, with or without accents.
func isMonth(word []byte) bool {
	var room [64]byte
	folded := appendFoldedWord(room[:0], word)
	_, end := months().longestMatch(folded, 0, wordHash(folded, 0, len(folded)))
	return end > 0 && end == len(folded)
}

func yearAt(text []byte, i int) int {
	end := spanEnd(text, i, isDigit)
	if end-i != 4 || !isYear(parseNumber(text[i:end])) || isAlnumByte(byteAt(text, end)) {
		return 0
	}
	return end
}

// birthDate finds a date that follows a word such as "born", which ends at i. Up to three other words may be between
// them.
func birthDate(text []byte, i int) (start, end int) {
	for words := 0; words < 4 && i < len(text); {
		b := text[i]
		switch {
		case class[b]&isAlnum != 0:
			if end := dateAt(text, i); end > 0 {
				return i, end
			}
			if isDigitByte(b) {
				return 0, 0
			}
			i, words = spanEnd(text, i, isAlnum), words+1
		case b == '\n' || b == '.' && byteAt(text, i+1) == ' ' && byteAt(text, i+2) != 0 && words > 1:
			return 0, 0
		default:
			i++
		}
	}
	return 0, 0
}
