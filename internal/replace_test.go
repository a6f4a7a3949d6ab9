package internal_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// rawCalls lists functions that replace or lock files. Other packages must use package seal instead, which replaces
// files atomically.
var rawCalls = []string{"os.Rename", "os.WriteFile", "syscall.Flock", "unix.Flock"}

var rawAllowed = []struct{ path, call, why string }{
	{"internal/base/seal/replace.go", "os.Rename", "replaces files for all others"},
	{"internal/base/seal/lock_unix.go", "syscall.Flock", "locks files for all others"},
	{"internal/audit/sqlstore/file.go", "os.Rename", "SQLite has written the file, and it is synced"},
	{"internal/sandbox/docker/life.go", "os.Rename", "the file is locked, so that it has to keep its inode, and it is empty"},
	{"internal/sandbox/gvisor/place_linux.go", "os.Rename", "a folder, which gets its name once it is locked"},
	{"internal/sandbox/process/scratch_linux.go", "os.Rename", "a folder, which gets its name once it is locked"},
	{"internal/sandbox/vm/image_linux.go", "os.Rename", "a folder, which gets its name once it is complete, or loses it before it is removed"},
	{"internal/sandbox/vm/setup_linux.go", "os.Rename", "files and the folder of an unpacked kernel package"},
	{"internal/sandbox/vm/image_linux.go", "os.WriteFile", "in a folder that has no name yet"},
	{"internal/sandbox/vm/firecracker_linux.go", "os.WriteFile", "in a folder that has no name yet"},
	{"internal/sandbox/wire/shm/host.go", "os.WriteFile", "in a folder that has no name yet"},
	{"internal/sandbox/gvisor/root_linux.go", "os.WriteFile", "in the folder of one container"},
	{"internal/sandbox/process/interpreter.go", "os.WriteFile", "in the folder of one engine"},
	{"internal/sandbox/confine/root_linux.go", "os.WriteFile", "in the file system of one program"},
	{"internal/sandbox/guest/vminit/machine_linux.go", "os.WriteFile", "to the kernel"},
	{"internal/base/reaper/sys_linux.go", "os.WriteFile", "to the kernel"},
	{"cmd/retort/man.go", "os.WriteFile", "manual pages, which are generated"},
}

// elsewhere lists folders in which code may call the functions in rawCalls, because the programs there write no files
// of lasting value.
var elsewhere = []string{"internal/devel/...", "internal/sandbox/sandboxtest", "internal/sandbox/guest/guesttest", "internal/pipeline/check/python/parsertest", "cmd/package", "scripts/..."}

// rawRules returns the places where a file is replaced or locked without package seal. A rename without a sync can
// leave an empty file after a power failure, and writing a file in place can leave half a file on a full disk.
func rawRules(all []source) (found []string) {
	for _, s := range all {
		if s.test || under(s.dir, elsewhere) {
			continue
		}
		for _, at := range rawUses(s.file) {
			name := at.X.(*ast.Ident).Name + "." + at.Sel.Name
			if !slices.ContainsFunc(rawAllowed, func(a struct{ path, call, why string }) bool { return a.path == s.path && a.call == name }) {
				found = append(found, s.at(at)+": "+name+"; use seal.Replace, ReplaceWith, Lock or LockFile, or say why not in rawAllowed")
			}
		}
	}
	return found
}

// rawUses returns all mentions of the functions in rawCalls in a file, including those that do not call the function.
func rawUses(f *ast.File) (uses []*ast.SelectorExpr) {
	ast.Inspect(f, func(n ast.Node) bool {
		if at, ok := n.(*ast.SelectorExpr); ok {
			if of, ok := at.X.(*ast.Ident); ok && slices.Contains(rawCalls, of.Name+"."+at.Sel.Name) {
				uses = append(uses, at)
			}
		}
		return true
	})
	return uses
}

func TestFilesAreReplacedInOnePlace(t *testing.T) { hold(t, rawRules) }

// TestRawExceptionsAreCurrent checks that every exception in rawAllowed is still needed and has a reason.
func TestRawExceptionsAreCurrent(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		for _, at := range rawUses(s.file) {
			used[s.path+" "+at.X.(*ast.Ident).Name+"."+at.Sel.Name] = true
		}
	}
	for _, a := range rawAllowed {
		if !used[a.path+" "+a.call] || strings.TrimSpace(a.why) == "" {
			t.Errorf("rawAllowed: %s has no %s, or no reason is given", a.path, a.call)
		}
	}
}

func TestRawRulesFindViolations(t *testing.T) {
	violations(t, rawRules, map[string]string{
		"internal/jobs/a.go": `package jobs
import ("os"; "syscall")
func f(root *os.Root) {
	_ = os.WriteFile("x", nil, 0)
	_ = root.Rename("x", "y")
	rename := os.Rename
	_ = rename
	_ = syscall.Flock(0, 0)
}`,
		"internal/jobs/a_test.go":  `package jobs; import "os"; var _ = os.Rename("x", "y")`,
		"internal/devel/demo/a.go": `package demo; import "os"; var _ = os.Rename("x", "y")`,
	}, []string{
		"internal/jobs/a.go:4: os.WriteFile; use seal.Replace, ReplaceWith, Lock or LockFile, or say why not in rawAllowed",
		"internal/jobs/a.go:6: os.Rename; use seal.Replace, ReplaceWith, Lock or LockFile, or say why not in rawAllowed",
		"internal/jobs/a.go:8: syscall.Flock; use seal.Replace, ReplaceWith, Lock or LockFile, or say why not in rawAllowed",
	})
}
