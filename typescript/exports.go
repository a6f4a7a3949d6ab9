package tsc

import (
	"strings"

	"github.com/microsoft/typescript-go/internal/ast"
	"github.com/microsoft/typescript-go/internal/scanner"
)

// Export represents a function that a module exports.
type Export struct {
	Name   string // "default" for the default export
	Async  bool
	Params []Param
	Result string // its type as written; "" if it is not written
	Doc    string // the text of the documentation comment before it
	Start  int    // of its statement
}

// Param represents a parameter of an Export.
type Param struct {
	Name     string // as written: a pattern may stand for a name
	Type     string // as written; "" if it is not written
	Schema   string // the JSON Schema of it, as far as it can be told without a checker; "{}" if not at all
	Optional bool
	Rest     bool
	Default  string // as written, or ""
}

// exportsOf finds the functions that a module exports, in source order.
func exportsOf(file *ast.SourceFile) []Export {
	e := &exporter{file: file, text: file.Text(), types: map[string]*ast.Node{}, named: map[string][]string{}}
	for _, s := range file.Statements.Nodes {
		e.note(s)
	}
	var found []Export
	for _, s := range file.Statements.Nodes {
		found = append(found, e.functions(s)...)
	}
	return found
}

type exporter struct {
	file  *ast.SourceFile
	text  string
	types map[string]*ast.Node // interfaces and aliases
	named map[string][]string  // local names → exported names, of export { a as b }
	depth int
}

// note records a type that a statement declares, or the names in an export statement that is separate from the
// declarations of these names.
func (e *exporter) note(s *ast.Node) {
	switch s.Kind {
	case ast.KindInterfaceDeclaration, ast.KindTypeAliasDeclaration:
		e.types[s.Name().Text()] = s
	case ast.KindExportAssignment:
		if local := s.Expression(); ast.IsIdentifier(local) {
			e.named[local.Text()] = append(e.named[local.Text()], "default")
		}
	case ast.KindExportDeclaration:
		d := s.AsExportDeclaration()
		if d.ModuleSpecifier == nil && d.ExportClause != nil && d.ExportClause.Kind == ast.KindNamedExports {
			for _, x := range d.ExportClause.Elements() {
				local := x.PropertyNameOrName().Text()
				e.named[local] = append(e.named[local], x.Name().Text())
			}
		}
	}
}

func (e *exporter) functions(s *ast.Node) []Export {
	switch s.Kind {
	case ast.KindFunctionDeclaration:
		if s.Body() != nil { // not an overload
			return e.under(s, s, localName(s))
		}
	case ast.KindExportAssignment:
		if f := ast.SkipOuterExpressions(s.Expression(), ast.OEKParentheses); isFunctionValue(f) {
			return []Export{e.export("default", s, f)}
		}
	case ast.KindVariableStatement:
		var found []Export
		for _, d := range s.AsVariableStatement().DeclarationList.AsVariableDeclarationList().Declarations.Nodes {
			if isFunctionValue(d.Initializer()) && ast.IsIdentifier(d.Name()) {
				f := ast.SkipOuterExpressions(d.Initializer(), ast.OEKParentheses|ast.OEKAssertions)
				found = append(found, e.under(s, f, d.Name().Text())...)
			}
		}
		return found
	}
	return nil
}

func localName(s *ast.Node) string {
	if s.Name() == nil {
		return ""
	}
	return s.Name().Text()
}

// under returns one Export for each name under which the module exports the function f. Inside the module, the name
// of f is the argument local. The argument s is the statement that declares f.
func (e *exporter) under(s, f *ast.Node, local string) []Export {
	names := e.named[local]
	switch flags := s.ModifierFlags(); {
	case flags&ast.ModifierFlagsDefault != 0:
		names = append([]string{"default"}, names...)
	case flags&ast.ModifierFlagsExport != 0:
		names = append([]string{local}, names...)
	}
	var found []Export
	for _, name := range names {
		found = append(found, e.export(name, s, f))
	}
	return found
}

func (e *exporter) export(name string, s, f *ast.Node) Export {
	x := Export{Name: name, Async: ast.GetFunctionFlags(f)&ast.FunctionFlagsAsync != 0, Doc: e.doc(s), Start: startOf(e.file, s)}
	if t := f.Type(); t != nil {
		x.Result = e.written(t)
	}
	for _, p := range f.Parameters() {
		x.Params = append(x.Params, e.param(p))
	}
	return x
}

func (e *exporter) param(n *ast.Node) Param {
	d := n.AsParameterDeclaration()
	p := Param{Name: e.written(n.Name()), Optional: d.QuestionToken != nil || d.Initializer != nil, Rest: d.DotDotDotToken != nil, Schema: "{}"}
	if d.Initializer != nil {
		p.Default = e.written(d.Initializer)
		p.Schema = literalSchema(d.Initializer)
	}
	if d.Type != nil {
		p.Type, p.Schema = e.written(d.Type), e.schema(d.Type)
	}
	return p
}

func (e *exporter) written(n *ast.Node) string {
	return e.text[startOf(e.file, n):n.End()]
}

// doc returns the text of the last documentation comment before a statement, without its asterisks.
func (e *exporter) doc(s *ast.Node) string {
	before := e.text[s.Pos():startOf(e.file, s)]
	open := strings.LastIndex(before, "/**")
	if open < 0 {
		return ""
	}
	inner, _, closed := strings.Cut(before[open+len("/**"):], "*/")
	if !closed || scanner.SkipTrivia(before[open:], 0) < len(before[open:]) {
		return ""
	}
	var lines []string
	for line := range strings.Lines(inner) {
		line = strings.TrimSpace(line)
		lines = append(lines, strings.TrimSpace(strings.TrimPrefix(line, "*")))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
