package python

import (
	"strconv"
	"strings"

	"retort/internal/pipeline/check/rules"
)

// maxTree bounds the nodes of a tree that the rules examine.
const maxTree = 400_000

// where holds the scope of a node and its byte range.
type where struct {
	scope      scopeID
	start, end int32
}

func (w where) in(scope scopeID) where {
	w.scope = scope
	return w
}

// builder converts Python's tree to the tree that the rules read.
type builder struct {
	s         *syntax
	x         *scopes
	tree      *rules.Tree
	lines     []int // the offsets of lines
	variables map[variable]int32
	large     bool
}

// treeOf returns a program's syntax tree in the form that the rules read. Its error is rules.ErrLarge.
func treeOf(code string, x *scopes) (*rules.Tree, error) {
	b := &builder{
		s: x.s, x: x, lines: lineStarts(code), variables: map[variable]int32{},
		tree: &rules.Tree{Language: rules.Python, Source: code, Nodes: make([]rules.Node, 0, min(len(x.s.nodes), maxTree))},
	}
	w := where{scope: x.module}
	b.made(rules.Other, "", w, func() { b.list(x.s.root, fieldBody, w) })
	if b.large {
		return nil, rules.ErrLarge
	}
	return b.tree, nil
}

// lineStarts returns the offsets of lines as Python counts them.
func lineStarts(code string) []int {
	starts := []int{0}
	for i := range len(code) {
		if code[i] == '\n' || code[i] == '\r' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

func (b *builder) offset(line, column int32) int32 {
	if line < 1 || int(line) > len(b.lines) {
		return 0
	}
	return int32(min(b.lines[line-1]+int(column), len(b.tree.Source)))
}

// open begins a node. Nodes added until close are its children.
func (b *builder) open(kind rules.Kind, text string, bind int32, w where) int {
	if len(b.tree.Nodes) >= maxTree {
		b.large = true
		return -1
	}
	b.tree.Nodes = append(b.tree.Nodes, rules.Node{Kind: kind, Text: text, Start: w.start, End: w.end, Size: 1, Bind: bind})
	return len(b.tree.Nodes) - 1
}

func (b *builder) close(at int) {
	if at >= 0 {
		b.tree.Nodes[at].Size = int32(len(b.tree.Nodes) - at)
	}
}

// made adds a node whose children inner adds.
func (b *builder) made(kind rules.Kind, text string, w where, inner func()) {
	at := b.open(kind, text, 0, w)
	inner()
	b.close(at)
}

// with adds a node whose children are the nodes in these fields.
func (b *builder) with(kind rules.Kind, text string, id nodeID, w where, fields ...label) {
	at := b.open(kind, text, 0, w)
	for _, f := range fields {
		b.field(id, f, w)
	}
	b.close(at)
}

// field adds the nodes in a field.
func (b *builder) field(id nodeID, name label, w where) {
	switch v := b.s.get(id, name); v.sort {
	case sortNode:
		b.node(v.at, w)
	case sortList:
		b.items(b.s.lists[v.at], w)
	}
}

func (b *builder) list(id nodeID, name label, w where) { b.items(b.s.list(id, name), w) }

func (b *builder) items(items []value, w where) {
	for _, item := range items {
		b.node(nodeOf(item), w)
	}
}

// bound returns the number of the variable a name is bound to, or 0.
func (b *builder) bound(name textID, from scopeID) int32 {
	owner := b.x.find(name, from)
	if owner == 0 {
		return 0
	}
	v := variable{owner, name}
	n, ok := b.variables[v]
	if !ok {
		n = int32(len(b.variables) + 1)
		b.variables[v] = n
	}
	return n
}

// scope returns the scope of a node, or the surrounding one.
func (b *builder) scope(id nodeID, around scopeID) scopeID {
	if own := b.x.of[id]; own != 0 {
		return own
	}
	return around
}

// node adds a node of Python's tree and its children.
func (b *builder) node(id nodeID, w where) {
	if id == 0 || b.large {
		return
	}
	n := &b.s.nodes[id]
	if n.endLine > 0 {
		w.start = b.offset(n.line, n.column)
		w.end = max(w.start, b.offset(n.endLine, n.endColumn))
	}
	if b.atom(id, n.class, w) || b.expression(id, n.class, w) || b.statement(id, n.class, w) || b.definition(id, n.class, w) {
		return
	}
	at := b.open(rules.Other, "", 0, w)
	for child := range b.s.children(id) {
		b.node(child, w)
	}
	b.close(at)
}

// atom adds a node of a frequent class. It returns false for other classes.
func (b *builder) atom(id nodeID, c class, w where) bool {
	s := b.s
	switch c {
	case className:
		b.open(rules.Name, s.word(id, fieldID), b.bound(s.text(id, fieldID), w.scope), w)
	case classConstant:
		kind, text := s.written(s.get(id, fieldValue))
		b.open(kind, text, 0, w)
	case classAttribute:
		b.with(rules.Member, s.word(id, fieldAttr), id, w, fieldValue)
	case classCall:
		b.call(id, w)
	case classExpr:
		b.field(id, fieldValue, w)
	case classAssign:
		b.assign(id, w)
	case classSubscript:
		b.with(rules.Index, "", id, w, fieldValue, fieldSlice)
	case classBinOp:
		b.with(rules.Binary, operators[s.symbol(id, fieldOp)], id, w, fieldLeft, fieldRight)
	default:
		return false
	}
	return true
}

// written returns the kind and text of a constant.
func (s *syntax) written(v value) (rules.Kind, string) {
	switch v.sort {
	case sortText, sortBytes:
		return rules.String, s.texts[v.at]
	case sortTrue:
		return rules.Constant, "True"
	case sortFalse:
		return rules.Constant, "False"
	case sortEllipsis:
		return rules.Constant, "Ellipsis"
	case sortInteger, sortLong:
		return rules.Number, strconv.FormatInt(s.integer(v), 10)
	case sortHuge:
		return rules.Number, "huge"
	case sortFloat:
		return rules.Number, floatText(s.floats[v.at])
	case sortImaginary:
		return rules.Number, strings.TrimSuffix(floatText(s.floats[v.at]), ".0") + "j"
	}
	return rules.Constant, "None"
}

// expression adds an expression. It returns false for other nodes.
func (b *builder) expression(id nodeID, c class, w where) bool {
	s := b.s
	switch c {
	case classJoinedStr:
		b.with(rules.Template, "", id, w, fieldValues)
	case classFormattedValue:
		if s.node(id, fieldFormat) == 0 {
			b.field(id, fieldValue, w)
		} else {
			b.with(rules.Other, "", id, w, fieldValue, fieldFormat)
		}
	case classSlice:
		b.slice(id, w)
	case classStarred:
		b.with(rules.Spread, "", id, w, fieldValue)
	case classBoolOp:
		b.with(rules.Logical, operators[s.symbol(id, fieldOp)], id, w, fieldValues)
	case classUnaryOp:
		b.with(rules.Unary, operators[s.symbol(id, fieldOp)], id, w, fieldOperand)
	case classCompare:
		b.compare(id, w)
	case classIfExp:
		b.with(rules.Branch, "?:", id, w, fieldTest, fieldBody, fieldElse)
	case classListComp, classSetComp, classDictComp, classGeneratorExp:
		b.comprehension(id, c, w)
	case classAwait:
		b.with(rules.Await, "", id, w, fieldValue)
	case classNamedExpr:
		b.with(rules.Assign, "=", id, w, fieldTarget, fieldValue)
	case classDict:
		b.dict(id, w)
	case classList, classTuple, classSet:
		b.with(rules.Array, "", id, w, fieldElements)
	default:
		return false
	}
	return true
}

// statement adds a statement other than a definition. It returns false for other nodes.
func (b *builder) statement(id nodeID, c class, w where) bool {
	switch c {
	case classIf:
		b.with(rules.Branch, "if", id, w, fieldTest, fieldBody, fieldElse)
	case classFor, classAsyncFor:
		b.made(rules.Loop, "for", w, func() {
			b.with(rules.Assign, "of", id, w, fieldTarget, fieldIter)
			b.list(id, fieldBody, w)
			b.list(id, fieldElse, w)
		})
	case classWhile:
		b.with(rules.Loop, "while", id, w, fieldTest, fieldBody, fieldElse)
	case classReturn:
		b.with(rules.Return, "", id, w, fieldValue)
	case classRaise:
		b.with(rules.Throw, "", id, w, fieldException, fieldCause)
	case classAnnAssign:
		b.annotated(id, w)
	case classAugAssign:
		b.with(rules.Assign, operators[b.s.symbol(id, fieldOp)]+"=", id, w, fieldTarget, fieldValue)
	case classDelete:
		b.with(rules.Delete, "", id, w, fieldTargets)
	case classWith, classAsyncWith:
		b.withStatement(id, w)
	case classExceptHandler:
		b.handler(id, w)
	case classMatchCase:
		at := b.open(rules.Branch, "case", 0, w)
		for child := range b.s.children(id) {
			b.node(child, w)
		}
		b.close(at)
	default:
		return false
	}
	return true
}

// definition adds an import, a function or a class. It returns false for other nodes.
func (b *builder) definition(id nodeID, c class, w where) bool {
	switch c {
	case classFunctionDef, classAsyncFunctionDef, classClassDef:
		if len(b.s.list(id, fieldDecorators)) == 0 {
			b.define(id, c, w)
			return true
		}
		at := b.open(rules.Other, "", 0, w)
		b.list(id, fieldDecorators, w)
		b.define(id, c, w)
		b.close(at)
	case classLambda:
		inner := b.scope(id, w.scope)
		b.made(rules.Function, "", w, func() {
			b.parameters(id, w, inner)
			b.field(id, fieldBody, w.in(inner))
		})
	case classImport:
		b.imports(id, w)
	case classImportFrom:
		b.importsFrom(id, w)
	default:
		return false
	}
	return true
}

func (b *builder) call(id nodeID, w where) {
	at := b.open(rules.Call, "", 0, w)
	b.field(id, fieldFunc, w)
	b.list(id, fieldArgs, w)
	for _, item := range b.s.list(id, fieldKeywords) {
		k := nodeOf(item)
		if name := b.s.word(k, fieldArg); name != "" {
			b.with(rules.Property, name, k, w, fieldValue)
		} else {
			b.with(rules.Spread, "", k, w, fieldValue)
		}
	}
	b.close(at)
}

// assign adds an assignment. With several targets, the assignment to the first contains the others.
func (b *builder) assign(id nodeID, w where) {
	var opened []int
	for _, target := range b.s.list(id, fieldTargets) {
		if b.large {
			return
		}
		opened = append(opened, b.open(rules.Assign, "=", 0, w))
		b.node(nodeOf(target), w)
	}
	b.field(id, fieldValue, w)
	for _, at := range opened {
		b.close(at)
	}
}

func (b *builder) slice(id nodeID, w where) {
	s, step, text := b.s, b.s.node(id, fieldStep), ""
	if one := s.get(s.node(step, fieldOperand), fieldValue); s.node(id, fieldLower) == 0 && s.node(id, fieldUpper) == 0 && s.class(step) == classUnaryOp && s.isOne(one) {
		text = "::-1"
	}
	b.with(rules.Slice, text, id, w, fieldLower, fieldUpper, fieldStep)
}

// isOne reports whether a value equals one.
func (s *syntax) isOne(v value) bool {
	return v.sort == sortInteger && v.at == 1 || v.sort == sortTrue || v.sort == sortFloat && s.floats[v.at] == 1
}

func (b *builder) compare(id nodeID, w where) {
	text := ""
	if ops := b.s.list(id, fieldOps); len(ops) > 0 && ops[0].sort == sortClass {
		text = operators[ops[0].at]
	}
	b.with(rules.Binary, text, id, w, fieldLeft, fieldComparators)
}

// comprehension adds a comprehension. Its first iterable belongs to the surrounding scope.
func (b *builder) comprehension(id nodeID, c class, w where) {
	inner := w.in(b.scope(id, w.scope))
	at := b.open(rules.Loop, "comprehension", 0, w)
	for i, item := range b.s.list(id, fieldGenerators) {
		part, over := nodeOf(item), inner
		if i == 0 {
			over = w
		}
		b.made(rules.Assign, "of", w, func() {
			b.field(part, fieldTarget, inner)
			b.field(part, fieldIter, over)
		})
		b.list(part, fieldConditions, inner)
	}
	if c == classDictComp {
		b.field(id, fieldKey, inner)
		b.field(id, fieldValue, inner)
	} else {
		b.field(id, fieldElement, inner)
	}
	b.close(at)
}

func (b *builder) dict(id nodeID, w where) {
	at := b.open(rules.Object, "", 0, w)
	keys, values := b.s.list(id, fieldKeys), b.s.list(id, fieldValues)
	for i, item := range keys[:min(len(keys), len(values))] {
		key, kind, text := nodeOf(item), rules.Property, ""
		if b.s.isText(key) {
			text = b.s.word(key, fieldValue)
		}
		if key == 0 {
			kind = rules.Spread
		}
		b.made(kind, text, w, func() {
			if text == "" {
				b.node(key, w)
			}
			b.node(nodeOf(values[i]), w)
		})
	}
	b.close(at)
}

func (b *builder) annotated(id nodeID, w where) {
	if b.s.node(id, fieldValue) == 0 {
		b.with(rules.Other, "", id, w, fieldTarget, fieldAnnotation)
	} else {
		b.with(rules.Assign, "=", id, w, fieldTarget, fieldValue, fieldAnnotation)
	}
}

func (b *builder) withStatement(id nodeID, w where) {
	at := b.open(rules.Other, "", 0, w)
	for _, item := range b.s.list(id, fieldItems) {
		if part := nodeOf(item); b.s.node(part, fieldOptionalVars) != 0 {
			b.with(rules.Assign, "=", part, w, fieldOptionalVars, fieldContextExpr)
		} else {
			b.field(part, fieldContextExpr, w)
		}
	}
	b.list(id, fieldBody, w)
	b.close(at)
}

func (b *builder) handler(id nodeID, w where) {
	b.made(rules.Branch, "catch", w, func() {
		if name := b.s.text(id, fieldName); name != 0 {
			b.open(rules.Parameter, b.s.texts[name], b.bound(name, w.scope), w)
		}
		b.field(id, fieldType, w)
		b.list(id, fieldBody, w)
	})
}

// define adds a function or a class without its decorators.
func (b *builder) define(id nodeID, c class, w where) {
	name, inner := b.s.text(id, fieldName), b.scope(id, w.scope)
	if c == classClassDef {
		at := b.open(rules.Class, b.s.texts[name], b.bound(name, w.scope), w)
		b.list(id, fieldBases, w)
		for _, item := range b.s.list(id, fieldKeywords) {
			b.with(rules.Property, b.s.word(nodeOf(item), fieldArg), nodeOf(item), w, fieldValue)
		}
		b.members(id, w.in(inner))
		b.close(at)
		return
	}
	at := b.open(rules.Function, b.s.texts[name], b.bound(name, w.scope), w)
	b.parameters(id, w, inner)
	b.field(id, fieldReturns, w)
	b.list(id, fieldBody, w.in(inner))
	b.close(at)
}

// members adds the body of a class.
func (b *builder) members(id nodeID, w where) {
	for _, item := range b.s.list(id, fieldBody) {
		member := nodeOf(item)
		if c := b.s.class(member); c != classFunctionDef && c != classAsyncFunctionDef {
			b.node(member, w)
			continue
		}
		b.made(rules.Property, b.s.word(member, fieldName), w, func() { b.node(member, w) })
	}
}

// parameters adds a function's parameters. Their annotations and defaults belong to the surrounding scope.
func (b *builder) parameters(id nodeID, w where, inner scopeID) {
	arguments := b.s.node(id, fieldArgs)
	defaults := b.s.defaults(arguments)
	for _, p := range b.s.parameters(arguments) {
		name := b.s.text(p, fieldArg)
		at := b.open(rules.Parameter, b.s.texts[name], b.bound(name, inner), w)
		b.node(defaults[p], w)
		b.field(p, fieldAnnotation, w)
		b.close(at)
	}
}

// defaults maps parameters to their defaults, by node, or returns nil.
func (s *syntax) defaults(arguments nodeID) map[nodeID]nodeID {
	plain, keyword := s.list(arguments, fieldDefaults), s.list(arguments, fieldKeywordDefaults)
	if len(plain)+len(keyword) == 0 {
		return nil
	}
	found := map[nodeID]nodeID{}
	positional := append(append([]value(nil), s.list(arguments, fieldPositionOnly)...), s.list(arguments, fieldArgs)...)
	for i := 1; i <= min(len(plain), len(positional)); i++ {
		found[nodeOf(positional[len(positional)-i])] = nodeOf(plain[len(plain)-i])
	}
	names := s.list(arguments, fieldKeywordOnly)
	for i := range min(len(keyword), len(names)) {
		found[nodeOf(names[i])] = nodeOf(keyword[i])
	}
	return found
}

func (b *builder) imports(id nodeID, w where) {
	names := b.s.list(id, fieldNames)
	if len(names) == 1 && !b.s.dotted(nodeOf(names[0])) {
		b.module(nodeOf(names[0]), w)
		return
	}
	at := b.open(rules.Other, "", 0, w)
	for _, item := range names {
		b.module(nodeOf(item), w)
	}
	b.close(at)
}

// dotted reports whether an import binds only the first part of a module's name.
func (s *syntax) dotted(alias nodeID) bool {
	return s.text(alias, fieldAsName) == 0 && strings.Contains(s.word(alias, fieldName), ".")
}

func (b *builder) module(alias nodeID, w where) {
	name, bound := b.s.word(alias, fieldName), b.s.text(alias, fieldAsName)
	if b.s.dotted(alias) {
		b.open(rules.Import, name, 0, w)
		name = head(name)
	}
	if bound == 0 {
		bound = b.s.place(name)
	}
	at := b.open(rules.Import, name, 0, w)
	b.open(rules.Imported, "*", b.bound(bound, w.scope), w)
	b.close(at)
}

// importsFrom adds an import of names. A star stands for all names. The module itself gets no name here.
func (b *builder) importsFrom(id nodeID, w where) {
	at := b.open(rules.Import, strings.Repeat(".", int(min(b.s.level(id), maxText)))+b.s.word(id, fieldModule), 0, w)
	for _, item := range b.s.list(id, fieldNames) {
		name, bound := b.s.text(nodeOf(item), fieldName), b.s.text(nodeOf(item), fieldAsName)
		if b.s.texts[name] == "*" {
			b.open(rules.Imported, "**", 0, w)
			continue
		}
		if bound == 0 {
			bound = name
		}
		b.open(rules.Imported, b.s.texts[name], b.bound(bound, w.scope), w)
	}
	b.close(at)
}
