package pii

import (
	"bytes"

	"retort/internal/base/jsonscan"
)

const (
	maxDepth  = 256 // of containers; deeper ones are scanned as text
	maxInside = 4   // of JSON in strings of JSON
)

type nodeSort uint8

const (
	stringNode nodeSort = iota
	numberNode
	keyNode
	textNode // not JSON
)

// docNode represents a part of the document that may contain personal data: a key, a string, a number, or text
// outside JSON.
type docNode struct {
	start, end  int32 // without quotes
	path        int32
	object      int32 // around it, in doc.objects; -1 for none
	sort        nodeSort
	escaped     bool
	told        bool  // its key identifies a name
	first, last int32 // its findings in walker.found; before the scan, the range of its name
}

// docPath represents the path of a value in the document. It omits array indexes, so that all values of a column
// share one path.
type docPath struct {
	parent int32
	key    int32 // in doc.keys, -1 for the elements of an array
	next   int32 // the path of the key that last followed this one
	valueMeaning
	values, mails, phones int32
	objects, people       int32
}

type docObject struct {
	path   int32
	people bool
	street bool
}

// jsonDoc represents a parsed document: its values and texts, with their paths.
type jsonDoc struct {
	s       *Scanner
	walker  *documentWalker
	view    textView
	nodes   []docNode
	paths   []docPath
	objects []docObject
	keys    []string
	keyIDs  map[string]int32
	pathIDs map[uint64]int32
	means   []keyMeaning
	columns []int32 // paths of columns under headers
	stack   []openContainer
}

type keyMeaning struct {
	valueMeaning
	scan bool // the key itself may be personal
}

type openContainer struct {
	path, object, before int32 // before is the path of the last key
	array                bool
	grid                 bool  // an array in an array, possibly a table row
	row, column          int32 // of the row, and of its next value
	rows, first, columns int32 // of an array of arrays: rows so far, and its columns in doc.columns
}

func (d *jsonDoc) resetFor(s *Scanner, v textView) {
	d.s, d.view = s, v
	d.nodes, d.paths, d.objects, d.keys, d.means, d.stack = d.nodes[:0], d.paths[:0], d.objects[:0], d.keys[:0], d.means[:0], d.stack[:0]
	d.columns = d.columns[:0]
	if d.keyIDs == nil || len(d.keyIDs) > 1<<12 {
		d.keyIDs, d.pathIDs = map[string]int32{}, map[uint64]int32{}
	}
	clear(d.keys[:cap(d.keys)])
	clear(d.keyIDs)
	clear(d.pathIDs)
	d.paths = append(d.paths, docPath{parent: -1, key: -1, next: -1})
}

// splitJSON splits a document into JSON values and the text between them. If all is set, the whole document must be
// one JSON value, and splitJSON reports whether that is so.
func (d *jsonDoc) splitJSON(all bool) bool {
	text := d.view.text
	from := 0 // start of text that is not JSON
	i := nextContainer(text, 0)
	if s := skipSpace(text, 0); byteAt(text, s) == '"' {
		if end, _ := jsonscan.StringEnd(text, s+1); skipSpace(text, end+1) >= len(text) && end < len(text) {
			i = s
		}
	}
	for i < len(text) {
		nodes, objects := len(d.nodes), len(d.objects)
		end, whole := d.readContainer(i)
		if all {
			return whole && skipSpace(text, end) == len(text)
		}
		if !whole && end-i < 8 && len(d.nodes)-nodes < 2 { // such as [x] or {{
			d.nodes, d.objects, end = d.nodes[:nodes], d.objects[:objects], i
		} else {
			if i > from {
				d.addNode(textNode, from, i, 0, -1, false)
				last := len(d.nodes) - 1 // keep the order of the document
				n := d.nodes[last]
				copy(d.nodes[nodes+1:], d.nodes[nodes:last])
				d.nodes[nodes] = n
			}
			from = min(end, len(text))
		}
		i = nextContainer(text, max(end, i+1))
	}
	if from < len(text) {
		d.addNode(textNode, from, len(text), 0, -1, false)
	}
	return false
}

// nextContainer returns the offset of the next { or [ that stands at i or begins a line. Blanks before it do not
// count. It returns the length of the text if none is found.
func nextContainer(text []byte, i int) int {
	if j := skipSpace(text, i); j < len(text) && (text[j] == '{' || text[j] == '[') {
		return j
	}
	for i < len(text) {
		line := bytes.IndexByte(text[i:], '\n')
		if line < 0 {
			return len(text)
		}
		i = skipSpace(text, i+line)
		if i < len(text) && (text[i] == '{' || text[i] == '[') {
			return i
		}
	}
	return len(text)
}

func skipSpace(text []byte, i int) int { return spanEnd(text, i, isSpace) }

func (d *jsonDoc) addNode(s nodeSort, start, end int, path, object int32, escaped bool) {
	d.nodes = append(growList(d.nodes, start, len(d.view.text)), docNode{
		start: int32(start), end: int32(end), path: path, object: object, sort: s, escaped: escaped,
	})
}

// docCursor says where the parser is in the document: at which offset, at which path and in which object the next
// value is.
type docCursor struct {
	i            int
	path, object int32
}

// cursorStep says what one step of the parser has found: a value, the beginning or the end of an object or array, or
// text that is not JSON.
type cursorStep uint8

const (
	read   cursorStep = iota // a value has ended
	opened                   // an object or array has begun, and its first value is next
	ended                    // the outermost value has ended
	broken                   // the text is not JSON from here on
)

// readContainer parses the object or array at i. It returns its end and true, or false and the offset at which the
// text is no longer JSON.
func (d *jsonDoc) readContainer(i int) (end int, whole bool) {
	d.stack = d.stack[:0]
	c := docCursor{i: i, object: -1}
	for c.i < len(d.view.text) {
		s := d.readNext(&c)
		if s == read {
			s = d.readBehind(&c)
		}
		if s == ended || s == broken {
			return c.i, s == ended
		}
	}
	return c.i, false
}

// readNext reads a scalar, or the beginning of an object or array.
func (d *jsonDoc) readNext(c *docCursor) cursorStep {
	text, path := d.view.text, c.path
	if n := len(d.stack); n > 1 && d.stack[n-1].grid {
		path = d.cellPath(c.i, c.path, &d.stack[n-2], &d.stack[n-1])
	}
	switch b := text[c.i]; {
	case b == '{' || b == '[':
		return d.beginContainer(c, b == '[')
	case b == '"':
		end, escaped := jsonscan.StringEnd(text, c.i+1)
		d.addNode(stringNode, c.i+1, end, path, c.object, escaped)
		if c.i = end + 1; end == len(text) {
			c.i = end
			return broken
		}
	case b == '-' || isDigitByte(b):
		end := numberEnd(text, c.i)
		if end-c.i >= 7 {
			d.addNode(numberNode, c.i, end, path, c.object, false)
		}
		c.i = end
	default:
		n := literalEnd(text[c.i:])
		if n == 0 {
			return broken
		}
		c.i += n
	}
	return read
}

// beginContainer reads the opening bracket of an object or array, and the first key of an object.
func (d *jsonDoc) beginContainer(c *docCursor, array bool) cursorStep {
	if len(d.stack) == maxDepth {
		return broken
	}
	text := d.view.text
	if array {
		c.path = d.childPath(c.path, -1)
		f := openContainer{path: c.path, object: c.object, array: true, first: int32(len(d.columns))}
		if n := len(d.stack); n > 0 && d.stack[n-1].array {
			f.grid, f.row = true, d.stack[n-1].rows
			d.stack[n-1].rows++
		}
		d.stack = append(d.stack, f)
		if c.i = skipSpace(text, c.i+1); byteAt(text, c.i) == ']' {
			return read
		}
		return opened
	}
	d.objects = append(growList(d.objects, c.i, len(text)), docObject{path: c.path})
	c.object = int32(len(d.objects) - 1)
	d.stack = append(d.stack, openContainer{path: c.path, object: c.object, before: -1})
	if c.i = skipSpace(text, c.i+1); byteAt(text, c.i) == '}' {
		return read
	}
	return d.readMember(c)
}

// readMember reads the next key of an object and its colon.
func (d *jsonDoc) readMember(c *docCursor) cursorStep {
	if c.i, c.path = d.readKey(c.i); c.path < 0 {
		return broken
	}
	return opened
}

// readBehind reads what follows a value: closing brackets, the comma before the next value, and the key of the next
// member.
func (d *jsonDoc) readBehind(c *docCursor) cursorStep {
	text := d.view.text
	for {
		c.i = skipSpace(text, c.i)
		if len(d.stack) == 0 {
			return ended
		}
		f := &d.stack[len(d.stack)-1]
		c.path, c.object = f.path, f.object
		switch b := byteAt(text, c.i); {
		case b == ',':
			if c.i = skipSpace(text, c.i+1); f.array {
				return opened
			}
			return d.readMember(c)
		case b == '}' && !f.array, b == ']' && f.array:
			d.closeFrame(f)
			d.stack = d.stack[:len(d.stack)-1]
			c.i++
		default:
			return broken
		}
	}
}

// cellPath returns the path of a cell in an array of arrays, so that each column has a path of its own. The strings
// of the first row are the header that names the columns.
func (d *jsonDoc) cellPath(i int, p int32, table, row *openContainer) int32 {
	text, column := d.view.text, row.column
	row.column++
	if row.row > 0 {
		if column < table.columns {
			return d.columns[table.first+column]
		}
		return p
	}
	if text[i] != '"' || column != table.columns || int(table.first+column) != len(d.columns) || column == 256 {
		return p
	}
	end, _ := jsonscan.StringEnd(text, i+1)
	m := valueMeaning{}
	if end-i < 64 {
		m = d.s.meaningOf(string(text[i+1 : end]))
	}
	d.columns = append(d.columns, int32(len(d.paths)))
	d.paths = append(d.paths, docPath{parent: p, key: -1, next: -1, valueMeaning: m})
	table.columns++
	return p
}

// nameColumns marks columns called "name" as names of people if another column of the table shows that its rows
// describe people.
func (d *jsonDoc) nameColumns(table *openContainer) {
	people := false
	columns := d.columns[table.first : table.first+table.columns]
	for _, c := range columns {
		people = people || d.paths[c].isPersonal()
	}
	for _, c := range columns {
		if p := &d.paths[c]; people && p.name {
			p.sure = true
		}
	}
}

func (d *jsonDoc) closeFrame(f *openContainer) {
	if f.array {
		if f.grid && f.row == 0 {
			d.nameColumns(&d.stack[len(d.stack)-2])
		}
		return
	}
	p := &d.paths[f.path]
	p.objects++
	if d.objects[f.object].people {
		p.people++
	}
}

// readKey reads a key and its colon. It returns the offset and path of the value, or a negative path if there is no
// key.
func (d *jsonDoc) readKey(i int) (int, int32) {
	text := d.view.text
	if byteAt(text, i) != '"' {
		return i, -1
	}
	f := &d.stack[len(d.stack)-1]
	end, escaped := jsonscan.StringEnd(text, i+1)
	name := text[i+1 : end]
	var p int32
	if n := d.guessPath(f); n >= 0 && d.keys[d.paths[n].key] == string(name) {
		p = n
	} else {
		p = d.childPath(f.path, d.keyID(name))
		if f.before >= 0 {
			d.paths[f.before].next = p
		} else {
			d.paths[f.path].next = p
		}
	}
	f.before = p
	m := &d.means[d.paths[p].key]
	if m.scan {
		d.addNode(keyNode, i+1, end, f.path, f.object, escaped)
	}
	o := &d.objects[f.object]
	o.people = o.people || d.paths[p].isPersonal()
	o.street = o.street || m.typ == Address && !m.zip
	if i = skipSpace(text, end+1); byteAt(text, i) != ':' {
		return i, -1
	}
	return skipSpace(text, i+1), p
}

// guessPath guesses the path of an object's next key: the path that came next when the previous key was last read. It
// returns -1 if it has no guess. A correct guess saves a map lookup, and most are correct because objects often
// repeat their keys in the same order.
func (d *jsonDoc) guessPath(f *openContainer) int32 {
	n := d.paths[f.path].next
	if f.before >= 0 {
		n = d.paths[f.before].next
	}
	if n >= 0 && d.paths[n].parent == f.path && d.paths[n].key >= 0 {
		return n
	}
	return -1
}

func (d *jsonDoc) keyID(name []byte) int32 {
	if id, ok := d.keyIDs[string(name)]; ok {
		return id
	}
	id := int32(len(d.keys))
	key := string(name)
	d.keys, d.keyIDs[key] = append(d.keys, key), id
	decoded := key
	if bytes.IndexByte(name, '\\') >= 0 {
		decoded = string(plainView(name).decodeQuoted().text)
	}
	m := keyMeaning{valueMeaning: d.s.meaningOf(decoded)}
	m.scan = isOddKey(name) || d.walker.isPersonalKey(decoded)
	d.means = append(d.means, m)
	return id
}

// isOddKey reports whether a key has characters that names of fields do not have, or at least four digits. Such a key
// may itself be a value. Keys of up to five bytes are never odd.
func isOddKey(name []byte) bool {
	return len(name) > 5 && (bytes.IndexByte(name, '@') >= 0 || bytes.IndexByte(name, '\\') >= 0 ||
		bytes.IndexByte(name, '%') >= 0 || bytes.IndexByte(name, '[') >= 0 || manyDigits(name))
}

func manyDigits(b []byte) bool {
	n := 0
	for _, c := range b {
		if isDigitByte(c) {
			n++
		}
	}
	return n >= 4
}

// childPath returns the path of an object's member with this key. If key is negative, it returns the path of the
// elements of an array. It creates the path if needed.
func (d *jsonDoc) childPath(parent, key int32) int32 {
	at := uint64(uint32(parent))<<32 | uint64(uint32(key))
	if id, ok := d.pathIDs[at]; ok {
		return id
	}
	p := docPath{parent: parent, key: key, next: -1}
	around := d.paths[parent].valueMeaning
	switch {
	case key < 0:
		p.valueMeaning = around
	default:
		p.valueMeaning = d.means[key].valueMeaning.nestedIn(around)
	}
	id := int32(len(d.paths))
	d.paths, d.pathIDs[at] = append(d.paths, p), id
	return id
}

// nestedIn returns the meaning of a key inside an object that is the value of another key. around is the meaning of
// that outer key.
func (m valueMeaning) nestedIn(around valueMeaning) valueMeaning {
	switch {
	case m.name && around.person:
		m.sure = true
	case m.name && around.company:
		m.typ, m.sure = Company, true
	case m.generic && around.typ != "" && (around.sure || around.typ != Name):
		return around
	case m.typ == Address && !m.sure && !m.zip && (around.typ == Email || around.typ == IP || around.typ == MAC || around.typ == Wallet):
		return around
	case m.typ == "" && !m.generic && !m.opaque && !m.person && !m.company:
		m.words |= around.words
	}
	return m
}

func numberEnd(text []byte, i int) int {
	for i < len(text) && (isDigitByte(text[i]) || text[i] == '-' || text[i] == '+' || text[i] == '.' || text[i]|0x20 == 'e') {
		i++
	}
	return i
}

func literalEnd(text []byte) int {
	for _, l := range []string{"true", "false", "null"} {
		if len(text) >= len(l) && string(text[:len(l)]) == l && !isAlnumByte(byteAt(text, len(l))) {
			return len(l)
		}
	}
	return 0
}
