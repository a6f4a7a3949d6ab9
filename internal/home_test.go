package internal_test

import (
	"go/ast"
	"go/token"
	"slices"
	"testing"
)

// composers lists the packages that pass paths of files to all other packages.
var composers = []string{"internal/engine", "internal/admin"}

// homeRules returns the places where a package listed in composers spells out a file name instead of using package
// home.
func homeRules(all []source) (found []string) {
	for _, s := range all {
		if s.test || !slices.Contains(composers, s.dir) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && joinsLiteral(call) {
				found = append(found, s.at(n)+": filepath.Join with a name; make it a method in internal/home")
			}
			return true
		})
	}
	return found
}

// joinsLiteral reports whether call is filepath.Join with a string literal.
func joinsLiteral(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || f.Sel.Name != "Join" {
		return false
	}
	if of, ok := f.X.(*ast.Ident); !ok || of.Name != "filepath" {
		return false
	}
	return slices.ContainsFunc(call.Args, func(a ast.Expr) bool {
		literal, ok := a.(*ast.BasicLit)
		return ok && literal.Kind == token.STRING
	})
}

func TestOnlyHomeNamesFiles(t *testing.T) { hold(t, homeRules) }

func TestHomeRulesFindViolations(t *testing.T) {
	violations(t, homeRules, map[string]string{
		"internal/engine/a.go":      `package engine; import "path/filepath"; var f = filepath.Join(dir, "vault")`,
		"internal/engine/a_test.go": `package engine; import "path/filepath"; var f = filepath.Join(dir, "vault")`,
		"internal/engine/b.go":      `package engine; import "path/filepath"; var f = filepath.Join(dir, name)`,
		"internal/home/a.go":        `package home; import "path/filepath"; var f = filepath.Join(dir, "vault")`,
	}, []string{"internal/engine/a.go:1: filepath.Join with a name; make it a method in internal/home"})
}
