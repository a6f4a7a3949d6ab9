package pii

import (
	"strings"
	"sync"
)

// idRule describes one kind of number that a state or a bank assigns to people.
type idRule struct {
	name string
	typ  Type
	// forms lists patterns, separated by spaces. In a pattern, d stands for a digit, A for a capital, a for any
	// letter, x for a capital or a digit, and _ for a space. Any other character stands for itself. A pattern that
	// begins with ! is distinctive enough to need no context word.
	forms string
	// words lists the kinds of context words, such as "tax". A match of a pattern without ! counts only if a word of
	// one of these kinds precedes it.
	words string
	// valid checks the letters (in capitals) and digits of an id. If it is nil, every id is accepted, but the number
	// needs a context word.
	valid func(id []byte) bool
}

// idForm holds one pattern of an idRule in compiled form.
type idForm struct {
	pattern string
	alone   bool
	spaced  bool
	next    byte // the byte after the first run, or 0 if the pattern ends there
	words   uint64
	rule    *idRule
}

// formIndex finds the few patterns that can match at a word of a text. It selects them by three properties: the
// length of the word, whether the word consists of digits, capitals or both, and the byte after the word.
type formIndex struct {
	digits, mixed, capitals [24][seps]formList
}

// formList holds the patterns of IDs that may match at one position of a text, in the order in which they are tried.
type formList struct {
	all, alone []idForm
	words      uint64 // context words that any of all accepts
}

func (l *formList) addForm(f idForm) {
	l.all = append(l.all, f)
	if f.alone {
		l.alone = append(l.alone, f)
	} else {
		l.words |= f.words
	}
}

// sepBytes lists the bytes that formIndex distinguishes after a word. seps is the number of its lists of patterns:
// one for each of these bytes, and one for all other bytes.
const (
	sepBytes = " -./(+"
	seps     = len(sepBytes) + 1
)

var sepOf = func() (of [256]uint8) {
	for i := range len(sepBytes) {
		of[sepBytes[i]] = uint8(i + 1)
	}
	return of
}()

var idForms = sync.OnceValue(func() *formIndex {
	fs := &formIndex{}
	for _, list := range [][]idRule{europeanRules(), balkanRules(), americanRules(), asianRules(), paperRules()} {
		for i := range list {
			fs.addRule(&list[i])
		}
	}
	return fs
})

func (fs *formIndex) addRule(r *idRule) {
	var words uint64
	for _, w := range strings.Fields(r.words) {
		words |= vouchers().kindBit(w)
	}
	for _, p := range strings.Fields(r.forms) {
		f := idForm{rule: r, words: words}
		p, f.alone = strings.CutPrefix(p, "!")
		f.pattern, f.spaced = strings.ReplaceAll(p, "_", " "), strings.HasPrefix(p, "dddd_")
		lead, sort := 0, uint8(0)
		for ; lead < len(p) && (p[lead] == 'd' || p[lead] == 'A' || p[lead] == 'a' || p[lead] == 'x' || isAlnumByte(p[lead])); lead++ {
			if p[lead] == 'd' || isDigitByte(p[lead]) {
				sort |= isDigit
			} else {
				sort |= isUpper
			}
			if p[lead] == 'x' {
				sort |= isDigit
			}
		}
		f.next = byteAt([]byte(f.pattern), lead)
		switch sort {
		case isDigit:
			putForm(&fs.digits[lead], f)
		case isUpper:
			putForm(&fs.capitals[lead], f)
		default:
			putForm(&fs.mixed[lead], f)
		}
		if strings.ContainsRune(p[:lead], 'x') { // x may be all digits
			putForm(&fs.digits[lead], f)
		}
	}
}

// putForm adds a pattern to a formIndex under the byte that must follow its first run of letters and digits. A
// pattern that consists only of this run is added under every byte, because any byte may follow it.
func putForm(lists *[seps]formList, f idForm) {
	for sep := range lists {
		if f.next == 0 || int(sepOf[f.next]) == sep {
			lists[sep].addForm(f)
		}
	}
}

// matchAt matches the pattern against the text at start. It returns the end of the match, or 0 if none is found, and
// the number n of letters and digits in the match. Unless id is nil, it writes these letters and digits to id, in
// capitals.
func (f *idForm) matchAt(text []byte, start int, id *[32]byte) (end, n int) {
	if start+len(f.pattern) > len(text) {
		return 0, 0
	}
	for i := range len(f.pattern) {
		b, ok := text[start+i], false
		c := class[b]
		switch p := f.pattern[i]; p {
		case 'd':
			ok = c&isDigit != 0
		case 'A':
			ok = c&isUpper != 0
		case 'a':
			ok = c&(isUpper|isLower) != 0
		case 'x':
			ok = c&(isUpper|isDigit) != 0
		default:
			ok = p == b
		}
		if !ok {
			return 0, 0
		}
		if c&isAlnum != 0 {
			if c&isLower != 0 {
				b -= 32
			}
			if id != nil {
				id[n] = b
			}
			n++
		}
	}
	return start + len(f.pattern), n
}

// isClosed reports whether a match from start to end is complete: no character next to it could be part of the same
// number or word.
func isClosed(text []byte, start, end int) bool {
	b, a := byteAt(text, start-1), byteAt(text, end)
	switch {
	case isAlnumByte(b), b == '_', isAlnumByte(a), a == '_':
		return false
	case (b == '.' || b == '-' || b == '/' || b == ':' || b == '+' || b == ',') && isDigitByte(byteAt(text, start-2)):
		return false
	case (a == '.' || a == '-' || a == '/' || a == ':' || a == ',') && isDigitByte(byteAt(text, end+1)):
		return false
	case b == '$' || a == '%':
		return false
	}
	return true
}
