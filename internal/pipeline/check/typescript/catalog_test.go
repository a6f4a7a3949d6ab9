package typescript

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/microsoft/typescript-go/tsc"

	"retort/internal/core"
)

// checkCatalog checks that the declarations of all tools compile, both in a program that calls every tool of a server
// and each on its own.
func checkCatalog(t *testing.T, tools *core.Toolset) {
	t.Helper()
	c := newChecker(t)
	for _, s := range tools.Servers {
		var b strings.Builder
		fmt.Fprintf(&b, "import * as server from './servers/%s';\nconst all: any[] = [];\n", s.TypeScript)
		for _, tool := range s.Tools {
			fmt.Fprintf(&b, "all.push((x: any) => server.%s(x));\n", tool.TypeScript)
		}
		checked, refusal := c.CheckProgram(context.Background(), ProgramSource{Code: b.String() + "return all.length;\n", Language: core.TypeScript}, tools)
		if refusal != nil {
			t.Errorf("%s: %s\n%s", s.Name, refusal.Message, refusal.Frame)
			continue
		}
		if len(checked.Warnings) > 0 {
			t.Errorf("%s: %s", s.Name, checked.Warnings)
		}
		if len(checked.Tools) != len(s.Tools) {
			t.Errorf("%s: %d of %d tools are reached", s.Name, len(checked.Tools), len(s.Tools))
		}
		for _, tool := range s.Tools {
			checkDeclaration(t, c, tool)
		}
	}
}

// checkDeclaration checks a tool's declaration as if it were a program, because checking a program does not report
// errors in declaration files.
func checkDeclaration(t *testing.T, c *ScriptChecker, tool *core.Tool) {
	t.Helper()
	text := strings.ReplaceAll("\n"+c.wrappers.declareTool(declaredTool{tool, true}), "\nexport function ", "\nexport declare function ")
	ctx := context.Background()
	compiler, err := c.compilers.takeProcess(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.compilers.returnProcess(compiler)
	src, err := compiler.parseText(ctx, text, tsc.TypeScript)
	if err != nil {
		t.Errorf("%s.%s: %v", tool.Server, tool.Name, err)
		return
	}
	found := src.Errors()
	if len(found) == 0 {
		result, err := compiler.checkSource(ctx, src, tsc.Input{Strict: true}, false)
		if err != nil {
			t.Errorf("%s.%s: %v", tool.Server, tool.Name, err)
			return
		}
		found = result.Diagnostics
	}
	for _, d := range found {
		t.Errorf("%s.%s: %d:%d TS%d %s\n%s", tool.Server, tool.Name, d.Line, d.Column, d.Code, d.Message, text)
	}
}

func TestCatalog(t *testing.T) { checkCatalog(t, catalog(t, "../../bindings/testdata/catalog/*.json")) }

func TestCatalogs(t *testing.T) {
	dir := os.Getenv("RETORT_CATALOGS")
	if dir == "" {
		t.Skip("RETORT_CATALOGS names no directory of tools/list answers")
	}
	checkCatalog(t, catalog(t, filepath.Join(dir, "*.json")))
}
