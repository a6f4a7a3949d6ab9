package tsc

import (
	"cmp"
	"slices"
	"strings"

	"github.com/microsoft/typescript-go/internal/ast"
	"github.com/microsoft/typescript-go/internal/checker"
)

// Diagnostic holds one message of the compiler about a program, and what can be said about its cause.
type Diagnostic struct {
	Code         int    // TypeScript's number of the message
	Message      string // the most specific part first
	Start, End   int    // byte offsets into the text given to Parse
	Line, Column int    // of Start
	// Erased reports whether the message is about a type, or about a name after typeof in a type. Types are erased
	// from the emitted code, so this error cannot occur when the program runs.
	Erased bool
	// Argument describes the called function if the message is about the arguments of a call, and one of Input.Files
	// declares that function. Otherwise it is nil.
	Argument *Target
	// Passed describes the first argument of that call, if it is a function that one of Input.Files declares. A function
	// such as pages(f, …) takes the arguments of the function f.
	Passed *Target
	// Member is set if the message says that a module declared in Input.Files does not have a member. Member.Name is
	// the name of the missing member.
	Member *Target
	// Open reports whether too little is known about the value's type to be sure of the error. The type is unknown,
	// Record<string, …> or a type parameter, or the program adds properties to the variable later.
	Open bool
	// Widened reports whether the value may still fit because only its type is too wide, such as string for "a" |
	// "b", or string | number for string.
	Widened bool
	// Lack is set if the message says that a member does not exist in a type that comes from Input.Files.
	Lack *Lack
}

// Target represents a declaration in one of Input.Files.
type Target struct {
	File string // path in Input.Files
	Name string
}

// sorted returns the messages in source order without duplicates.
func sorted(d []Diagnostic) []Diagnostic {
	slices.SortStableFunc(d, func(a, b Diagnostic) int { return cmp.Compare(a.Start, b.Start) })
	return slices.CompactFunc(d, func(a, b Diagnostic) bool { return a.Start == b.Start && a.Message == b.Message })
}

// diagnostic describes a message as far as that is possible without types.
func (s *Source) diagnostic(d *ast.Diagnostic, back func(int) int) Diagnostic {
	out := Diagnostic{Code: int(d.Code()), Message: flatten(d), Start: back(d.Pos()), End: back(d.End())}
	out.End = max(out.End, out.Start)
	out.Line, out.Column = s.lines.position(out.Start)
	return out
}

// maxMessage bounds the length of a message, in code points, because the compiler prints types at any length.
const maxMessage = 700

// flatten joins a chain of messages, each of which explains the previous one, with the last explanation first.
func flatten(d *ast.Diagnostic) string {
	var parts []string
	var walk func(*ast.Diagnostic)
	walk = func(d *ast.Diagnostic) {
		if !isPreamble(d) {
			parts = append(parts, shorten(strings.TrimSpace(d.String()), maxMessage/2))
		}
		for _, next := range d.MessageChain() {
			walk(next)
		}
	}
	walk(d)
	slices.Reverse(parts)
	return shorten(strings.Join(slices.Compact(parts), " "), maxMessage)
}

// isPreamble reports whether a message only names the overload that the next message of the chain is about.
func isPreamble(d *ast.Diagnostic) bool {
	switch d.Code() {
	case 2769, 2770, 2771, 2772:
		return len(d.MessageChain()) > 0
	}
	return false
}

// shorten cuts out the middle of a text that has more than limit code points. It does not split any code point.
func shorten(s string, limit int) string {
	runes := []rune(s)
	if len(runes) <= limit {
		return s
	}
	head, tail := limit*2/3, limit/3
	return string(runes[:head]) + " … " + string(runes[len(runes)-tail:])
}

// describer adds what the syntax tree and the types say about a diagnostic.
type describer struct {
	unit  *unit
	types *checker.Checker
	files map[string]string // Input.Files
}

func (d *describer) describe(f *ast.Diagnostic) Diagnostic {
	out := d.unit.src.diagnostic(f, d.unit.written)
	node := nodeAt(d.unit.file, f.Pos(), f.End())
	out.Erased = isErased(node)
	out.Member = d.member(node)
	if argumentCodes[f.Code()] {
		out.Argument, out.Passed = d.argument(node)
		value := valueOf(node)
		out.Open = d.isOpen(value) || d.filled(value)
	}
	out.Widened = d.isWidened(f, node, out.Argument)
	out.Lack = d.lack(f, node)
	return out
}

// nodeAt returns the innermost node of a file that contains all of the text from start to end.
func nodeAt(file *ast.SourceFile, start, end int) *ast.Node {
	n := file.AsNode()
	for {
		child := childAt(n, start, end)
		if child == nil {
			return n
		}
		n = child
	}
}

func childAt(n *ast.Node, start, end int) *ast.Node {
	var found *ast.Node
	n.ForEachChild(func(child *ast.Node) bool {
		if child.Flags&ast.NodeFlagsReparsed == 0 && child.Pos() <= start && start < child.End() && end <= child.End() {
			found = child
		}
		return found != nil
	})
	return found
}

func isErased(n *ast.Node) bool {
	if ast.FindAncestor(n, func(p *ast.Node) bool {
		return p.Kind == ast.KindTypeOfExpression || ast.IsPartOfTypeNode(p) || ast.IsTypeNode(p)
	}) != nil {
		return true
	}
	return ast.FindAncestor(n, func(p *ast.Node) bool {
		return ast.IsInterfaceDeclaration(p) || ast.IsTypeAliasDeclaration(p) || p.Flags&ast.NodeFlagsAmbient != 0
	}) != nil
}

// member returns the module in which the program looks for n. n is the name of a member, and the module is declared
// in Input.Files. For any other node or module, member returns nil.
func (d *describer) member(n *ast.Node) *Target {
	var module *ast.Symbol
	switch p := n.Parent; {
	case p == nil:
	case p.Kind == ast.KindPropertyAccessExpression && p.Name() == n:
		module = d.module(p.Expression())
	case p.Kind == ast.KindImportSpecifier:
		specifier := ast.FindAncestor(n, ast.IsImportDeclaration).ModuleSpecifier()
		module = d.types.ResolveExternalModuleName(specifier)
	case p.Kind == ast.KindBindingElement && p.PropertyNameOrName() == n:
		if v := p.Parent.Parent; ast.IsVariableDeclaration(v) && v.Initializer() != nil {
			module = d.module(v.Initializer())
		}
	}
	return d.target(module, n)
}

// module returns the symbol of the module whose namespace object is the value of an expression. It returns nil if the
// type of the expression is unknown.
func (d *describer) module(n *ast.Node) *ast.Symbol {
	if t := d.types.GetTypeAtLocation(n); t != nil {
		return t.Symbol()
	}
	return nil
}

func (d *describer) target(module *ast.Symbol, name *ast.Node) *Target {
	if module == nil || module.Flags&ast.SymbolFlagsModule == 0 || !ast.IsIdentifier(name) && !ast.IsStringLiteralLike(name) {
		return nil
	}
	if file := d.fileOf(module); file != "" {
		return &Target{File: file, Name: name.Text()}
	}
	return nil
}

// fileOf returns the path of the file in Input.Files that declares a symbol, or "".
func (d *describer) fileOf(s *ast.Symbol) string {
	for _, declaration := range s.Declarations {
		if file := ast.GetSourceFileOfNode(declaration); file != nil {
			if _, ok := d.files[file.FileName()]; ok {
				return file.FileName()
			}
		}
	}
	return ""
}

// argumentCodes lists the codes of messages about arguments that do not fit. Messages about other problems inside an
// argument can have the same codes; the method argument tells them apart.
var argumentCodes = map[int32]bool{
	2322: true, 2326: true, 2345: true, 2353: true, 2559: true, 2560: true, 2561: true, 2739: true, 2740: true, 2741: true,
	2554: true, 2555: true, 2556: true, 2557: true, 2575: true, 2769: true, 2820: true, 2418: true, 2412: true, 2375: true,
	2379: true, 2740 + 3: true,
}

// argument returns the called function if node n is a call or part of a call's arguments, and Input.Files declares
// the function. It returns nil if a statement, a function or a new expression lies between n and the call. The result
// passed is the function that is the first argument of that call, if Input.Files declares it.
func (d *describer) argument(n *ast.Node) (called, passed *Target) {
	for p := n; p != nil; p = p.Parent {
		switch {
		case p.Kind == ast.KindCallExpression:
			if called = d.functionOf(p.Expression()); called == nil && p == n {
				continue
			}
			if args := p.Arguments(); called != nil && len(args) > 0 {
				passed = d.functionOf(args[0])
			}
			return called, passed
		case ast.IsFunctionLike(p), ast.IsStatement(p), p.Kind == ast.KindNewExpression:
			return nil, nil
		}
	}
	return nil, nil
}

// functionOf returns the function that an expression evaluates to, if Input.Files declares it.
func (d *describer) functionOf(n *ast.Node) *Target {
	callee := ast.SkipParentheses(n)
	if callee.Kind == ast.KindPropertyAccessExpression {
		callee = callee.Name()
	}
	s := d.types.GetSymbolAtLocation(callee)
	if s == nil {
		return nil
	}
	if s.Flags&ast.SymbolFlagsAlias != 0 {
		s = d.types.SkipAlias(s)
	}
	if s == nil || s.Flags&ast.SymbolFlagsFunction == 0 {
		s = d.declared(callee)
	}
	if s == nil {
		return nil
	}
	if file := d.fileOf(s); file != "" {
		return &Target{File: file, Name: s.Name}
	}
	return nil
}

// declared returns the declared function that an expression evaluates to, even if the program has destructured or
// renamed it.
func (d *describer) declared(n *ast.Node) *ast.Symbol {
	if t := d.types.GetTypeAtLocation(n); t != nil {
		return t.Symbol()
	}
	return nil
}

// valueOf returns the expression whose type a message is about. That is the node itself or, if the node is the name
// of a property in an object literal, the property's value.
func valueOf(n *ast.Node) *ast.Node {
	if p := n.Parent; p != nil && p.Kind == ast.KindPropertyAssignment && p.Name() == n {
		return p.Initializer()
	}
	return n
}

// isOpen reports whether the type of an expression does not say which properties the value has.
func (d *describer) isOpen(n *ast.Node) bool {
	if !ast.IsExpressionNode(n) && !ast.IsIdentifier(n) || n.Kind == ast.KindObjectLiteralExpression {
		return false
	}
	t := d.types.GetTypeAtLocation(n)
	if t == nil {
		return false
	}
	const open = checker.TypeFlagsUnknown | checker.TypeFlagsNonPrimitive | checker.TypeFlagsTypeParameter
	return t.Flags()&open != 0 || t.Flags()&checker.TypeFlagsObject != 0 && d.types.GetIndexInfoOfType(t, d.types.GetStringType()) != nil
}

// filled reports whether a node is a variable to which the program adds properties elsewhere.
func (d *describer) filled(n *ast.Node) bool {
	if !ast.IsIdentifier(n) {
		return false
	}
	symbol := d.types.GetSymbolAtLocation(n)
	if symbol == nil {
		return false
	}
	found := false
	var walk func(*ast.Node) bool
	walk = func(p *ast.Node) bool {
		if ast.IsIdentifier(p) && p.Text() == n.Text() && isFilling(p) && d.types.GetSymbolAtLocation(p) == symbol {
			found = true
		}
		return found || p.ForEachChild(walk)
	}
	d.unit.file.AsNode().ForEachChild(walk)
	return found
}

// isFilling reports whether n is a name to which properties are added: one of its members is assigned, or it is the
// first argument of Object.assign.
func isFilling(n *ast.Node) bool {
	p := n.Parent
	switch p.Kind {
	case ast.KindPropertyAccessExpression, ast.KindElementAccessExpression:
		return p.Expression() == n && ast.IsAssignmentTarget(p)
	case ast.KindCallExpression:
		return len(p.Arguments()) > 0 && p.Arguments()[0] == n &&
			p.Expression().Kind == ast.KindPropertyAccessExpression && p.Expression().Name().Text() == "assign"
	}
	return false
}
