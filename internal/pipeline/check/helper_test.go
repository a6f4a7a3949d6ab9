package check

import (
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/pipeline/bindings"
	"retort/internal/pipeline/check/python"
	"retort/internal/pipeline/check/rules"
	"retort/internal/pipeline/check/typescript"
)

// inside implements typescript.ProcessStarter with a compiler in the test process.
func inside() (io.ReadWriteCloser, error) {
	here, there := net.Pipe()
	go func() {
		_ = typescript.ServeCompiler(there, there)
		_ = there.Close()
	}()
	return here, nil
}

// newGate returns a ProgramChecker with a strictness level. It parses Python with p, which may be nil.
func newGate(t testing.TB, p python.CodeParser, level rules.StrictnessLevel) *ProgramChecker {
	g := New(Options{Start: inside, Parser: p, Level: level})
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// demoTools returns the tools of the demo's servers and of a server that runs shell commands, because hostile
// programs try to use such a server.
func demoTools(t testing.TB) *core.Toolset {
	t.Helper()
	var servers []*core.ToolServer
	var names []string
	for _, name := range []string{"calendar", "chat", "crm", "database", "drive", "files", "issues", "mail", "sheets"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "devel", "demo", "tools", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		servers = append(servers, serverOf(t, name, text))
		names = append(names, name)
	}
	shell := `[{"name":"run","description":"Runs a command.","inputSchema":{"type":"object","properties":{"command":{}},"required":["command"]}}]`
	servers = append(servers, serverOf(t, "shell", []byte(shell)))
	assigned := bindings.AssignServer(append(names, "shell"))
	for _, s := range servers {
		s.TypeScript, s.Python = assigned[s.Name].TypeScript, assigned[s.Name].Python
	}
	return core.NewToolset(servers)
}

func serverOf(t testing.TB, name string, text []byte) *core.ToolServer {
	t.Helper()
	var list []*core.Tool
	var whole struct{ Tools []*core.Tool }
	if err := json.Unmarshal(text, &list); err != nil {
		if err := json.Unmarshal(text, &whole); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		list = whole.Tools
	}
	var raw []string
	for _, tool := range list {
		tool.Server = name
		raw = append(raw, tool.Name)
	}
	assigned := bindings.AssignTools(raw)
	for _, tool := range list {
		tool.TypeScript, tool.Python = assigned[tool.Name].TypeScript, assigned[tool.Name].Python
	}
	return &core.ToolServer{Name: name, Tools: list}
}

// language returns the language of a program, determined by the suffix of its file name.
func language(name string) core.Language {
	switch {
	case strings.HasSuffix(name, ".py"):
		return core.Python
	case strings.HasSuffix(name, ".js"):
		return core.JavaScript
	}
	return core.TypeScript
}
