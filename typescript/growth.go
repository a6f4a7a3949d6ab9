package tsc

import (
	"fmt"

	"github.com/microsoft/typescript-go/internal/ast"
)

// Bounds on constant strings. The compiler evaluates constant strings, such as const b = `${a}${a}`, enum members and
// template literal types. A few dozen of them, each twice as long as the one before, would fill any memory, so a
// program whose constants could become longer than maxConstant bytes is refused.
const (
	maxConstant = 4 << 20
	maxTemplate = 256 // bytes of text in a template of a generic type
)

// growth computes an upper bound for the lengths of the constant strings in a program.
type growth struct {
	declared map[string][]*ast.Node // initializers by name, whatever their scope
	order    []string               // the names, as they are declared
	sizes    map[string]int
	literals int // bytes of all string literals
	product  int // of the numbers of holes in all templates whose type is a constant
	err      error
}

func checkGrowth(file *ast.SourceFile) error {
	g := &growth{declared: map[string][]*ast.Node{}, sizes: map[string]int{}, product: 1}
	g.collect(file.AsNode(), false, false)
	if g.err == nil && g.product > 1 && g.literals >= maxConstant/g.product {
		g.err = &Refusal{ErrTooLarge, 0, fmt.Sprintf("its template literal types could expand to more than %d MB", maxConstant>>20)}
	}
	for _, name := range g.order {
		if g.err == nil && g.size(name) >= maxConstant {
			g.err = &Refusal{ErrTooLarge, 0, fmt.Sprintf("the constant %s would be longer than %d MB", name, maxConstant>>20)}
		}
	}
	return g.err
}

// collect walks the tree and collects constants. generic reports whether type parameters are in scope. constant
// reports whether the type of a template expression is its exact string, as it is under "as const".
func (g *growth) collect(node *ast.Node, generic, constant bool) {
	node.ForEachChild(func(n *ast.Node) bool {
		generic, constant := generic || len(typeParameters(n)) > 0, constant
		switch {
		case ast.IsConstAssertion(n):
			constant = true
		case ast.IsFunctionLike(n):
			constant = false
		case n.Kind == ast.KindVariableDeclaration, n.Kind == ast.KindEnumMember:
			g.declare(n.Name(), n.Initializer())
		case ast.IsStringLiteralLike(n):
			g.literals = saturate(g.literals + len(n.Text()))
		case n.Kind == ast.KindTemplateLiteralType, n.Kind == ast.KindTemplateExpression && constant:
			g.template(n, generic)
		}
		g.collect(n, generic, constant)
		return false
	})
}

func typeParameters(n *ast.Node) []*ast.Node {
	if ast.IsFunctionLike(n) || ast.IsClassLike(n) || n.Kind == ast.KindTypeAliasDeclaration || n.Kind == ast.KindInterfaceDeclaration {
		return n.TypeParameters()
	}
	if n.Kind == ast.KindMappedType {
		return []*ast.Node{n}
	}
	return nil
}

func (g *growth) declare(name, value *ast.Node) {
	if name == nil || value == nil || !ast.IsIdentifier(name) && !ast.IsStringLiteralLike(name) {
		return
	}
	if _, ok := g.declared[name.Text()]; !ok {
		g.order = append(g.order, name.Text())
	}
	g.declared[name.Text()] = append(g.declared[name.Text()], value)
}

// template adds a template to the bound for the lengths of constants. The type of the template is an exact string. A
// generic type can apply a template to its own result again and again. Therefore a template in a generic type is
// refused if it is long or has several placeholders.
func (g *growth) template(n *ast.Node, generic bool) {
	holes, text := 0, n.End()-n.Pos()
	n.ForEachChild(func(child *ast.Node) bool {
		isHole := child.Kind == ast.KindTemplateLiteralTypeSpan || child.Kind == ast.KindTemplateSpan
		if isHole && !isInferred(child) {
			holes++
		}
		return false
	})
	g.literals = saturate(g.literals + text)
	g.product = saturate(g.product * max(1, holes))
	if generic && (holes > 1 || text > maxTemplate) && g.err == nil {
		g.err = &Refusal{ErrTooLarge, 0, "a template literal type with several type parameters can expand to a string of any length"}
	}
}

// isInferred reports whether a placeholder is ${infer T}. Such a placeholder only splits a string, so it makes no
// string longer.
func isInferred(span *ast.Node) bool {
	return span.Kind == ast.KindTemplateLiteralTypeSpan && span.AsTemplateLiteralTypeSpan().Type.Kind == ast.KindInferType
}

// size returns an upper bound for the length of each constant that is declared under a name.
func (g *growth) size(name string) int {
	if size, ok := g.sizes[name]; ok {
		return size
	}
	g.sizes[name] = 0 // a constant cannot depend on itself
	size := 0
	for _, value := range g.declared[name] {
		size = max(size, g.length(value))
	}
	g.sizes[name] = size
	return size
}

// length returns an upper bound for the length of a constant expression, and 0 for any other expression.
func (g *growth) length(n *ast.Node) int {
	switch n.Kind {
	case ast.KindIdentifier:
		return g.size(n.Text())
	case ast.KindPropertyAccessExpression:
		return g.length(n.Name())
	case ast.KindElementAccessExpression:
		if arg := n.AsElementAccessExpression().ArgumentExpression; ast.IsStringLiteralLike(arg) {
			return g.size(arg.Text())
		}
		return 0
	case ast.KindStringLiteral, ast.KindNoSubstitutionTemplateLiteral, ast.KindTemplateHead, ast.KindTemplateMiddle, ast.KindTemplateTail,
		ast.KindNumericLiteral:
		return n.End() - n.Pos()
	case ast.KindAsExpression, ast.KindSatisfiesExpression, ast.KindNonNullExpression, ast.KindParenthesizedExpression:
		return g.length(n.Expression())
	case ast.KindTemplateExpression, ast.KindTemplateSpan, ast.KindBinaryExpression, ast.KindPrefixUnaryExpression:
		return g.sum(n)
	}
	return 0
}

func (g *growth) sum(n *ast.Node) int {
	total := 0
	n.ForEachChild(func(child *ast.Node) bool {
		total = saturate(total + g.length(child))
		return false
	})
	return total
}

func saturate(n int) int { return min(n, 1<<40) }
