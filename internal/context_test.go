package internal_test

import (
	"go/ast"
	"slices"
	"testing"
)

// contextValues lists the only files that may put values into contexts. Function signatures do not show such values,
// so as few types as possible should use them.
var contextValues = []struct{ file, call, why string }{
	{"internal/core/context.go", "Value", "Requester and WorkBounds: who asked for the work, and what limits it"},
	{"internal/mcp/server/context.go", "context.WithValue", "the SDK hands only a context from the middleware to the tool"},
	{"internal/engine/interactive_jobs.go", "Value", "a queued agent task answers as the request that waits for it"},
}

// contextRules finds calls of context.WithValue, and contexts with a Value method of their own, in files that
// contextValues does not list.
func contextRules(all []source) (found []string) {
	for _, s := range all {
		if s.test {
			continue
		}
		refuse := func(n ast.Node, call string) {
			allowed := slices.ContainsFunc(contextValues, func(a struct{ file, call, why string }) bool {
				return a.file == s.path && a.call == call
			})
			if !allowed {
				found = append(found, s.at(n)+": "+call+" gives a context another value; pass a parameter, or add a field to core.Requester or core.WorkBounds")
			}
		}
		s.members(func(name string, n ast.Node) {
			if name == "context.WithValue" {
				refuse(n, name)
			}
		})
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == "Value" && f.Type.Params.NumFields() == 1 {
				refuse(f, "Value")
			}
		}
	}
	return found
}

func TestContextValues(t *testing.T) { hold(t, contextRules) }

func TestContextRulesFindViolations(t *testing.T) {
	violations(t, contextRules, map[string]string{
		"internal/jobs/a.go": `package jobs
import c "context"
type key struct{}
func f(ctx c.Context) c.Context { return c.WithValue(ctx, key{}, 1) }
type own struct{ c.Context }
func (o own) Value(key any) any { return nil }`,
		"internal/core/context.go": `package core
import "context"
type own struct{ context.Context }
func (o own) Value(key any) any { return nil }`,
	}, []string{
		"internal/jobs/a.go:4: context.WithValue gives a context another value; pass a parameter, or add a field to core.Requester or core.WorkBounds",
		"internal/jobs/a.go:6: Value gives a context another value; pass a parameter, or add a field to core.Requester or core.WorkBounds",
	})
}
