package typescript

import (
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"retort/internal/pipeline/emit"
	"retort/internal/run"
)

// inside is a Start that serves in this process.
func inside() (io.ReadWriteCloser, error) {
	here, there := net.Pipe()
	go func() {
		_ = Serve(there, there)
		_ = there.Close()
	}()
	return here, nil
}

func newChecker(t testing.TB) *Checker {
	c := New(inside)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// server makes a server of tools given as name → input schema.
func server(name string, tools ...*run.Tool) *run.Server {
	raw := make([]string, len(tools))
	for i, t := range tools {
		t.Server = name
		raw[i] = t.Name
	}
	names := emit.AssignTools(raw)
	for _, t := range tools {
		t.TypeScript, t.Python = names[t.Name].TypeScript, names[t.Name].Python
	}
	return &run.Server{Name: name, Tools: tools}
}

func tool(name, input, output string) *run.Tool {
	return &run.Tool{Name: name, Description: "About " + name + ".", InputSchema: json.RawMessage(input), OutputSchema: json.RawMessage(output)}
}

func toolset(servers ...*run.Server) *run.Toolset {
	slices.SortFunc(servers, func(a, b *run.Server) int { return strings.Compare(a.Name, b.Name) })
	raw := make([]string, len(servers))
	for i, s := range servers {
		raw[i] = s.Name
	}
	names := emit.AssignServer(raw)
	for _, s := range servers {
		s.TypeScript, s.Python = names[s.Name].TypeScript, names[s.Name].Python
	}
	return run.NewToolset(servers)
}

// sample is a toolset with what the tests need.
func sample() *run.Toolset {
	return toolset(
		server("github",
			tool("list_issues", `{"type":"object","properties":{"owner":{"type":"string"},"repo":{"type":"string"},"state":{"enum":["open","closed"]},"labels":{"type":"array","items":{"type":"string"}},"perPage":{"type":"integer"}},"required":["owner","repo"],"additionalProperties":false}`,
				`{"type":"object","properties":{"issues":{"type":"array","items":{"type":"object","properties":{"number":{"type":"integer"},"title":{"type":"string"},"state":{"type":"string"}},"required":["number","title"]}}},"required":["issues"]}`),
			tool("get_issue", `{"type":"object","properties":{"owner":{"type":"string"},"repo":{"type":"string"},"number":{"type":"integer"}},"required":["owner","repo","number"]}`, ``),
			tool("create_issue", `{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]}`, ``),
			tool("get_me", `{"type":"object","properties":{}}`, ``),
		),
		server("google-drive",
			tool("get_document", `{"type":"object","properties":{"documentId":{"type":"string"},"fields":{"type":"string"}},"required":["documentId"]}`,
				`{"type":"object","properties":{"title":{"type":"string"},"content":{"type":"string"}},"required":["title","content"]}`),
			tool("search", `{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`, ``),
		),
		server("console", tool("write", `{"type":"object","properties":{"text":{"type":"string"}}}`, ``)),
	)
}

// catalog reads the tools/list answers in the files that a pattern names.
func catalog(t testing.TB, pattern string) *run.Toolset {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	var servers []*run.Server
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Name  string
			Tools []struct {
				Name, Title, Description  string
				InputSchema, OutputSchema json.RawMessage
			}
		}
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var tools []*run.Tool
		for _, x := range list.Tools {
			tools = append(tools, &run.Tool{Name: x.Name, Title: x.Title, Description: x.Description, InputSchema: x.InputSchema, OutputSchema: x.OutputSchema})
		}
		servers = append(servers, server(list.Name, tools...))
	}
	return toolset(servers...)
}
