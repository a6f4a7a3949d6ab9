package typescript

import (
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/microsoft/typescript-go/tsc"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/pipeline/bindings"
)

// inside implements ProcessStarter in the test process, with a time limit that no check should reach.
func inside() (io.ReadWriteCloser, error) { return within(testenv.Patience)() }

// within returns a ProcessStarter that runs the compiler in the test process, with a time limit for each step of a
// check.
func within(limit time.Duration) ProcessStarter {
	return func() (io.ReadWriteCloser, error) {
		here, there := net.Pipe()
		go func() {
			_ = serveRequests(there, there, tsc.Limits{Time: limit})
			_ = there.Close()
		}()
		return here, nil
	}
}

// outside implements ProcessStarter with a child process, as in production.
func outside() (io.ReadWriteCloser, error) {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), serving+"=1")
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	return &child{Reader: out, Writer: in, end: sync.OnceFunc(func() { _, _ = c.Process.Kill(), c.Wait() })}, nil
}

// serving is the environment variable that makes the test binary run as a compiler process.
const serving = "RETORT_TEST_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(serving) != "" {
		TuneCollector()
		in, fill := io.Pipe()
		go func() {
			_, _ = io.Copy(fill, os.Stdin)
			os.Exit(0) // the parent is gone, and a check may never end
		}()
		_ = serveRequests(in, os.Stdout, tsc.Limits{Time: testenv.Patience})
		return
	}
	os.Exit(m.Run())
}

type child struct {
	io.Reader
	io.Writer
	end func()
}

func (c *child) Close() error {
	c.end()
	return nil
}

func newChecker(t testing.TB) *ScriptChecker { return checkerWith(t, inside) }

func checkerWith(t testing.TB, start ProcessStarter) *ScriptChecker {
	c := New(start)
	c.compilers.limit = testenv.Patience
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// server returns a server with the given tools. It assigns the tools' names in programs.
func server(name string, tools ...*core.Tool) *core.ToolServer {
	raw := make([]string, len(tools))
	for i, t := range tools {
		t.Server = name
		raw[i] = t.Name
	}
	names := bindings.AssignTools(raw)
	for _, t := range tools {
		t.TypeScript, t.Python = names[t.Name].TypeScript, names[t.Name].Python
	}
	return &core.ToolServer{Name: name, Tools: tools}
}

func tool(name, input, output string) *core.Tool {
	return &core.Tool{Name: name, Description: "About " + name + ".", InputSchema: json.RawMessage(input), OutputSchema: json.RawMessage(output)}
}

func toolset(servers ...*core.ToolServer) *core.Toolset {
	slices.SortFunc(servers, func(a, b *core.ToolServer) int { return strings.Compare(a.Name, b.Name) })
	raw := make([]string, len(servers))
	for i, s := range servers {
		raw[i] = s.Name
	}
	names := bindings.AssignServer(raw)
	for _, s := range servers {
		s.TypeScript, s.Python = names[s.Name].TypeScript, names[s.Name].Python
	}
	return core.NewToolset(servers)
}

// sample returns the toolset that most tests use.
func sample() *core.Toolset {
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

// catalog returns the tools in the tools/list answers whose file names match pattern.
func catalog(t testing.TB, pattern string) *core.Toolset {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	var servers []*core.ToolServer
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
		var tools []*core.Tool
		for _, x := range list.Tools {
			tools = append(tools, &core.Tool{Name: x.Name, Title: x.Title, Description: x.Description, InputSchema: x.InputSchema, OutputSchema: x.OutputSchema})
		}
		servers = append(servers, server(list.Name, tools...))
	}
	return toolset(servers...)
}
