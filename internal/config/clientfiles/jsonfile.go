package clientfiles

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// jsonFile implements fileFormat for JSON as editors accept it: with comments, trailing commas and a byte order mark.
// An empty file is an empty object.
type jsonFile struct {
	// read caches the trees and values of the last parsed texts, because some files have 25 MB. If it is nil, nothing
	// is cached.
	read *lastRead
}

// lastRead caches the texts of files that one operation, such as an install, has read, together with the result of
// parsing or decoding them.
type lastRead struct {
	text []byte // text from which tree was parsed
	tree hujson.Value
	made bool          // text is the result of an edit and was not parsed again yet
	says []decodedText // decoded texts: at most two, the newest last
}

// decodedText holds a text and its decoded value. The value must not be changed.
type decodedText struct {
	text  []byte
	whole map[string]any
}

const byteOrderMark = "\ufeff"

// parseTree returns the syntax tree of a text and the object at its root. Only editMembers may change the tree.
func (f jsonFile) parseTree(src []byte) (hujson.Value, *hujson.Object, error) {
	v, known := f.read.treeOf(src)
	if !known {
		var err error
		if v, err = parseJSON(src); err != nil {
			return v, nil, err
		}
		f.read.keepTree(src, v, false)
	}
	root, ok := v.Value.(*hujson.Object)
	if !ok {
		return v, nil, fmt.Errorf("it is not a JSON object")
	}
	return v, root, nil
}

func parseJSON(src []byte) (hujson.Value, error) {
	body := bytes.Clone(bytes.TrimPrefix(src, []byte(byteOrderMark)))
	if err := tooDeep(body); err != nil {
		return hujson.Value{}, err
	}
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}" + lineBreak(src))
	}
	if endsInOpenComment(body) {
		body = append(body, '\n')
	}
	v, err := hujson.Parse(body)
	if err != nil {
		return v, fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "hujson: "))
	}
	return v, nil
}

// endsInOpenComment reports whether the last line of a text has no line break and may end in a line comment. The
// JSON parser hujson refuses such a text.
func endsInOpenComment(src []byte) bool {
	return bytes.Contains(src[bytes.LastIndexByte(src, '\n')+1:], []byte("//"))
}

// treeOf returns the syntax tree of a text from the cache. It returns false if the cache has no tree of that text.
func (r *lastRead) treeOf(src []byte) (hujson.Value, bool) {
	if r == nil || r.tree.Value == nil || !bytes.Equal(r.text, src) {
		return hujson.Value{}, false
	}
	return r.tree, true
}

func (r *lastRead) keepTree(src []byte, v hujson.Value, made bool) {
	if r != nil {
		r.text, r.tree, r.made = src, v, made
	}
}

// decodeAll returns the decoded value of a text. If the text is the result of an edit, decodeAll parses the text
// again instead of using the tree that was edited, so that a comparison finds errors of the edit.
func (f jsonFile) decodeAll(src []byte) (map[string]any, error) {
	if f.read != nil {
		for _, s := range f.read.says {
			if bytes.Equal(s.text, src) {
				return s.whole, nil
			}
		}
		if f.read.made {
			f.read.keepTree(nil, hujson.Value{}, false)
		}
	}
	v, _, err := f.parseTree(src)
	if err != nil {
		return nil, err
	}
	whole, _ := plainJSON(v).(map[string]any) // parse has seen that it is one
	if r := f.read; r != nil {
		r.says = append(r.says[max(0, len(r.says)-1):], decodedText{src, whole})
	}
	return whole, nil
}

// plainJSON converts a syntax tree to plain decoded values. Numbers stay as they are written. If a key is repeated in
// an object, the last one counts.
func plainJSON(v hujson.Value) any {
	switch value := v.Value.(type) {
	case *hujson.Object:
		o := make(map[string]any, len(value.Members))
		for _, m := range value.Members {
			o[memberName(m)] = plainJSON(m.Value)
		}
		return o
	case *hujson.Array:
		list := make([]any, len(value.Elements))
		for i, e := range value.Elements {
			list[i] = plainJSON(e)
		}
		return list
	case hujson.Literal:
		switch value.Kind() {
		case '"':
			return unquoteLiteral(value)
		case 't', 'f':
			return value.Kind() == 't'
		case 'n':
			return nil
		}
		return json.Number(value)
	}
	return nil
}

// findObject returns the object to which the keys in the argument at lead, or nil. If a key is repeated in an object,
// the last one counts, as in JSON.parse.
func (jsonFile) findObject(root *hujson.Object, at []string) (*hujson.Object, error) {
	for i, key := range at {
		n := indexOfKey(root, key)
		if n < 0 {
			return nil, nil
		}
		switch value := root.Members[n].Value.Value.(type) {
		case *hujson.Object:
			root = value
		case hujson.Literal:
			if value.Kind() == 'n' {
				return nil, nil
			}
			return nil, fmt.Errorf("%s is not an object", strings.Join(at[:i+1], "."))
		default:
			return nil, fmt.Errorf("%s is not an object", strings.Join(at[:i+1], "."))
		}
	}
	return root, nil
}

func indexOfKey(o *hujson.Object, key string) int {
	for i := len(o.Members) - 1; i >= 0; i-- {
		if memberName(o.Members[i]) == key {
			return i
		}
	}
	return -1
}

func memberName(m hujson.ObjectMember) string {
	name, _ := m.Name.Value.(hujson.Literal)
	return unquoteLiteral(name)
}

// unquoteLiteral returns the string of a literal. It decodes only literals with escapes or special characters, which
// are rare.
func unquoteLiteral(l hujson.Literal) string {
	special := func(b byte) bool { return b < ' ' || b == '\\' || b > '~' }
	if l.Kind() != '"' || len(l) < 2 || slices.ContainsFunc(l, special) {
		return l.String()
	}
	return string(l[1 : len(l)-1])
}

func (f jsonFile) readMembers(src []byte, at []string) ([]objectMember, error) {
	_, root, err := f.parseTree(src)
	if err != nil {
		return nil, err
	}
	o, err := f.findObject(root, at)
	if err != nil || o == nil {
		return nil, err
	}
	var list []objectMember
	for _, m := range o.Members {
		name := memberName(m)
		if slices.Contains(memberNames(list), name) {
			return nil, fmt.Errorf("%q occurs twice", name)
		}
		text := m.Value.Clone()
		text.BeforeExtra, text.AfterExtra = nil, nil
		strict := text.Clone()
		strict.Minimize()
		list = append(list, objectMember{Name: name, Value: strict.Pack(), Text: text.String()})
	}
	return list, nil
}

// jsonLayout describes how a JSON file is indented, so that edits follow the same style.
type jsonLayout struct {
	newline string
	unit    string // indentation of one level
	indent  string // indentation of the members of the edited object
	oneLine bool   // the members of the edited object are on one line
	comma   bool   // the edited object has a trailing comma
}

func (f jsonFile) editMembers(src []byte, at, out []string, in []objectMember) ([]byte, error) {
	v, root, err := f.parseTree(src)
	if err != nil {
		return nil, err
	}
	if _, err := f.findObject(root, at); err != nil {
		return nil, err
	}
	f.read.keepTree(nil, hujson.Value{}, false) // the tree becomes that of the result
	l := jsonLayout{newline: lineBreak(src), unit: indentUnit(root)}
	o := root
	for _, key := range at {
		o = l.enterObject(o, key)
	}
	l.detectLayout(o)
	place := l.removeMembers(o, out)
	for i, m := range in {
		if err := l.insertMember(o, place+i, m); err != nil {
			return nil, err
		}
	}
	text := v.Pack()
	if endsInOpenComment(src) {
		text = bytes.TrimSuffix(text, []byte("\n"))
	}
	if bytes.HasPrefix(src, []byte(byteOrderMark)) {
		text = append([]byte(byteOrderMark), text...)
	}
	f.read.keepTree(text, v, true)
	return text, nil
}

// indentUnit returns the indentation of the first key of a file, or two spaces.
func indentUnit(root *hujson.Object) string {
	if len(root.Members) > 0 {
		if s, ok := indentationOf(root.Members[0].Name.BeforeExtra); ok && s != "" {
			return s
		}
	}
	return "  "
}

// indentationOf returns the white space after the last line break before a key. It returns false if there is no line
// break.
func indentationOf(extra hujson.Extra) (string, bool) {
	_, after, found := strings.Cut(string(extra), "\n")
	for found {
		if _, next, more := strings.Cut(after, "\n"); more {
			after = next
			continue
		}
		return after[:len(after)-len(strings.TrimLeft(after, " \t"))], true
	}
	return "", false
}

// enterObject returns the object that o contains under the given key. If o has no member with this key, enterObject
// adds one.
func (l *jsonLayout) enterObject(o *hujson.Object, key string) *hujson.Object {
	inner := l.indent + l.unit
	if len(o.Members) > 0 {
		if s, ok := indentationOf(o.Members[0].Name.BeforeExtra); ok {
			inner = s
		}
	}
	i := indexOfKey(o, key)
	if i < 0 {
		i = len(o.Members)
		l.putMember(o, i, hujson.ObjectMember{
			Name:  hujson.Value{BeforeExtra: hujson.Extra(l.newline + inner), Value: hujson.String(key)},
			Value: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: &hujson.Object{}},
		}, l.indent)
	}
	next, ok := o.Members[i].Value.Value.(*hujson.Object)
	if !ok { // null
		next = &hujson.Object{}
		o.Members[i].Value.Value = next
	}
	l.indent = inner
	return next
}

// detectLayout detects how the members of the object o are written: their indentation, and whether they are on one
// line. Before the call, l.indent must be the indentation of the key whose value is o.
func (l *jsonLayout) detectLayout(o *hujson.Object) {
	outer := l.indent
	l.indent = outer + l.unit
	if len(o.Members) == 0 {
		if !strings.Contains(string(o.AfterExtra), "\n") {
			o.AfterExtra = slices.Concat(o.AfterExtra, hujson.Extra(l.newline+outer))
		}
		return
	}
	s, ok := indentationOf(o.Members[0].Name.BeforeExtra)
	if ok {
		l.indent = s
	}
	l.oneLine = !ok
}

// removeMembers removes members from the object o, except for their comments. It returns the index of the first
// removed member, or the number of members if none was removed.
func (l *jsonLayout) removeMembers(o *hujson.Object, out []string) int {
	place := -1
	var kept []hujson.ObjectMember
	var pending hujson.Extra // comments of what was removed
	l.comma = len(o.Members) > 0 && o.Members[len(o.Members)-1].Value.AfterExtra != nil
	for _, m := range o.Members {
		if !slices.Contains(out, memberName(m)) {
			m.Name.BeforeExtra = l.joinExtras(pending, m.Name.BeforeExtra)
			kept, pending = append(kept, m), nil
			continue
		}
		if place < 0 {
			place = len(kept)
		}
		for _, extra := range []hujson.Extra{m.Name.BeforeExtra, m.Name.AfterExtra, m.Value.BeforeExtra, m.Value.AfterExtra} {
			if hasComment(extra) {
				pending = l.joinExtras(pending, bytes.TrimRight(extra, " \t\r\n"))
			}
		}
	}
	o.AfterExtra = l.joinExtras(pending, o.AfterExtra)
	o.Members = kept
	if n := len(kept); n > 0 && !l.comma {
		l.endWithoutComma(o, n-1)
	}
	if place < 0 {
		return len(kept)
	}
	return place
}

// joinExtras joins two pieces of text that consist of white space and comments. If the first piece ends in a line
// comment, joinExtras adds a line break, because the comment would otherwise continue in the second piece.
func (l *jsonLayout) joinExtras(first, then hujson.Extra) hujson.Extra {
	between := ""
	if endsInLineComment(first) && !bytes.HasPrefix(bytes.TrimLeft(then, " \t\r"), []byte("\n")) {
		between = l.newline
	}
	return slices.Concat(first, hujson.Extra(between), then)
}

// endWithoutComma removes the trailing comma after the last member of the object o, which has the index i. The
// member's comments stay.
func (l *jsonLayout) endWithoutComma(o *hujson.Object, i int) {
	last := &o.Members[i].Value
	if hasComment(last.AfterExtra) {
		o.AfterExtra = l.joinExtras(last.AfterExtra, o.AfterExtra)
	}
	last.AfterExtra = nil
}

func hasComment(extra hujson.Extra) bool { return bytes.IndexByte(extra, '/') >= 0 }

// endsInLineComment reports whether extra, which is the white space and comments between two tokens, ends in a line
// comment without a line break.
func endsInLineComment(extra hujson.Extra) bool {
	for rest := bytes.TrimSpace(extra); len(rest) > 0; rest = bytes.TrimSpace(rest) {
		line := bytes.HasPrefix(rest, []byte("//"))
		ending := "*/"
		if line {
			ending = "\n"
		}
		_, after, found := bytes.Cut(rest[2:], []byte(ending))
		if !found {
			return line
		}
		rest = after
	}
	return false
}

func (l *jsonLayout) insertMember(o *hujson.Object, at int, m objectMember) error {
	text, err := l.memberText(m)
	if err != nil {
		return err
	}
	value, err := hujson.Parse([]byte(text))
	if err != nil {
		return err
	}
	value.BeforeExtra = hujson.Extra(" ")
	before := hujson.Extra(l.newline + l.indent)
	if l.oneLine {
		before = hujson.Extra(" ")
		if at == 0 {
			before = nil
		}
	}
	outer := strings.TrimSuffix(l.indent, l.unit)
	l.putMember(o, at, hujson.ObjectMember{Name: hujson.Value{BeforeExtra: before, Value: hujson.String(m.Name)}, Value: value}, outer)
	return nil
}

// putMember inserts a member into the object o at the index at. If the new member is the last one, it gets a trailing
// comma only if the file has trailing commas.
func (l *jsonLayout) putMember(o *hujson.Object, at int, m hujson.ObjectMember, outer string) {
	n := len(o.Members)
	if at == n && (l.comma || n > 0 && o.Members[n-1].Value.AfterExtra != nil) {
		m.Value.AfterExtra = hujson.Extra{}
	}
	if at == n && !l.oneLine {
		before, after := splitEnd(o.AfterExtra)
		m.Name.BeforeExtra = append(before, m.Name.BeforeExtra...)
		if o.AfterExtra = after; !bytes.ContainsRune(after, '\n') {
			o.AfterExtra = hujson.Extra(l.newline + outer)
		}
	}
	if at < n && n > 0 && l.oneLine && at == 0 && len(o.Members[0].Name.BeforeExtra) == 0 {
		o.Members[0].Name.BeforeExtra = hujson.Extra(" ")
	}
	o.Members = slices.Insert(o.Members, at, m)
}

// splitEnd splits the text before a closing bracket into two parts: the comments, and the white space after the last
// comment.
func splitEnd(extra hujson.Extra) (before, after hujson.Extra) {
	text := strings.TrimRight(string(extra), " \t\r\n")
	return hujson.Extra(text), extra[len(text):]
}

// memberText returns the text that is written to the file for a member's value. A member that was removed from the
// file before gets the text that it had then. Any other member gets a new text in the layout of the file.
func (l *jsonLayout) memberText(m objectMember) (string, error) {
	if m.Text != "" {
		return m.Text, nil
	}
	if l.oneLine {
		return string(m.Value), nil
	}
	value, err := hujson.Parse(m.Value)
	if err != nil {
		return "", err
	}
	l.spreadLines(&value, l.indent)
	return value.String(), nil
}

// spreadLines formats objects with one key per line, and lists on one line.
func (l *jsonLayout) spreadLines(v *hujson.Value, indent string) {
	switch value := v.Value.(type) {
	case *hujson.Array:
		for i := range value.Elements {
			if i > 0 {
				value.Elements[i].BeforeExtra = hujson.Extra(" ")
			}
		}
	case *hujson.Object:
		for i := range value.Members {
			value.Members[i].Name.BeforeExtra = hujson.Extra(l.newline + indent + l.unit)
			value.Members[i].Value.BeforeExtra = hujson.Extra(" ")
			l.spreadLines(&value.Members[i].Value, indent+l.unit)
		}
		if len(value.Members) > 0 {
			value.AfterExtra = hujson.Extra(l.newline + indent)
		}
	}
}
