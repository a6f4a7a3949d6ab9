package tsc

import (
	"github.com/microsoft/typescript-go/internal/ast"
	"github.com/microsoft/typescript-go/internal/checker"
)

// Lack describes a member that a type does not have. One of Input.Files declares either the type itself, or the
// function or member whose value has that type.
type Lack struct {
	File   string
	Name   string   // of the member
	Type   string   // type that lacks it
	Near   string   // a member of a similar name, or ""
	Has    []string // existing members, at most maxHas
	List   bool     // Type is an array
	Partly bool     // Type is a union, and other types of it have the member
	Loose  bool     // most members of Type may be missing
	Tried  bool     // the program is written for a value without the member, too
}

const maxHas = 64

// lack describes the missing member if a diagnostic says that a member does not exist. Otherwise it returns nil.
func (d *describer) lack(f *ast.Diagnostic, name *ast.Node) *Lack {
	args := f.MessageArgs()
	switch f.Code() {
	case 2339, 2550, 2551:
	default:
		return nil
	}
	if len(args) < 2 || !ast.IsIdentifier(name) {
		return nil
	}
	of := receiver(name)
	if of == nil {
		return nil
	}
	t := d.types.GetTypeAtLocation(of)
	if t == nil {
		return nil
	}
	l := &Lack{Name: name.Text(), Type: args[1], File: d.fileOfType(t)}
	if l.File == "" {
		l.File = d.fileOfValue(of, 0)
	}
	if l.File == "" {
		return nil
	}
	if f.Code() == 2551 && len(args) > 2 {
		l.Near = args[2]
	}
	for _, part := range t.Distributed() {
		l.Partly = l.Partly || d.types.GetPropertyOfType(d.types.GetApparentType(part), l.Name) != nil
	}
	l.List, l.Tried = d.types.IsArrayLikeType(t), isTried(name.Parent)
	l.members(d.membersOf(t))
	return l
}

// receiver returns the expression or pattern before the member name: a in a.name, or b in const {name} = b.
func receiver(name *ast.Node) *ast.Node {
	switch p := name.Parent; {
	case p == nil:
	case p.Kind == ast.KindPropertyAccessExpression && p.Name() == name:
		return p.Expression()
	case p.Kind == ast.KindBindingElement && p.PropertyNameOrName() == name:
		if v := p.Parent.Parent; ast.IsVariableDeclaration(v) && v.Initializer() != nil {
			return v.Initializer()
		}
		return p.Parent
	}
	return nil
}

// isTried reports whether the program handles the case that the member is missing: as in a.b ?? a.c, if (a.b),
// a.b?.c, and a pattern with a default value.
func isTried(n *ast.Node) bool {
	if n.Kind == ast.KindBindingElement {
		return n.Initializer() != nil
	}
	p := n.Parent
	for p.Kind == ast.KindParenthesizedExpression {
		n, p = p, p.Parent
	}
	switch p.Kind {
	case ast.KindPropertyAccessExpression, ast.KindElementAccessExpression, ast.KindCallExpression:
		return p.Expression() == n && p.QuestionDotToken() != nil
	case ast.KindIfStatement:
		return p.Expression() == n
	case ast.KindConditionalExpression:
		return p.AsConditionalExpression().Condition == n
	case ast.KindPrefixUnaryExpression:
		return p.AsPrefixUnaryExpression().Operator == ast.KindExclamationToken
	case ast.KindBinaryExpression:
		return isFallback(p.AsBinaryExpression())
	}
	return false
}

func isFallback(b *ast.BinaryExpression) bool {
	switch b.OperatorToken.Kind {
	case ast.KindQuestionQuestionToken, ast.KindBarBarToken, ast.KindAmpersandAmpersandToken:
		return true
	case ast.KindEqualsEqualsToken, ast.KindExclamationEqualsToken, ast.KindEqualsEqualsEqualsToken, ast.KindExclamationEqualsEqualsToken:
		return isNothing(b.Left) || isNothing(b.Right)
	}
	return false
}

func isNothing(n *ast.Node) bool {
	return n.Kind == ast.KindNullKeyword || ast.IsIdentifier(n) && n.Text() == "undefined"
}

// fileOfType returns the path of the file in Input.Files that declares a type, or "". For an array or union, it looks
// at the types of the elements or members.
func (d *describer) fileOfType(t *checker.Type) string {
	for _, part := range parts(t) {
		for element := d.types.GetElementTypeOfArrayType(part); element != nil; element = d.types.GetElementTypeOfArrayType(part) {
			part = element
		}
		for _, one := range parts(part) {
			if s := one.Symbol(); s != nil {
				if file := d.fileOf(s); file != "" {
					return file
				}
			}
		}
	}
	return ""
}

// parts returns the types that a union or intersection consists of, or the type itself.
func parts(t *checker.Type) (all []*checker.Type) {
	for _, part := range t.Distributed() {
		if part.Flags()&checker.TypeFlagsIntersection != 0 {
			all = append(all, part.Types()...)
		} else {
			all = append(all, part)
		}
	}
	return all
}

// fileOfValue returns the path of the file in Input.Files that declares the function or member from which a value
// comes, or "". It is needed for values of primitive types, whose types no file declares.
func (d *describer) fileOfValue(n *ast.Node, depth int) string {
	const far = 4
	for n.Kind == ast.KindAwaitExpression || n.Kind == ast.KindParenthesizedExpression {
		n = n.Expression()
	}
	switch {
	case depth > far:
		return ""
	case n.Kind == ast.KindCallExpression:
		if t := d.functionOf(n.Expression()); t != nil {
			return t.File
		}
		return ""
	case n.Kind == ast.KindPropertyAccessExpression:
		n = n.Name()
	case !ast.IsIdentifier(n):
		return ""
	}
	s := d.types.GetSymbolAtLocation(n)
	if s == nil {
		return ""
	}
	if file := d.fileOf(s); file != "" {
		return file
	}
	if v := s.ValueDeclaration; v != nil && ast.IsVariableDeclaration(v) && v.Type() == nil && v.Initializer() != nil {
		return d.fileOfValue(v.Initializer(), depth+1)
	}
	return ""
}

// membersOf returns the members of the object types in a union or intersection. It ignores arrays.
func (d *describer) membersOf(t *checker.Type) (all []*ast.Symbol) {
	for _, part := range parts(t) {
		if part.Flags()&checker.TypeFlagsObject != 0 && !d.types.IsArrayLikeType(part) {
			all = append(all, d.types.GetPropertiesOfType(part)...)
		}
	}
	return all
}

func (l *Lack) members(all []*ast.Symbol) {
	optional := 0
	for _, s := range all {
		if len(l.Has) < maxHas {
			l.Has = append(l.Has, s.Name)
		}
		if s.Flags&ast.SymbolFlagsOptional != 0 {
			optional++
		}
	}
	l.Loose = 2*optional > len(all)
}
