package tsc

import (
	"github.com/microsoft/typescript-go/internal/ast"
)

// Facts describes what a program uses, as far as its syntax tree shows: imports, free names, calls and exports.
type Facts struct {
	Imports []Import        // in source order
	Globals map[string]*Use // free names that are used as values
	Types   map[string]*Use // free names that are used in types
	Calls   []Call          // calls of imported or free functions, such as callMCPTool("a__b")
	Exports []Export        // functions that the text exports, if it is a module
	Unknown bool            // eval, Function, globalThis or a computed import: any name may be reached
}

// ImportForm says with which syntax a module is imported.
type ImportForm int

// Values of ImportForm.
const (
	ImportStatic   ImportForm = iota // import … from "x"
	ImportDynamic                    // import("x")
	ImportRequire                    // require("x"), import a = require("x")
	ImportReExport                   // export … from "x"
	ImportType                       // import("x").T in a type, import type
)

// Import represents one place in a program that names a module.
type Import struct {
	Specifier  string
	Form       ImportForm
	Start, End int // of the specifier with its quotes
	// Names maps the imported names to their uses. "*" is the module as a whole, "default" its default export.
	Names map[string]*Use
}

// Use describes how a program uses a value. Members lists the members of the value that the program names. Whole
// means that the program also uses the value in a way that may reach any member.
type Use struct {
	Whole      bool
	Called     bool
	Asked      bool     // typeof is applied to it
	TypeNames  []string // types named as members: ns.T
	Members    map[string]*Use
	Start, End int // where it is first named
}

// Call represents a call to an imported or free function.
type Call struct {
	Specifier string // of the module it comes from; "" for a global
	Name      string
	Literal   string // value of the first argument if it is a string literal
	IsLiteral bool
	Start     int // of the first argument, or of the call without one
	End       int
}

func (u *Use) member(name string, start, end int) *Use {
	if u.Members == nil {
		u.Members = map[string]*Use{}
	}
	m := u.Members[name]
	if m == nil {
		m = &Use{Start: start, End: end}
		u.Members[name] = m
	}
	return m
}

// collector collects the Facts of a file whose names the compiler has already bound to declarations.
type collector struct {
	file  *ast.SourceFile
	facts Facts
	refs  map[*ast.Symbol][]*ast.Node // uses of each local symbol
	free  map[string][]*ast.Node      // values with names that the file does not declare
	types map[string][]*ast.Node      // the same in types
	names scope
	busy  map[*ast.Symbol]bool // aliases being followed
}

func collect(file *ast.SourceFile) Facts {
	c := &collector{
		file: file, refs: map[*ast.Symbol][]*ast.Node{}, free: map[string][]*ast.Node{}, types: map[string][]*ast.Node{},
		names: newScope(), busy: map[*ast.Symbol]bool{},
	}
	c.resolve(file.AsNode())
	c.facts.Globals, c.facts.Types = c.uses(c.free), c.uses(c.types)
	c.imports(file.AsNode())
	c.facts.Exports = exportsOf(file)
	for _, name := range []string{"eval", "Function", "globalThis"} {
		if _, ok := c.facts.Globals[name]; ok {
			c.facts.Unknown = true
		}
	}
	return c.facts
}

func (c *collector) uses(names map[string][]*ast.Node) map[string]*Use {
	uses := make(map[string]*Use, len(names))
	for name, nodes := range names {
		use := &Use{Start: c.start(nodes[0]), End: nodes[0].End()}
		for _, n := range nodes {
			c.follow(n, use, Call{Name: name})
		}
		uses[name] = use
	}
	return uses
}

// resolve records what each identifier refers to. It ignores identifiers that declare a name.
func (c *collector) resolve(node *ast.Node) {
	node.ForEachChild(func(n *ast.Node) bool {
		if n.Flags&ast.NodeFlagsReparsed != 0 {
			return false
		}
		if n.Kind == ast.KindIdentifier && isReference(n) {
			if s := c.names.resolve(n); s != nil {
				c.refs[s] = append(c.refs[s], n)
			} else if isTypePosition(n) {
				c.types[n.Text()] = append(c.types[n.Text()], n)
			} else {
				c.free[n.Text()] = append(c.free[n.Text()], n)
			}
		}
		c.resolve(n)
		return false
	})
}

// imports collects every import, re-export and require call in the syntax tree below a node.
func (c *collector) imports(node *ast.Node) {
	node.ForEachChild(func(n *ast.Node) bool {
		switch {
		case n.Flags&ast.NodeFlagsReparsed != 0:
			return false
		case n.Kind == ast.KindImportDeclaration:
			c.importDeclaration(n.AsImportDeclaration())
		case n.Kind == ast.KindExportDeclaration && n.ModuleSpecifier() != nil:
			c.add(n.ModuleSpecifier(), ImportReExport)
		case n.Kind == ast.KindImportEqualsDeclaration:
			c.importEquals(n.AsImportEqualsDeclaration())
		case n.Kind == ast.KindImportType:
			c.importType(n.AsImportTypeNode())
		case ast.IsImportCall(n):
			c.importCall(n, ImportDynamic)
		case c.isRequire(n):
			c.importCall(n, ImportRequire)
		}
		c.imports(n)
		return false
	})
}

func (c *collector) add(specifier *ast.Node, form ImportForm) *Import {
	if specifier == nil || !ast.IsStringLiteralLike(specifier) {
		c.facts.Unknown = true
		return &Import{Names: map[string]*Use{}}
	}
	c.facts.Imports = append(c.facts.Imports, Import{
		Specifier: specifier.Text(), Form: form, Names: map[string]*Use{},
		Start: c.start(specifier), End: specifier.End(),
	})
	return &c.facts.Imports[len(c.facts.Imports)-1]
}

func (c *collector) importDeclaration(d *ast.ImportDeclaration) {
	clause := d.ImportClause
	im := c.add(d.ModuleSpecifier, ImportStatic)
	if clause == nil {
		return
	}
	if clause.IsTypeOnly() {
		im.Form = ImportType
	}
	if name := clause.Name(); name != nil {
		c.binding(im, "default", clause, name)
	}
	bindings := clause.AsImportClause().NamedBindings
	switch {
	case bindings == nil:
	case bindings.Kind == ast.KindNamespaceImport:
		c.binding(im, "*", bindings, bindings.Name())
	default:
		for _, e := range bindings.Elements() {
			c.binding(im, e.PropertyNameOrName().Text(), e, e.PropertyNameOrName())
		}
	}
}

// binding records the uses of one imported name. name is the name in the imported module, and at is its place in the
// program.
func (c *collector) binding(im *Import, name string, declaration, at *ast.Node) {
	use := im.Names[name]
	if use == nil {
		use = &Use{Start: c.start(at), End: at.End()}
		im.Names[name] = use
	}
	c.followAll(declaration.Symbol(), use, Call{Specifier: im.Specifier, Name: name})
}

func (c *collector) importEquals(d *ast.ImportEqualsDeclaration) {
	if d.ModuleReference.Kind == ast.KindExternalModuleReference {
		im := c.add(d.ModuleReference.Expression(), ImportRequire)
		c.binding(im, "*", d.AsNode(), d.Name())
	}
}

func (c *collector) importType(t *ast.ImportTypeNode) {
	if t.Argument == nil || t.Argument.Kind != ast.KindLiteralType {
		return
	}
	im := c.add(t.Argument.AsLiteralTypeNode().Literal, ImportType)
	use := &Use{Start: c.start(t.Argument), End: t.Argument.End()}
	im.Names["*"] = use
	switch q := t.Qualifier; {
	case q == nil:
		use.Whole = true
	default:
		for q.Kind == ast.KindQualifiedName {
			q = q.AsQualifiedName().Left
		}
		use.TypeNames = append(use.TypeNames, q.Text())
	}
}

func (c *collector) importCall(call *ast.Node, form ImportForm) {
	if len(call.Arguments()) == 0 {
		return
	}
	im := c.add(call.Arguments()[0], form)
	use := &Use{Start: im.Start, End: im.End}
	im.Names["*"] = use
	if form == ImportDynamic && ast.WalkUpParenthesizedExpressions(call.Parent).Kind != ast.KindAwaitExpression {
		use.Whole = true // a promise of the module, whose members are not the module's
		return
	}
	c.follow(call, use, Call{Specifier: im.Specifier, Name: "*"})
}

func (c *collector) isRequire(n *ast.Node) bool {
	if n.Kind != ast.KindCallExpression || len(n.Arguments()) != 1 {
		return false
	}
	callee := n.Expression()
	return ast.IsIdentifier(callee) && callee.Text() == "require" && c.names.resolve(callee) == nil
}

func (c *collector) start(n *ast.Node) int { return startOf(c.file, n) }
