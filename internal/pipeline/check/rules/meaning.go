package rules

import (
	"slices"
	"strings"
)

// analyzedTree holds a syntax tree with facts that the rules need: the parent of each node, the values of variables,
// the dotted paths that names refer to, and constant strings.
type analyzedTree struct {
	*SyntaxTree
	parents []int32
	defs    [][]variableDef // of each variable
	loops   []bool          // nodes that may run more than once
	paths   []nodeMemo[[]string]
	texts   []nodeMemo[string]
	budget  int      // bytes of constants that may still be folded
	deep    int      // variables that are being followed
	stars   []string // modules with a star import in Python
}

// nodeMemo caches the result of analysing one node.
type nodeMemo[T any] struct {
	state memoState
	value T
}

type memoState uint8

const (
	memoUnasked memoState = iota
	memoBusy              // it depends on itself, or is being found
	memoKnown
	memoNone
)

// variableDef describes one value that is assigned to a variable.
type variableDef struct {
	node int32    // the value; -1 if nothing is known of it
	keys []string // of the value's members on the way to it, when it is taken apart
	path string   // instead, of the imported member
}

const (
	maxFolded = 1 << 20 // bytes of all constants that are folded
	maxPaths  = 4       // meanings of one expression that are followed
	maxPath   = 300     // bytes of one
	maxKeys   = 8
	maxDeep   = 100 // variables that are aliases of each other
	maxStars  = 20  // imports of everything
)

func newProgram(t *SyntaxTree) *analyzedTree {
	p := &analyzedTree{
		SyntaxTree: t, parents: make([]int32, len(t.Nodes)), paths: make([]nodeMemo[[]string], len(t.Nodes)),
		texts:  make([]nodeMemo[string], len(t.Nodes)),
		budget: maxFolded,
	}
	variables := int32(0)
	for i := range t.Nodes {
		variables = max(variables, t.Nodes[i].Bind)
	}
	p.defs = make([][]variableDef, variables+1)
	p.parents[0] = -1
	for i := range t.Nodes {
		for c := range t.childNodes(int32(i)) {
			p.parents[c] = int32(i)
		}
		p.noteDefinitions(int32(i))
	}
	p.loops = p.findRepeated()
	return p
}

// noteDefinitions records the variables to which a node assigns values.
func (p *analyzedTree) noteDefinitions(i int32) {
	switch n := &p.Nodes[i]; n.Kind {
	case Assign:
		target, value := p.nthChild(i, 0), p.nthChild(i, 1)
		switch {
		case target < 0:
		case n.Text == "of" && value >= 0:
			p.bindTarget(target, variableDef{node: value, keys: []string{"[]"}})
		case n.Text != "=":
			p.bindTarget(target, variableDef{node: -1})
		case value >= 0:
			p.bindTarget(target, variableDef{node: value})
		}
	case Import:
		for c := range p.childNodes(i) {
			if p.hasKind(c, Imported) && p.Nodes[c].Text == "**" {
				p.stars = append(p.stars[:min(len(p.stars), maxStars)], n.Text)
			} else if p.hasKind(c, Imported) {
				p.addDefinition(c, variableDef{path: importedPath(p.Language, n.Text, p.Nodes[c].Text)})
			}
		}
	case Parameter:
		p.addDefinition(i, variableDef{node: -1})
		if c := p.nthChild(i, 0); c >= 0 && n.Text == "" {
			p.bindTarget(c, variableDef{node: -1})
		}
	case Function, Class:
		p.addDefinition(i, variableDef{node: i})
	}
}

func (p *analyzedTree) addDefinition(i int32, d variableDef) {
	if b := p.Nodes[i].Bind; b > 0 && len(p.defs[b]) < 2*maxPaths {
		p.defs[b] = append(p.defs[b], d)
	}
}

// bindTarget records that a value is assigned to a name, or to the names in a pattern.
func (p *analyzedTree) bindTarget(target int32, d variableDef) {
	type pair struct {
		target int32
		d      variableDef
	}
	todo := []pair{{target, d}}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		switch n := &p.Nodes[at.target]; n.Kind {
		case Name:
			p.addDefinition(at.target, at.d)
		case Object, Array:
			for c := range p.childNodes(at.target) {
				if p.hasKind(c, Property) {
					if value := p.nthChild(c, 0); value >= 0 && n.Kind == Object {
						todo = append(todo, pair{p.valueOf(c), at.d.memberDef(p.keyOf(c))})
					}
				} else {
					todo = append(todo, pair{c, variableDef{node: -1}})
				}
			}
		case Spread:
			if c := p.nthChild(at.target, 0); c >= 0 {
				todo = append(todo, pair{c, variableDef{node: -1}})
			}
		case Assign: // a default
			if c := p.nthChild(at.target, 0); c >= 0 {
				todo = append(todo, pair{c, at.d})
			}
		}
	}
}

// memberDef returns the definition of a variable that a destructuring pattern such as const {key: v} = value assigns.
// The receiver d is the definition of the whole value, and the result describes its member key.
func (d variableDef) memberDef(key string) variableDef {
	if d.node < 0 || key == "" || len(d.keys) == maxKeys {
		return variableDef{node: -1}
	}
	return variableDef{node: d.node, keys: append(slices.Clip(d.keys), key)}
}

// keyOf returns the key of a property node, or "" if the key is computed.
func (p *analyzedTree) keyOf(i int32) string {
	n := &p.Nodes[i]
	if n.Text != "" {
		return n.Text
	}
	if key := p.nthChild(i, 0); key >= 0 && p.nthChild(i, 1) >= 0 && p.hasKind(key, String) {
		return p.Nodes[key].Text
	}
	return ""
}

// valueOf returns the value of a property node, or -1.
func (p *analyzedTree) valueOf(i int32) int32 {
	if p.Nodes[i].Text == "" && p.nthChild(i, 1) >= 0 {
		return p.nthChild(i, 1)
	}
	return p.nthChild(i, 0)
}

// A path says what an expression stands for, from the top: "eval", "@fs.rm" for a
// member of a module, "?.a" where the beginning is not known, "f()" for what a
// call gives. The global object has the path of everything that it holds: eval is
// eval, however it is reached.

// possiblePaths returns the dotted paths, such as fs.readFile, that an expression may refer to. It returns none if
// they are unknown.
func (p *analyzedTree) possiblePaths(i int32) []string {
	if i < 0 {
		return nil
	}
	m := &p.paths[i]
	if m.state != memoUnasked {
		return m.value // empty while it is being found
	}
	m.state = memoBusy
	found := p.findPath(i)
	for k, s := range found {
		if len(s) > maxPath {
			found[k] = "?"
		}
	}
	m.value, m.state = found[:min(len(found), maxPaths)], memoKnown
	return m.value
}

func (p *analyzedTree) findPath(i int32) []string {
	n := &p.Nodes[i]
	switch n.Kind {
	case Name:
		if n.Bind == 0 {
			return []string{p.globalPath(n.Text)}
		}
		return p.variablePaths(n.Bind)
	case Member:
		return p.memberOf(p.nthChild(i, 0), n.Text)
	case Index:
		return p.memberOf(p.nthChild(i, 0), p.indexKey(p.nthChild(i, 1)))
	case Call:
		return p.calledPaths(i)
	case New:
		return appendSuffix(p.possiblePaths(p.nthChild(i, 0)), "()")
	case Imported:
		return []string{importedPath(p.Language, p.Nodes[max(p.parents[i], 0)].Text, n.Text)}
	case Await, Spread:
		return p.possiblePaths(p.nthChild(i, 0))
	case Assign:
		return p.possiblePaths(p.nthChild(i, 1))
	case Binary:
		if n.Text == "," {
			return p.possiblePaths(p.nthChild(i, 1))
		}
		if left := p.possiblePaths(p.nthChild(i, 0)); n.Text == "/" && slices.Contains(left, "@pathlib.Path()") {
			return left
		}
	case Logical:
		return unionPaths(p.possiblePaths(p.nthChild(i, 0)), p.possiblePaths(p.nthChild(i, 1)))
	case Branch:
		if n.Text == "?:" {
			return unionPaths(p.possiblePaths(p.nthChild(i, 1)), p.possiblePaths(p.nthChild(i, 2)))
		}
	case Function:
		return []string{"function"}
	case Class:
		return []string{"class"}
	}
	return nil
}

func unionPaths(a, b []string) []string { return append(slices.Clone(a), b...) }

func appendSuffix(paths []string, suffix string) []string {
	found := make([]string, 0, len(paths))
	for _, s := range paths {
		found = append(found, s+suffix)
	}
	return found
}

// variablePaths returns the dotted paths that a variable may refer to.
func (p *analyzedTree) variablePaths(bind int32) []string {
	var found []string
	if p.deep++; p.deep > maxDeep {
		p.deep--
		return nil
	}
	defer func() { p.deep-- }()
	for _, d := range p.defs[bind] {
		paths := []string{d.path}
		if d.path == "" {
			paths = p.possiblePaths(d.node)
		}
		for _, s := range paths {
			for _, key := range d.keys {
				s = p.joinPath(s, key)
			}
			if !slices.Contains(found, s) && len(found) < maxPaths {
				found = append(found, s)
			}
		}
	}
	return found
}

// indexKey returns the constant key in an index expression, "[?]" if the key is not constant, or "[]" for a number.
func (p *analyzedTree) indexKey(i int32) string {
	if s, ok := p.constantText(i); ok {
		return s
	}
	if p.hasKind(i, Number) {
		return "[]"
	}
	return "[?]"
}

// memberOf returns the dotted paths that object.key may refer to. If object is a literal in the program, these are
// the paths of the member's value.
func (p *analyzedTree) memberOf(object int32, key string) []string {
	var found []string
	if o := p.onlyValue(object); p.hasKind(o, Object) {
		for c := range p.childNodes(o) {
			if p.hasKind(c, Property) && p.keyOf(c) == key {
				found = append(found, p.possiblePaths(p.valueOf(c))...)
			}
		}
	}
	if len(found) > 0 {
		return found
	}
	return p.memberPaths(object, key)
}

// memberPaths returns the dotted paths that the expression object.key may refer to. If it is unknown what object
// refers to, the path is "?.key".
func (p *analyzedTree) memberPaths(object int32, key string) []string {
	paths := p.possiblePaths(object)
	if len(paths) == 0 {
		return []string{"?." + key}
	}
	found := make([]string, 0, len(paths))
	for _, s := range paths {
		found = append(found, p.joinPath(s, key))
	}
	return found
}

// joinPath returns the dotted path of a member, given the path of its object or module and the member's key. Paths
// that lead back to the global object or to a module are shortened.
func (p *analyzedTree) joinPath(path, key string) string {
	switch {
	case path == globalObject && key != "__dict__":
		return p.globalPath(key)
	case path == globalObject:
		return path
	case path == "@sys.modules" && p.Language == Python:
		return p.modulePath(key)
	case path == "@fs" && key == "promises",
		strings.HasPrefix(path, "@") && key == "default" && p.Language == Script && !strings.Contains(path[1:], "."):
		return path
	case p.Language == Python && strings.HasPrefix(path, "@") && slices.Contains(reexportedModules, strings.TrimLeft(key, "_")):
		return p.modulePath(strings.TrimLeft(key, "_")) // os.path.os, random._os
	case (key == "__dict__") && strings.HasPrefix(path, "@"):
		return path // vars(module)
	}
	return path + "." + key
}

// reexportedModules lists Python modules that other modules import. Programs can therefore also reach them as members
// of these other modules, as in random._os.
var reexportedModules = []string{
	"os", "sys", "subprocess", "builtins", "ctypes", "socket", "shutil", "importlib", "posix", "gc", "inspect",
	"marshal", "pickle",
}

// globalObject is the path that stands for JavaScript's globalThis, and for Python's builtins and globals().
const globalObject = "global"

// globalPath returns the dotted path of a name that the program does not declare itself.
func (p *analyzedTree) globalPath(name string) string {
	if p.Language == Python {
		switch {
		case name == "__builtins__" || name == "builtins":
			return globalObject
		case pythonModules[name]:
			return "@" + name
		case name == "Path":
			return "@pathlib.Path"
		case name == "partial":
			return "@functools.partial"
		}
		for _, module := range p.stars {
			if _, ok := lookupDanger(Python, "@"+module+"."+name); ok {
				return "@" + module + "." + name
			}
		}
		return name
	}
	switch name {
	case "globalThis", "window", "self", "global", "frames":
		return globalObject
	case "fs": // the module, for programs that have not imported it
		return "@fs"
	}
	return name
}

// modulePath returns the path that stands for a module.
func (p *analyzedTree) modulePath(name string) string { return importedPath(p.Language, name, "*") }

func importedPath(l TreeLanguage, module, name string) string {
	if l == Python {
		if module == "builtins" {
			if name == "*" {
				return globalObject
			}
			return name
		}
	} else {
		module = strings.TrimPrefix(module, "node:")
		module = strings.TrimSuffix(module, "/promises")
	}
	if name == "*" || name == "default" && l == Script {
		return "@" + module
	}
	return "@" + module + "." + name
}

// calledPaths returns the dotted paths that the result of a call may refer to.
func (p *analyzedTree) calledPaths(i int32) []string {
	var found []string
	callee := p.nthChild(i, 0)
	for _, s := range p.possiblePaths(callee) {
		found = append(found, p.resultPaths(i, s)...)
	}
	if len(found) == 0 && p.hasKind(callee, Member, Index) {
		return []string{"?()"}
	}
	return found
}

// resultPaths returns the dotted paths to which the result of a call may refer. i is the node of the call, and callee
// is the dotted path of the called function.
func (p *analyzedTree) resultPaths(i int32, callee string) []string {
	first, second := p.nthChild(i, 1), p.nthChild(i, 2)
	switch {
	case slices.Contains(importerFunctions, callee), strings.HasSuffix(callee, ".require"), callee == "@module.createRequire()":
		if name, ok := p.constantText(first); ok {
			return []string{p.modulePath(name)}
		}
	case callee == "getattr", callee == "Reflect.get":
		return p.memberPaths(first, p.indexKey(second))
	case strings.HasPrefix(callee, "@operator.attrgetter()"), callee == "Object.getOwnPropertyDescriptor":
		return nil
	case callee == "Object.getPrototypeOf", callee == "Reflect.getPrototypeOf":
		return p.memberPaths(first, "__proto__")
	case callee == "globals", callee == "locals", callee == "vars":
		if first < 0 {
			return []string{globalObject}
		}
		return p.possiblePaths(first)
	case callee == "@functools.partial":
		return p.possiblePaths(first)
	case strings.HasSuffix(callee, ".bind"):
		return []string{strings.TrimSuffix(callee, ".bind")}
	case p.Language == Python && strings.HasSuffix(callee, ".__getattribute__"), strings.HasSuffix(callee, ".__getitem__"),
		p.Language == Python && strings.HasSuffix(callee, ".get") &&
			(strings.HasPrefix(callee, "@sys.modules") || strings.HasPrefix(callee, globalObject)):
		return []string{p.joinPath(callee[:strings.LastIndexByte(callee, '.')], p.indexKey(first))}
	}
	return []string{callee + "()"}
}

// importerFunctions lists functions that return the module named by their argument.
var importerFunctions = []string{
	"require", "import", "process.getBuiltinModule", "module.require", "__import__", "@importlib.import_module",
	"@importlib.__import__",
}

// lastName returns the last name in a dotted path.
func lastName(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
