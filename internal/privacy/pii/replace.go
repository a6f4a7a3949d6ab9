package pii

import (
	"bytes"
	"slices"
	"sync"
	"unsafe"
)

// tokenClaim represents a part of the document that will be replaced by a token. It has no pointers, so that the
// garbage collector need not scan long lists of claims.
type tokenClaim struct {
	start, end int32
	text       int32      // index of the decoded text in walker.texts; -1 if equal to the raw one
	kind       typeNumber // 0 for text in the form of a token
	number     bool
	deep       uint8
}

// typeNumber is one more than a type's index in the scanner's list of types; 0 means no type.
type typeNumber uint16

func (s *Scanner) numberOf(t Type) typeNumber { return typeNumber(slices.Index(s.types, t) + 1) }

func (s *Scanner) typeOf(k typeNumber) Type {
	if k == 0 {
		return ""
	}
	return s.types[k-1]
}

// ReplaceValues replaces the personal data in a document by tokens, which it gets from vault. The document is JSON,
// several JSON values with text between them, or text. All other bytes stay unchanged. If nothing is found, raw
// itself is returned. Names and companies that are found by their keys are added to known, which may be nil. A
// replaced number becomes a string. A value written with escapes is replaced including the escapes, and FoundValue
// has both spellings. If each token is replaced by its Raw (without the quotes if Number is set), the result equals
// the document byte for byte.
func (s *Scanner) ReplaceValues(raw []byte, known *KnownValues, vault TokenMinter) []byte {
	w, _ := s.walkers.Get().(*documentWalker)
	if w == nil {
		w = &documentWalker{}
	}
	defer func() {
		w.releaseDocument()
		s.walkers.Put(w)
	}()
	if known == nil {
		known = &KnownValues{}
	}
	w.s, w.known, w.claims, w.learned, w.inside = s, known, w.claims[:0], false, 0
	w.escapes = bytes.IndexByte(raw, '%') >= 0 || bytes.IndexByte(raw, '&') >= 0
	w.unplain = bytes.IndexByte(raw, 0xE2) >= 0 || bytes.IndexByte(raw, 0xC2) >= 0 || bytes.IndexByte(raw, 0xEF) >= 0
	w.walkView(plainView(raw))
	return w.applyClaims(raw, vault)
}

// releaseDocument drops the references to the document and its values, because the walker is kept in a pool.
func (w *documentWalker) releaseDocument() {
	clear(w.texts)
	w.texts = w.texts[:0]
	clear(w.names[:])
	w.known, w.id32 = nil, [32]byte{}
	for _, d := range w.docs {
		if d != nil {
			d.resetFor(nil, textView{})
		}
	}
}

// documentWalker finds the personal data of one document and replaces it by tokens.
type documentWalker struct {
	s        *Scanner
	known    *KnownValues
	learned  bool // the document has names or companies that were added to known
	docs     [maxInside + 1]*jsonDoc
	inside   int
	found    []tokenClaim // in nodes, before columns are decided
	claims   []tokenClaim // in the order of the document
	texts    []string     // of claims
	escapes  bool         // the document has percent signs or ampersands
	unplain  bool         // the document may have characters that are not displayed, or variants of letters
	hits     []TypedSpan  // of one text
	key      []byte       // buffer for the key that isPersonalKey searches
	id32     [32]byte
	names    [maxLists]*KnownValues
	lineKeys map[string]valueMeaning
}

// applyClaims returns the document with a token in place of each part for which there is a claim.
func (w *documentWalker) applyClaims(raw []byte, vault TokenMinter) []byte {
	if len(w.claims) == 0 {
		return raw
	}
	out, from := make([]byte, 0, len(raw)+len(raw)/16), 0
	for i := range w.claims {
		c := &w.claims[i]
		if int(c.start) < from {
			continue
		}
		text := string(raw[c.start:c.end])
		if c.kind == 0 {
			if instead, ok := vault.Foreign(text); ok {
				out = append(append(out, raw[from:c.start]...), instead...)
				from = int(c.end)
			}
			continue
		}
		v := FoundValue{Type: w.s.typeOf(c.kind), Text: text, Raw: text, Number: c.number}
		if c.text >= 0 {
			v.Text = w.texts[c.text]
		}
		token, ok := vault.Mint(v)
		if !ok {
			continue
		}
		out = append(out, raw[from:c.start]...)
		if c.number {
			token = quoteToken(token, c.deep)
		}
		out, from = append(out, token...), int(c.end)
	}
	return append(out, raw[from:]...)
}

// quoteToken returns a token in quotes. The quotes are escaped once for each JSON string that the token is nested in.
func quoteToken(token string, deep uint8) string {
	quote := []byte{'"'}
	for range deep {
		quote = bytes.ReplaceAll(bytes.ReplaceAll(quote, []byte(`\`), []byte(`\\`)), []byte(`"`), []byte(`\"`))
	}
	return string(quote) + token + string(quote)
}

// walkView parses a text, as JSON where possible, and adds a claim for each part that a token must replace.
func (w *documentWalker) walkView(v textView) {
	d := w.nextDoc()
	d.resetFor(w.s, v)
	d.splitJSON(false)
	w.walkDocument(d, false)
}

func (w *documentWalker) nextDoc() *jsonDoc {
	if w.docs[w.inside] == nil {
		w.docs[w.inside] = &jsonDoc{walker: w}
	}
	return w.docs[w.inside]
}

// walkDocument finds the personal data of a parsed document and adds a claim for each part that a token must replace.
// It does so in three passes: it collects names, scans the values, then decides about columns. If the collected names
// also occur in keys, it first parses the document again. nested is true for JSON inside a string of another document.
func (w *documentWalker) walkDocument(d *jsonDoc, nested bool) {
	if w.collectNames(d); w.learned && w.hasNewKeys(d) {
		d.resetFor(w.s, d.view)
		d.splitJSON(nested)
		w.collectNames(d)
	}
	for i := range d.nodes {
		n := &d.nodes[i]
		start, end := int(n.first), int(n.last)
		w.found = growList(w.found, int(n.start), len(d.view.text))
		n.first = int32(len(w.found))
		w.scanNode(d, n, start, end)
		n.last = int32(len(w.found))
	}
	// Texts inside of this one have put theirs behind: keep the stack straight.
	base := len(w.found)
	if len(d.nodes) > 0 {
		base = int(d.nodes[0].first)
	}
	for i := range d.nodes {
		n := &d.nodes[i]
		w.claims = growList(w.claims, int(n.start), len(d.view.text))
		if c, ok := w.claimByColumn(d, n); ok {
			w.claims = append(w.claims, c)
			continue
		}
		w.claims = append(w.claims, w.found[n.first:n.last]...)
	}
	w.found = w.found[:base]
}

// collectNames stores the names and companies that keys identify, so that they are also found in free text.
func (w *documentWalker) collectNames(d *jsonDoc) {
	for i := range d.nodes {
		n := &d.nodes[i]
		if n.sort != stringNode {
			continue
		}
		if t := w.typeOf(d, n); t == Name || t == Company {
			v := d.nodeText(n)
			if start, end := w.s.matchWhole(t, v.text, true); end > 0 {
				n.told, n.first, n.last = true, int32(start), int32(end)
				w.learnName(t, v.text[start:end])
			}
		}
	}
}

// hasNewKeys reports whether a key of the document is personal only since names were learned from the document itself.
func (w *documentWalker) hasNewKeys(d *jsonDoc) bool {
	for i, key := range d.keys {
		if !d.means[i].scan && w.isPersonalKey(key) {
			return true
		}
	}
	return false
}

// isPersonalKey reports whether a key of an object contains a known value or other personal data.
func (w *documentWalker) isPersonalKey(key string) bool {
	h := textHints{key: true, opaque: true}
	w.setHints(&h)
	w.key = append(w.key[:0], key...)
	if !mayHoldValue(w.key, h.names) {
		return false
	}
	text := w.key
	if hasUnplain(text) {
		text = plainView(text).withoutUnplain().text
	}
	w.hits = w.s.appendFindings(w.hits[:0], text, h)
	return len(w.hits) > 0
}

// learnName adds a name or company to the known values, so that it is also found in free text.
func (w *documentWalker) learnName(t Type, name []byte) {
	if w.s.off[t] {
		return
	}
	w.learned = true
	if !w.known.hasValue(name) {
		w.known.Add(t, string(name))
	}
}

// nodeText returns the decoded text of a node.
func (d *jsonDoc) nodeText(n *docNode) textView {
	v := d.view.subView(int(n.start), int(n.end))
	if n.escaped {
		return v.decodeQuoted()
	}
	if n.sort == stringNode || n.sort == keyNode {
		v.deep++
	}
	return v
}

// typeOf returns the type of personal data that a value has because of its key and the other keys of its object, or
// "".
func (w *documentWalker) typeOf(d *jsonDoc, n *docNode) Type {
	p := &d.paths[n.path]
	switch {
	case p.sure:
		return p.typ
	case p.name && n.object >= 0:
		if d.isAboutPerson(n.object) {
			return Name
		}
	case p.zip && n.object >= 0 && d.objects[n.object].street:
		return Address
	}
	return ""
}

// isAboutPerson reports whether an object describes a person: by its own keys, or by the keys of most objects at the
// same path.
func (d *jsonDoc) isAboutPerson(o int32) bool {
	p := &d.paths[d.objects[o].path]
	return d.objects[o].people || p.objects >= 3 && 2*p.people > p.objects
}

// scanNode searches one value of a JSON document for personal data, and adds a claim for each part that a token must
// replace. If an earlier pass has found that the value contains a name, because its key says so, this name is between
// start and end.
func (w *documentWalker) scanNode(d *jsonDoc, n *docNode, start, end int) {
	p := &d.paths[n.path]
	if n.sort == numberNode {
		w.scanNumber(d, n, p)
		return
	}
	v := d.nodeText(n)
	if n.sort == stringNode {
		p.values++
		if t := w.typeOf(d, n); t != "" && !w.s.off[t] {
			if !n.told {
				start, end = w.s.matchWhole(t, v.text, true)
			}
			if end > 0 {
				w.addClaim(v, start, end, t)
				return
			}
		} else if p.typ != "" && !p.sure && !p.name && !p.zip && !w.s.off[p.typ] {
			if start, end := w.s.matchWhole(p.typ, v.text, false); end > 0 {
				w.addClaim(v, start, end, p.typ)
				return
			}
		}
		if p.person && w.s.personLike(v.text, p.holder) && !w.s.off[Name] {
			w.addClaim(v, 0, len(v.text), Name)
			return
		}
	}
	if n.sort == keyNode {
		w.scanText(v, textHints{key: true, opaque: !isOddKey(d.view.text[n.start:n.end])})
		return
	}
	if n.sort == stringNode && w.walkNested(v) {
		return
	}
	if n.sort == textNode || len(v.text) > 40 && bytes.IndexByte(v.text, '\n') >= 0 {
		if !w.walkTable(v) {
			w.walkLines(v)
		}
		return
	}
	first := len(w.found)
	w.scanText(v, textHints{words: p.words, opaque: p.opaque && p.typ == ""})
	if len(w.found) == first+1 && n.sort == stringNode {
		switch w.s.typeOf(w.found[first].kind) {
		case Email:
			p.mails++
		case Phone:
			p.phones++
		}
	}
}

// claimByColumn makes a claim for a value in which nothing was found, so that a token replaces the value. It does so
// if most values of the same column are e-mail addresses or phone numbers.
func (w *documentWalker) claimByColumn(d *jsonDoc, n *docNode) (tokenClaim, bool) {
	p := &d.paths[n.path]
	if n.sort != stringNode || n.first != n.last || p.values < 5 || n.end-n.start < 3 {
		return tokenClaim{}, false
	}
	t := Type("")
	switch {
	case p.mails*10 >= p.values*6:
		t = Email
	case p.phones*10 >= p.values*6 && !p.opaque:
		t = Phone
	default:
		return tokenClaim{}, false
	}
	v := d.nodeText(n)
	start, end := w.s.matchWhole(t, v.text, true)
	if end == 0 {
		return tokenClaim{}, false
	}
	return w.makeClaim(v, start, end, t), true
}

func (w *documentWalker) makeClaim(v textView, start, end int, t Type) tokenClaim {
	a, b := v.rawRange(start, end)
	c := tokenClaim{start: int32(a), end: int32(b), text: -1, kind: w.s.numberOf(t), deep: v.deep}
	if v.at != nil {
		c.text = int32(len(w.texts))
		w.texts = append(w.texts, string(v.text[start:end]))
	}
	return c
}

func (w *documentWalker) addClaim(v textView, start, end int, t Type) {
	if start < end {
		w.found = append(w.found, w.makeClaim(v, start, end, t))
	}
}

// scanText scans a text without JSON and adds a claim for each part that a token must replace.
func (w *documentWalker) scanText(v textView, h textHints) {
	w.setHints(&h)
	if (w.unplain || v.at != nil) && len(h.names) > 0 && hasUnplain(v.text) {
		v = v.withoutUnplain()
	}
	if w.escapes || v.at != nil {
		if u, ok := v.decodeEscapes(); ok {
			v = u
		}
	}
	w.hits = w.s.appendFindings(w.hits[:0], v.text, h)
	for _, f := range w.hits {
		w.addClaim(v, f.Start, f.End, f.Type)
	}
}

// setHints sets the lists of known values that a scan searches for, and the buffer for ids.
func (w *documentWalker) setHints(h *textHints) {
	names := w.names[:0]
	for _, g := range []*KnownValues{w.s.words, w.known} {
		if g != nil && g.hasEntries() {
			names = append(names, g)
		}
	}
	*h = h.withNames(names)
	h.id32 = &w.id32
}

// scanNumber adds a claim for a JSON number if it is personal, judged by its key or by the pattern of a custom type.
func (w *documentWalker) scanNumber(d *jsonDoc, n *docNode, p *docPath) {
	digits := d.view.text[n.start:n.end]
	if t := w.s.shapeOf(digits); t != "" {
		w.claimNumber(d, n, t)
		return
	}
	if w.claimKnownNumber(d, n, p, digits) {
		return
	}
	if !p.sure || w.s.off[p.typ] {
		return
	}
	for _, b := range digits {
		if !isDigitByte(b) {
			return
		}
	}
	ok := false
	switch n := len(digits); p.typ {
	case Phone:
		ok = n >= 7 && n <= 15
	case CreditCard:
		ok = n >= 12 && n <= 19
	case SSN, NationalID, Passport, Licence, IBAN:
		ok = n >= 7 && n <= 18
	default:
		ok = w.s.isCustomType(p.typ)
	}
	if ok {
		w.claimNumber(d, n, p.typ)
	}
}

// claimNumber adds a claim for a JSON number, which means that a token will replace the number.
func (w *documentWalker) claimNumber(d *jsonDoc, n *docNode, t Type) {
	v := d.view.subView(int(n.start), int(n.end))
	w.addClaim(v, 0, len(v.text), t)
	w.found[len(w.found)-1].number = true
}

// walkNested parses JSON inside a string and adds a claim for each part that a token must replace. It returns false
// if the string is not JSON or is nested too deeply.
func (w *documentWalker) walkNested(v textView) bool {
	t := bytes.TrimSpace(v.text)
	if len(t) < 9 || w.inside == maxInside || !(t[0] == '{' && t[len(t)-1] == '}' || t[0] == '[' && t[len(t)-1] == ']') {
		return false
	}
	w.inside++
	defer func() { w.inside-- }()
	d := w.nextDoc()
	d.resetFor(w.s, v)
	if !d.splitJSON(true) {
		return false
	}
	claims := len(w.claims)
	w.walkDocument(d, true)
	w.found = append(w.found, w.claims[claims:]...)
	w.claims = w.claims[:claims]
	return true
}

// walkerPool keeps walkers, with the memory that they have allocated, for later documents.
type walkerPool = sync.Pool

// growList makes room for more elements in a list that is filled while a text of n bytes is read. The argument i is
// the number of bytes that were read so far. If the list is long already, growList estimates its final length from
// the part that was read, so that the list is rarely copied. The estimated length never takes more than n bytes of
// memory.
func growList[T any](list []T, i, n int) []T {
	if len(list)+8 <= cap(list) {
		return list
	}
	var one T
	room := 2*len(list) + 16
	if len(list) >= 1<<10 && i > 0 {
		room = max(len(list)+len(list)/4, min(len(list)*(n/(i>>8+1))>>8*9/8, n/int(unsafe.Sizeof(one))))
	}
	return slices.Grow(list, room-len(list))
}
