package python

// scopeID is the index of a scope. 0 means none.
type scopeID = int32

type scopeKind uint8

const (
	scopeModule scopeKind = iota
	scopeFunction
	scopeClass
	scopeComprehension
)

// nameScope describes a part of the program with its own names, such as a function.
type nameScope struct {
	kind      scopeKind
	parent    scopeID
	elsewhere bool // some of its names are declared global or nonlocal
}

// nameBinding describes how often a name is bound in a scope, and which import binds it last.
type nameBinding struct {
	count            int32
	statement, alias nodeID // the last import that binds it
}

// scopeVariable holds a variable's scope and name, which together distinguish it from all other variables.
type scopeVariable struct {
	scope scopeID
	name  textID
}

// scopeTable resolves the names of a program to variables.
type scopeTable struct {
	s         *syntaxTree
	list      []nameScope
	of        []scopeID // by node; 0 for a node without a scope of its own
	module    scopeID
	bindings  map[scopeVariable]nameBinding
	elsewhere map[scopeVariable]nodeClass // Global or Nonlocal
}

func scopesOf(s *syntaxTree) *scopeTable {
	x := &scopeTable{
		s: s, list: make([]nameScope, 1), of: make([]scopeID, len(s.nodes)),
		bindings: make(map[scopeVariable]nameBinding, len(s.nodes)/10), elsewhere: map[scopeVariable]nodeClass{},
	}
	x.module = x.openScope(scopeModule, s.root, 0)
	x.enterChildren(s.root, x.module)
	return x
}

func (x *scopeTable) openScope(kind scopeKind, id nodeID, parent scopeID) scopeID {
	at := scopeID(len(x.list))
	x.list = append(x.list, nameScope{kind: kind, parent: parent})
	x.of[id] = at
	return at
}

func (x *scopeTable) bindName(at scopeID, name textID) {
	v := scopeVariable{at, name}
	b := x.bindings[v]
	b.count++
	x.bindings[v] = b
}

// findScope returns the scope that binds a name used in the given scope, or 0 if no scope binds it.
func (x *scopeTable) findScope(name textID, from scopeID) scopeID {
	for at := from; at != 0; at = x.list[at].parent {
		sc, v := &x.list[at], scopeVariable{at, name}
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

// importedName returns the dotted name of an import if that import is a variable's only binding. It returns "" if
// there is another binding or the import is relative.
func (x *scopeTable) importedName(v scopeVariable) string {
	b := x.bindings[v]
	if b.count != 1 || b.alias == 0 {
		return ""
	}
	name := x.s.fieldString(b.alias, fieldName)
	if x.s.classOf(b.statement) == classImport {
		if x.s.fieldText(b.alias, fieldAsName) != 0 {
			return name
		}
		return firstName(name)
	}
	module := x.s.fieldString(b.statement, fieldModule)
	if module == "" || x.s.importLevel(b.statement) != 0 {
		return ""
	}
	return module + "." + name
}

// importLevel returns the number of dots at the beginning of a relative import.
func (s *syntaxTree) importLevel(id nodeID) int32 {
	if v := s.fieldValue(id, fieldLevel); v.sort == sortInteger {
		return v.at
	}
	return 0
}

func (x *scopeTable) enterChildren(id nodeID, at scopeID) {
	for child := range x.s.childNodes(id) {
		x.enterNode(child, at)
	}
}

func (x *scopeTable) enterList(list []attrValue, at scopeID) {
	for _, item := range list {
		if id := nodeOf(item); id != 0 {
			x.enterNode(id, at)
		}
	}
}

// enterNode records the names that a node and its children bind, and the scopes that they open.
func (x *scopeTable) enterNode(id nodeID, at scopeID) {
	switch c := x.s.classOf(id); {
	case c == classConstant:
	case c == className:
		if x.s.fieldSymbol(id, fieldContext) != classLoad {
			x.bindName(at, x.s.fieldText(id, fieldID))
		}
	case isFunction(c):
		x.enterFunction(id, c, at)
	case c == classClassDef:
		x.classDef(id, at)
	case isComprehension(c):
		x.enterComprehension(id, at)
	default:
		x.noteBinder(id, c, at)
		x.enterChildren(id, at)
	}
}

func (x *scopeTable) enterFunction(id nodeID, c nodeClass, at scopeID) {
	s, inner := x.s, x.openScope(scopeFunction, id, at)
	if c == classLambda {
		x.enterNode(s.childNode(id, fieldBody), inner)
	} else {
		x.bindName(at, s.fieldText(id, fieldName))
		x.enterList(s.fieldList(id, fieldDecorators), at)
		x.enterNode(s.childNode(id, fieldReturns), at)
		x.enterList(s.fieldList(id, fieldBody), inner)
	}
	arguments := s.childNode(id, fieldArgs)
	for _, p := range s.parameterNodes(arguments) {
		x.bindName(inner, s.fieldText(p, fieldArg))
		x.enterNode(s.childNode(p, fieldAnnotation), at)
	}
	x.enterList(s.fieldList(arguments, fieldDefaults), at)
	x.enterList(s.fieldList(arguments, fieldKeywordDefaults), at)
	for _, item := range s.fieldList(id, fieldTypeParams) {
		x.bindName(inner, s.fieldText(nodeOf(item), fieldName))
	}
}

func (x *scopeTable) classDef(id nodeID, at scopeID) {
	x.bindName(at, x.s.fieldText(id, fieldName))
	inner := x.openScope(scopeClass, id, at)
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

// enterComprehension records the scope of a comprehension. The comprehension's first iterable does not belong to that
// scope but to the surrounding one.
func (x *scopeTable) enterComprehension(id nodeID, at scopeID) {
	inner := x.openScope(scopeComprehension, id, at)
	for child := range x.s.childNodes(id) {
		if child != x.s.firstIterable(id) {
			x.enterNode(child, inner)
			continue
		}
		items := x.s.childNode(child, fieldIter)
		for part := range x.s.childNodes(child) {
			if part == items {
				x.enterNode(part, at)
			} else {
				x.enterNode(part, inner)
			}
		}
	}
}

// firstIterable returns the first for clause of a comprehension, which contains the first iterable.
func (s *syntaxTree) firstIterable(id nodeID) nodeID {
	if list := s.fieldList(id, fieldGenerators); len(list) > 0 {
		return nodeOf(list[0])
	}
	return 0
}

// noteBinder records the names bound by a node that is not a plain assignment, function or class: an import, except
// clause, match pattern, assignment expression or type parameter.
func (x *scopeTable) noteBinder(id nodeID, c nodeClass, at scopeID) {
	name := fieldName
	switch c {
	case classNamedExpr:
		for x.list[at].kind == scopeComprehension {
			at = x.list[at].parent
		}
		id, name = x.s.childNode(id, fieldTarget), fieldID
	case classImport, classImportFrom:
		x.noteImports(id, at)
		return
	case classGlobal, classNonlocal:
		x.noteDeclaration(id, c, at)
		return
	case classMatchMapping:
		name = fieldRest
	case classExceptHandler, classMatchAs, classMatchStar, classTypeVar, classParamSpec, classTypeVarTuple:
	default:
		return
	}
	if text := x.s.fieldText(id, name); text != 0 {
		x.bindName(at, text)
	}
}

func (x *scopeTable) noteImports(id nodeID, at scopeID) {
	for _, item := range x.s.fieldList(id, fieldNames) {
		alias := nodeOf(item)
		name := x.s.fieldText(alias, fieldAsName)
		if name == 0 {
			name = x.s.internText(firstName(x.s.fieldString(alias, fieldName)))
		}
		if x.s.fieldString(alias, fieldName) == "*" {
			continue
		}
		v := scopeVariable{at, name}
		x.bindings[v] = nameBinding{x.bindings[v].count + 1, id, alias}
	}
}

func (x *scopeTable) noteDeclaration(id nodeID, c nodeClass, at scopeID) {
	for _, item := range x.s.fieldList(id, fieldNames) {
		if item.sort != sortText {
			continue
		}
		x.list[at].elsewhere = true
		x.elsewhere[scopeVariable{at, item.at}] = c
		if c == classGlobal {
			x.bindName(x.module, item.at)
		}
	}
}
