package rules

import (
	"slices"
	"strings"
)

// program extends a tree with what the rules need: the parent of each node, what a name stands for, and which strings
// are constant.
type program struct {
	*Tree
	parents []int32
	defs    [][]def // of each variable
	loops   []bool  // nodes that may run more than once
	paths   []memo[[]string]
	texts   []memo[string]
	budget  int      // bytes of constants that may still be folded
	deep    int      // variables that are being followed
	stars   []string // modules with a star import in Python
}

// memo caches what is known of one node.
type memo[T any] struct {
	state memoState
	value T
}

type memoState uint8

const (
	unasked memoState = iota
	busy              // it depends on itself, or is being found
	known
	none
)

// def describes one value that a variable may hold.
type def struct {
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

func newProgram(t *Tree) *program {
	p := &program{
		Tree: t, parents: make([]int32, len(t.Nodes)), paths: make([]memo[[]string], len(t.Nodes)), texts: make([]memo[string], len(t.Nodes)),
		budget: maxFolded,
	}
	variables := int32(0)
	for i := range t.Nodes {
		variables = max(variables, t.Nodes[i].Bind)
	}
	p.defs = make([][]def, variables+1)
	p.parents[0] = -1
	for i := range t.Nodes {
		for c := range t.children(int32(i)) {
			p.parents[c] = int32(i)
		}
		p.define(int32(i))
	}
	p.loops = p.repeated()
	return p
}

// define notes the variables that a node assigns.
func (p *program) define(i int32) {
	switch n := &p.Nodes[i]; n.Kind {
	case Assign:
		target, value := p.child(i, 0), p.child(i, 1)
		switch {
		case target < 0:
		case n.Text == "of" && value >= 0:
			p.bind(target, def{node: value, keys: []string{"[]"}})
		case n.Text != "=":
			p.bind(target, def{node: -1})
		case value >= 0:
			p.bind(target, def{node: value})
		}
	case Import:
		for c := range p.children(i) {
			if p.is(c, Imported) && p.Nodes[c].Text == "**" {
				p.stars = append(p.stars[:min(len(p.stars), maxStars)], n.Text)
			} else if p.is(c, Imported) {
				p.add(c, def{path: imported(p.Language, n.Text, p.Nodes[c].Text)})
			}
		}
	case Parameter:
		p.add(i, def{node: -1})
		if c := p.child(i, 0); c >= 0 && n.Text == "" {
			p.bind(c, def{node: -1})
		}
	case Function, Class:
		p.add(i, def{node: i})
	}
}

func (p *program) add(i int32, d def) {
	if b := p.Nodes[i].Bind; b > 0 && len(p.defs[b]) < 2*maxPaths {
		p.defs[b] = append(p.defs[b], d)
	}
}

// bind assigns a value to a name, or to the names in a pattern.
func (p *program) bind(target int32, d def) {
	type pair struct {
		target int32
		d      def
	}
	todo := []pair{{target, d}}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		switch n := &p.Nodes[at.target]; n.Kind {
		case Name:
			p.add(at.target, at.d)
		case Object, Array:
			for c := range p.children(at.target) {
				if p.is(c, Property) {
					if value := p.child(c, 0); value >= 0 && n.Kind == Object {
						todo = append(todo, pair{p.valueOf(c), at.d.member(p.keyOf(c))})
					}
				} else {
					todo = append(todo, pair{c, def{node: -1}})
				}
			}
		case Spread:
			if c := p.child(at.target, 0); c >= 0 {
				todo = append(todo, pair{c, def{node: -1}})
			}
		case Assign: // a default
			if c := p.child(at.target, 0); c >= 0 {
				todo = append(todo, pair{c, at.d})
			}
		}
	}
}

// member returns the value of a key of a value.
func (d def) member(key string) def {
	if d.node < 0 || key == "" || len(d.keys) == maxKeys {
		return def{node: -1}
	}
	return def{node: d.node, keys: append(slices.Clip(d.keys), key)}
}

// keyOf returns the key of a Property, or "" if it is computed.
func (p *program) keyOf(i int32) string {
	n := &p.Nodes[i]
	if n.Text != "" {
		return n.Text
	}
	if key := p.child(i, 0); key >= 0 && p.child(i, 1) >= 0 && p.is(key, String) {
		return p.Nodes[key].Text
	}
	return ""
}

// valueOf returns the value of a Property, or -1.
func (p *program) valueOf(i int32) int32 {
	if p.Nodes[i].Text == "" && p.child(i, 1) >= 0 {
		return p.child(i, 1)
	}
	return p.child(i, 0)
}

// A path says what an expression stands for, from the top: "eval", "@fs.rm" for a
// member of a module, "?.a" where the beginning is not known, "f()" for what a
// call gives. The global object has the path of everything that it holds: eval is
// eval, however it is reached.

// path lists what an expression may stand for, or nothing if that is unknown.
func (p *program) path(i int32) []string {
	if i < 0 {
		return nil
	}
	m := &p.paths[i]
	if m.state != unasked {
		return m.value // empty while it is being found
	}
	m.state = busy
	found := p.findPath(i)
	for k, s := range found {
		if len(s) > maxPath {
			found[k] = "?"
		}
	}
	m.value, m.state = found[:min(len(found), maxPaths)], known
	return m.value
}

func (p *program) findPath(i int32) []string {
	n := &p.Nodes[i]
	switch n.Kind {
	case Name:
		if n.Bind == 0 {
			return []string{p.global(n.Text)}
		}
		return p.variable(n.Bind)
	case Member:
		return p.memberOf(p.child(i, 0), n.Text)
	case Index:
		return p.memberOf(p.child(i, 0), p.key(p.child(i, 1)))
	case Call:
		return p.called(i)
	case New:
		return suffixed(p.path(p.child(i, 0)), "()")
	case Imported:
		return []string{imported(p.Language, p.Nodes[max(p.parents[i], 0)].Text, n.Text)}
	case Await, Spread:
		return p.path(p.child(i, 0))
	case Assign:
		return p.path(p.child(i, 1))
	case Binary:
		if n.Text == "," {
			return p.path(p.child(i, 1))
		}
		if left := p.path(p.child(i, 0)); n.Text == "/" && slices.Contains(left, "@pathlib.Path()") {
			return left
		}
	case Logical:
		return both(p.path(p.child(i, 0)), p.path(p.child(i, 1)))
	case Branch:
		if n.Text == "?:" {
			return both(p.path(p.child(i, 1)), p.path(p.child(i, 2)))
		}
	case Function:
		return []string{"function"}
	case Class:
		return []string{"class"}
	}
	return nil
}

func both(a, b []string) []string { return append(slices.Clone(a), b...) }

func suffixed(paths []string, suffix string) []string {
	found := make([]string, 0, len(paths))
	for _, s := range paths {
		found = append(found, s+suffix)
	}
	return found
}

// variable lists what a variable may stand for.
func (p *program) variable(bind int32) []string {
	var found []string
	if p.deep++; p.deep > maxDeep {
		p.deep--
		return nil
	}
	defer func() { p.deep-- }()
	for _, d := range p.defs[bind] {
		paths := []string{d.path}
		if d.path == "" {
			paths = p.path(d.node)
		}
		for _, s := range paths {
			for _, key := range d.keys {
				s = p.join(s, key)
			}
			if !slices.Contains(found, s) && len(found) < maxPaths {
				found = append(found, s)
			}
		}
	}
	return found
}

// key returns the constant name in an index, "[?]" if it is not constant, or "[]" for a number.
func (p *program) key(i int32) string {
	if s, ok := p.text(i); ok {
		return s
	}
	if p.is(i, Number) {
		return "[]"
	}
	return "[?]"
}

// memberOf lists what a member of an expression may stand for. For an object literal in the program this is the
// member's value.
func (p *program) memberOf(object int32, key string) []string {
	var found []string
	if o := p.only(object); p.is(o, Object) {
		for c := range p.children(o) {
			if p.is(c, Property) && p.keyOf(c) == key {
				found = append(found, p.path(p.valueOf(c))...)
			}
		}
	}
	if len(found) > 0 {
		return found
	}
	return p.joined(object, key)
}

// joined lists the members that an expression's key may stand for.
func (p *program) joined(object int32, key string) []string {
	paths := p.path(object)
	if len(paths) == 0 {
		return []string{"?." + key}
	}
	found := make([]string, 0, len(paths))
	for _, s := range paths {
		found = append(found, p.join(s, key))
	}
	return found
}

// join returns the path of a member.
func (p *program) join(path, key string) string {
	switch {
	case path == globalObject && key != "__dict__":
		return p.global(key)
	case path == globalObject:
		return path
	case path == "@sys.modules" && p.Language == Python:
		return p.module(key)
	case path == "@fs" && key == "promises", strings.HasPrefix(path, "@") && key == "default" && p.Language == Script && !strings.Contains(path[1:], "."):
		return path
	case p.Language == Python && strings.HasPrefix(path, "@") && slices.Contains(reexported, strings.TrimLeft(key, "_")):
		return p.module(strings.TrimLeft(key, "_")) // os.path.os, random._os
	case (key == "__dict__") && strings.HasPrefix(path, "@"):
		return path // vars(module)
	}
	return path + "." + key
}

// reexported lists modules that other modules import and so have as members.
var reexported = []string{"os", "sys", "subprocess", "builtins", "ctypes", "socket", "shutil", "importlib", "posix", "gc", "inspect", "marshal", "pickle"}

// globalObject is the path of globalThis, and of Python's builtins and globals().
const globalObject = "global"

// global returns the path of a name that the program does not declare.
func (p *program) global(name string) string {
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
			if _, ok := lookup(Python, "@"+module+"."+name); ok {
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

// module returns the path that a module's name stands for.
func (p *program) module(name string) string { return imported(p.Language, name, "*") }

func imported(l Language, module, name string) string {
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

// called lists what a call's result may be.
func (p *program) called(i int32) []string {
	var found []string
	callee := p.child(i, 0)
	for _, s := range p.path(callee) {
		found = append(found, p.result(i, s)...)
	}
	if len(found) == 0 && p.is(callee, Member, Index) {
		return []string{"?()"}
	}
	return found
}

// result lists what calling a path may return.
func (p *program) result(i int32, callee string) []string {
	first, second := p.child(i, 1), p.child(i, 2)
	switch {
	case slices.Contains(importers, callee), strings.HasSuffix(callee, ".require"), callee == "@module.createRequire()":
		if name, ok := p.text(first); ok {
			return []string{p.module(name)}
		}
	case callee == "getattr", callee == "Reflect.get":
		return p.joined(first, p.key(second))
	case strings.HasPrefix(callee, "@operator.attrgetter()"), callee == "Object.getOwnPropertyDescriptor":
		return nil
	case callee == "Object.getPrototypeOf", callee == "Reflect.getPrototypeOf":
		return p.joined(first, "__proto__")
	case callee == "globals", callee == "locals", callee == "vars":
		if first < 0 {
			return []string{globalObject}
		}
		return p.path(first)
	case callee == "@functools.partial":
		return p.path(first)
	case strings.HasSuffix(callee, ".bind"):
		return []string{strings.TrimSuffix(callee, ".bind")}
	case p.Language == Python && strings.HasSuffix(callee, ".__getattribute__"), strings.HasSuffix(callee, ".__getitem__"),
		p.Language == Python && strings.HasSuffix(callee, ".get") && (strings.HasPrefix(callee, "@sys.modules") || strings.HasPrefix(callee, globalObject)):
		return []string{p.join(callee[:strings.LastIndexByte(callee, '.')], p.key(first))}
	}
	return []string{callee + "()"}
}

// importers lists functions that return the module whose name they get.
var importers = []string{"require", "import", "process.getBuiltinModule", "module.require", "__import__", "@importlib.import_module", "@importlib.__import__"}

// last returns the last name of a path.
func last(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
