package python

import (
	"cmp"
	"slices"
	"strings"
)

// computingFunctions lists functions with which a program can access or define names that are not visible in its
// text.
var computingFunctions = map[string]bool{
	"globals": true, "locals": true, "vars": true, "exec": true, "eval": true, "compile": true, "__import__": true,
}

// factVisitor collects the facts of a program.
type factVisitor struct {
	programFacts
	s        *syntaxTree
	x        *scopeTable
	lines    []string
	ascii    []bool // of lines
	builtins map[string]bool
	own      map[string]bool
	unknown  map[string]bool
	lacks    map[[2]string]missingName
	said     map[textID]bool // the names that are among Names
	passed   []bool          // by node: it is the middle of a chain, or was called
	noted    []bool          // by node: it is an annotation
	guarded  []bool          // by node: its absence is caught
}

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		set[word] = true
	}
	return set
}

// factsOf collects a program's imports, tool calls and unbound names. t is the report of the interpreter in the
// sandbox.
func factsOf(lines []string, x *scopeTable, t *guestFacts) *programFacts {
	n := len(x.s.nodes)
	v := &factVisitor{
		s: x.s, x: x, lines: lines, ascii: make([]bool, len(lines)), builtins: wordSet(t.Builtins), own: wordSet(t.Own),
		unknown: map[string]bool{}, lacks: map[[2]string]missingName{},
		said: map[textID]bool{}, passed: make([]bool, n), noted: make([]bool, n), guarded: make([]bool, n),
	}
	for i, line := range lines {
		v.ascii[i] = isASCII(line)
	}
	for _, module := range t.Unknown {
		v.unknown[module] = true
	}
	for _, l := range t.Lacks {
		v.lacks[[2]string{l.Module, l.Name}] = l
	}
	v.visitNode(x.s.root, x.module, false)
	slices.SortStableFunc(v.Uses, func(a, b nameChain) int { return a.compareTo(b.sourcePlace) })
	slices.SortStableFunc(v.Imports, func(a, b importedModule) int { return a.compareTo(b.sourcePlace) })
	if len(v.Uses) > maxItems || len(v.Imports) > maxItems { // too many to follow
		v.Computes = true
	}
	v.Uses, v.Imports, v.Names = v.Uses[:min(len(v.Uses), maxItems)], v.Imports[:min(
		len(v.Imports), maxItems,
	)], v.Names[:min(len(v.Names), maxItems)]
	v.taken = func() []takenKey { return takenOf(v) }
	return &v.programFacts
}

func (p sourcePlace) compareTo(q sourcePlace) int {
	return cmp.Or(cmp.Compare(p.Line, q.Line), cmp.Compare(p.Column, q.Column))
}

// nodePlace returns the position of a node and the width of its first line.
func (v *factVisitor) nodePlace(id nodeID) sourcePlace {
	n := &v.s.nodes[id]
	start := v.columnNumber(n.line, n.column)
	end := start + 1
	if n.endLine == n.line {
		end = v.columnNumber(n.endLine, n.endColumn)
	}
	return sourcePlace{v.lineNumber(n.line), start, max(end-start, 1)}
}

func (v *factVisitor) lineNumber(line int32) int { return min(max(int(line), 1), len(v.lines)) }

// columnNumber converts a column in bytes to a column in code points, counting from 1.
func (v *factVisitor) columnNumber(line, offset int32) int {
	i := int(line) - 1
	if i < 0 || i >= len(v.lines) || v.ascii[i] {
		return int(offset) + 1
	}
	text := v.lines[i]
	return countRunes(text[:min(int(offset), len(text))]) + 1
}

// memberPlace returns the position of the last name in a chain such as a.b.c.
func (v *factVisitor) memberPlace(id nodeID) sourcePlace {
	if v.s.classOf(id) != classAttribute {
		return v.nodePlace(id)
	}
	n, width := &v.s.nodes[id], countRunes(v.s.fieldString(id, fieldAttr))
	return sourcePlace{v.lineNumber(n.endLine), max(v.columnNumber(n.endLine, n.endColumn)-width, 1), width}
}

// visitNode collects the facts in a node of a scope. If quiet is set, it does not report unbound names; annotations,
// for example, may contain such names.
func (v *factVisitor) visitNode(id nodeID, at scopeID, quiet bool) {
	quiet = quiet || v.noted[id]
	switch c := v.s.classOf(id); c {
	case classCall:
		v.noteCall(id, at)
	case classAttribute, className:
		v.noteChain(id, at, quiet)
	case classImport, classImportFrom:
		v.noteImports(id, c)
	case classTry:
		v.noteGuard(id)
	case classAnnAssign, classArg:
		v.noted[v.s.childNode(id, fieldAnnotation)] = true
	case classFunctionDef, classAsyncFunctionDef:
		v.noted[v.s.childNode(id, fieldReturns)] = true
	}
	inner := v.x.of[id]
	if inner == 0 || inner == at {
		for child := range v.s.childNodes(id) {
			v.visitNode(child, at, quiet)
		}
		return
	}
	v.visitScope(id, at, inner, quiet)
}

// visitScope visits the children of a node that has its own scope. Decorators, defaults, annotations, and the first
// iterable of a comprehension belong to the surrounding scope.
func (v *factVisitor) visitScope(id nodeID, at, inner scopeID, quiet bool) {
	c := v.s.classOf(id)
	n := v.s.nodes[id]
	for _, f := range v.s.fields[n.first : n.first+n.count] {
		in := at
		if f.name == fieldBody || isComprehension(c) {
			in = inner
		}
		if f.value.sort == sortNode {
			v.visitNode(f.value.at, in, quiet)
		}
		if f.value.sort != sortList {
			continue
		}
		for _, item := range v.s.lists[f.value.at] {
			if item.sort == sortNode {
				v.visitNode(item.at, in, quiet)
			}
		}
	}
}

// noteGuard records that a try statement handles missing names or failed imports, so that the checker does not report
// these.
func (v *factVisitor) noteGuard(id nodeID) {
	caught := map[string]bool{}
	for _, item := range v.s.fieldList(id, fieldHandlers) {
		kind := v.s.childNode(nodeOf(item), fieldType)
		if v.s.classOf(kind) != classTuple {
			caught[v.s.fieldString(kind, fieldID)] = true
			continue
		}
		for _, item := range v.s.fieldList(kind, fieldElements) {
			caught[v.s.fieldString(nodeOf(item), fieldID)] = true
		}
	}
	body := v.s.fieldList(id, fieldBody)
	if caught["NameError"] && len(body) <= 3 {
		v.Asks = true
	}
	if caught["ImportError"] || caught["ModuleNotFoundError"] || caught["Exception"] || caught["BaseException"] || caught[""] {
		for _, item := range body {
			v.guarded[nodeOf(item)] = true
		}
	}
}

func (v *factVisitor) noteImports(id nodeID, c nodeClass) {
	for _, item := range v.s.fieldList(id, fieldNames) {
		alias := nodeOf(item)
		found := importedModule{Module: v.s.fieldString(alias, fieldName), Guarded: v.guarded[id], Known: true, sourcePlace: v.nodePlace(alias)}
		if v.s.nodes[alias].line == 0 { // an older Python does not say where it is
			found.sourcePlace = v.nodePlace(id)
		}
		if c == classImportFrom {
			found.Module, found.Name = strings.Repeat(".", int(min(v.s.importLevel(id), maxText)))+v.s.fieldString(id, fieldModule), found.Module
		}
		if l, lacks := v.lacks[[2]string{found.Module, found.Name}]; lacks {
			found.Lacks, found.Near = true, l.Near
		}
		found.Known = !v.unknown[firstName(found.Module)]
		v.Star = v.Star || found.Name == "*" && !strings.HasPrefix(found.Module, "servers")
		v.Computes = v.Computes || firstName(found.Module) == "importlib"
		v.Imports = append(v.Imports, found)
	}
}

// noteChain records a chain a.b.c if a is unbound or imported from servers. It skips chains that are part of a longer
// chain or are called, because these were already recorded.
func (v *factVisitor) noteChain(id nodeID, at scopeID, quiet bool) {
	if v.s.classOf(id) == classAttribute {
		v.passed[v.s.childNode(id, fieldValue)] = true
	}
	if !v.passed[id] {
		v.noteUse(id, at, quiet, 0, 0)
	}
}

// noteCall records a chain of names that the program calls, such as a.b.c(). It also records the names in
// getattr(a.b, "c"), a call of getattr with a literal name.
func (v *factVisitor) noteCall(id nodeID, at scopeID) {
	called, args := v.s.childNode(id, fieldFunc), v.s.fieldList(id, fieldArgs)
	c := v.s.classOf(called)
	if c != classAttribute && c != className {
		return
	}
	if c == className && len(args) >= 2 && v.s.fieldString(called, fieldID) == "getattr" &&
		v.x.findScope(v.s.fieldText(called, fieldID), at) == 0 {
		object, name := nodeOf(args[0]), nodeOf(args[1])
		if c := v.s.classOf(object); len(args) == 2 && v.s.isText(name) && (c == classAttribute || c == className) {
			v.passed[object] = true
			v.noteUse(object, at, false, 0, name)
		}
		return
	}
	v.passed[called] = true
	v.noteUse(called, at, false, id, 0)
}

// dottedNames returns the names in a chain a.b.c and the node of the first name. It returns nil for other
// expressions.
func (v *factVisitor) dottedNames(id nodeID) (names []string, root nodeID) {
	n := 1
	for root = id; v.s.classOf(root) == classAttribute; root = v.s.childNode(root, fieldValue) {
		n++
	}
	if v.s.classOf(root) != className {
		return nil, 0
	}
	names = make([]string, n)
	for ; id != root; id = v.s.childNode(id, fieldValue) {
		n--
		names[n] = v.s.fieldString(id, fieldAttr)
	}
	names[0] = v.s.fieldString(root, fieldID)
	return names, root
}

// noteUse records a chain of names that the program uses. called is the node of the call if the chain is called,
// otherwise 0. member is a string literal with one more name, as in getattr(a.b, "c"), or 0.
func (v *factVisitor) noteUse(id nodeID, at scopeID, quiet bool, called, member nodeID) {
	path, root := v.dottedNames(id)
	if path == nil || v.s.fieldSymbol(id, fieldContext) != classLoad {
		return
	}
	text := v.s.fieldText(root, fieldID)
	owner := v.x.findScope(text, at)
	if owner == 0 {
		v.noteFree(root, text, quiet)
	} else {
		imported := v.x.importedName(scopeVariable{owner, text})
		if first := firstName(imported); first != "servers" && first != "client" {
			return
		}
		path = append(strings.Split(imported, "."), path[1:]...)
	}
	if v.builtins[path[0]] {
		return
	}
	if member != 0 {
		path = append(path, v.s.fieldString(member, fieldValue))
	}
	u := nameChain{Path: path, Free: owner == 0, node: id, sourcePlace: v.memberPlace(id)}
	if called != 0 {
		u.Call = v.readArguments(called)
	}
	v.Uses = append(v.Uses, u)
}

// noteFree records an unbound name.
func (v *factVisitor) noteFree(root nodeID, text textID, quiet bool) {
	word := v.s.texts[text]
	v.Computes = v.Computes || computingFunctions[word]
	if quiet || v.own[word] || v.builtins[word] || v.said[text] {
		return
	}
	v.said[text] = true
	v.Names = append(v.Names, usedName{Name: word, sourcePlace: v.nodePlace(root)})
}
