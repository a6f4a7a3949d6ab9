package python

import (
	"strconv"
	"strings"

	"retort/internal/pipeline/check/rules"
)

// maxTree bounds the number of nodes in a tree that is built for package rules.
const maxTree = 400_000

// nodeContext holds the scope of a node and its range of bytes in the source.
type nodeContext struct {
	scope      scopeID
	start, end int32
}

func (w nodeContext) inScope(scope scopeID) nodeContext {
	w.scope = scope
	return w
}

// treeBuilder converts Python's syntax tree to the tree of package rules.
type treeBuilder struct {
	s         *syntaxTree
	x         *scopeTable
	tree      *rules.SyntaxTree
	lines     []int // the offsets of lines
	variables map[scopeVariable]int32
	large     bool
}

// treeOf converts a program's syntax tree to the form that package rules judges. The only possible error is
// rules.ErrLarge.
func treeOf(code string, x *scopeTable) (*rules.SyntaxTree, error) {
	b := &treeBuilder{
		s: x.s, x: x, lines: lineStarts(code), variables: map[scopeVariable]int32{},
		tree: &rules.SyntaxTree{Language: rules.Python, Source: code, Nodes: make([]rules.TreeNode, 0, min(len(x.s.nodes), maxTree))},
	}
	w := nodeContext{scope: x.module}
	b.addNode(rules.Other, "", w, func() { b.addList(x.s.root, fieldBody, w) })
	if b.large {
		return nil, rules.ErrLarge
	}
	return b.tree, nil
}

// lineStarts returns the offsets at which lines begin. A line ends with "\n" or "\r".
func lineStarts(code string) []int {
	starts := []int{0}
	for i := range len(code) {
		if code[i] == '\n' || code[i] == '\r' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

func (b *treeBuilder) byteOffset(line, column int32) int32 {
	if line < 1 || int(line) > len(b.lines) {
		return 0
	}
	return int32(min(b.lines[line-1]+int(column), len(b.tree.Source)))
}

// openNode begins a node and returns its index. All nodes that are added until closeNode are below it.
func (b *treeBuilder) openNode(kind rules.Kind, text string, bind int32, w nodeContext) int {
	if len(b.tree.Nodes) >= maxTree {
		b.large = true
		return -1
	}
	b.tree.Nodes = append(b.tree.Nodes, rules.TreeNode{Kind: kind, Text: text, Start: w.start, End: w.end, Size: 1, Bind: bind})
	return len(b.tree.Nodes) - 1
}

func (b *treeBuilder) closeNode(at int) {
	if at >= 0 {
		b.tree.Nodes[at].Size = int32(len(b.tree.Nodes) - at)
	}
}

// addNode adds a node. It calls inner to add the children.
func (b *treeBuilder) addNode(kind rules.Kind, text string, w nodeContext, inner func()) {
	at := b.openNode(kind, text, 0, w)
	inner()
	b.closeNode(at)
}

// addWithFields adds a node to the tree, and below it the nodes in the given fields of the original node.
func (b *treeBuilder) addWithFields(kind rules.Kind, text string, id nodeID, w nodeContext, fields ...fieldLabel) {
	at := b.openNode(kind, text, 0, w)
	for _, f := range fields {
		b.addField(id, f, w)
	}
	b.closeNode(at)
}

// addField adds the node or nodes that a field of another node contains.
func (b *treeBuilder) addField(id nodeID, name fieldLabel, w nodeContext) {
	switch v := b.s.fieldValue(id, name); v.sort {
	case sortNode:
		b.addTree(v.at, w)
	case sortList:
		b.addItems(b.s.lists[v.at], w)
	}
}

func (b *treeBuilder) addList(id nodeID, name fieldLabel, w nodeContext) {
	b.addItems(b.s.fieldList(id, name), w)
}

func (b *treeBuilder) addItems(items []attrValue, w nodeContext) {
	for _, item := range items {
		b.addTree(nodeOf(item), w)
	}
}

// variableNumber returns the number of the variable that a name refers to, or 0.
func (b *treeBuilder) variableNumber(name textID, from scopeID) int32 {
	owner := b.x.findScope(name, from)
	if owner == 0 {
		return 0
	}
	v := scopeVariable{owner, name}
	n, ok := b.variables[v]
	if !ok {
		n = int32(len(b.variables) + 1)
		b.variables[v] = n
	}
	return n
}

// scopeAt returns the scope that a node opens. If the node opens none, scopeAt returns the surrounding scope, which
// is the argument around.
func (b *treeBuilder) scopeAt(id nodeID, around scopeID) scopeID {
	if own := b.x.of[id]; own != 0 {
		return own
	}
	return around
}

// addTree converts a node of Python's syntax tree and its children, and adds them to the tree that package rules
// judges.
func (b *treeBuilder) addTree(id nodeID, w nodeContext) {
	if id == 0 || b.large {
		return
	}
	n := &b.s.nodes[id]
	if n.endLine > 0 {
		w.start = b.byteOffset(n.line, n.column)
		w.end = max(w.start, b.byteOffset(n.endLine, n.endColumn))
	}
	if b.addAtom(id, n.class, w) || b.addExpression(id, n.class, w) || b.addStatement(id, n.class, w) || b.addDefinition(id, n.class, w) {
		return
	}
	at := b.openNode(rules.Other, "", 0, w)
	for child := range b.s.childNodes(id) {
		b.addTree(child, w)
	}
	b.closeNode(at)
}

// addAtom adds a node to the tree if its class occurs often, as names, constants and calls do. Otherwise it returns
// false.
func (b *treeBuilder) addAtom(id nodeID, c nodeClass, w nodeContext) bool {
	s := b.s
	switch c {
	case className:
		b.openNode(rules.Name, s.fieldString(id, fieldID), b.variableNumber(s.fieldText(id, fieldID), w.scope), w)
	case classConstant:
		kind, text := s.constantText(s.fieldValue(id, fieldValue))
		b.openNode(kind, text, 0, w)
	case classAttribute:
		b.addWithFields(rules.Member, s.fieldString(id, fieldAttr), id, w, fieldValue)
	case classCall:
		b.addCall(id, w)
	case classExpr:
		b.addField(id, fieldValue, w)
	case classAssign:
		b.addAssignment(id, w)
	case classSubscript:
		b.addWithFields(rules.Index, "", id, w, fieldValue, fieldSlice)
	case classBinOp:
		b.addWithFields(rules.Binary, operatorTexts[s.fieldSymbol(id, fieldOp)], id, w, fieldLeft, fieldRight)
	default:
		return false
	}
	return true
}

// constantText returns the kind and text of a constant.
func (s *syntaxTree) constantText(v attrValue) (rules.Kind, string) {
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
		return rules.Number, strconv.FormatInt(s.integerValue(v), 10)
	case sortHuge:
		return rules.Number, "huge"
	case sortFloat:
		return rules.Number, floatText(s.floats[v.at])
	case sortImaginary:
		return rules.Number, strings.TrimSuffix(floatText(s.floats[v.at]), ".0") + "j"
	}
	return rules.Constant, "None"
}

// addExpression adds a node to the tree if it is an expression. Otherwise it returns false.
func (b *treeBuilder) addExpression(id nodeID, c nodeClass, w nodeContext) bool {
	s := b.s
	switch c {
	case classJoinedStr:
		b.addWithFields(rules.Template, "", id, w, fieldValues)
	case classFormattedValue:
		if s.childNode(id, fieldFormat) == 0 {
			b.addField(id, fieldValue, w)
		} else {
			b.addWithFields(rules.Other, "", id, w, fieldValue, fieldFormat)
		}
	case classSlice:
		b.addSlice(id, w)
	case classStarred:
		b.addWithFields(rules.Spread, "", id, w, fieldValue)
	case classBoolOp:
		b.addWithFields(rules.Logical, operatorTexts[s.fieldSymbol(id, fieldOp)], id, w, fieldValues)
	case classUnaryOp:
		b.addWithFields(rules.Unary, operatorTexts[s.fieldSymbol(id, fieldOp)], id, w, fieldOperand)
	case classCompare:
		b.addComparison(id, w)
	case classIfExp:
		b.addWithFields(rules.Branch, "?:", id, w, fieldTest, fieldBody, fieldElse)
	case classListComp, classSetComp, classDictComp, classGeneratorExp:
		b.addComprehension(id, c, w)
	case classAwait:
		b.addWithFields(rules.Await, "", id, w, fieldValue)
	case classNamedExpr:
		b.addWithFields(rules.Assign, "=", id, w, fieldTarget, fieldValue)
	case classDict:
		b.addDict(id, w)
	case classList, classTuple, classSet:
		b.addWithFields(rules.Array, "", id, w, fieldElements)
	default:
		return false
	}
	return true
}

// addStatement adds a node to the tree if it is a statement other than a definition. Otherwise it returns false.
func (b *treeBuilder) addStatement(id nodeID, c nodeClass, w nodeContext) bool {
	switch c {
	case classIf:
		b.addWithFields(rules.Branch, "if", id, w, fieldTest, fieldBody, fieldElse)
	case classFor, classAsyncFor:
		b.addNode(rules.Loop, "for", w, func() {
			b.addWithFields(rules.Assign, "of", id, w, fieldTarget, fieldIter)
			b.addList(id, fieldBody, w)
			b.addList(id, fieldElse, w)
		})
	case classWhile:
		b.addWithFields(rules.Loop, "while", id, w, fieldTest, fieldBody, fieldElse)
	case classReturn:
		b.addWithFields(rules.Return, "", id, w, fieldValue)
	case classRaise:
		b.addWithFields(rules.Throw, "", id, w, fieldException, fieldCause)
	case classAnnAssign:
		b.addAnnotated(id, w)
	case classAugAssign:
		b.addWithFields(rules.Assign, operatorTexts[b.s.fieldSymbol(id, fieldOp)]+"=", id, w, fieldTarget, fieldValue)
	case classDelete:
		b.addWithFields(rules.Delete, "", id, w, fieldTargets)
	case classWith, classAsyncWith:
		b.withStatement(id, w)
	case classExceptHandler:
		b.addHandler(id, w)
	case classMatchCase:
		at := b.openNode(rules.Branch, "case", 0, w)
		for child := range b.s.childNodes(id) {
			b.addTree(child, w)
		}
		b.closeNode(at)
	default:
		return false
	}
	return true
}

// addDefinition adds a node to the tree if it is an import, a function or a class. Otherwise it returns false.
func (b *treeBuilder) addDefinition(id nodeID, c nodeClass, w nodeContext) bool {
	switch c {
	case classFunctionDef, classAsyncFunctionDef, classClassDef:
		if len(b.s.fieldList(id, fieldDecorators)) == 0 {
			b.addBody(id, c, w)
			return true
		}
		at := b.openNode(rules.Other, "", 0, w)
		b.addList(id, fieldDecorators, w)
		b.addBody(id, c, w)
		b.closeNode(at)
	case classLambda:
		inner := b.scopeAt(id, w.scope)
		b.addNode(rules.Function, "", w, func() {
			b.addParameters(id, w, inner)
			b.addField(id, fieldBody, w.inScope(inner))
		})
	case classImport:
		b.addImports(id, w)
	case classImportFrom:
		b.importsFrom(id, w)
	default:
		return false
	}
	return true
}

func (b *treeBuilder) addCall(id nodeID, w nodeContext) {
	at := b.openNode(rules.Call, "", 0, w)
	b.addField(id, fieldFunc, w)
	b.addList(id, fieldArgs, w)
	for _, item := range b.s.fieldList(id, fieldKeywords) {
		k := nodeOf(item)
		if name := b.s.fieldString(k, fieldArg); name != "" {
			b.addWithFields(rules.Property, name, k, w, fieldValue)
		} else {
			b.addWithFields(rules.Spread, "", k, w, fieldValue)
		}
	}
	b.closeNode(at)
}

// addAssignment adds an assignment. An assignment with several targets becomes nested assignments, the first target
// outermost.
func (b *treeBuilder) addAssignment(id nodeID, w nodeContext) {
	var opened []int
	for _, target := range b.s.fieldList(id, fieldTargets) {
		if b.large {
			return
		}
		opened = append(opened, b.openNode(rules.Assign, "=", 0, w))
		b.addTree(nodeOf(target), w)
	}
	b.addField(id, fieldValue, w)
	for _, at := range opened {
		b.closeNode(at)
	}
}

func (b *treeBuilder) addSlice(id nodeID, w nodeContext) {
	s, step, text := b.s, b.s.childNode(id, fieldStep), ""
	if one := s.fieldValue(s.childNode(step, fieldOperand), fieldValue); s.childNode(id, fieldLower) == 0 && s.childNode(id, fieldUpper) == 0 &&
		s.classOf(step) == classUnaryOp &&
		s.isOne(one) {
		text = "::-1"
	}
	b.addWithFields(rules.Slice, text, id, w, fieldLower, fieldUpper, fieldStep)
}

// isOne reports whether a value is the number 1, so that [::-1] is recognised.
func (s *syntaxTree) isOne(v attrValue) bool {
	return v.sort == sortInteger && v.at == 1 || v.sort == sortTrue || v.sort == sortFloat && s.floats[v.at] == 1
}

func (b *treeBuilder) addComparison(id nodeID, w nodeContext) {
	text := ""
	if ops := b.s.fieldList(id, fieldOps); len(ops) > 0 && ops[0].sort == sortClass {
		text = operatorTexts[ops[0].at]
	}
	b.addWithFields(rules.Binary, text, id, w, fieldLeft, fieldComparators)
}

// addComprehension adds a comprehension. The comprehension's first iterable is evaluated in the surrounding scope.
func (b *treeBuilder) addComprehension(id nodeID, c nodeClass, w nodeContext) {
	inner := w.inScope(b.scopeAt(id, w.scope))
	at := b.openNode(rules.Loop, "comprehension", 0, w)
	for i, item := range b.s.fieldList(id, fieldGenerators) {
		part, over := nodeOf(item), inner
		if i == 0 {
			over = w
		}
		b.addNode(rules.Assign, "of", w, func() {
			b.addField(part, fieldTarget, inner)
			b.addField(part, fieldIter, over)
		})
		b.addList(part, fieldConditions, inner)
	}
	if c == classDictComp {
		b.addField(id, fieldKey, inner)
		b.addField(id, fieldValue, inner)
	} else {
		b.addField(id, fieldElement, inner)
	}
	b.closeNode(at)
}

func (b *treeBuilder) addDict(id nodeID, w nodeContext) {
	at := b.openNode(rules.Object, "", 0, w)
	keys, values := b.s.fieldList(id, fieldKeys), b.s.fieldList(id, fieldValues)
	for i, item := range keys[:min(len(keys), len(values))] {
		key, kind, text := nodeOf(item), rules.Property, ""
		if b.s.isText(key) {
			text = b.s.fieldString(key, fieldValue)
		}
		if key == 0 {
			kind = rules.Spread
		}
		b.addNode(kind, text, w, func() {
			if text == "" {
				b.addTree(key, w)
			}
			b.addTree(nodeOf(values[i]), w)
		})
	}
	b.closeNode(at)
}

func (b *treeBuilder) addAnnotated(id nodeID, w nodeContext) {
	if b.s.childNode(id, fieldValue) == 0 {
		b.addWithFields(rules.Other, "", id, w, fieldTarget, fieldAnnotation)
	} else {
		b.addWithFields(rules.Assign, "=", id, w, fieldTarget, fieldValue, fieldAnnotation)
	}
}

func (b *treeBuilder) withStatement(id nodeID, w nodeContext) {
	at := b.openNode(rules.Other, "", 0, w)
	for _, item := range b.s.fieldList(id, fieldItems) {
		if part := nodeOf(item); b.s.childNode(part, fieldOptionalVars) != 0 {
			b.addWithFields(rules.Assign, "=", part, w, fieldOptionalVars, fieldContextExpr)
		} else {
			b.addField(part, fieldContextExpr, w)
		}
	}
	b.addList(id, fieldBody, w)
	b.closeNode(at)
}

func (b *treeBuilder) addHandler(id nodeID, w nodeContext) {
	b.addNode(rules.Branch, "catch", w, func() {
		if name := b.s.fieldText(id, fieldName); name != 0 {
			b.openNode(rules.Parameter, b.s.texts[name], b.variableNumber(name, w.scope), w)
		}
		b.addField(id, fieldType, w)
		b.addList(id, fieldBody, w)
	})
}

// addBody adds a function or a class without its decorators.
func (b *treeBuilder) addBody(id nodeID, c nodeClass, w nodeContext) {
	name, inner := b.s.fieldText(id, fieldName), b.scopeAt(id, w.scope)
	if c == classClassDef {
		at := b.openNode(rules.Class, b.s.texts[name], b.variableNumber(name, w.scope), w)
		b.addList(id, fieldBases, w)
		for _, item := range b.s.fieldList(id, fieldKeywords) {
			b.addWithFields(rules.Property, b.s.fieldString(nodeOf(item), fieldArg), nodeOf(item), w, fieldValue)
		}
		b.addMembers(id, w.inScope(inner))
		b.closeNode(at)
		return
	}
	at := b.openNode(rules.Function, b.s.texts[name], b.variableNumber(name, w.scope), w)
	b.addParameters(id, w, inner)
	b.addField(id, fieldReturns, w)
	b.addList(id, fieldBody, w.inScope(inner))
	b.closeNode(at)
}

// addMembers adds the body of a class.
func (b *treeBuilder) addMembers(id nodeID, w nodeContext) {
	for _, item := range b.s.fieldList(id, fieldBody) {
		member := nodeOf(item)
		if c := b.s.classOf(member); c != classFunctionDef && c != classAsyncFunctionDef {
			b.addTree(member, w)
			continue
		}
		b.addNode(rules.Property, b.s.fieldString(member, fieldName), w, func() { b.addTree(member, w) })
	}
}

// addParameters adds the parameters of a function. Annotations and defaults are evaluated in the surrounding scope.
func (b *treeBuilder) addParameters(id nodeID, w nodeContext, inner scopeID) {
	arguments := b.s.childNode(id, fieldArgs)
	defaults := b.s.parameterDefaults(arguments)
	for _, p := range b.s.parameterNodes(arguments) {
		name := b.s.fieldText(p, fieldArg)
		at := b.openNode(rules.Parameter, b.s.texts[name], b.variableNumber(name, inner), w)
		b.addTree(defaults[p], w)
		b.addField(p, fieldAnnotation, w)
		b.closeNode(at)
	}
}

// parameterDefaults returns a map from the nodes of parameters to the nodes of their default values. It is nil if no
// parameter has a default.
func (s *syntaxTree) parameterDefaults(arguments nodeID) map[nodeID]nodeID {
	plain, keyword := s.fieldList(arguments, fieldDefaults), s.fieldList(arguments, fieldKeywordDefaults)
	if len(plain)+len(keyword) == 0 {
		return nil
	}
	found := map[nodeID]nodeID{}
	positional := append(append([]attrValue(nil), s.fieldList(arguments, fieldPositionOnly)...), s.fieldList(arguments, fieldArgs)...)
	for i := 1; i <= min(len(plain), len(positional)); i++ {
		found[nodeOf(positional[len(positional)-i])] = nodeOf(plain[len(plain)-i])
	}
	names := s.fieldList(arguments, fieldKeywordOnly)
	for i := range min(len(keyword), len(names)) {
		found[nodeOf(names[i])] = nodeOf(keyword[i])
	}
	return found
}

func (b *treeBuilder) addImports(id nodeID, w nodeContext) {
	names := b.s.fieldList(id, fieldNames)
	if len(names) == 1 && !b.s.bindsFirstName(nodeOf(names[0])) {
		b.addModule(nodeOf(names[0]), w)
		return
	}
	at := b.openNode(rules.Other, "", 0, w)
	for _, item := range names {
		b.addModule(nodeOf(item), w)
	}
	b.closeNode(at)
}

// bindsFirstName reports whether an import binds only the first part of a module's name, as "import a.b" does.
func (s *syntaxTree) bindsFirstName(alias nodeID) bool {
	return s.fieldText(alias, fieldAsName) == 0 && strings.Contains(s.fieldString(alias, fieldName), ".")
}

func (b *treeBuilder) addModule(alias nodeID, w nodeContext) {
	name, bound := b.s.fieldString(alias, fieldName), b.s.fieldText(alias, fieldAsName)
	if b.s.bindsFirstName(alias) {
		b.openNode(rules.Import, name, 0, w)
		name = firstName(name)
	}
	if bound == 0 {
		bound = b.s.internText(name)
	}
	at := b.openNode(rules.Import, name, 0, w)
	b.openNode(rules.Imported, "*", b.variableNumber(bound, w.scope), w)
	b.closeNode(at)
}

// importsFrom adds an import of the form "from x import y". A star import is recorded as binding all names of the
// module.
func (b *treeBuilder) importsFrom(id nodeID, w nodeContext) {
	at := b.openNode(rules.Import, strings.Repeat(".", int(min(b.s.importLevel(id), maxText)))+b.s.fieldString(id, fieldModule), 0, w)
	for _, item := range b.s.fieldList(id, fieldNames) {
		name, bound := b.s.fieldText(nodeOf(item), fieldName), b.s.fieldText(nodeOf(item), fieldAsName)
		if b.s.texts[name] == "*" {
			b.openNode(rules.Imported, "**", 0, w)
			continue
		}
		if bound == 0 {
			bound = name
		}
		b.openNode(rules.Imported, b.s.texts[name], b.variableNumber(bound, w.scope), w)
	}
	b.closeNode(at)
}
