package tsc

import (
	"github.com/microsoft/typescript-go/internal/ast"
	"github.com/microsoft/typescript-go/internal/scanner"
)

// Node holds a node of a program's syntax tree in a form that does not depend on the compiler. The tree contains no
// types, parentheses or casts.
type Node struct {
	Kind       string // as package rules names it: "call"
	Text       string
	Start, End int // bytes in the text given to Parse
	Size       int // nodes of the subtree, itself among them
	Bind       int // number of the variable that a name refers to, from 1; 0 if it is free
}

// Tree returns the syntax tree of a program without syntax errors, in preorder.
func (s *Source) Tree() []Node {
	b := &treeBuilder{src: s, names: newScope(), ids: map[*ast.Symbol]int{}}
	b.node("other", s.file.AsNode(), "", func() { b.each(s.file.Statements.Nodes) })
	return b.nodes
}

type treeBuilder struct {
	src   *Source
	names scope
	ids   map[*ast.Symbol]int
	nodes []Node
}

// node appends a node to the syntax tree and then calls inner, which adds the node's children. inner may be nil.
func (b *treeBuilder) node(kind string, n *ast.Node, text string, inner func()) int {
	i := len(b.nodes)
	start := b.src.shift.back(startOf(b.src.file, n))
	size := len(b.src.text)
	b.nodes = append(b.nodes, Node{Kind: kind, Text: text, Start: min(start, size), End: min(max(start, b.src.shift.back(n.End())), size)})
	if inner != nil {
		inner()
	}
	b.nodes[i].Size = len(b.nodes) - i
	return i
}

func (b *treeBuilder) each(list []*ast.Node) {
	for _, n := range list {
		b.add(n)
	}
}

// bound returns the number that identifiers get in the syntax tree if they are bound to the variable s. Numbers begin
// at 1. For a nil symbol, bound returns 0.
func (b *treeBuilder) bound(s *ast.Symbol) int {
	if s == nil {
		return 0
	}
	if s.ExportSymbol != nil {
		s = s.ExportSymbol
	}
	if b.ids[s] == 0 {
		b.ids[s] = len(b.ids) + 1
	}
	return b.ids[s]
}

func (b *treeBuilder) declared(kind string, n *ast.Node, name string, inner func()) {
	i := b.node(kind, n, name, inner)
	b.nodes[i].Bind = b.bound(n.Symbol())
}

// name adds a Node for an identifier that declares a variable. d is the declaration.
func (b *treeBuilder) name(name, d *ast.Node) {
	i := b.node("name", name, name.Text(), nil)
	b.nodes[i].Bind = b.bound(d.Symbol())
}

// wrapped lists the kinds of the compiler's nodes that become a Node of a fixed kind with a fixed text. For such a
// node, only the children have to be added as well.
var wrapped = map[ast.Kind]struct{ kind, text string }{
	ast.KindArrayLiteralExpression: {"array", ""}, ast.KindObjectLiteralExpression: {"object", ""},
	ast.KindSpreadElement: {"spread", ""}, ast.KindSpreadAssignment: {"spread", ""}, ast.KindAwaitExpression: {"await", ""},
	ast.KindDeleteExpression: {"delete", ""}, ast.KindReturnStatement: {"return", ""}, ast.KindThrowStatement: {"throw", ""},
	ast.KindTypeOfExpression: {"unary", "typeof"}, ast.KindVoidExpression: {"unary", "void"},
	ast.KindIfStatement: {"branch", "if"}, ast.KindConditionalExpression: {"branch", "?:"}, ast.KindCaseClause: {"branch", "case"},
	ast.KindWhileStatement: {"loop", "while"}, ast.KindDoStatement: {"loop", "do"}, ast.KindForStatement: {"loop", "for"},
	ast.KindTemplateExpression: {"template", ""}, ast.KindElementAccessExpression: {"index", ""}, ast.KindNewExpression: {"new", ""},
}

// literals maps kinds of literals, such as strings, numbers and regular expressions, from the compiler's node kinds
// to the kinds that a Node has.
var literals = map[ast.Kind]string{
	ast.KindStringLiteral: "string", ast.KindNoSubstitutionTemplateLiteral: "string", ast.KindTemplateHead: "string",
	ast.KindTemplateMiddle: "string", ast.KindTemplateTail: "string", ast.KindNumericLiteral: "number", ast.KindBigIntLiteral: "number",
	ast.KindRegularExpressionLiteral: "regexp",
}

var constants = map[ast.Kind]string{
	ast.KindThisKeyword: "this", ast.KindSuperKeyword: "super", ast.KindTrueKeyword: "true", ast.KindFalseKeyword: "false", ast.KindNullKeyword: "null",
}

func (b *treeBuilder) add(n *ast.Node) {
	if n == nil || n.Flags&ast.NodeFlagsReparsed != 0 {
		return
	}
	if w, ok := wrapped[n.Kind]; ok {
		b.node(w.kind, n, w.text, func() { b.inner(n) })
		return
	}
	if kind, ok := literals[n.Kind]; ok {
		b.node(kind, n, n.Text(), nil)
		return
	}
	if text, ok := constants[n.Kind]; ok {
		b.node("constant", n, text, nil)
		return
	}
	if !b.expression(n) && !b.declaration(n) {
		b.rest(n)
	}
}

// inner adds the children of a node to the syntax tree.
func (b *treeBuilder) inner(n *ast.Node) {
	n.ForEachChild(func(c *ast.Node) bool {
		b.add(c)
		return false
	})
}

func (b *treeBuilder) expression(n *ast.Node) bool {
	switch n.Kind {
	case ast.KindIdentifier:
		if !isReference(n) {
			break // a label, or the name of an export
		}
		i := b.node("name", n, n.Text(), nil)
		b.nodes[i].Bind = b.bound(b.names.resolve(n))
	case ast.KindPropertyAccessExpression:
		b.node("member", n, n.Name().Text(), func() { b.add(n.Expression()) })
	case ast.KindCallExpression:
		b.node("call", n, "", func() {
			if callee := n.Expression(); callee.Kind == ast.KindImportKeyword {
				b.node("name", callee, "import", nil)
			} else {
				b.add(callee)
			}
			b.each(n.Arguments())
		})
	case ast.KindTaggedTemplateExpression:
		b.node("call", n, "", func() {
			b.add(n.AsTaggedTemplateExpression().Tag)
			b.add(n.AsTaggedTemplateExpression().Template)
		})
	case ast.KindBinaryExpression:
		b.binary(n)
	case ast.KindPrefixUnaryExpression:
		b.node("unary", n, scanner.TokenToString(n.AsPrefixUnaryExpression().Operator), func() { b.inner(n) })
	case ast.KindPostfixUnaryExpression:
		b.node("unary", n, scanner.TokenToString(n.AsPostfixUnaryExpression().Operator), func() { b.inner(n) })
	case ast.KindParenthesizedExpression, ast.KindAsExpression, ast.KindSatisfiesExpression, ast.KindNonNullExpression, ast.KindTypeAssertionExpression,
		ast.KindExpressionWithTypeArguments:
		b.add(n.Expression())
	case ast.KindTemplateSpan:
		b.inner(n)
	default:
		return false
	}
	return true
}

func (b *treeBuilder) binary(n *ast.Node) {
	x := n.AsBinaryExpression()
	op := x.OperatorToken.Kind
	kind := "binary"
	switch {
	case ast.IsLogicalOrCoalescingBinaryOperator(op):
		kind = "logical"
	case ast.IsAssignmentOperator(op):
		kind = "assign"
	}
	b.node(kind, n, scanner.TokenToString(op), func() {
		b.add(x.Left)
		b.add(x.Right)
	})
}

func (b *treeBuilder) declaration(n *ast.Node) bool {
	switch n.Kind {
	case ast.KindVariableDeclaration:
		b.node("assign", n, "=", func() {
			b.target(n.Name(), n)
			b.add(n.Initializer())
		})
	case ast.KindForOfStatement, ast.KindForInStatement:
		b.forEach(n)
	case ast.KindParameter:
		b.parameter(n, n.Name())
	case ast.KindCatchClause:
		b.node("branch", n, "catch", func() {
			if v := n.AsCatchClause().VariableDeclaration; v != nil {
				b.parameter(v, v.Name())
			}
			b.add(n.AsCatchClause().Block)
		})
	case ast.KindFunctionDeclaration, ast.KindFunctionExpression, ast.KindArrowFunction:
		b.function(n, n.Name())
	case ast.KindMethodDeclaration, ast.KindGetAccessor, ast.KindSetAccessor, ast.KindConstructor, ast.KindPropertyDeclaration,
		ast.KindPropertyAssignment, ast.KindShorthandPropertyAssignment:
		b.member(n)
	case ast.KindClassDeclaration, ast.KindClassExpression:
		b.class(n)
	case ast.KindEnumDeclaration:
		b.declared("class", n, n.Name().Text(), func() { b.each(n.Members()) })
	case ast.KindEnumMember:
		b.node("property", n, text(n.Name()), func() { b.add(n.Initializer()) })
	case ast.KindImportDeclaration, ast.KindImportEqualsDeclaration:
		b.imports(n)
	default:
		return false
	}
	return true
}

// target adds to the syntax tree what a declaration gives a value to, which is a name or a pattern. A pattern gets
// the same form as an object or array literal.
func (b *treeBuilder) target(name, d *ast.Node) {
	switch name.Kind {
	case ast.KindIdentifier:
		b.name(name, d)
	case ast.KindObjectBindingPattern:
		b.node("object", name, "", func() {
			for _, e := range name.Elements() {
				b.element(e)
			}
		})
	default:
		b.node("array", name, "", func() {
			for _, e := range name.Elements() {
				if e.Kind == ast.KindBindingElement && e.Name() != nil {
					b.target(e.Name(), e)
				} else {
					b.node("other", e, "", nil)
				}
			}
		})
	}
}

func (b *treeBuilder) element(e *ast.Node) {
	if e.AsBindingElement().DotDotDotToken != nil {
		b.node("spread", e, "", func() { b.target(e.Name(), e) })
		return
	}
	key := e.PropertyNameOrName()
	b.node("property", e, text(key), func() {
		if key.Kind == ast.KindComputedPropertyName {
			b.add(key.Expression())
		}
		b.target(e.Name(), e)
		b.add(e.Initializer())
	})
}

// text returns the name of a property, or "" if it is computed.
func text(name *ast.Node) string {
	if name == nil || name.Kind == ast.KindComputedPropertyName || name.Kind == ast.KindObjectBindingPattern || name.Kind == ast.KindArrayBindingPattern {
		return ""
	}
	return name.Text()
}

func (b *treeBuilder) forEach(n *ast.Node) {
	x := n.AsForInOrOfStatement()
	b.node("loop", n, "for", func() {
		b.node("assign", x.Initializer, "of", func() {
			if list := x.Initializer; list.Kind == ast.KindVariableDeclarationList {
				for _, d := range list.AsVariableDeclarationList().Declarations.Nodes {
					b.target(d.Name(), d)
				}
			} else {
				b.add(list)
			}
			b.add(x.Expression)
		})
		b.add(x.Statement)
	})
}

func (b *treeBuilder) parameter(n, name *ast.Node) {
	if ast.IsIdentifier(name) {
		b.declared("parameter", n, name.Text(), func() { b.add(n.Initializer()) })
		return
	}
	b.node("parameter", n, "", func() {
		b.target(name, n)
		b.add(n.Initializer())
	})
}

func (b *treeBuilder) function(n, name *ast.Node) {
	b.declared("function", n, text(name), func() {
		for _, p := range n.Parameters() {
			b.add(p)
		}
		b.add(n.Body())
	})
}

// member adds a Node to the syntax tree for one member of a class or an object literal, such as a method.
func (b *treeBuilder) member(n *ast.Node) {
	name := n.Name()
	key := text(name)
	if n.Kind == ast.KindConstructor {
		key = "constructor"
	}
	b.node("property", n, key, func() {
		if name != nil && name.Kind == ast.KindComputedPropertyName {
			b.add(name.Expression())
		}
		switch n.Kind {
		case ast.KindPropertyDeclaration, ast.KindPropertyAssignment:
			b.add(n.Initializer())
		case ast.KindShorthandPropertyAssignment:
			i := b.node("name", name, key, nil)
			b.nodes[i].Bind = b.bound(b.names.resolve(name))
		default:
			b.function(n, nil)
		}
	})
}

func (b *treeBuilder) class(n *ast.Node) {
	b.declared("class", n, text(n.Name()), func() {
		n.ForEachChild(func(c *ast.Node) bool {
			if c != n.Name() {
				b.add(c)
			}
			return false
		})
	})
}

func (b *treeBuilder) imports(n *ast.Node) {
	specifier := n.ModuleSpecifier
	if n.Kind == ast.KindImportEqualsDeclaration {
		b.importEquals(n)
		return
	}
	from := specifier()
	if from == nil || !ast.IsStringLiteralLike(from) {
		b.rest(n)
		return
	}
	b.node("import", n, from.Text(), func() {
		clause := n.AsImportDeclaration().ImportClause
		if clause == nil || clause.IsTypeOnly() {
			return
		}
		if clause.Name() != nil {
			b.declared("imported", clause, "default", nil)
		}
		switch bindings := clause.AsImportClause().NamedBindings; {
		case bindings == nil:
		case bindings.Kind == ast.KindNamespaceImport:
			b.declared("imported", bindings, "*", nil)
		default:
			for _, e := range bindings.Elements() {
				b.declared("imported", e, e.PropertyNameOrName().Text(), nil)
			}
		}
	})
}

func (b *treeBuilder) importEquals(n *ast.Node) {
	d := n.AsImportEqualsDeclaration()
	if d.ModuleReference.Kind != ast.KindExternalModuleReference || !ast.IsStringLiteralLike(d.ModuleReference.Expression()) {
		b.rest(n)
		return
	}
	b.node("import", n, d.ModuleReference.Expression().Text(), func() { b.declared("imported", n, "*", nil) })
}

// rest adds a node and its children to the syntax tree, if the builder has no function for nodes of this kind. It
// adds nothing for syntax that is erased, such as types.
func (b *treeBuilder) rest(n *ast.Node) {
	switch {
	case ast.IsTypeNode(n), ast.IsTypeDeclaration(n) && !ast.IsClassLike(n) && n.Kind != ast.KindEnumDeclaration,
		ast.IsToken(n), ast.IsModifier(n), n.Kind == ast.KindTypeParameter:
		return
	}
	b.node("other", n, "", func() { b.inner(n) })
}
