package tsc

import (
	"context"
	"slices"

	"github.com/microsoft/typescript-go/internal/ast"
	"github.com/microsoft/typescript-go/internal/binder"
	"github.com/microsoft/typescript-go/internal/core"
	"github.com/microsoft/typescript-go/internal/diagnostics"
	"github.com/microsoft/typescript-go/internal/parser"
	"github.com/microsoft/typescript-go/internal/scanner"
	"github.com/microsoft/typescript-go/internal/tspath"
)

// maxErrors bounds the errors that are reported for one program.
const maxErrors = 500

// Source represents a parsed program. It is immutable.
type Source struct {
	kind   Kind
	text   string // as given to Parse
	lines  *lineTable
	file   *ast.SourceFile
	shift  offsets // from file's text to text
	errors []Diagnostic
	facts  Facts
}

// Parse parses a program. Syntax errors are not returned as an error but by the method Errors of the Source. If Parse
// returns an error, it is that of ctx, or it wraps an exported error of this package, such as ErrTooLarge.
func (c *Compiler) Parse(ctx context.Context, text string, kind Kind) (*Source, error) {
	if err := c.limits.admit(text, kind); err != nil {
		return nil, err
	}
	return guarded(ctx, c, func(context.Context) (*Source, error) {
		return parseSource(text, kind)
	})
}

func parseSource(text string, kind Kind) (*Source, error) {
	s := &Source{kind: kind, text: text, lines: newLineTable(text)}
	if !s.parseObject() {
		s.file = parseModule(kind, text)
	}
	found := append(slices.Clone(s.file.Diagnostics()), s.file.JSDiagnostics()...)
	for _, d := range found[:min(maxErrors, len(found))] {
		s.errors = append(s.errors, s.diagnostic(d, s.shift.back))
	}
	s.checkSpecifiers()
	if len(s.errors) > 0 {
		return s, nil
	}
	if err := checkGrowth(s.file); err != nil {
		return nil, err
	}
	binder.BindSourceFile(s.file)
	s.facts = collect(s.file)
	return s, nil
}

// checkSpecifiers finds imports whose specifier is not a string. The parser accepts any expression.
func (s *Source) checkSpecifiers() {
	for _, statement := range s.file.Statements.Nodes {
		if !ast.IsImportDeclaration(statement) && !ast.IsExportDeclaration(statement) {
			continue
		}
		if from := statement.ModuleSpecifier(); from != nil && !ast.IsStringLiteral(from) {
			d := ast.NewDiagnostic(s.file, from.Loc, diagnostics.String_literal_expected)
			s.errors = append(s.errors, s.diagnostic(d, s.shift.back))
		}
	}
}

// Errors returns the syntax errors in source order.
func (s *Source) Errors() []Diagnostic { return s.errors }

// Facts returns the facts about the program. They are empty if there are syntax errors.
func (s *Source) Facts() Facts { return s.facts }

// Text returns the text given to Parse.
func (s *Source) Text() string { return s.text }

// Position returns the line and column of a byte offset.
func (s *Source) Position(offset int) (line, column int) { return s.lines.position(offset) }

// parseObject parses a program that consists of an object literal. It adds parentheses, because without them { a: 1 }
// is a block with a label.
func (s *Source) parseObject() bool {
	start := scanner.SkipTrivia(s.text, 0)
	if start >= len(s.text) || s.text[start] != '{' {
		return false
	}
	end, ok := objectEnd(parseModule(s.kind, s.text[:start]+"("+s.text[start:]))
	if !ok || !isBlank(s.text[end-1:]) {
		return false
	}
	var e edits
	e.insert(start, "(")
	e.insert(end-1, ")")
	text, shift := e.apply(s.text)
	file := parseModule(s.kind, text)
	if len(file.Diagnostics()) > 0 {
		return false
	}
	s.file, s.shift = file, shift
	return true
}

// objectEnd returns the offset at which an object literal in parentheses ends, if the file begins with one. Otherwise
// it returns false.
func objectEnd(file *ast.SourceFile) (int, bool) {
	if len(file.Statements.Nodes) == 0 || file.Statements.Nodes[0].Kind != ast.KindExpressionStatement {
		return 0, false
	}
	e := file.Statements.Nodes[0].Expression()
	if e.Kind != ast.KindParenthesizedExpression || e.Expression().Kind != ast.KindObjectLiteralExpression {
		return 0, false
	}
	return e.Expression().End(), true
}

// isBlank reports whether text consists only of space, comments and semicolons.
func isBlank(text string) bool {
	at := scanner.SkipTrivia(text, 0)
	for at < len(text) && text[at] == ';' {
		at = scanner.SkipTrivia(text, at+1)
	}
	return at == len(text)
}

const target = core.ScriptTargetES2023

// parseModule parses text as an ES module.
func parseModule(kind Kind, text string) *ast.SourceFile {
	path, script := kind.path(), core.ScriptKindTS
	if kind == JavaScript {
		script = core.ScriptKindJS
	}
	return parser.ParseSourceFile(ast.SourceFileParseOptions{
		FileName: path, Path: tspath.Path(path),
		ExternalModuleIndicatorOptions: ast.ExternalModuleIndicatorOptions{Force: true},
	}, text, script)
}
