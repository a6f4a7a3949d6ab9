package tsc

import (
	"github.com/microsoft/typescript-go/internal/ast"
	"github.com/microsoft/typescript-go/internal/binder"
	"github.com/microsoft/typescript-go/internal/core"
	"github.com/microsoft/typescript-go/internal/scanner"
)

// scope resolves names inside one file whose names the compiler has already bound to declarations.
type scope struct{ resolver *binder.NameResolver }

func newScope() scope {
	return scope{&binder.NameResolver{CompilerOptions: &core.CompilerOptions{Target: target}}}
}

const anyMeaning = ast.SymbolFlagsValue | ast.SymbolFlagsType | ast.SymbolFlagsNamespace | ast.SymbolFlagsAlias

// resolve returns the symbol that an identifier refers to, or nil if its file does not declare the identifier.
func (s scope) resolve(n *ast.Node) *ast.Symbol {
	meaning := ast.SymbolFlagsValue | ast.SymbolFlagsAlias
	if isTypePosition(n) {
		meaning = anyMeaning
	}
	symbol := s.resolver.Resolve(n, n.Text(), meaning, nil, false, true)
	if symbol != nil && symbol.ValueDeclaration != nil && symbol.ValueDeclaration.Kind == ast.KindSourceFile {
		return nil // CommonJS's module and exports, which exist in no program
	}
	return symbol
}

// isReference reports whether a name refers to a variable or type. It returns false for names that declare something,
// label a statement or name a member.
func isReference(n *ast.Node) bool {
	p := n.Parent
	switch p.Kind {
	case ast.KindPropertyAccessExpression:
		return p.Expression() == n
	case ast.KindQualifiedName:
		return p.AsQualifiedName().Left == n && ast.FindAncestor(p, isNoQualifiedName).Kind != ast.KindImportType
	case ast.KindShorthandPropertyAssignment:
		return true
	case ast.KindExportSpecifier:
		return p.Parent.Parent.ModuleSpecifier() == nil && p.PropertyNameOrName() == n
	case ast.KindBindingElement:
		return p.Initializer() == n
	case ast.KindImportSpecifier, ast.KindImportClause, ast.KindNamespaceImport, ast.KindNamespaceExport,
		ast.KindMetaProperty, ast.KindLabeledStatement, ast.KindBreakStatement, ast.KindContinueStatement,
		ast.KindImportType, ast.KindImportAttribute, ast.KindNamedTupleMember, ast.KindJsxAttribute, ast.KindTypePredicate:
		return false
	}
	return !ast.IsDeclarationName(n)
}

func isNoQualifiedName(n *ast.Node) bool { return n.Kind != ast.KindQualifiedName }

// isTypePosition reports whether an identifier is part of a type, or of a typeof in a type. Such identifiers do not
// exist in the emitted code.
func isTypePosition(n *ast.Node) bool {
	if ast.IsPartOfTypeNode(n) || ast.IsPartOfTypeQuery(n) {
		return true
	}
	for p := n.Parent; p != nil && p.Kind == ast.KindQualifiedName; p = p.Parent {
		if ast.IsPartOfTypeNode(p) || ast.IsPartOfTypeQuery(p) {
			return true
		}
	}
	return false
}

// startOf returns the offset of a node's first token.
func startOf(file *ast.SourceFile, n *ast.Node) int {
	return scanner.GetTokenPosOfNode(n, file, false)
}
