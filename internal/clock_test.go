package internal_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// waitingCalls lists functions whose use makes a test depend on the speed of the machine. They are allowed inside a
// testing/synctest bubble: its time is fake, so there they return at once and measure exactly.
var waitingCalls = []string{
	"time.Sleep", "time.After", "time.AfterFunc", "time.Tick", "time.NewTimer", "time.NewTicker", "time.Since",
	"context.WithTimeout", "context.WithTimeoutCause", "context.WithDeadline", "context.WithDeadlineCause", "runtime.NumGoroutine",
}

// deadlineMethods lists methods of connections that make a test depend on the speed of the machine.
var deadlineMethods = []string{"SetDeadline", "SetReadDeadline", "SetWriteDeadline"}

const clockAdvice = ". Wait for an event with testenv.WaitUntil or testenv.Receive, or use testing/synctest; testenv.CheckGoroutines finds leaks"

// waitingAllowed lists functions that may use waitingCalls or deadlineMethods outside a bubble, each with a reason.
// It must also list helpers that are only called inside bubbles, because the rule does not follow calls.
var waitingAllowed = []struct{ dir, function, why string }{
	{"internal/sandbox/wire", "servePauses", "only bubbles call it"},
	{"internal/agent/model/modeltest", "streamReply", "an endless answer must not fill the connection faster than anybody reads"},
	{"internal/catalog", "List", "only bubbles call it"},
	{"internal/mcp/client", "conformanceClient", "testenv.Patience only ends a test that hangs"},
	{"internal/sandbox/process", "TestGuestsThatDoNotStart", "the child never answers, so nothing but the timeout ends the start, whenever that is"},
	{"internal/sandbox/guest", "Call", "the process must end whether it is canceled early or late"},
	{"internal/sandbox/sandboxtest", "endingHost", "the outcome is the same whether the program is ended early or late"},
	{"internal/sandbox/sandboxtest", "commandBounds", "the command would run for hours, so nothing but the timeout ends it, whenever that is"},
	{"internal/sandbox/sandboxtest", "commandEndsWithItsProgram", "the command would run for hours, so nothing but the end of its program ends it, whenever that is"},
	{"cmd/retort", "drip", "the slow client that it plays; on a slower machine it is slower still"},
	{"cmd/retort", "hold", "testenv.Patience only ends a test that hangs"},
}

// clockRules returns the places where tests wait for the clock, measure durations or count goroutines outside a
// testing/synctest bubble. Benchmarks may measure durations.
func clockRules(all []source) (found []string) {
	for _, s := range all {
		if !s.test && !slices.Contains(testOnly, s.dir) || s.dir == "internal/devel/testenv" {
			continue
		}
		bubbles := bubblesOf(s)
		s.waits(func(name string, n ast.Node) {
			if within(n, bubbles) {
				return
			}
			function := enclosing(s.file, n)
			allowed := slices.ContainsFunc(waitingAllowed, func(a struct{ dir, function, why string }) bool {
				return a.dir == s.dir && a.function == function
			})
			if !allowed && !(name == "time.Since" && strings.HasPrefix(function, "Benchmark")) {
				found = append(found, s.at(n)+": "+name+" in a test"+clockAdvice)
			}
		})
	}
	return found
}

// waits calls visit for each use of a function or method in waitingCalls or deadlineMethods.
func (s source) waits(visit func(name string, n ast.Node)) {
	s.members(func(name string, n ast.Node) {
		if slices.Contains(waitingCalls, name) {
			visit(name, n)
		}
	})
	ast.Inspect(s.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && slices.Contains(deadlineMethods, sel.Sel.Name) {
			visit(sel.Sel.Name, sel)
		}
		return true
	})
}

// bubblesOf returns the functions that run inside bubbles: function literals passed to
// synctest.Test, and functions of the same file passed to it by name.
func bubblesOf(s source) (bubbles []ast.Node) {
	var names []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !isSelector(call.Fun, "synctest", "Test") {
			return true
		}
		for _, arg := range call.Args {
			switch arg := arg.(type) {
			case *ast.FuncLit:
				bubbles = append(bubbles, arg)
			case *ast.Ident:
				names = append(names, arg.Name)
			}
		}
		return true
	})
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && slices.Contains(names, f.Name.Name) {
			bubbles = append(bubbles, f)
		}
	}
	return bubbles
}

func isSelector(e ast.Expr, pkg, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg
}

func within(n ast.Node, outer []ast.Node) bool {
	return slices.ContainsFunc(outer, func(o ast.Node) bool { return o.Pos() <= n.Pos() && n.End() <= o.End() })
}

// enclosing returns the name of the declared function that contains n, or "".
func enclosing(f *ast.File, n ast.Node) string {
	for _, d := range f.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && within(n, []ast.Node{f}) {
			return f.Name.Name
		}
	}
	return ""
}

func TestTestsDoNotWaitForTheClock(t *testing.T) {
	hold(t, clockRules)
	used := map[string]bool{}
	for _, s := range sources(t) {
		s.waits(func(_ string, n ast.Node) { used[s.dir+" "+enclosing(s.file, n)] = true })
	}
	for _, a := range waitingAllowed {
		if !used[a.dir+" "+a.function] {
			t.Errorf("waitingAllowed: %s in %s does not wait", a.function, a.dir)
		}
	}
}

func TestClockRulesFindViolations(t *testing.T) {
	violations(t, clockRules, map[string]string{
		"internal/sandbox/wire/a.go": "package wire\nimport \"time\"\nfunc f() { time.Sleep(1) }",
		"internal/sandbox/wire/a_test.go": `package wire
import ("context"; "net"; "runtime"; "testing"; "testing/synctest"; "time")
func TestA(t *testing.T) {
	synctest.Test(t, func(*testing.T) { time.Sleep(time.Hour) })
	synctest.Test(t, named)
	time.Sleep(1)
	select { case <-time.After(1): }
}
func named(*testing.T) { <-time.After(1) }
func BenchmarkA(b *testing.B) { began := time.Now(); _ = time.Since(began); time.Sleep(1) }
func helper() { _ = runtime.NumGoroutine() }
func late(c net.Conn) {
	time.AfterFunc(1, func() {})
	_, _ = context.WithTimeout(context.Background(), 1)
	_ = c.SetReadDeadline(time.Time{})
}`,
		"internal/sandbox/guest/guesttest/a.go": "package guesttest\nimport \"time\"\nfunc f() { time.Sleep(1) }",
		"internal/devel/testenv/a.go":           "package testenv\nimport \"time\"\nfunc f() { time.Sleep(1) }",
	}, []string{
		"internal/sandbox/guest/guesttest/a.go:3: time.Sleep in a test" + clockAdvice,
		"internal/sandbox/wire/a_test.go:10: time.Sleep in a test" + clockAdvice,
		"internal/sandbox/wire/a_test.go:11: runtime.NumGoroutine in a test" + clockAdvice,
		"internal/sandbox/wire/a_test.go:13: time.AfterFunc in a test" + clockAdvice,
		"internal/sandbox/wire/a_test.go:14: context.WithTimeout in a test" + clockAdvice,
		"internal/sandbox/wire/a_test.go:15: SetReadDeadline in a test" + clockAdvice,
		"internal/sandbox/wire/a_test.go:6: time.Sleep in a test" + clockAdvice,
		"internal/sandbox/wire/a_test.go:7: time.After in a test" + clockAdvice,
	})
}
