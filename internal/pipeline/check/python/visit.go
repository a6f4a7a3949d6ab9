package python

import (
	"cmp"
	"slices"
	"strings"
)

// computing lists the functions with which programs access names that they compute.
var computing = map[string]bool{"globals": true, "locals": true, "vars": true, "exec": true, "eval": true, "compile": true, "__import__": true}

// visitor collects the facts of a program.
type visitor struct {
	facts
	s        *syntax
	x        *scopes
	lines    []string
	ascii    []bool // of lines
	builtins map[string]bool
	own      map[string]bool
	unknown  map[string]bool
	lacks    map[[2]string]lack
	said     map[textID]bool // the names that are among Names
	passed   []bool          // by node: it is the middle of a chain, or was called
	noted    []bool          // by node: it is an annotation
	guarded  []bool          // by node: its absence is caught
}

func words(text string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		set[word] = true
	}
	return set
}

// factsOf returns the facts of a program, given its lines.
func factsOf(lines []string, x *scopes, t *told) *facts {
	n := len(x.s.nodes)
	v := &visitor{
		s: x.s, x: x, lines: lines, ascii: make([]bool, len(lines)), builtins: words(t.Builtins), own: words(t.Own), unknown: map[string]bool{}, lacks: map[[2]string]lack{},
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
	v.visit(x.s.root, x.module, false)
	slices.SortStableFunc(v.Uses, func(a, b use) int { return a.compare(b.place) })
	slices.SortStableFunc(v.Imports, func(a, b module) int { return a.compare(b.place) })
	if len(v.Uses) > maxItems || len(v.Imports) > maxItems { // too many to follow
		v.Computes = true
	}
	v.Uses, v.Imports, v.Names = v.Uses[:min(len(v.Uses), maxItems)], v.Imports[:min(len(v.Imports), maxItems)], v.Names[:min(len(v.Names), maxItems)]
	v.taken = func() []taken { return takenOf(v) }
	return &v.facts
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.Line, q.Line), cmp.Compare(p.Column, q.Column))
}

// place returns the position of a node and its width on its first line.
func (v *visitor) place(id nodeID) place {
	n := &v.s.nodes[id]
	start := v.column(n.line, n.column)
	end := start + 1
	if n.endLine == n.line {
		end = v.column(n.endLine, n.endColumn)
	}
	return place{v.line(n.line), start, max(end-start, 1)}
}

func (v *visitor) line(line int32) int { return min(max(int(line), 1), len(v.lines)) }

// column returns a column in code points, counting from 1.
func (v *visitor) column(line, offset int32) int {
	i := int(line) - 1
	if i < 0 || i >= len(v.lines) || v.ascii[i] {
		return int(offset) + 1
	}
	text := v.lines[i]
	return runes(text[:min(int(offset), len(text))]) + 1
}

// member returns the position of the last name of a.b.c.
func (v *visitor) member(id nodeID) place {
	if v.s.class(id) != classAttribute {
		return v.place(id)
	}
	n, width := &v.s.nodes[id], runes(v.s.word(id, fieldAttr))
	return place{v.line(n.endLine), max(v.column(n.endLine, n.endColumn)-width, 1), width}
}

// visit visits a node in a scope. If quiet, as for annotations, names are not reported.
func (v *visitor) visit(id nodeID, at scopeID, quiet bool) {
	quiet = quiet || v.noted[id]
	switch c := v.s.class(id); c {
	case classCall:
		v.call(id, at)
	case classAttribute, className:
		v.chain(id, at, quiet)
	case classImport, classImportFrom:
		v.imports(id, c)
	case classTry:
		v.guard(id)
	case classAnnAssign, classArg:
		v.noted[v.s.node(id, fieldAnnotation)] = true
	case classFunctionDef, classAsyncFunctionDef:
		v.noted[v.s.node(id, fieldReturns)] = true
	}
	inner := v.x.of[id]
	if inner == 0 || inner == at {
		for child := range v.s.children(id) {
			v.visit(child, at, quiet)
		}
		return
	}
	v.visitScope(id, at, inner, quiet)
}

// visitScope visits the children of a node with its own scope. Decorators, defaults and annotations, and the first
// iterable of a comprehension, belong to the surrounding scope.
func (v *visitor) visitScope(id nodeID, at, inner scopeID, quiet bool) {
	c := v.s.class(id)
	n := v.s.nodes[id]
	for _, f := range v.s.fields[n.first : n.first+n.count] {
		in := at
		if f.name == fieldBody || isComprehension(c) {
			in = inner
		}
		if f.value.sort == sortNode {
			v.visit(f.value.at, in, quiet)
		}
		if f.value.sort != sortList {
			continue
		}
		for _, item := range v.s.lists[f.value.at] {
			if item.sort == sortNode {
				v.visit(item.at, in, quiet)
			}
		}
	}
}

// guard notes names whose existence the program tests.
func (v *visitor) guard(id nodeID) {
	caught := map[string]bool{}
	for _, item := range v.s.list(id, fieldHandlers) {
		kind := v.s.node(nodeOf(item), fieldType)
		if v.s.class(kind) != classTuple {
			caught[v.s.word(kind, fieldID)] = true
			continue
		}
		for _, item := range v.s.list(kind, fieldElements) {
			caught[v.s.word(nodeOf(item), fieldID)] = true
		}
	}
	body := v.s.list(id, fieldBody)
	if caught["NameError"] && len(body) <= 3 {
		v.Asks = true
	}
	if caught["ImportError"] || caught["ModuleNotFoundError"] || caught["Exception"] || caught["BaseException"] || caught[""] {
		for _, item := range body {
			v.guarded[nodeOf(item)] = true
		}
	}
}

func (v *visitor) imports(id nodeID, c class) {
	for _, item := range v.s.list(id, fieldNames) {
		alias := nodeOf(item)
		found := module{Module: v.s.word(alias, fieldName), Guarded: v.guarded[id], Known: true, place: v.place(alias)}
		if v.s.nodes[alias].line == 0 { // an older Python does not say where it is
			found.place = v.place(id)
		}
		if c == classImportFrom {
			found.Module, found.Name = strings.Repeat(".", int(min(v.s.level(id), maxText)))+v.s.word(id, fieldModule), found.Module
		}
		if l, lacks := v.lacks[[2]string{found.Module, found.Name}]; lacks {
			found.Lacks, found.Near = true, l.Near
		}
		found.Known = !v.unknown[head(found.Module)]
		v.Star = v.Star || found.Name == "*" && !strings.HasPrefix(found.Module, "servers")
		v.Computes = v.Computes || head(found.Module) == "importlib"
		v.Imports = append(v.Imports, found)
	}
}

// chain notes a.b.c if a is unbound or imported from the servers. Chains inside another chain, and called ones, were
// noted before.
func (v *visitor) chain(id nodeID, at scopeID, quiet bool) {
	if v.s.class(id) == classAttribute {
		v.passed[v.s.node(id, fieldValue)] = true
	}
	if !v.passed[id] {
		v.use(id, at, quiet, 0, 0)
	}
}

// call notes a chain that is called, and getattr with a literal.
func (v *visitor) call(id nodeID, at scopeID) {
	called, args := v.s.node(id, fieldFunc), v.s.list(id, fieldArgs)
	c := v.s.class(called)
	if c != classAttribute && c != className {
		return
	}
	if c == className && len(args) >= 2 && v.s.word(called, fieldID) == "getattr" && v.x.find(v.s.text(called, fieldID), at) == 0 {
		object, name := nodeOf(args[0]), nodeOf(args[1])
		if c := v.s.class(object); len(args) == 2 && v.s.isText(name) && (c == classAttribute || c == className) {
			v.passed[object] = true
			v.use(object, at, false, 0, name)
		}
		return
	}
	v.passed[called] = true
	v.use(called, at, false, id, 0)
}

// dotted returns the names of a.b.c, the root's first, and the root's node. It returns none for anything else.
func (v *visitor) dotted(id nodeID) (names []string, root nodeID) {
	n := 1
	for root = id; v.s.class(root) == classAttribute; root = v.s.node(root, fieldValue) {
		n++
	}
	if v.s.class(root) != className {
		return nil, 0
	}
	names = make([]string, n)
	for ; id != root; id = v.s.node(id, fieldValue) {
		n--
		names[n] = v.s.word(id, fieldAttr)
	}
	names[0] = v.s.word(root, fieldID)
	return names, root
}

// use notes a chain. If called is not 0, it is the call of the chain. If member is not 0, it is a literal that names
// one more member.
func (v *visitor) use(id nodeID, at scopeID, quiet bool, called, member nodeID) {
	path, root := v.dotted(id)
	if path == nil || v.s.symbol(id, fieldContext) != classLoad {
		return
	}
	text := v.s.text(root, fieldID)
	owner := v.x.find(text, at)
	if owner == 0 {
		v.free(root, text, quiet)
	} else {
		imported := v.x.imported(variable{owner, text})
		if first := head(imported); first != "servers" && first != "client" {
			return
		}
		path = append(strings.Split(imported, "."), path[1:]...)
	}
	if v.builtins[path[0]] {
		return
	}
	if member != 0 {
		path = append(path, v.s.word(member, fieldValue))
	}
	u := use{Path: path, Free: owner == 0, place: v.member(id)}
	if called != 0 {
		u.Call = v.arguments(called)
	}
	v.Uses = append(v.Uses, u)
}

// free notes an unbound name.
func (v *visitor) free(root nodeID, text textID, quiet bool) {
	word := v.s.texts[text]
	v.Computes = v.Computes || computing[word]
	if quiet || v.own[word] || v.builtins[word] || v.said[text] {
		return
	}
	v.said[text] = true
	v.Names = append(v.Names, name{Name: word, place: v.place(root)})
}
