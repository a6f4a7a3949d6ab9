package pii

import (
	"strings"
	"sync"
)

// rule represents one kind of number that a state or a bank gives to people.
type rule struct {
	name string
	typ  Type
	// forms are spellings, between blanks: d is a digit, A a capital, a any
	// letter, x a letter or digit, _ a blank, all else itself. A form behind !
	// needs no word beside it: it is so particular that it speaks for itself.
	forms string
	// words are the kinds of words that vouch for a form without !.
	words string
	// valid looks at the letters, in capitals, and digits of an id. Nil accepts:
	// such a number needs a word.
	valid func(id []byte) bool
}

// form represents a spelling of a rule, compiled.
type form struct {
	pattern string
	alone   bool
	spaced  bool
	next    byte // behind the first run, 0 if the form ends there
	words   uint64
	rule    *rule
}

// forms finds spellings by the length and sort of the first run of letters and digits, and by
// what stands behind it.
type forms struct {
	digits, mixed, capitals [24][seps]formList
}

// formList represents forms in the order in which they are tried.
type formList struct {
	all, alone []form
	words      uint64 // that vouch for any of all
}

func (l *formList) add(f form) {
	l.all = append(l.all, f)
	if f.alone {
		l.alone = append(l.alone, f)
	} else {
		l.words |= f.words
	}
}

// seps is how many sorts of bytes behind a run the forms tell apart: those of sepBytes, and others.
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

var idForms = sync.OnceValue(func() *forms {
	fs := &forms{}
	for _, list := range [][]rule{europe(), balkans(), america(), asia(), papers()} {
		for i := range list {
			fs.add(&list[i])
		}
	}
	return fs
})

func (fs *forms) add(r *rule) {
	var words uint64
	for _, w := range strings.Fields(r.words) {
		words |= vouchers().kind(w)
	}
	for _, p := range strings.Fields(r.forms) {
		f := form{rule: r, words: words}
		p, f.alone = strings.CutPrefix(p, "!")
		f.pattern, f.spaced = strings.ReplaceAll(p, "_", " "), strings.HasPrefix(p, "dddd_")
		lead, sort := 0, uint8(0)
		for ; lead < len(p) && (p[lead] == 'd' || p[lead] == 'A' || p[lead] == 'a' || p[lead] == 'x' || alnum(p[lead])); lead++ {
			if p[lead] == 'd' || digit(p[lead]) {
				sort |= isDigit
			} else {
				sort |= isUpper
			}
			if p[lead] == 'x' {
				sort |= isDigit
			}
		}
		f.next = at([]byte(f.pattern), lead)
		switch sort {
		case isDigit:
			put(&fs.digits[lead], f)
		case isUpper:
			put(&fs.capitals[lead], f)
		default:
			put(&fs.mixed[lead], f)
		}
		if strings.ContainsRune(p[:lead], 'x') { // x may be all digits
			put(&fs.digits[lead], f)
		}
	}
}

// put adds a form where it may be met: one that ends with its first run before anything.
func put(lists *[seps]formList, f form) {
	for sep := range lists {
		if f.next == 0 || int(sepOf[f.next]) == sep {
			lists[sep].add(f)
		}
	}
}

// match writes the letters and digits of text at start into id, unless that is
// nil, and returns the end, 0 if the form does not fit, and their number.
func (f *form) match(text []byte, start int, id *[32]byte) (end, n int) {
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

// closed reports whether nothing that would belong to an id stands at either side.
func closed(text []byte, start, end int) bool {
	b, a := at(text, start-1), at(text, end)
	switch {
	case alnum(b), b == '_', alnum(a), a == '_':
		return false
	case (b == '.' || b == '-' || b == '/' || b == ':' || b == '+' || b == ',') && digit(at(text, start-2)):
		return false
	case (a == '.' || a == '-' || a == '/' || a == ':' || a == ',') && digit(at(text, end+1)):
		return false
	case b == '$' || a == '%':
		return false
	}
	return true
}
