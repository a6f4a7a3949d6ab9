package infer

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
)

// Bounds on what is examined of one document. The rest is skipped, which takes about a millisecond per megabyte.
const (
	maxDocument = 16 << 20  // bytes; of a larger one nothing
	maxLooked   = 128 << 10 // bytes; of what comes later only the kinds
	firstItems  = 64        // of an array: all of these,
	everyItem   = 16        // then one of so many,
	mostItems   = 200       // until there are so many
)

// Observe returns the shape of one document, or nil if it is not JSON or too large. private reports whether a key
// must not be stored even though it looks like a name. If private is nil, all such keys are stored.
func Observe(document []byte, private func(key string) bool) *Shape {
	if len(document) > maxDocument {
		return nil
	}
	w := walker{document: document, private: private, names: map[string]bool{}}
	root := newPlace()
	if !w.value(root, 0) {
		return nil
	}
	if w.space(); w.at < len(document) {
		return nil
	}
	return bounded(folded(root.shape()))
}

// special matches characters that no identifier contains. A key with one is never written after a dot.
var special = regexp.MustCompile(Special)

// place collects the values at one place of a document.
type place struct {
	kinds   kind
	formats format
	objects int // that were looked into
	fields  map[string]*member
	others  *place
	plain   bool
	items   *place
	cut     bool
}

type member struct {
	of    *place
	count int // of objects that have it
	last  int // of them
}

func newPlace() *place { return &place{formats: formats} }

func (p *place) shape() *Shape {
	if p == nil {
		return nil
	}
	s := &Shape{kinds: p.kinds, formats: p.formats, others: p.others.shape(), items: p.items.shape(), plain: p.plain, cut: p.cut}
	for _, name := range slices.Sorted(maps.Keys(p.fields)) {
		m := p.fields[name]
		s.fields = append(s.fields, field{name, m.count == p.objects, m.of.shape()})
	}
	return s
}

// member returns the place that collects the values of a key.
func (p *place) member(key []byte, isName bool) *place {
	if !isName {
		if p.others == nil {
			p.others = newPlace()
		}
		p.plain = p.plain || !special.Match(key)
		return p.others
	}
	m := p.fields[string(key)]
	if m == nil {
		if p.fields == nil {
			p.fields = map[string]*member{}
		}
		m = &member{of: newPlace()}
		p.fields[string(key)] = m
	}
	if m.last != p.objects {
		m.last = p.objects
		m.count++
	}
	return m.of
}

// walker walks a document once.
type walker struct {
	document []byte
	at       int
	private  func(string) bool
	names    map[string]bool
}

// value reads one value. It returns false if it is not JSON.
func (w *walker) value(p *place, depth int) bool {
	w.space()
	c := w.peek()
	switch {
	case c == '{' || c == '[':
		return w.container(p, c, depth)
	case c == '"':
		return w.string(p)
	case c == '-' || isDigit(c):
		w.number(p)
		return true
	}
	switch {
	case w.literal("true"), w.literal("false"):
		p.kinds |= boolean
	case w.literal("null"):
		p.kinds |= null
	default:
		return false
	}
	return true
}

func (w *walker) container(p *place, c byte, depth int) bool {
	if c == '{' {
		p.kinds |= object
	} else {
		p.kinds |= array
	}
	if depth >= MaxDepth || w.at >= maxLooked {
		p.cut = true
		return w.skip()
	}
	w.at++
	if c == '{' {
		return w.object(p, depth)
	}
	return w.array(p, depth)
}

func (w *walker) object(p *place, depth int) bool {
	p.objects++
	for first := true; ; first = false {
		if done, ok := w.next('}', first); done || !ok {
			return ok
		}
		key, ok := w.key()
		if !ok || !w.value(p.member(key, w.isName(key)), depth+1) {
			return false
		}
	}
}

func (w *walker) array(p *place, depth int) bool {
	looked := 0
	for i := 0; ; i++ {
		if done, ok := w.next(']', i == 0); done || !ok {
			return ok
		}
		if p.items == nil {
			p.items = newPlace()
		}
		switch {
		case looked >= mostItems || w.at >= maxLooked:
			p.items.cut = p.items.cut || looked == 0
			return w.rest()
		case i < firstItems || i%everyItem == 0:
			looked++
			if !w.value(p.items, depth+1) {
				return false
			}
		case !w.skip():
			return false
		}
	}
}

// next moves to the next member of an array or object, or past its end.
func (w *walker) next(end byte, first bool) (done, ok bool) {
	w.space()
	if w.peek() == end {
		w.at++
		return true, true
	}
	if first {
		return false, true
	}
	if w.peek() != ',' {
		return false, false
	}
	w.at++
	return false, true
}

func (w *walker) key() ([]byte, bool) {
	w.space()
	if w.peek() != '"' {
		return nil, false
	}
	key, ok := w.quoted()
	if w.space(); !ok || w.peek() != ':' {
		return nil, false
	}
	w.at++
	return key, true
}

func (w *walker) isName(key []byte) bool {
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

// quoted reads a string and returns the bytes between its quotes.
func (w *walker) quoted() ([]byte, bool) {
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

func (w *walker) string(p *place) bool {
	s, ok := w.quoted()
	p.kinds |= text
	if len(s) > 0 {
		p.formats &= formatsOf(s)
	}
	return ok
}

func (w *walker) number(p *place) {
	is := integer
	for ; w.at < len(w.document); w.at++ {
		switch c := w.document[w.at]; {
		case c == '.' || c == 'e' || c == 'E':
			is = number
		case isDigit(c) || c == '-' || c == '+':
		default:
			p.kinds |= is
			return
		}
	}
	p.kinds |= is
}

func (w *walker) literal(word string) bool {
	if !bytes.HasPrefix(w.document[w.at:], []byte(word)) {
		return false
	}
	w.at += len(word)
	return true
}

// skip skips one value.
func (w *walker) skip() bool {
	w.space()
	switch c := w.peek(); c {
	case '{', '[':
		w.at++
		return w.rest()
	case '"':
		_, ok := w.quoted()
		return ok
	case 0, ',', ']', '}', ':':
		return false
	}
	for w.at < len(w.document) && bytes.IndexByte([]byte(",]} \t\r\n"), w.document[w.at]) < 0 {
		w.at++
	}
	return true
}

// rest skips the rest of an array or object, without checking that its brackets match.
func (w *walker) rest() bool {
	for open := 1; w.at < len(w.document); {
		switch w.document[w.at] {
		case '"':
			if _, ok := w.quoted(); !ok {
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

func (w *walker) peek() byte {
	if w.at < len(w.document) {
		return w.document[w.at]
	}
	return 0
}

func (w *walker) space() {
	for w.at < len(w.document) && w.document[w.at] <= ' ' {
		w.at++
	}
}

// formatsOf returns the formats that match a text's outline.
func formatsOf(s []byte) format {
	const day, second = "0000-00-00", "0000-00-00T00:00:00"
	switch {
	case len(s) == len(day) && like(s, day):
		return date
	case len(s) > len(second) && len(s) <= len(second)+16 && like(s, second):
		if last := s[len(s)-1]; last == 'Z' || last == 'z' || len(s) > len(second)+5 && bytes.ContainsAny(s[len(second):], "+-") {
			return dateTime
		}
	}
	return 0
}

func like(s []byte, outline string) bool {
	for i := range outline {
		if outline[i] == '0' && !isDigit(s[i]) || outline[i] != '0' && s[i] != outline[i] {
			return false
		}
	}
	return true
}
