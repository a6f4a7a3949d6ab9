package gate

import (
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retort/internal/pipeline/emit"
	"retort/internal/pipeline/gate/python"
	"retort/internal/pipeline/gate/rules"
	"retort/internal/pipeline/gate/typescript"
	"retort/internal/run"
)

// inside is a Start whose compiler serves in this process.
func inside() (io.ReadWriteCloser, error) {
	here, there := net.Pipe()
	go func() {
		_ = typescript.Serve(there, there)
		_ = there.Close()
	}()
	return here, nil
}

// newGate is a gate of a level that parses with p, which may be nil.
func newGate(t testing.TB, p python.Parser, level rules.Level) *Gate {
	g := New(Options{Start: inside, Parser: p, Level: level})
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// demoTools are the tools of the demo's servers, and a server with a shell, which
// is what hostile programs hope for.
func demoTools(t testing.TB) *run.Toolset {
	t.Helper()
	var servers []*run.Server
	var names []string
	for _, name := range []string{"calendar", "chat", "crm", "database", "drive", "files", "issues", "mail", "sheets"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "demo", "tools", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		servers = append(servers, serverOf(t, name, text))
		names = append(names, name)
	}
	shell := `[{"name":"run","description":"Runs a command.","inputSchema":{"type":"object","properties":{"command":{}},"required":["command"]}}]`
	servers = append(servers, serverOf(t, "shell", []byte(shell)))
	assigned := emit.AssignServer(append(names, "shell"))
	for _, s := range servers {
		s.TypeScript, s.Python = assigned[s.Name].TypeScript, assigned[s.Name].Python
	}
	return run.NewToolset(servers)
}

func serverOf(t testing.TB, name string, text []byte) *run.Server {
	t.Helper()
	var list []*run.Tool
	var whole struct{ Tools []*run.Tool }
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
	assigned := emit.AssignTools(raw)
	for _, tool := range list {
		tool.TypeScript, tool.Python = assigned[tool.Name].TypeScript, assigned[tool.Name].Python
	}
	return &run.Server{Name: name, Tools: list}
}

// language is that of a program in a file.
func language(name string) run.Language {
	switch {
	case strings.HasSuffix(name, ".py"):
		return run.Python
	case strings.HasSuffix(name, ".js"):
		return run.JavaScript
	}
	return run.TypeScript
}
