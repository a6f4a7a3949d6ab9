package tsc

import "github.com/microsoft/typescript-go/internal/ast"

// result writes the code that returns the value of the program.
func (b *bodyWriter) result() {
	if b.unit.module {
		b.exported()
		return
	}
	if len(b.exports) > 0 {
		if name := b.exportedFunction(); name == "" || !b.called(name) {
			for _, s := range b.exports {
				b.exportDefault(s)
			}
			return
		}
		// The program calls its default export itself. Calling it again would do everything twice.
		b.dropExports()
	}
	if f := b.onlyFunction(); f != "" {
		b.edits.insert(len(b.file.Text()), "\nreturn "+f+"();")
		return
	}
	if last := b.trailing(); last != nil {
		b.returnValue(last)
	} else if name := b.uncalledMain(); name != "" {
		b.edits.insert(len(b.file.Text()), "\nreturn "+name+"();")
	}
}

// exportDefault turns one statement into an assignment to __exports.default.
func (b *bodyWriter) exportDefault(s *ast.Node) {
	at := b.start(s)
	name := s.Name()
	switch {
	case s.Kind == ast.KindExportSpecifier: // already assigned
	case s.Kind == ast.KindExportAssignment:
		b.edits.replace(at, b.start(s.Expression()), "__exports.default = ")
	case name == nil:
		b.stripModifiers(s, "__exports.default = ")
		b.edits.insert(s.End(), ";")
	case s.Kind == ast.KindFunctionDeclaration:
		b.stripModifiers(s, "")
		b.edits.move(at, 0, "__exports.default = "+name.Text()+"; ")
	default:
		b.stripModifiers(s, "")
		b.edits.insert(s.End(), " __exports.default = "+name.Text()+";")
	}
}

// stripModifiers replaces the modifiers "export" and "default" at the start of a statement by another text.
func (b *bodyWriter) stripModifiers(s *ast.Node, text string) {
	first, last := -1, -1
	for _, m := range s.ModifierNodes() {
		if m.Kind == ast.KindExportKeyword || m.Kind == ast.KindDefaultKeyword {
			if first < 0 {
				first = b.start(m)
			}
			last = m.End()
		}
	}
	if first >= 0 {
		b.edits.replace(first, last, text)
	}
}

func (b *bodyWriter) dropExports() {
	for _, s := range b.exports {
		switch s.Kind {
		case ast.KindExportAssignment:
			b.remove(s)
		case ast.KindExportSpecifier:
		default:
			b.stripModifiers(s, "")
		}
	}
}

// exportedFunction returns the name of the function that the program exports as default. It returns "" if the default
// export is not a function with a name.
func (b *bodyWriter) exportedFunction() string {
	s := b.exports[0]
	var name *ast.Node
	switch s.Kind {
	case ast.KindFunctionDeclaration:
		name = s.Name()
	case ast.KindExportAssignment:
		name = s.Expression()
	}
	if name == nil || !ast.IsIdentifier(name) || !b.isFunction(name.Text()) {
		return ""
	}
	return name.Text()
}

// isFunction reports whether a name is declared as a function at the top level.
func (b *bodyWriter) isFunction(name string) bool {
	for _, s := range b.values {
		if functionName(s) == name {
			return true
		}
	}
	return false
}

// functionName returns the name of the single function that a statement declares.
func functionName(s *ast.Node) string {
	switch s.Kind {
	case ast.KindFunctionDeclaration:
		if s.Name() != nil && s.AsFunctionDeclaration().AsteriskToken == nil {
			return s.Name().Text()
		}
	case ast.KindVariableStatement:
		declarations := s.AsVariableStatement().DeclarationList.AsVariableDeclarationList().Declarations.Nodes
		if len(declarations) == 1 && isFunctionValue(declarations[0].Initializer()) && ast.IsIdentifier(declarations[0].Name()) {
			return declarations[0].Name().Text()
		}
	}
	return ""
}

func isFunctionValue(n *ast.Node) bool {
	if n == nil {
		return false
	}
	n = ast.SkipOuterExpressions(n, ast.OEKParentheses|ast.OEKAssertions)
	return n.Kind == ast.KindArrowFunction || n.Kind == ast.KindFunctionExpression && n.AsFunctionExpression().AsteriskToken == nil
}

// called reports whether code outside of functions calls a function with the given name.
func (b *bodyWriter) called(name string) bool {
	return b.mentions(name, func(n *ast.Node) bool {
		for ast.IsOuterExpression(n.Parent, ast.OEKParentheses|ast.OEKAssertions) {
			n = n.Parent
		}
		return n.Parent.Kind == ast.KindCallExpression && n.Parent.Expression() == n
	})
}

// mentions reports whether code outside of functions refers to a name. Only the places for which the function use
// returns true count.
func (b *bodyWriter) mentions(name string, use func(*ast.Node) bool) bool {
	var walk func(*ast.Node) bool
	walk = func(n *ast.Node) bool {
		if ast.IsFunctionLike(n) || ast.IsTypeNode(n) && n.Kind != ast.KindExpressionWithTypeArguments {
			return false
		}
		if ast.IsIdentifier(n) && n.Text() == name && isReference(n) && use(n) {
			return true
		}
		return n.ForEachChild(walk)
	}
	for _, s := range b.values {
		if walk(s) {
			return true
		}
	}
	return false
}

// onlyFunction returns the name of the function if the program consists of a single function declaration. Otherwise
// it returns "".
func (b *bodyWriter) onlyFunction() string {
	if len(b.values) != 1 {
		return ""
	}
	return functionName(b.values[0])
}

// uncalledMain returns "main" if the program declares a function main but does not use it outside of functions, and
// has no return outside of functions. Otherwise it returns "".
func (b *bodyWriter) uncalledMain() string {
	if len(b.unit.returns) > 0 || !b.isFunction("main") || b.mentions("main", func(*ast.Node) bool { return true }) {
		return ""
	}
	return "main"
}

// trailing returns the last statement if it is an expression. Functions after it are hoisted and don't count.
func (b *bodyWriter) trailing() *ast.Node {
	for i := len(b.values) - 1; i >= 0; i-- {
		switch s := b.values[i]; s.Kind {
		case ast.KindFunctionDeclaration:
		case ast.KindExpressionStatement:
			return s
		default:
			return nil
		}
	}
	return nil
}

// returnValue makes an expression statement return its value. If the value is a function, the function is called. A
// void operator is removed, because programs use it only to silence linters.
func (b *bodyWriter) returnValue(s *ast.Node) {
	e := s.Expression()
	if e.Kind == ast.KindVoidExpression {
		b.edits.replace(b.start(e), b.start(e.Expression()), "")
		e = e.Expression()
	}
	b.edits.insert(b.start(e), "return (")
	if isFunctionValue(e) {
		b.edits.insert(e.End(), ")()")
	} else {
		b.edits.insert(e.End(), ")")
	}
}
