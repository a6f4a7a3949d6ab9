package internal_test

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"
)

// Bounds on the root package, which must stay a thin Go API.
const (
	maxFaceFiles   = 5
	maxFaceLines   = 700 // of all files together
	maxFaceMethods = 20  // of Engine
)

// faceRules returns the violations of the rule that the root package is a thin Go API. It may not have too many
// files, lines or methods. Its exported declarations may not mention internal or unexported types, because users
// cannot name these and go doc does not show their fields.
func faceRules(all []source) (found []string) {
	files, lines, methods := 0, 0, 0
	hidden := map[string]bool{} // unexported types
	for _, s := range all {
		if s.dir != "." || s.test {
			continue
		}
		files, lines = files+1, lines+s.fset.File(s.file.FileStart).LineCount()
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.IsExported() && receiverOf(f) == "Engine" {
				methods++
			}
			eachType(d, func(spec *ast.TypeSpec) { hidden[spec.Name.Name] = !spec.Name.IsExported() })
		}
	}
	for _, s := range all {
		if s.dir == "." && !s.test {
			found = append(found, hiddenTypes(s, hidden)...)
		}
	}
	for _, b := range []struct {
		what      string
		got, most int
	}{{"files", files, maxFaceFiles}, {"lines", lines, maxFaceLines}, {"methods of Engine", methods, maxFaceMethods}} {
		if b.got > b.most {
			found = append(found, fmt.Sprintf("the root package has %d %s; %d are the most", b.got, b.what, b.most))
		}
	}
	return found
}

// hiddenTypes returns the places where exported declarations of a file mention types that users cannot name: internal
// or unexported ones.
func hiddenTypes(s source, unexported map[string]bool) (found []string) {
	internal := map[string]string{}
	for _, i := range s.imports() {
		if strings.HasPrefix(i.path, module+"/internal/") {
			internal[i.name] = i.path
		}
	}
	var check func(of string, n ast.Node)
	check = func(of string, n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.StructType:
				for _, f := range n.Fields.List {
					if len(f.Names) == 0 || f.Names[0].IsExported() { // other fields may have any type
						check(of, f.Type)
					}
				}
				return false
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && internal[x.Name] != "" {
					found = append(found, fmt.Sprintf("%s: %s names %s.%s, which is internal; define a type here and convert", s.at(n), of, x.Name, n.Sel.Name))
				}
				return false
			case *ast.Ident:
				if unexported[n.Name] {
					found = append(found, fmt.Sprintf("%s: %s names the unexported type %s", s.at(n), of, n.Name))
				}
			}
			return true
		})
	}
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.IsExported() && (f.Recv == nil || ast.IsExported(receiverOf(f))) {
			check("func "+f.Name.Name, f.Type)
		}
		eachType(d, func(spec *ast.TypeSpec) {
			if spec.Name.IsExported() {
				check("type "+spec.Name.Name, spec.Type)
			}
		})
		if g, ok := d.(*ast.GenDecl); ok {
			for _, spec := range g.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && v.Type != nil && v.Names[0].IsExported() {
					check(v.Names[0].Name, v.Type)
				}
			}
		}
	}
	return found
}

func eachType(d ast.Decl, visit func(*ast.TypeSpec)) {
	if g, ok := d.(*ast.GenDecl); ok {
		for _, spec := range g.Specs {
			if t, ok := spec.(*ast.TypeSpec); ok {
				visit(t)
			}
		}
	}
}

// receiverOf returns the name of the type of a method's receiver; "" for a function.
func receiverOf(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return ""
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if name, ok := t.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

func TestTheGoAPIIsThin(t *testing.T) { hold(t, faceRules) }

func TestFaceRulesFindViolations(t *testing.T) {
	violations(t, faceRules, map[string]string{
		"a.go": `package retort; import "retort/internal/core"
			type Limits = core.Limits
			type Outcome struct { Error *core.Error; hidden core.Limits }
			type Source interface { Tools(l core.Limits) error }
			type secret struct{}
			func Open(l core.Limits) (*secret, error) { return nil, core.Fail() }
			func open(l core.Limits) *secret { return nil }
			func (e *Engine) Listen(f func(l *core.Limits)) {}
			func (s secret) Open(l core.Limits) {}
			var All []core.Limits
			const Version = core.Version`,
		"a_test.go": `package retort; import "retort/internal/core"; type L = core.Limits`,
		"big.go":    "package retort" + strings.Repeat("\n", maxFaceLines),
		"many.go": "package retort; type Engine struct { e int }" +
			strings.Repeat("\nfunc (e *Engine) M(n int) {}", maxFaceMethods),
		"d.go": `package retort`, "e.go": `package retort`, "f.go": `package retort`,
		"internal/engine/a.go": `package engine; import "retort/internal/core"; type Limits = core.Limits`,
	}, []string{
		"a.go:10: All names core.Limits, which is internal; define a type here and convert",
		"a.go:2: type Limits names core.Limits, which is internal; define a type here and convert",
		"a.go:3: type Outcome names core.Error, which is internal; define a type here and convert",
		"a.go:4: type Source names core.Limits, which is internal; define a type here and convert",
		"a.go:6: func Open names core.Limits, which is internal; define a type here and convert",
		"a.go:6: func Open names the unexported type secret",
		"a.go:8: func Listen names core.Limits, which is internal; define a type here and convert",
		"the root package has 21 methods of Engine; 20 are the most",
		"the root package has 6 files; 5 are the most",
		"the root package has 735 lines; 700 are the most",
	})
}
