package internal_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// keepers lists the packages that store files in the data directory. They must open these files with care, because a
// server may replace any of them by a named pipe, a link or a device.
var keepers = []string{
	"internal/auth", "internal/audit", "internal/catalog", "internal/privacy/vault", "internal/pipeline/search", "internal/pipeline/approval",
	"internal/jobs", "internal/base/seal", "internal/skills", "internal/audit/sqlstore", "internal/mcp/client/oauth", "internal/workspace", "internal/recommend",
}

var openAllowed = []struct{ path, call, why string }{
	{"internal/catalog/static.go", "os.ReadFile", "definitions that a person has put into a folder of their choice"},
	{"internal/privacy/vault/key.go", "os.Open", "keys of age, which lie where a person says"},
	{"internal/pipeline/approval/desk_linux.go", "os.ReadFile", "what the kernel says of processes"},
	{"internal/pipeline/approval/desk_linux.go", "os.Open", "what the kernel says of processes"},
	{"internal/base/seal/open.go", "os.Open", "a directory, to sync it"},
	{"internal/base/seal/open.go", "os.OpenRoot", "after a look at whether it is a directory"},
	{"internal/base/seal/open_other.go", "os.OpenFile", "after a look at whether it is a file"},
}

// openRules returns the places where a file of the data directory is opened unsafely: the call could wait for the
// other end of a named pipe, follow a link or read without a bound. A call with O_EXCL is safe, because it always
// creates a new file.
func openRules(all []source) (found []string) {
	for _, s := range all {
		if s.test || !slices.Contains(keepers, s.dir) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of, _ := f.X.(*ast.Ident)
			if of == nil || of.Name != "os" || !slices.Contains([]string{"Open", "OpenFile", "ReadFile", "WriteFile", "Create", "OpenRoot"}, f.Sel.Name) {
				return true
			}
			name := "os." + f.Sel.Name
			allowed := slices.ContainsFunc(openAllowed, func(a struct{ path, call, why string }) bool { return a.path == s.path && a.call == name })
			if !allowed && !exclusive(call) {
				found = append(found, s.at(n)+": "+name+" of what may be in the data directory; use package seal, which opens regular files only")
			}
			return true
		})
	}
	return found
}

// exclusive reports whether an argument of a call mentions O_EXCL, so that the call fails if the file already exists.
func exclusive(call *ast.CallExpr) (yes bool) {
	for _, a := range call.Args {
		ast.Inspect(a, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			yes = yes || ok && strings.HasSuffix(id.Name, "O_EXCL")
			return true
		})
	}
	return yes
}

func TestFilesAreOpenedSafely(t *testing.T) { hold(t, openRules) }

func TestOpenRulesFindViolations(t *testing.T) {
	violations(t, openRules, map[string]string{
		"internal/jobs/a.go": `package queue
import "os"
func f() {
	_, _ = os.ReadFile("x")
	_, _ = os.OpenFile("x", os.O_RDWR|os.O_CREATE, 0)
	_, _ = os.OpenFile("x", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0)
	_, _ = os.Stat("x")
}`,
		"internal/base/reaper/a.go": `package reaper
import "os"
func f() { _, _ = os.ReadFile("x") }`,
	}, []string{
		"internal/jobs/a.go:4: os.ReadFile of what may be in the data directory; use package seal, which opens regular files only",
		"internal/jobs/a.go:5: os.OpenFile of what may be in the data directory; use package seal, which opens regular files only",
	})
}
