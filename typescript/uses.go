package tsc

import "github.com/microsoft/typescript-go/internal/ast"

// followAll records all uses of a symbol in the argument use.
func (c *collector) followAll(symbol *ast.Symbol, use *Use, origin Call) {
	if symbol == nil || c.busy[symbol] {
		return
	}
	c.busy[symbol] = true
	defer delete(c.busy, symbol)
	for _, n := range c.refs[symbol] {
		c.follow(n, use, origin)
	}
}

// follow finds out how the program uses the value of the expression n, and records that in the argument use. The
// argument origin says where the value comes from; each call that follow finds is recorded with it.
func (c *collector) follow(n *ast.Node, use *Use, origin Call) {
	if isTypePosition(n) {
		c.followType(n, use)
		return
	}
	n = c.through(n)
	p := n.Parent
	switch p.Kind {
	case ast.KindPropertyAccessExpression:
		name := p.Name()
		c.followMember(p, use, name.Text(), name, origin)
	case ast.KindElementAccessExpression:
		arg := p.AsElementAccessExpression().ArgumentExpression
		if p.Expression() != n || !ast.IsStringLiteralLike(arg) {
			use.Whole = true
			return
		}
		c.followMember(p, use, arg.Text(), arg, origin)
	case ast.KindVariableDeclaration:
		c.followVariable(p, use, origin)
	case ast.KindCallExpression:
		if p.Expression() != n {
			use.Whole = true
			return
		}
		use.Called = true
		c.call(p, origin)
	case ast.KindTypeOfExpression:
		use.Asked = true
	case ast.KindExpressionStatement:
	default:
		use.Whole = true
	}
}

// through returns the outermost expression with the same value as n: it skips parentheses, casts and await.
func (c *collector) through(n *ast.Node) *ast.Node {
	for {
		switch n.Parent.Kind {
		case ast.KindParenthesizedExpression, ast.KindAsExpression, ast.KindSatisfiesExpression,
			ast.KindNonNullExpression, ast.KindTypeAssertionExpression, ast.KindAwaitExpression:
			n = n.Parent
		default:
			return n
		}
	}
}

func (c *collector) followMember(access *ast.Node, use *Use, name string, at *ast.Node, origin Call) {
	member := use.member(name, c.start(at), at.End())
	c.follow(access, member, origin.of(name))
}

// of returns c for a call of a member of the function or object that c names. If c names "a", for example, then
// c.of("b") names "a.b".
func (c Call) of(member string) Call {
	switch c.Name {
	case "*", "default":
		c.Name = member
	default:
		c.Name += "." + member
	}
	return c
}

func (c *collector) followVariable(d *ast.Node, use *Use, origin Call) {
	switch name := d.Name(); {
	case ast.IsIdentifier(name) && d.Parent.Flags&ast.NodeFlagsConst != 0:
		c.followAll(d.Symbol(), use, origin)
	case name.Kind == ast.KindObjectBindingPattern:
		for _, e := range name.Elements() {
			c.followElement(e, use, origin)
		}
	default:
		use.Whole = true
	}
}

// followElement records how the program uses one element of a destructuring pattern, such as b: c in const {a, b: c}
// = value.
func (c *collector) followElement(e *ast.Node, use *Use, origin Call) {
	element := e.AsBindingElement()
	key := e.PropertyNameOrName()
	switch {
	case element.DotDotDotToken != nil, key.Kind == ast.KindComputedPropertyName:
		use.Whole = true
		return
	case !ast.IsIdentifier(key) && !ast.IsStringLiteralLike(key):
		use.Whole = true
		return
	}
	member := use.member(key.Text(), c.start(key), key.End())
	switch name := e.Name(); name.Kind {
	case ast.KindIdentifier:
		c.followAll(e.Symbol(), member, origin.of(key.Text()))
	case ast.KindObjectBindingPattern:
		for _, inner := range name.Elements() {
			c.followElement(inner, member, origin.of(key.Text()))
		}
	default:
		member.Whole = true
	}
}

// followType records in the argument use how a type uses the imported module n. It records T for the type ns.T, and
// member for typeof ns.member.
func (c *collector) followType(n *ast.Node, use *Use) {
	q := n.Parent
	if q.Kind != ast.KindQualifiedName || q.AsQualifiedName().Left != n {
		if ast.IsPartOfTypeQuery(n) {
			use.Whole = true
		}
		return
	}
	right := q.AsQualifiedName().Right
	if ast.IsPartOfTypeQuery(n) {
		use.member(right.Text(), c.start(right), right.End())
		return
	}
	use.TypeNames = append(use.TypeNames, right.Text())
}

func (c *collector) call(call *ast.Node, origin Call) {
	origin.Start, origin.End = c.start(call), call.End()
	if args := call.Arguments(); len(args) > 0 {
		origin.Start, origin.End = c.start(args[0]), args[0].End()
		if ast.IsStringLiteralLike(args[0]) {
			origin.Literal, origin.IsLiteral = args[0].Text(), true
		}
	}
	c.facts.Calls = append(c.facts.Calls, origin)
}
