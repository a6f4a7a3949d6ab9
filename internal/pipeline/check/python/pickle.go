package python

import (
	"encoding/binary"
	"errors"
	"math"
	"unicode/utf16"
	"unicode/utf8"

	"retort/internal/pipeline/check/rules"
)

// The opcodes of pickle protocol 4 that pickled Python syntax trees use.
const (
	opMark            = '('
	opStop            = '.'
	opEmptyTuple      = ')'
	opBinFloat        = 'G'
	opBinInt          = 'J'
	opBinInt1         = 'K'
	opBinInt2         = 'M'
	opNone            = 'N'
	opReduce          = 'R'
	opBinUnicode      = 'X'
	opBinBytes        = 'B'
	opShortBinBytes   = 'C'
	opEmptyList       = ']'
	opAppend          = 'a'
	opBuild           = 'b'
	opAppends         = 'e'
	opBinGet          = 'h'
	opLongBinGet      = 'j'
	opSetItem         = 's'
	opTuple           = 't'
	opSetItems        = 'u'
	opEmptyDict       = '}'
	opProto           = 0x80
	opTuple1          = 0x85
	opTuple2          = 0x86
	opTuple3          = 0x87
	opNewTrue         = 0x88
	opNewFalse        = 0x89
	opLong1           = 0x8a
	opLong4           = 0x8b
	opShortBinUnicode = 0x8c
	opStackGlobal     = 0x93
	opMemoize         = 0x94
	opFrame           = 0x95
)

// Bounds on a pickled tree. They are far above the size of trees that the rules accept.
const (
	maxPickle = 32 << 20 // bytes
	maxSyntax = 1 << 20  // nodes
	maxTexts  = 1 << 20  // that differ
	maxStack  = 1 << 20
	maxMemo   = 6 << 20
	maxKept   = 8 << 20 // values in lists, fields, and numbers
	maxDeep   = 10_000  // nodes in each other
)

var errPickle = errors.New("the interpreter's report on the program is invalid")

// treeUnpickler reads a pickled syntax tree from the interpreter in the sandbox, which is not trusted. It builds only
// trees in which every node has exactly one parent. To ensure that, it recalls only values without children from the
// memo, and removes a value from the stack when the value becomes part of another one.
type treeUnpickler struct {
	syntaxTree
	data    []byte
	stack   []attrValue
	marks   []int32
	memo    []attrValue
	dicts   []nodeDict
	kept    int          // values that stay
	arena   []attrValue  // of lists
	names   []fieldLabel // of texts
	classes map[string]nodeClass
	labelOf map[string]fieldLabel
	done    bool
}

// nodeDict holds the fields of a node under construction.
type nodeDict struct {
	first, count int32
	nodeSpan
}

// unpickleTree reads a syntax tree that the interpreter in the sandbox has pickled. The error is errPickle or an
// error of package rules, such as rules.ErrLarge.
func unpickleTree(data []byte) (*syntaxTree, error) {
	if len(data) > maxPickle {
		return nil, rules.ErrLarge
	}
	u := &treeUnpickler{data: data, classes: map[string]nodeClass{}, labelOf: map[string]fieldLabel{}}
	for c, name := range classNames {
		if name != "" {
			u.classes[name] = nodeClass(c)
		}
	}
	for f, name := range labelNames {
		u.labelOf[name] = fieldLabel(f)
	}
	u.places = map[string]textID{}
	u.nodes = make([]syntaxNode, 1, len(data)/24+1)
	u.fields = make([]nodeField, 0, len(data)/10)
	u.memo = make([]attrValue, 0, len(data)/6)
	u.arena = make([]attrValue, 0, len(data)/20)
	if _, err := u.internText(nil); err != nil { // the empty text is the first
		return nil, err
	}
	for !u.done {
		if err := u.runOpcode(); err != nil {
			return nil, err
		}
	}
	return &u.syntaxTree, nil
}

// runOpcode executes the next opcode.
func (u *treeUnpickler) runOpcode() error {
	switch {
	case u.kept > maxKept:
		return rules.ErrLarge
	case len(u.data) == 0 || len(u.stack)+len(u.marks) > maxStack:
		return errPickle
	}
	op := u.data[0]
	u.data = u.data[1:]
	switch op {
	case opMemoize:
		return u.memoizeTop()
	case opBinGet, opLongBinGet, opShortBinUnicode, opBinUnicode, opShortBinBytes, opBinBytes, opBinInt, opBinInt1,
		opBinInt2, opBinFloat, opLong1, opLong4:
		return u.pushLiteral(op)
	case opNone:
		u.pushValue(sortNone, 0)
	case opNewTrue:
		u.pushValue(sortTrue, 0)
	case opNewFalse:
		u.pushValue(sortFalse, 0)
	case opEmptyTuple:
		u.pushValue(sortNothings, 0)
	case opEmptyList:
		u.pushValue(sortList, int32(len(u.lists)))
		u.lists = append(u.lists, nil)
		u.kept += 3
	case opEmptyDict:
		u.pushValue(sortDict, int32(len(u.dicts)))
		u.dicts = append(u.dicts, nodeDict{first: -1})
	case opMark:
		u.marks = append(u.marks, int32(len(u.stack)))
	default:
		return u.composeValue(op)
	}
	return nil
}

// composeValue executes an opcode that builds a value from values on the stack, or ends the tree.
func (u *treeUnpickler) composeValue(op byte) error {
	switch op {
	case opBuild:
		return u.buildNode()
	case opReduce:
		return u.makeInstance()
	case opStackGlobal:
		return u.pushClass()
	case opSetItem:
		return u.setItems(len(u.stack) - 2)
	case opSetItems:
		return u.setItems(u.lastMark())
	case opAppend:
		return u.appendItems(len(u.stack) - 1)
	case opAppends:
		return u.appendItems(u.lastMark())
	case opTuple1, opTuple2, opTuple3:
		return u.makeTuple(len(u.stack) - int(op-opTuple1) - 1)
	case opTuple:
		return u.makeTuple(u.lastMark())
	case opProto:
		return u.skipBytes(1)
	case opFrame:
		return u.skipBytes(8)
	case opStop:
		return u.finishTree()
	}
	return errPickle
}

func (u *treeUnpickler) pushValue(s valueSort, at int32) { u.stack = append(u.stack, attrValue{s, at}) }

// lastMark returns the stack height at the last mark, or -1.
func (u *treeUnpickler) lastMark() int {
	if len(u.marks) == 0 {
		return -1
	}
	at := u.marks[len(u.marks)-1]
	u.marks = u.marks[:len(u.marks)-1]
	return int(at)
}

func (u *treeUnpickler) skipBytes(n int) error {
	_, err := u.takeBytes(n)
	return err
}

// takeBytes reads n bytes.
func (u *treeUnpickler) takeBytes(n int) ([]byte, error) {
	if n < 0 || n > len(u.data) {
		return nil, errPickle
	}
	b := u.data[:n]
	u.data = u.data[n:]
	return b, nil
}

// stackValue returns the n-th value from the top of the stack; 1 is the topmost.
func (u *treeUnpickler) stackValue(n int) attrValue {
	if len(u.stack) < n {
		return attrValue{}
	}
	return u.stack[len(u.stack)-n]
}

func (u *treeUnpickler) dropValues(n int) { u.stack = u.stack[:len(u.stack)-n] }

func (u *treeUnpickler) memoizeTop() error {
	if len(u.stack) == 0 || len(u.memo) >= maxMemo {
		return errPickle
	}
	u.memo = append(u.memo, u.stack[len(u.stack)-1])
	return nil
}

// recallMemo pushes a value from the pickle's memo, the list of values that can be used again. It returns an error
// for nodes, lists and dicts, which must not get a second parent.
func (u *treeUnpickler) recallMemo(n int) error {
	if n < 0 || n >= len(u.memo) {
		return errPickle
	}
	v := u.memo[n]
	switch v.sort {
	case sortText, sortBytes, sortClass, sortEllipsis:
		u.stack = append(u.stack, v)
		return nil
	}
	return errPickle
}

// pushLiteral executes an opcode that is followed by its operand in the pickle, such as a number or a text. It pushes
// the value that the operand gives.
func (u *treeUnpickler) pushLiteral(op byte) error {
	width := 1
	switch op {
	case opBinInt2:
		width = 2
	case opBinFloat:
		width = 8
	case opLongBinGet, opBinUnicode, opBinBytes, opBinInt, opLong4:
		width = 4
	}
	b, err := u.takeBytes(width)
	if err != nil {
		return err
	}
	switch op {
	case opBinInt1:
		u.pushValue(sortInteger, int32(b[0]))
	case opBinInt2:
		u.pushValue(sortInteger, int32(binary.LittleEndian.Uint16(b)))
	case opBinInt:
		u.pushValue(sortInteger, int32(binary.LittleEndian.Uint32(b)))
	case opBinFloat:
		u.pushFloat(sortFloat, math.Float64frombits(binary.BigEndian.Uint64(b)))
	case opBinGet:
		return u.recallMemo(int(b[0]))
	case opLongBinGet:
		return u.recallMemo(int(binary.LittleEndian.Uint32(b)))
	default:
		return u.pushSized(op, b)
	}
	return nil
}

// pushSized pushes a value that is preceded by its length onto the stack: a text, bytes or an integer.
func (u *treeUnpickler) pushSized(op byte, length []byte) error {
	n := int(length[0])
	if len(length) == 4 {
		n = int(binary.LittleEndian.Uint32(length))
	}
	b, err := u.takeBytes(n)
	if err != nil {
		return err
	}
	if op == opLong1 || op == opLong4 {
		u.pushLong(b)
		return nil
	}
	s := sortText
	if op == opBinBytes || op == opShortBinBytes {
		s, b = sortBytes, decodeLatin1(b)
	}
	at, err := u.internText(b)
	u.pushValue(s, at)
	return err
}

func (u *treeUnpickler) pushFloat(s valueSort, f float64) {
	u.pushValue(s, int32(len(u.floats)))
	u.floats = append(u.floats, f)
	u.kept++
}

// pushLong pushes an integer, given as little-endian bytes, onto the stack.
func (u *treeUnpickler) pushLong(b []byte) {
	if len(b) > 8 {
		u.pushValue(sortHuge, 0)
		return
	}
	var n uint64
	for i, c := range b {
		n |= uint64(c) << (8 * i)
	}
	if shift := 64 - 8*len(b); shift < 64 {
		n = uint64(int64(n<<shift) >> shift)
	}
	u.pushValue(sortLong, int32(len(u.integers)))
	u.integers = append(u.integers, int64(n))
	u.kept++
}

// internText returns the ID of a text. A new text is added to the tree's table of texts.
func (u *treeUnpickler) internText(b []byte) (textID, error) {
	if at, ok := u.places[string(b)]; ok {
		return at, nil
	}
	text := string(b)
	if !utf8.ValidString(text) {
		text = joinSurrogates(text)
	}
	if len(u.texts) >= maxTexts {
		return 0, rules.ErrLarge
	}
	at := u.syntaxTree.internText(text)
	if len(u.names) < len(u.texts) {
		u.names = append(u.names, u.labelOf[text])
	}
	return at, nil
}

// pushClass replaces the two topmost values of the stack, the names of a module and a class, by the class.
func (u *treeUnpickler) pushClass() error {
	module, name := u.stackValue(2), u.stackValue(1)
	if module.sort != sortText || name.sort != sortText {
		return errPickle
	}
	u.dropValues(2)
	switch word := u.texts[name.at]; u.texts[module.at] {
	case "ast", "_ast":
		u.pushValue(sortClass, int32(u.classes[word]))
		return nil
	case "builtins":
		if word == "complex" {
			u.pushValue(sortClass, int32(classComplex))
			return nil
		}
		if word == "Ellipsis" {
			u.pushValue(sortEllipsis, 0)
			return nil
		}
	}
	return errPickle
}

// makeTuple replaces the values on the stack, beginning at index from, by a tuple. A tuple holds the two parts of a
// complex number, or only None: newer interpreters create a node with one None per field before they set the fields.
func (u *treeUnpickler) makeTuple(from int) error {
	if from < 0 || from > len(u.stack) {
		return errPickle
	}
	items := u.stack[from:]
	made := attrValue{sort: sortNothings}
	if len(items) == 2 && items[0].sort == sortFloat && items[1].sort == sortFloat {
		made = attrValue{sortPair, items[1].at}
	} else {
		for _, item := range items {
			if item.sort != sortNone {
				return errPickle
			}
		}
	}
	u.stack = append(u.stack[:from], made)
	return nil
}

// makeInstance replaces a class and a tuple on the stack by an instance of the class: a new node or a complex number.
// Classes of operators (such as Add) and contexts (such as Load) have no fields, so the class itself stands for its
// instance.
func (u *treeUnpickler) makeInstance() error {
	callee, arguments := u.stackValue(2), u.stackValue(1)
	if callee.sort != sortClass {
		return errPickle
	}
	made := attrValue{sortFresh, callee.at}
	switch c := nodeClass(callee.at); {
	case c == classComplex && arguments.sort == sortPair:
		made = attrValue{sortImaginary, arguments.at}
	case c == classComplex || arguments.sort != sortNothings:
		return errPickle
	case c >= classLoad:
		made = callee
	}
	u.dropValues(2)
	u.stack = append(u.stack, made)
	return nil
}

// openDict returns the dict that is being built at an index of the stack, or nil.
func (u *treeUnpickler) openDict(at int) *nodeDict {
	if at < 0 || at >= len(u.stack) || u.stack[at].sort != sortDict || int(u.stack[at].at) != len(u.dicts)-1 {
		return nil
	}
	return &u.dicts[len(u.dicts)-1]
}

// setItems moves the values on the stack, beginning at index from, into the dict below them.
func (u *treeUnpickler) setItems(from int) error {
	d := u.openDict(from - 1)
	if d == nil || d.first >= 0 || (len(u.stack)-from)%2 != 0 {
		return errPickle
	}
	d.first = int32(len(u.fields))
	for items := u.stack[from:]; len(items) > 0; items = items[2:] {
		if items[0].sort != sortText {
			return errPickle
		}
		switch name, v := u.names[items[0].at], items[1]; {
		case fieldLine <= name && name <= fieldEndColumn:
			if !d.setLabel(name, v) {
				return errPickle
			}
		case v.sort != sortNone:
			u.fields = append(u.fields, nodeField{name, v})
		}
	}
	d.count = int32(len(u.fields)) - d.first
	u.kept += int(d.count)
	u.stack = u.stack[:from]
	return nil
}

// setLabel sets one of the four fields of a span: its first or last line, or its first or last column. It returns
// false if the value is invalid.
func (p *nodeSpan) setLabel(name fieldLabel, v attrValue) bool {
	const wide = 1 << 24
	if v.sort == sortNone {
		return true
	}
	if v.sort != sortInteger || v.at < 0 || v.at >= wide {
		return false
	}
	switch name {
	case fieldLine:
		p.line = v.at
	case fieldColumn:
		p.column = v.at
	case fieldEndLine:
		p.endLine = v.at
	case fieldEndColumn:
		p.endColumn = v.at
	}
	return true
}

// appendItems moves the values on the stack, beginning at index from, into the list below them.
func (u *treeUnpickler) appendItems(from int) error {
	if from < 1 || from > len(u.stack) || u.stack[from-1].sort != sortList {
		return errPickle
	}
	u.kept += len(u.stack) - from
	list := &u.lists[u.stack[from-1].at]
	if items := u.stack[from:]; *list != nil {
		*list = append(*list, items...)
	} else {
		start := len(u.arena)
		u.arena = append(u.arena, items...)
		*list = u.arena[start:len(u.arena):len(u.arena)]
	}
	u.stack = u.stack[:from]
	return nil
}

// buildNode sets the fields of a node from the dict above it on the stack.
func (u *treeUnpickler) buildNode() error {
	d := u.openDict(len(u.stack) - 1)
	if d == nil {
		return errPickle
	}
	made := u.stackValue(2)
	switch {
	case made.sort == sortClass && d.first < 0:
	case made.sort == sortFresh && len(u.nodes) < maxSyntax:
		n := syntaxNode{class: nodeClass(made.at), first: max(d.first, 0), count: d.count, nodeSpan: d.nodeSpan}
		if n.depth = u.nodeDepth(n); n.depth > maxDeep {
			return rules.ErrDeep
		}
		made = attrValue{sortNode, int32(len(u.nodes))}
		u.nodes = append(u.nodes, n)
	case made.sort == sortFresh:
		return rules.ErrLarge
	default:
		return errPickle
	}
	u.dicts = u.dicts[:len(u.dicts)-1]
	u.dropValues(2)
	u.stack = append(u.stack, made)
	return nil
}

// nodeDepth returns how deep the subtree of a node is: one more than the depth of its deepest child.
func (u *treeUnpickler) nodeDepth(n syntaxNode) int32 {
	deepest := int32(0)
	for _, f := range u.fields[n.first : n.first+n.count] {
		switch f.value.sort {
		case sortNode:
			deepest = max(deepest, u.nodes[f.value.at].depth)
		case sortList:
			for _, item := range u.lists[f.value.at] {
				if item.sort == sortNode {
					deepest = max(deepest, u.nodes[item.at].depth)
				}
			}
		}
	}
	return deepest + 1
}

func (u *treeUnpickler) finishTree() error {
	root := u.stackValue(1)
	if len(u.data) > 0 || len(u.stack) != 1 || len(u.marks) > 0 || root.sort != sortNode || u.nodes[root.at].class != classModule {
		return errPickle
	}
	u.root, u.done = root.at, true
	return nil
}

// decodeLatin1 converts Latin-1 bytes to UTF-8.
func decodeLatin1(b []byte) []byte {
	text := make([]byte, 0, len(b))
	for _, c := range b {
		text = utf8.AppendRune(text, rune(c))
	}
	return text
}

// joinSurrogates decodes UTF-16 surrogates that Python has encoded in UTF-8 as if each were a character. Two
// surrogates that form a pair become the character that they stand for.
func joinSurrogates(text string) string {
	var units []uint16
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && n == 1 && i+2 < len(text) && text[i] == 0xed && text[i+1] >= 0xa0 && text[i+1] < 0xc0 &&
			text[i+2]&0xc0 == 0x80 {
			r, n = rune(0xd000)|rune(text[i+1]&0x3f)<<6|rune(text[i+2]&0x3f), 3
		}
		units = utf16.AppendRune(units, r)
		if i += n; utf16.IsSurrogate(r) {
			units[len(units)-1] = uint16(r)
		}
	}
	return string(utf16.Decode(units))
}
