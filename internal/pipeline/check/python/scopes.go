package python

// scopeID is the index of a scope. There is no scope 0.
type scopeID = int32

type scopeKind uint8

const (
	scopeModule scopeKind = iota
	scopeFunction
	scopeClass
	scopeComprehension
)

// scope describes a part of the program with its own names.
type scope struct {
	kind      scopeKind
	parent    scopeID
	elsewhere bool // some of its names are declared global or nonlocal
}

// binding describes what binds a name in a scope.
type binding struct {
	count            int32
	statement, alias nodeID // the last import that binds it
}

// variable identifies a name in a scope.
type variable struct {
	scope scopeID
	name  textID
}

// scopes resolves the names of a program to variables.
type scopes struct {
	s         *syntax
	list      []scope
	of        []scopeID // by node; 0 for a node without a scope of its own
	module    scopeID
	bindings  map[variable]binding
	elsewhere map[variable]class // Global or Nonlocal
}

func scopesOf(s *syntax) *scopes {
	x := &scopes{
		s: s, list: make([]scope, 1), of: make([]scopeID, len(s.nodes)), bindings: make(map[variable]binding, len(s.nodes)/10), elsewhere: map[variable]class{},
	}
	x.module = x.open(scopeModule, s.root, 0)
	x.enterChildren(s.root, x.module)
	return x
}

func (x *scopes) open(kind scopeKind, id nodeID, parent scopeID) scopeID {
	at := scopeID(len(x.list))
	x.list = append(x.list, scope{kind: kind, parent: parent})
	x.of[id] = at
	return at
}

func (x *scopes) bind(at scopeID, name textID) {
	v := variable{at, name}
	b := x.bindings[v]
	b.count++
	x.bindings[v] = b
}

// find returns the scope that a name used in a scope belongs to, or 0 if nothing binds it.
func (x *scopes) find(name textID, from scopeID) scopeID {
	for at := from; at != 0; at = x.list[at].parent {
		sc, v := &x.list[at], variable{at, name}
		where := classOther
		if sc.elsewhere {
			where = x.elsewhere[v]
		}
		if where == classGlobal {
			v.scope = x.module
		}
		_, bound := x.bindings[v]
		switch {
		case where == classGlobal && bound:
			return x.module
		case where == classGlobal:
			return 0
		case bound && where == classOther && (sc.kind != scopeClass || at == from):
			return at
		}
	}
	return 0
}

// imported returns the dotted name of the import that is a variable's only binding, or "" if there is another binding
// or the import is relative.
func (x *scopes) imported(v variable) string {
	b := x.bindings[v]
	if b.count != 1 || b.alias == 0 {
		return ""
	}
	name := x.s.word(b.alias, fieldName)
	if x.s.class(b.statement) == classImport {
		if x.s.text(b.alias, fieldAsName) != 0 {
			return name
		}
		return head(name)
	}
	module := x.s.word(b.statement, fieldModule)
	if module == "" || x.s.level(b.statement) != 0 {
		return ""
	}
	return module + "." + name
}

// level returns the number of dots at the beginning of an import.
func (s *syntax) level(id nodeID) int32 {
	if v := s.get(id, fieldLevel); v.sort == sortInteger {
		return v.at
	}
	return 0
}

func (x *scopes) enterChildren(id nodeID, at scopeID) {
	for child := range x.s.children(id) {
		x.enter(child, at)
	}
}

func (x *scopes) enterList(list []value, at scopeID) {
	for _, item := range list {
		if id := nodeOf(item); id != 0 {
			x.enter(id, at)
		}
	}
}

// enter notes the names that a node binds and the scopes inside it.
func (x *scopes) enter(id nodeID, at scopeID) {
	switch c := x.s.class(id); {
	case c == classConstant:
	case c == className:
		if x.s.symbol(id, fieldContext) != classLoad {
			x.bind(at, x.s.text(id, fieldID))
		}
	case isFunction(c):
		x.function(id, c, at)
	case c == classClassDef:
		x.classDef(id, at)
	case isComprehension(c):
		x.comprehension(id, at)
	default:
		x.binder(id, c, at)
		x.enterChildren(id, at)
	}
}

func (x *scopes) function(id nodeID, c class, at scopeID) {
	s, inner := x.s, x.open(scopeFunction, id, at)
	if c == classLambda {
		x.enter(s.node(id, fieldBody), inner)
	} else {
		x.bind(at, s.text(id, fieldName))
		x.enterList(s.list(id, fieldDecorators), at)
		x.enter(s.node(id, fieldReturns), at)
		x.enterList(s.list(id, fieldBody), inner)
	}
	arguments := s.node(id, fieldArgs)
	for _, p := range s.parameters(arguments) {
		x.bind(inner, s.text(p, fieldArg))
		x.enter(s.node(p, fieldAnnotation), at)
	}
	x.enterList(s.list(arguments, fieldDefaults), at)
	x.enterList(s.list(arguments, fieldKeywordDefaults), at)
	for _, item := range s.list(id, fieldTypeParams) {
		x.bind(inner, s.text(nodeOf(item), fieldName))
	}
}

func (x *scopes) classDef(id nodeID, at scopeID) {
	x.bind(at, x.s.text(id, fieldName))
	inner := x.open(scopeClass, id, at)
	n := &x.s.nodes[id]
	for _, f := range x.s.fields[n.first : n.first+n.count] {
		if f.value.sort != sortList {
			continue
		}
		in := inner
		if f.name == fieldDecorators || f.name == fieldBases || f.name == fieldKeywords {
			in = at
		}
		x.enterList(x.s.lists[f.value.at], in)
	}
}

// comprehension enters a comprehension. Its first iterable belongs to the surrounding scope.
func (x *scopes) comprehension(id nodeID, at scopeID) {
	inner := x.open(scopeComprehension, id, at)
	for child := range x.s.children(id) {
		if child != x.s.first(id) {
			x.enter(child, inner)
			continue
		}
		items := x.s.node(child, fieldIter)
		for part := range x.s.children(child) {
			if part == items {
				x.enter(part, at)
			} else {
				x.enter(part, inner)
			}
		}
	}
}

// first returns the first iterable of a comprehension.
func (s *syntax) first(id nodeID) nodeID {
	if list := s.list(id, fieldGenerators); len(list) > 0 {
		return nodeOf(list[0])
	}
	return 0
}

// binder notes what a node binds if it is not a name.
func (x *scopes) binder(id nodeID, c class, at scopeID) {
	name := fieldName
	switch c {
	case classNamedExpr:
		for x.list[at].kind == scopeComprehension {
			at = x.list[at].parent
		}
		id, name = x.s.node(id, fieldTarget), fieldID
	case classImport, classImportFrom:
		x.imports(id, at)
		return
	case classGlobal, classNonlocal:
		x.declare(id, c, at)
		return
	case classMatchMapping:
		name = fieldRest
	case classExceptHandler, classMatchAs, classMatchStar, classTypeVar, classParamSpec, classTypeVarTuple:
	default:
		return
	}
	if text := x.s.text(id, name); text != 0 {
		x.bind(at, text)
	}
}

func (x *scopes) imports(id nodeID, at scopeID) {
	for _, item := range x.s.list(id, fieldNames) {
		alias := nodeOf(item)
		name := x.s.text(alias, fieldAsName)
		if name == 0 {
			name = x.s.place(head(x.s.word(alias, fieldName)))
		}
		if x.s.word(alias, fieldName) == "*" {
			continue
		}
		v := variable{at, name}
		x.bindings[v] = binding{x.bindings[v].count + 1, id, alias}
	}
}

func (x *scopes) declare(id nodeID, c class, at scopeID) {
	for _, item := range x.s.list(id, fieldNames) {
		if item.sort != sortText {
			continue
		}
		x.list[at].elsewhere = true
		x.elsewhere[variable{at, item.at}] = c
		if c == classGlobal {
			x.bind(x.module, item.at)
		}
	}
}
