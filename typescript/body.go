package tsc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/microsoft/typescript-go/internal/ast"
)

// body turns an emitted ES module into the body of an async function:
//
//   - Imports become const … = await __import("specifier") and are moved to the start.
//   - import(x) becomes __import(x), and import.meta becomes __meta.
//   - A default export becomes __exports.default = …; other exports are removed.
//   - Without a default export, the value of a trailing expression is returned,
//     and a program that consists of one function is called.
//   - The named exports of a module become __exports.names, which has a function for
//     each name that returns its value. A module returns and calls nothing.
func (u *unit) body(js, mappings string) (string, *positionMap, error) {
	file := parseModule(JavaScript, js)
	if errs := file.Diagnostics(); len(errs) > 0 {
		return "", nil, fmt.Errorf("%w: its output cannot be parsed: %s", ErrInternal, errs[0].String())
	}
	emitted := newEmitted(u, js, mappings)
	b := &bodyWriter{unit: u, file: file, source: emitted.source}
	b.write()
	code, shift := b.edits.apply(js)
	if b.restored != len(u.returns) {
		return "", nil, fmt.Errorf("%w: %d of %d returns were lost in its output", ErrInternal, len(u.returns)-b.restored, len(u.returns))
	}
	return code, newPositionMap(u, emitted, code, shift), nil
}

type bodyWriter struct {
	unit     *unit
	file     *ast.SourceFile
	source   func(pos int) (offset int, exact bool) // offset in the unit's text of what is at pos
	elided   func(*ast.Node) bool                   // whether an import is not needed; nil if all are
	edits    edits
	restored int         // returns that were turned into throws
	exports  []*ast.Node // statements that make the default export
	values   []*ast.Node // statements other than imports and exports of names
	names    []string    // getters of what a module exports by name
}

func (b *bodyWriter) write() {
	for _, s := range b.file.Statements.Nodes {
		b.statement(s)
	}
	b.result()
	b.expressions(b.file.AsNode())
}

func (b *bodyWriter) statement(s *ast.Node) {
	switch s.Kind {
	case ast.KindImportDeclaration:
		b.edits.move(b.start(s), 0, b.importCode(s.AsImportDeclaration()))
		b.remove(s)
	case ast.KindExportDeclaration:
		b.exportDeclaration(s)
	case ast.KindExportAssignment:
		b.exports = append(b.exports, s)
	case ast.KindEmptyStatement:
	default:
		if s.ModifierFlags()&ast.ModifierFlagsDefault != 0 {
			b.exports = append(b.exports, s)
		} else {
			b.stripExport(s)
		}
		b.values = append(b.values, s)
	}
}

func (b *bodyWriter) start(n *ast.Node) int { return startOf(b.file, n) }

func (b *bodyWriter) remove(n *ast.Node) { b.edits.replace(b.start(n), n.End(), "") }

// unneeded reports whether an import declaration can be dropped, because the program uses none of the imported names
// as values. An import for its side effects is always needed.
func (b *bodyWriter) unneeded(s *ast.Node) bool {
	clause := s.AsImportDeclaration().ImportClause
	if clause == nil || b.elided == nil {
		return false
	}
	bindings := clause.AsImportClause().NamedBindings
	if clause.IsTypeOnly() {
		return true
	}
	if bindings != nil && bindings.Kind == ast.KindNamedImports && len(bindings.Elements()) == 0 && clause.Name() == nil {
		return false // it is imported for its side effects
	}
	return b.isElided(clause, clause.Name()) && b.isElided(bindings, bindings)
}

// isElided reports whether one part of an import declaration, such as its list of names, can be omitted, because the
// program does not use the imported names as values. If the declaration does not have the part, the argument there is
// nil, and isElided returns true.
func (b *bodyWriter) isElided(n, there *ast.Node) bool {
	switch {
	case there == nil:
		return true
	case b.elided == nil:
		return false
	case n.Kind != ast.KindNamedImports:
		return b.elided(n)
	}
	return !slices.ContainsFunc(n.Elements(), func(e *ast.Node) bool { return !b.elided(e) })
}

// importCode returns the code that replaces an import declaration.
func (b *bodyWriter) importCode(d *ast.ImportDeclaration) string {
	module := "await __import(" + strconv.Quote(d.ModuleSpecifier.Text()) + ")"
	clause := d.ImportClause
	if clause == nil {
		return module + "; "
	}
	name, bindings := clause.Name(), clause.AsImportClause().NamedBindings
	var code strings.Builder
	if !b.isElided(clause, name) {
		fmt.Fprintf(&code, "const %s = (%s).default; ", name.Text(), module)
	}
	switch {
	case b.isElided(bindings, bindings):
	case bindings.Kind == ast.KindNamespaceImport:
		fmt.Fprintf(&code, "const %s = %s; ", bindings.Name().Text(), module)
	default:
		fmt.Fprintf(&code, "const { %s } = %s; ", b.importedNames(bindings), module)
	}
	return code.String()
}

func (b *bodyWriter) importedNames(named *ast.Node) string {
	var names []string
	for _, e := range named.Elements() {
		if b.isElided(e, e) {
			continue
		}
		imported, local := e.PropertyNameOrName(), e.Name().Text()
		switch {
		case ast.IsStringLiteralLike(imported):
			names = append(names, strconv.Quote(imported.Text())+": "+local)
		case imported.Text() == local:
			names = append(names, local)
		default:
			names = append(names, imported.Text()+": "+local)
		}
	}
	return strings.Join(names, ", ")
}

// exportDeclaration handles export {a, b as default}. Re-exports from other modules are ignored, because nothing
// imports them here.
func (b *bodyWriter) exportDeclaration(s *ast.Node) {
	d := s.AsExportDeclaration()
	b.remove(s)
	switch {
	case d.ModuleSpecifier != nil:
		b.edits.move(b.start(s), 0, "await __import("+strconv.Quote(d.ModuleSpecifier.Text())+"); ")
	case d.ExportClause != nil && d.ExportClause.Kind == ast.KindNamedExports:
		for _, e := range d.ExportClause.Elements() {
			b.export(e.Name().Text(), e.PropertyNameOrName().Text())
			if e.Name().Text() == "default" {
				b.edits.move(b.start(e), len(b.file.Text()), "\n__exports.default = "+e.PropertyNameOrName().Text()+";")
				b.exports = append(b.exports, e)
			}
		}
	}
}

func (b *bodyWriter) stripExport(s *ast.Node) {
	for _, m := range s.ModifierNodes() {
		if m.Kind == ast.KindExportKeyword {
			b.remove(m)
			b.exportNames(s)
		}
	}
}

// expressions rewrites the expressions in a node that would have another meaning in a function than in a module, such
// as import().
func (b *bodyWriter) expressions(node *ast.Node) {
	node.ForEachChild(func(n *ast.Node) bool {
		if n.Flags&ast.NodeFlagsReparsed == 0 {
			b.expression(n)
			b.expressions(n)
		}
		return false
	})
}

func (b *bodyWriter) expression(n *ast.Node) {
	switch {
	case ast.IsImportCall(n):
		b.edits.replace(b.start(n), n.Expression().End(), "__import")
	case ast.IsImportMeta(n):
		b.edits.replace(b.start(n), n.End(), "__meta")
	case n.Kind == ast.KindThrowStatement:
		b.restore(n)
	}
}

// restore replaces the throw at node n by return, if the rewriter had replaced a return by this throw.
func (b *bodyWriter) restore(n *ast.Node) {
	at := b.start(n)
	source, exact := b.source(at)
	if exact && b.unit.returns[b.unit.shift.back(source)] {
		b.edits.replace(at, at+len("throw"), "return")
		b.restored++
	}
}
