package bindings

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
)

// TestPythonRuns checks with a Python interpreter that the wrappers can be imported and called with every keyword,
// and that each argument reaches the tool under the name in the tool's schema.
func TestPythonRuns(t *testing.T) {
	python := os.Getenv("RETORT_PYTHON")
	if python == "" {
		python = testenv.Need(t, "python3")
	}
	golden, _ := filepath.Glob("testdata/golden/*.json")
	catalog, _ := filepath.Glob("testdata/catalog/*.json")
	for _, f := range append(golden, catalog...) {
		ts := toolset(readListing(t, f))
		dir := t.TempDir()
		for name, text := range WrapperFiles(ts, core.Python) {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		type call struct {
			Function string            `json:"function"`
			Arity    []string          `json:"arity"`    // keywords in the order of positional arguments
			Keywords map[string]string `json:"keywords"` // keyword → name in the schema
			Tool     string            `json:"tool"`
			Stub     string            `json:"stub"`
		}
		var calls []call
		for _, tool := range ts.Servers[0].Tools {
			params := ParametersOf(tool)
			if len(params.List) == 0 && params.Open {
				continue
			}
			c := call{Function: tool.Python, Keywords: map[string]string{}, Tool: tool.Server + "__" + tool.Name, Arity: []string{}}
			for _, p := range params.List {
				c.Keywords[p.Keyword] = p.Name
				c.Arity = append(c.Arity, p.Keyword)
			}
			_, c.Stub, _ = strings.Cut(RenderStub(ts, tool, core.Python, Full), "\n\n")
			calls = append(calls, c)
		}
		input, err := json.Marshal(calls)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(python, "-I", "-B", "-c", loader, dir, ts.Servers[0].Python)
		cmd.Stdin = strings.NewReader(string(input))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%.3000s", f, err, out)
		}
	}
}

const loader = `
import builtins, importlib, inspect, json, sys
sys.path.insert(0, sys.argv[1])
made = []
builtins.call_mcp_tool = lambda name, arguments: made.append((name, arguments))
module = importlib.import_module("servers." + sys.argv[2])
for call in json.load(sys.stdin):
    function = getattr(module, call["function"])
    names = [n for n, p in inspect.signature(function).parameters.items() if p.kind != p.VAR_KEYWORD]
    assert names == call["arity"], (names, call)
    function(**{keyword: keyword for keyword in call["keywords"]})
    name, arguments = made.pop()
    assert name == call["tool"], (name, call)
    assert arguments == {name: keyword for keyword, name in call["keywords"].items()}, (arguments, call)
    compile(call["stub"], call["function"], "exec")
`
