package tsc

import (
	"strconv"
	"strings"

	"github.com/microsoft/typescript-go/internal/ast"
)

// rewriter rewrites a program before it is type-checked, because TypeScript would not check or not accept some of its
// syntax:
//
//   - return outside of a function becomes throw, whose operand is checked, and becomes return again in the output;
//   - require("x") becomes (await import("x")), import a = require("x") becomes
//     import * as a from "x", and module.exports = x becomes export default x;
//   - module specifiers are replaced by those that the caller resolved.
type rewriter struct {
	file       *ast.SourceFile
	text       string
	specifiers map[string]string
	names      scope
	edits      edits
	returns    []int // offsets of the changed returns
}

func (r *rewriter) rewrite() {
	if strings.HasPrefix(r.text, "#!") {
		r.edits.insert(0, "//")
	}
	for _, s := range r.file.Statements.Nodes {
		r.statement(s)
	}
	r.expressions(r.file.AsNode())
}

// statement replaces return by throw in all return statements that are outside of functions.
func (r *rewriter) statement(n *ast.Node) bool {
	switch {
	case n.Kind == ast.KindReturnStatement:
		if n.Expression() != nil {
			at := startOf(r.file, n)
			r.edits.replace(at, at+len("return"), "throw ")
			r.returns = append(r.returns, at)
		}
	case ast.IsFunctionLike(n), ast.IsClassLike(n), n.Kind == ast.KindModuleDeclaration, ast.IsExpressionNode(n):
	default:
		n.ForEachChild(r.statement)
	}
	return false
}

func (r *rewriter) expressions(node *ast.Node) {
	node.ForEachChild(func(n *ast.Node) bool {
		switch {
		case n.Flags&ast.NodeFlagsReparsed != 0:
			return false
		case n.Kind == ast.KindImportEqualsDeclaration:
			r.importEquals(n)
		case n.Kind == ast.KindImportDeclaration, n.Kind == ast.KindExportDeclaration:
			r.specifier(n.ModuleSpecifier())
		case n.Kind == ast.KindLiteralType && n.Parent.Kind == ast.KindImportType:
			r.specifier(n.AsLiteralTypeNode().Literal)
		case n.Kind == ast.KindCallExpression:
			r.call(n)
		case n.Kind == ast.KindExpressionStatement:
			r.moduleExports(n)
		}
		r.expressions(n)
		return false
	})
}

func (r *rewriter) specifier(n *ast.Node) {
	if n == nil || !ast.IsStringLiteralLike(n) {
		return
	}
	if to, ok := r.specifiers[n.Text()]; ok && to != n.Text() {
		r.edits.replace(startOf(r.file, n), n.End(), strconv.Quote(to))
	}
}

func (r *rewriter) call(n *ast.Node) {
	args := n.Arguments()
	if len(args) == 0 {
		return
	}
	if ast.IsImportCall(n) {
		r.specifier(args[0])
	}
	callee := n.Expression()
	if len(args) != 1 || !r.isFree(callee, "require") || !ast.IsStringLiteralLike(args[0]) || !awaitable(n) {
		return
	}
	r.edits.replace(startOf(r.file, n), callee.End(), r.opening(n)+"await import")
	r.specifier(args[0])
	r.edits.insert(n.End(), ")")
}

// opening returns the parenthesis that opens the replacement of n. At the beginning of a statement it returns ";(",
// because "(" alone could be parsed as a call of the previous line's value.
func (r *rewriter) opening(n *ast.Node) string {
	statement := ast.FindAncestor(n, ast.IsStatement)
	if statement == nil || startOf(r.file, statement) != startOf(r.file, n) {
		return "("
	}
	switch statement.Parent.Kind {
	case ast.KindSourceFile, ast.KindBlock, ast.KindCaseClause, ast.KindDefaultClause:
		return ";("
	}
	return "("
}

// awaitable reports whether await is allowed at a node: outside functions and in async functions.
func awaitable(n *ast.Node) bool {
	f := ast.GetContainingFunction(n)
	return f == nil || ast.GetFunctionFlags(f)&ast.FunctionFlagsAsync != 0
}

func (r *rewriter) isFree(n *ast.Node, name string) bool {
	return ast.IsIdentifier(n) && n.Text() == name && r.names.resolve(n) == nil
}

func (r *rewriter) importEquals(n *ast.Node) {
	d := n.AsImportEqualsDeclaration()
	if d.ModuleReference.Kind != ast.KindExternalModuleReference || n.Modifiers() != nil || d.IsTypeOnly {
		return
	}
	specifier := d.ModuleReference.Expression()
	if !ast.IsStringLiteralLike(specifier) {
		return
	}
	r.edits.insert(startOf(r.file, d.Name()), "* as ")
	r.edits.replace(d.Name().End(), startOf(r.file, specifier), " from ")
	r.specifier(specifier)
	r.edits.replace(specifier.End(), d.ModuleReference.End(), "")
}

// moduleExports replaces module.exports = x at the top level by a default export.
func (r *rewriter) moduleExports(n *ast.Node) {
	if n.Parent.Kind != ast.KindSourceFile || n.Expression().Kind != ast.KindBinaryExpression {
		return
	}
	assignment := n.Expression().AsBinaryExpression()
	left := assignment.Left
	if assignment.OperatorToken.Kind != ast.KindEqualsToken || left.Kind != ast.KindPropertyAccessExpression ||
		left.Name().Text() != "exports" || !r.isFree(left.Expression(), "module") || strings.Contains(r.text, "export default") {
		return
	}
	r.edits.replace(startOf(r.file, n), assignment.OperatorToken.End(), "export default ")
}
