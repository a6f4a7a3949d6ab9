package internal_test

import (
	"errors"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// loud matches functions that print, log through a global logger, or end the process. Only cmd may use them, because
// standard output carries the MCP protocol. loudAllowed lists the exceptions with their reasons.
var loud = regexp.MustCompile(`^(fmt\.Print(f|ln)?|os\.(Exit|Stdout|Stderr)|log\.\w+|slog\.(Debug|Info|Warn|Error|Log|LogAttrs|Default|SetDefault|(Debug|Info|Warn|Error)Context))$`)

var loudAllowed = []struct{ dir, call, why string }{
	{"internal/sandbox/guest", "os.Exit", "the process is the sandbox; nothing else lives in it"},
	{"internal/sandbox/guest", "os.Stdout", "the pipe to the host, taken away from the program"},
	{"internal/sandbox/guest", "os.Stderr", "taken away from the program"},
	{"internal/engine", "os.Exit", "Init ends a process that was started to be a guest or a reaper"},
	{"internal/engine", "os.Stdout", "Init gives the guest its pipe"},
	{"internal/base/reaper", "os.Exit", "the reaper is a process of its own"},
}

// loudRules returns the places outside cmd that print, log through a global logger or end the process, and the places
// in pure packages that read a clock.
func loudRules(all []source) (found []string) {
	for _, s := range all {
		if s.test || strings.HasPrefix(s.dir, "cmd/") || strings.HasPrefix(s.dir, "examples/") || strings.HasPrefix(s.dir, "scripts/") {
			continue
		}
		s.members(func(name string, n ast.Node) {
			allowed := slices.ContainsFunc(loudAllowed, func(a struct{ dir, call, why string }) bool {
				return a.dir == s.dir && a.call == name
			})
			if loud.MatchString(name) && !allowed {
				found = append(found, s.at(n)+": "+name+" outside cmd; standard output is the protocol. Return an error, or take an io.Writer")
			}
			if under(s.dir, pure) && slices.Contains(clockCalls, name) {
				found = append(found, s.at(n)+": "+name+" in a pure package")
			}
		})
		ast.Inspect(s.file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if f, ok := call.Fun.(*ast.Ident); ok && (f.Name == "print" || f.Name == "println") {
					found = append(found, s.at(n)+": "+f.Name+" outside cmd")
				}
			}
			return true
		})
	}
	return found
}

func initRules(all []source) (found []string) {
	for _, s := range all {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "init" && f.Recv == nil {
				found = append(found, s.at(f)+": an init function; join things where they are used, in cmd or the engine")
			}
		}
	}
	return found
}

// globalRules returns the assignments to package-level variables. If one test or engine changed such a variable, all
// others in the same process would see the change.
func globalRules(all []source) (found []string) {
	packages := map[string][]source{}
	for _, s := range all {
		if !s.test {
			packages[s.dir] = append(packages[s.dir], s)
		}
	}
	for _, files := range packages {
		// Imports are not followed: the package's own names resolve without.
		config := types.Config{Importer: noImporter{}, Error: func(error) {}}
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
		var parsed []*ast.File
		for _, s := range files {
			parsed = append(parsed, s.file)
		}
		pkg, _ := config.Check(files[0].dir, files[0].fset, parsed, info)
		for _, s := range files {
			for _, n := range writes(s.file) {
				object := info.Uses[n]
				_, foreign := object.(*types.PkgName)
				if foreign || object != nil && object.Parent() == pkg.Scope() {
					found = append(found, s.at(n)+": the global "+n.Name+" is changed; give it to those who need it")
				}
			}
		}
	}
	return found
}

type noImporter struct{}

func (noImporter) Import(p string) (*types.Package, error) {
	return nil, errors.New("not followed")
}

// writes returns the variables that statements of a file assign to, such as x in x = 1, x[i] = 1 and x.f++.
func writes(f *ast.File) []*ast.Ident {
	var found []*ast.Ident
	add := func(e ast.Expr) {
		for {
			switch x := e.(type) {
			case *ast.Ident:
				found = append(found, x)
				return
			case *ast.IndexExpr:
				e = x.X
			case *ast.SelectorExpr:
				e = x.X
			case *ast.StarExpr:
				e = x.X
			case *ast.ParenExpr:
				e = x.X
			default:
				return
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, e := range n.Lhs {
					add(e)
				}
			}
		case *ast.IncDecStmt:
			add(n.X)
		}
		return true
	})
	return found
}

func TestNobodyPrintsOrExits(t *testing.T) { hold(t, loudRules) }
func TestNoInit(t *testing.T)              { hold(t, initRules) }
func TestNoChangingGlobals(t *testing.T)   { hold(t, globalRules) }

func TestLoudRulesFindViolations(t *testing.T) {
	violations(t, loudRules, map[string]string{
		"internal/sandbox/wire/a.go": `package wire
import ("fmt"; "os"; l "log"; "log/slog")
func f(w *os.File) {
	fmt.Println(1)
	fmt.Fprintln(w, 1)
	os.Exit(1)
	l.Fatal(1)
	slog.Info("x")
	println(1)
	w = os.Stdout
}`,
		"internal/sandbox/guest/a.go": `package guest
import "os"
func f() { os.Exit(1) }`,
		"internal/pipeline/bindings/a.go": `package emit
import "time"
var d = time.Second
func f() { _ = time.Now() }`,
		"cmd/retort/a.go": `package main
import "os"
func f() { os.Exit(1) }`,
	}, []string{
		"internal/pipeline/bindings/a.go:4: time.Now in a pure package",
		"internal/sandbox/wire/a.go:10: os.Stdout outside cmd; standard output is the protocol. Return an error, or take an io.Writer",
		"internal/sandbox/wire/a.go:4: fmt.Println outside cmd; standard output is the protocol. Return an error, or take an io.Writer",
		"internal/sandbox/wire/a.go:6: os.Exit outside cmd; standard output is the protocol. Return an error, or take an io.Writer",
		"internal/sandbox/wire/a.go:7: log.Fatal outside cmd; standard output is the protocol. Return an error, or take an io.Writer",
		"internal/sandbox/wire/a.go:8: slog.Info outside cmd; standard output is the protocol. Return an error, or take an io.Writer",
		"internal/sandbox/wire/a.go:9: println outside cmd",
	})
}

func TestGlobalRulesFindViolations(t *testing.T) {
	violations(t, globalRules, map[string]string{
		"internal/sandbox/wire/a.go": `package wire
import "os"
var g int
var m = map[string]struct{ n []int }{}
func f(h *int) {
	g = 1
	g++
	m["x"].n[0] += 2
	os.Args = nil
	*h = g
	g := 2
	g = 3
	_ = g
}
func init() {}`,
	}, []string{
		"internal/sandbox/wire/a.go:6: the global g is changed; give it to those who need it",
		"internal/sandbox/wire/a.go:7: the global g is changed; give it to those who need it",
		"internal/sandbox/wire/a.go:8: the global m is changed; give it to those who need it",
		"internal/sandbox/wire/a.go:9: the global os is changed; give it to those who need it",
	})
	violations(t, initRules, map[string]string{"internal/sandbox/wire/a.go": "package wire\nfunc init() {}"},
		[]string{"internal/sandbox/wire/a.go:2: an init function; join things where they are used, in cmd or the engine"})
}
