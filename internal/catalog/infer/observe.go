package infer

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"sync"
	"unicode"

	"retort/internal/base/jsonscan"
)

// Bounds on how much of one document is examined. The rest is skipped, which takes about a millisecond per megabyte.
const (
	maxDocument = 16 << 20  // bytes; a larger document is not examined
	maxLooked   = 128 << 10 // bytes; after these, only the types of values are recorded
	firstItems  = 64        // all of the first items of an array are examined,
	everyItem   = 16        // then one in this many,
	mostItems   = 200       // up to this number of items
)

// ObserveDocument returns the inferred type of one document, or nil if it is not JSON or is too large. The function
// private reports whether a key must not be stored although it looks like a name. If private is nil, all keys that
// look like names are stored.
func ObserveDocument(document []byte, private func(key string) bool) *AnswerShape {
	if len(document) > maxDocument {
		return nil
	}
	w := documentWalker{text: jsonscan.Cursor{Text: document}, private: private, names: map[string]keyKind{}}
	root := newPlace()
	if !w.walkValue(root, 0) {
		return nil
	}
	if w.text.Next(); w.text.At < len(document) {
		return nil
	}
	return boundNodes(foldTables(root.buildShape()))
}

// specialPattern matches characters that cannot occur in an identifier. For a key with such a character, a program
// cannot write value.key.
var specialPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(Special)
})

// valueCollector collects the types of the values at one place in a document, such as the values of one field.
type valueCollector struct {
	kinds   kindSet
	formats formatSet
	objects int // number of objects that were examined
	fields  map[string]*memberCollector
	others  *valueCollector
	plain   bool
	private bool // some key is personal, so all keys of the objects may be values
	items   *valueCollector
	cut     bool
	omitted map[string]bool // keys that an outline omits; see documentWalker.counts
}

type memberCollector struct {
	of    *valueCollector
	count int // number of objects that have the member
	last  int // number of the newest object that has it
}

func newPlace() *valueCollector { return &valueCollector{formats: allFormats} }

func (p *valueCollector) buildShape() *AnswerShape {
	if p == nil {
		return nil
	}
	s := &AnswerShape{kinds: p.kinds, formats: p.formats, others: p.others.buildShape(), items: p.items.buildShape(), plain: p.plain, cut: p.cut}
	for _, name := range slices.Sorted(maps.Keys(p.fields)) {
		m := p.fields[name]
		if p.private {
			s.others, s.plain = joinShapes(s.others, m.of.buildShape()), true
			continue
		}
		s.fields = append(s.fields, shapeField{name, m.count == p.objects, m.of.buildShape()})
	}
	return s
}

// collectMember returns the collector for the values of a key.
func (p *valueCollector) collectMember(key []byte, isName bool) *valueCollector {
	if !isName {
		if p.others == nil {
			p.others = newPlace()
		}
		p.plain = p.plain || !specialPattern().Match(key)
		return p.others
	}
	m := p.fields[string(key)]
	if m == nil {
		if p.fields == nil {
			p.fields = map[string]*memberCollector{}
		}
		m = &memberCollector{of: newPlace()}
		p.fields[string(key)] = m
	}
	if m.last != p.objects {
		m.last = p.objects
		m.count++
	}
	return m.of
}

// documentWalker reads a JSON document once, from its beginning to its end, and collects the types of its values.
type documentWalker struct {
	text    jsonscan.Cursor
	private func(string) bool
	names   map[string]keyKind
	counts  bool // record keys that are not names, so that an outline can count them
}

// walkValue reads one value. It returns false if the text is not JSON.
func (w *documentWalker) walkValue(p *valueCollector, depth int) bool {
	switch c := w.text.Next(); c {
	case '{', '[':
		return w.walkContainer(p, c, depth)
	case '"':
		return w.readString(p)
	}
	return w.readWord(p)
}

func (w *documentWalker) walkContainer(p *valueCollector, c byte, depth int) bool {
	if c == '{' {
		p.kinds |= object
	} else {
		p.kinds |= array
	}
	if depth >= MaxDepth || w.text.At >= maxLooked {
		p.cut = true
		return w.text.SkipValue()
	}
	w.text.At++
	if c == '{' {
		return w.walkObject(p, depth)
	}
	return w.walkArray(p, depth)
}

func (w *documentWalker) walkObject(p *valueCollector, depth int) bool {
	p.objects++
	for first := true; ; first = false {
		if done, ok := w.nextMember('}', first); done || !ok {
			return ok
		}
		key, ok := w.readKey()
		if !ok {
			return false
		}
		isName, isPrivate := w.isName(key)
		p.private = p.private || isPrivate
		if w.counts && !isName {
			p.countLeft(key)
		}
		if !w.walkValue(p.collectMember(key, isName), depth+1) {
			return false
		}
	}
}

func (w *documentWalker) walkArray(p *valueCollector, depth int) bool {
	looked := 0
	for i := 0; ; i++ {
		if done, ok := w.nextMember(']', i == 0); done || !ok {
			return ok
		}
		if p.items == nil {
			p.items = newPlace()
		}
		switch {
		case looked >= mostItems || w.text.At >= maxLooked:
			p.items.cut = p.items.cut || looked == 0
			return w.text.SkipOpen()
		case i < firstItems || i%everyItem == 0:
			looked++
			if !w.walkValue(p.items, depth+1) {
				return false
			}
		case !w.text.SkipValue():
			return false
		}
	}
}

// nextMember moves to the next member of an array or object, or past its end.
func (w *documentWalker) nextMember(end byte, first bool) (done, ok bool) {
	if w.text.Accept(end) {
		return true, true
	}
	return false, first || w.text.Accept(',')
}

// readKey reads a key and the colon after it, and returns the bytes between its quotes.
func (w *documentWalker) readKey() ([]byte, bool) {
	w.text.Next()
	quoted, _, ok := w.text.ReadString()
	if !ok || !w.text.Accept(':') {
		return nil, false
	}
	return quoted[1 : len(quoted)-1], true
}

// isName reports whether a key is the name of a field. private reports whether the key looks like a name but must not
// be stored.
func (w *documentWalker) isName(key []byte) (is, private bool) {
	if known, ok := w.names[string(key)]; ok {
		return known.is, known.private
	}
	name := string(key)
	known := keyKind{is: IsName(name) && (!w.counts || isPlainName(name))}
	if known.is && w.private != nil && w.private(name) {
		known = keyKind{private: true}
	}
	if len(name) <= maxName {
		w.names[name] = known
	}
	return known.is, known.private
}

// keyKind says whether a key of an object is the name of a field, or looks like a name but is private.
type keyKind struct{ is, private bool }

func (w *documentWalker) readString(p *valueCollector) bool {
	quoted, _, ok := w.text.ReadString()
	p.kinds |= text
	if len(quoted) > len(`""`) {
		p.formats &= formatsOf(quoted[1 : len(quoted)-1])
	}
	return ok
}

// readWord reads a number, true, false or null. It returns false if the text has something else there.
func (w *documentWalker) readWord(p *valueCollector) bool {
	switch word := w.text.ReadWord(); string(word) {
	case "true", "false":
		p.kinds |= boolean
	case "null":
		p.kinds |= null
	default:
		if len(word) == 0 || word[0] != '-' && (word[0] < '0' || word[0] > '9') {
			return false
		}
		return p.addNumber(word)
	}
	return true
}

// addNumber records the type of a JSON number: integer or number. It returns false if the text is not a number.
func (p *valueCollector) addNumber(digits []byte) bool {
	is := integer
	for _, c := range digits {
		switch {
		case c == '.' || c == 'e' || c == 'E':
			is = number
		case '0' <= c && c <= '9' || c == '-' || c == '+':
		default:
			return false
		}
	}
	p.kinds |= is
	return true
}

// formatsOf returns the formats, such as date, that a text may have according to the positions of its digits and
// signs.
func formatsOf(s []byte) formatSet {
	const day, second = "0000-00-00", "0000-00-00T00:00:00"
	switch {
	case len(s) == len(day) && matchesOutline(s, day):
		return date
	case len(s) > len(second) && len(s) <= len(second)+16 && matchesOutline(s, second):
		if last := s[len(s)-1]; last == 'Z' || last == 'z' || len(s) > len(second)+5 && bytes.ContainsAny(s[len(second):], "+-") {
			return dateTime
		}
	}
	return 0
}

func matchesOutline(s []byte, outline string) bool {
	for i := range outline {
		if outline[i] == '0' && !unicode.IsDigit(rune(s[i])) || outline[i] != '0' && s[i] != outline[i] {
			return false
		}
	}
	return true
}
