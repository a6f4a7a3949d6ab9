package infer

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"sync"
	"unicode"
)

// Bounds on how much of one document is examined. The rest is skipped, which takes about a millisecond per megabyte.
const (
	maxDocument = 16 << 20  // bytes; of a larger one nothing
	maxLooked   = 128 << 10 // bytes; of what comes later only the kinds
	firstItems  = 64        // of an array: all of these,
	everyItem   = 16        // then one of so many,
	mostItems   = 200       // until there are so many
)

// ObserveDocument returns the inferred type of one document, or nil if it is not JSON or is too large. private
// reports whether a key must not be stored although it looks like a name. If it is nil, all keys that look like names
// are stored.
func ObserveDocument(document []byte, private func(key string) bool) *AnswerShape {
	if len(document) > maxDocument {
		return nil
	}
	w := documentWalker{document: document, private: private, names: map[string]bool{}}
	root := newPlace()
	if !w.walkValue(root, 0) {
		return nil
	}
	if w.skipSpace(); w.at < len(document) {
		return nil
	}
	return boundNodes(foldTables(root.buildShape()))
}

// specialPattern matches characters that cannot occur in an identifier. Programs cannot access a key with such a
// character by a dot.
var specialPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(Special)
})

// valueCollector collects the values at one place in a document.
type valueCollector struct {
	kinds   kindSet
	formats formatSet
	objects int // that were looked into
	fields  map[string]*memberCollector
	others  *valueCollector
	plain   bool
	items   *valueCollector
	cut     bool
}

type memberCollector struct {
	of    *valueCollector
	count int // of objects that have it
	last  int // of them
}

func newPlace() *valueCollector { return &valueCollector{formats: allFormats} }

func (p *valueCollector) buildShape() *AnswerShape {
	if p == nil {
		return nil
	}
	s := &AnswerShape{kinds: p.kinds, formats: p.formats, others: p.others.buildShape(), items: p.items.buildShape(), plain: p.plain, cut: p.cut}
	for _, name := range slices.Sorted(maps.Keys(p.fields)) {
		m := p.fields[name]
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
	document []byte
	at       int
	private  func(string) bool
	names    map[string]bool
}

// walkValue reads one value. It returns false if the text is not JSON.
func (w *documentWalker) walkValue(p *valueCollector, depth int) bool {
	w.skipSpace()
	c := w.peekByte()
	switch {
	case c == '{' || c == '[':
		return w.walkContainer(p, c, depth)
	case c == '"':
		return w.readString(p)
	case c == '-' || unicode.IsDigit(rune(c)):
		w.readNumber(p)
		return true
	}
	switch {
	case w.readLiteral("true"), w.readLiteral("false"):
		p.kinds |= boolean
	case w.readLiteral("null"):
		p.kinds |= null
	default:
		return false
	}
	return true
}

func (w *documentWalker) walkContainer(p *valueCollector, c byte, depth int) bool {
	if c == '{' {
		p.kinds |= object
	} else {
		p.kinds |= array
	}
	if depth >= MaxDepth || w.at >= maxLooked {
		p.cut = true
		return w.skipValue()
	}
	w.at++
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
		if !ok || !w.walkValue(p.collectMember(key, w.isName(key)), depth+1) {
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
		case looked >= mostItems || w.at >= maxLooked:
			p.items.cut = p.items.cut || looked == 0
			return w.skipRest()
		case i < firstItems || i%everyItem == 0:
			looked++
			if !w.walkValue(p.items, depth+1) {
				return false
			}
		case !w.skipValue():
			return false
		}
	}
}

// nextMember moves to the next member of an array or object, or past its end.
func (w *documentWalker) nextMember(end byte, first bool) (done, ok bool) {
	w.skipSpace()
	if w.peekByte() == end {
		w.at++
		return true, true
	}
	if first {
		return false, true
	}
	if w.peekByte() != ',' {
		return false, false
	}
	w.at++
	return false, true
}

func (w *documentWalker) readKey() ([]byte, bool) {
	w.skipSpace()
	if w.peekByte() != '"' {
		return nil, false
	}
	key, ok := w.readQuoted()
	if w.skipSpace(); !ok || w.peekByte() != ':' {
		return nil, false
	}
	w.at++
	return key, true
}

func (w *documentWalker) isName(key []byte) bool {
	if known, ok := w.names[string(key)]; ok {
		return known
	}
	name := string(key)
	is := IsName(name) && (w.private == nil || !w.private(name))
	if len(name) <= maxName {
		w.names[name] = is
	}
	return is
}

// readQuoted reads a string and returns the bytes between its quotes.
func (w *documentWalker) readQuoted() ([]byte, bool) {
	start := w.at + 1
	for at := start; ; {
		i := bytes.IndexByte(w.document[at:], '"')
		if i < 0 {
			return nil, false
		}
		at += i
		slashes := 0
		for at-slashes > start && w.document[at-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			w.at = at + 1
			return w.document[start:at], true
		}
		at++
	}
}

func (w *documentWalker) readString(p *valueCollector) bool {
	s, ok := w.readQuoted()
	p.kinds |= text
	if len(s) > 0 {
		p.formats &= formatsOf(s)
	}
	return ok
}

func (w *documentWalker) readNumber(p *valueCollector) {
	is := integer
	for ; w.at < len(w.document); w.at++ {
		switch c := w.document[w.at]; {
		case c == '.' || c == 'e' || c == 'E':
			is = number
		case unicode.IsDigit(rune(c)) || c == '-' || c == '+':
		default:
			p.kinds |= is
			return
		}
	}
	p.kinds |= is
}

func (w *documentWalker) readLiteral(word string) bool {
	if !bytes.HasPrefix(w.document[w.at:], []byte(word)) {
		return false
	}
	w.at += len(word)
	return true
}

// skipValue skips one value.
func (w *documentWalker) skipValue() bool {
	w.skipSpace()
	switch c := w.peekByte(); c {
	case '{', '[':
		w.at++
		return w.skipRest()
	case '"':
		_, ok := w.readQuoted()
		return ok
	case 0, ',', ']', '}', ':':
		return false
	}
	for w.at < len(w.document) && bytes.IndexByte([]byte(",]} \t\r\n"), w.document[w.at]) < 0 {
		w.at++
	}
	return true
}

// skipRest skips the rest of an array or object, without checking that its brackets match.
func (w *documentWalker) skipRest() bool {
	for open := 1; w.at < len(w.document); {
		switch w.document[w.at] {
		case '"':
			if _, ok := w.readQuoted(); !ok {
				return false
			}
			continue
		case '{', '[':
			open++
		case '}', ']':
			open--
		}
		if w.at++; open == 0 {
			return true
		}
	}
	return false
}

func (w *documentWalker) peekByte() byte {
	if w.at < len(w.document) {
		return w.document[w.at]
	}
	return 0
}

func (w *documentWalker) skipSpace() {
	for w.at < len(w.document) && w.document[w.at] <= ' ' {
		w.at++
	}
}

// formatsOf returns the formats that match a text's outline.
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
