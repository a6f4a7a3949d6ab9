package python

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"retort/internal/core"
	"retort/internal/pipeline/check/python/parsertest"
	"retort/internal/pipeline/check/rules"
)

var update = flag.Bool("update", false, "write what programs do into testdata")

// TestPrograms checks the results of CheckProgram for the programs in testdata. Each program is followed by the
// expected result.
func TestPrograms(t *testing.T) {
	parser := parsertest.NewInterpreter(t)
	c, tools, old := New(parser), sample(), olderThan310(t, parser)
	for _, name := range []string{"testdata/refused.txtar", "testdata/accepted.txtar"} {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var told []txtar.File
		want := map[string]string{}
		for _, f := range archive.Files {
			want[f.Name] = string(f.Data)
		}
		for _, f := range archive.Files {
			if strings.HasSuffix(f.Name, ".want") {
				continue
			}
			got := tell(c, string(f.Data), tools)
			told = append(told, f, txtar.File{Name: f.Name + ".want", Data: []byte(got)})
			if got != want[f.Name+".want"] && !*update && !old {
				t.Errorf("%s: %s\n--- got\n%s--- want\n%s", name, f.Name, got, want[f.Name+".want"])
			}
			if refused := strings.HasPrefix(got, "refused"); refused != strings.Contains(name, "refused") {
				t.Errorf("%s: %s is in the wrong file:\n%s", name, f.Name, got)
			}
		}
		if *update {
			archive.Files = told
			if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// olderThan310 reports whether the interpreter is Python 3.9, which does not report the positions of imported names.
func olderThan310(t *testing.T, p CodeParser) bool {
	parsed, err := p.Parse(context.Background(), "1")
	if err != nil {
		t.Fatal(err)
	}
	f, err := decodeFacts(parsed.Known, 1)
	if err != nil {
		t.Fatal(err)
	}
	return f.Version == "3.9"
}

// tell returns the result of CheckProgram as text.
func tell(c *PythonChecker, code string, tools *core.Toolset) string {
	checked, refusal := c.CheckProgram(context.Background(), ProgramSource{Code: code, Level: rules.Standard}, tools)
	var b strings.Builder
	if refusal != nil {
		fmt.Fprintf(&b, "refused: %s at %d:%d", refusal.Kind, refusal.Line, refusal.Column)
		if refusal.Server != "" {
			fmt.Fprintf(&b, " of %s.%s", refusal.Server, refusal.Tool)
		}
		fmt.Fprintf(&b, "\n%s\n%s\n", refusal.Message, refusal.Frame)
		if refusal.Hint != "" {
			fmt.Fprintf(&b, "hint: %s\n", refusal.Hint)
		}
		return b.String()
	}
	for _, n := range checked.Namespaces {
		fmt.Fprintf(&b, "namespace %s, global %q, modules %s\n", n.Server, n.Global, n.Modules)
	}
	fmt.Fprintf(&b, "tools")
	for _, tool := range checked.Tools {
		fmt.Fprintf(&b, " %s.%s", tool.Server, tool.Name)
	}
	fmt.Fprintf(&b, ", unknown %v\n", checked.Unknown)
	return b.String()
}

// TestLocate checks that errors have the position in the text as it was sent, with its indentation and the prose
// around the program.
func TestLocate(t *testing.T) {
	c, tools := New(parsertest.NewInterpreter(t)), sample()
	for name, code := range map[string]string{
		"plain":    "a = 1\ngithub.nope()\n",
		"BOM":      "\ufeffa = 1\ngithub.nope()\n",
		"CRLF":     "a = 1\r\ngithub.nope()\r\n",
		"indented": "\n    github.nope()\n    a = 1",
		"fence":    "```python\ngithub.nope()\n```\n",
		"prose":    "Here it is:\n~~~~py\n\n  github.nope()\n~~~~\nDone.",
		"tabs":     "\tif 1:\n\t\tgithub.nope()",
	} {
		_, refusal := c.CheckProgram(context.Background(), ProgramSource{Code: code, Level: rules.Standard}, tools)
		lines := strings.Split(strings.TrimPrefix(code, "\ufeff"), "\n")
		if refusal == nil || refusal.Line < 1 || !strings.HasPrefix(lines[refusal.Line-1][refusal.Column-1:], "nope") {
			t.Errorf("%s: %+v", name, refusal)
		}
	}
	checked, refusal := c.CheckProgram(context.Background(), ProgramSource{Code: "text\n```py\n  x = 1\n```", Level: rules.Standard}, tools)
	if refusal != nil {
		t.Fatal(refusal)
	}
	if line, column := checked.Locate(1, 1); line != 3 || column != 3 || checked.Code != "x = 1\n" {
		t.Errorf("%d:%d %q", line, column, checked.Code)
	}
}

// TestNamespaces checks the descriptions of tools from which the interpreter in the sandbox creates Python functions.
func TestNamespaces(t *testing.T) {
	c, tools := New(parsertest.NewInterpreter(t)), sample()
	checked, refusal := c.CheckProgram(context.Background(), ProgramSource{Code: "google_drive.search(query='x')\ngithub.put({'a': 1})", Level: rules.Standard}, tools)
	if refusal != nil {
		t.Fatal(refusal)
	}
	got, err := json.Marshal([]core.ToolFunction{checked.Namespaces[1].Functions[0], checked.Namespaces[0].Functions[4]})
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"name":"get_document","tool":"getDocument","params":["documentId","fields","from","max-size"],"keywords":["documentId","fields","from_","max_size"],"also":{"document_id":"documentId"}},` +
		`{"name":"put","tool":"put","params":["record","due"],"nulls":["due"],"object":true}]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// says implements CodeParser with fixed results for every program.
type says struct{ known, tree, compiled string }

func (s says) Parse(context.Context, string) (core.ParsedProgram, error) {
	if s.known == "" {
		return core.ParsedProgram{}, errors.New("gone")
	}
	return core.ParsedProgram{Known: json.RawMessage(s.known), Tree: []byte(s.tree), Compiled: func() (json.RawMessage, error) {
		if s.compiled == "" {
			return nil, errors.New("gone")
		}
		return json.RawMessage(s.compiled), nil
	}}, nil
}

// TestHostileFacts checks that an invalid report of the interpreter in the sandbox gives an internal error.
func TestHostileFacts(t *testing.T) {
	const empty = "\x80\x04\x8c\x03ast\x8c\x06Module\x93)R}b."
	if _, refusal := New(says{"{}", empty, "{}"}).CheckProgram(context.Background(), ProgramSource{Code: "x", Level: rules.Standard}, sample()); refusal != nil {
		t.Fatal(refusal)
	}
	for _, s := range []says{
		{"", empty, "{}"}, {"null1", empty, "{}"}, {"[]", empty, "{}"}, {`{"error":{"line":-1}}`, empty, "{}"}, {`{"error":{"line":3,"column":1}}`, empty, "{}"},
		{"{}", "", "{}"}, {"{}", empty, ""}, {"{}", empty, "[]"}, {"{}", empty, `{"error":{"line":0}}`},
	} {
		if _, refusal := New(s).CheckProgram(context.Background(), ProgramSource{Code: "x", Level: rules.Standard}, sample()); refusal == nil || refusal.Kind != core.KindInternal {
			t.Errorf("%.100q: %v", s, refusal)
		}
	}
}

// TestTooMuchToCheck checks that too long or too many names give an error of kind limit with a hint.
func TestTooMuchToCheck(t *testing.T) {
	const empty = "\x80\x04\x8c\x03ast\x8c\x06Module\x93)R}b."
	long := strings.Repeat("x", 3000)
	for _, s := range []says{
		{`{"lacks":[{"near":["` + long + `"]}]}`, empty, "{}"}, {`{"error":{"line":1,"column":1,"message":"` + long + `"}}`, empty, "{}"},
		{`{"unknown":[` + strings.Repeat(`"a",`, 5001) + `"a"]}`, empty, "{}"}, {`{"unknown":["` + strings.Repeat("x", 2<<20) + `"]}`, empty, "{}"},
		{"{}", "\x80\x04\x8c\x03ast\x8c\x06Module\x93)R}(\x8c\x04body](\x8c\x03ast\x8c\x04Name\x93)R}(\x8c\x02idX\xb8\x0b\x00\x00" + strings.Repeat("x", 3000) +
			"\x8c\x03ctx\x8c\x03ast\x8c\x04Load\x93)R}bubeub.", "{}"},
	} {
		if _, refusal := New(s).CheckProgram(context.Background(), ProgramSource{Code: "x", Level: rules.Standard}, sample()); refusal == nil || refusal.Kind != core.KindLimit || refusal.Hint == "" {
			t.Errorf("%.100q: %v", s, refusal)
		}
	}
}

// FuzzFacts checks that no report of the interpreter in the sandbox makes the checker crash or changes the program.
func FuzzFacts(f *testing.F) {
	parser := parsertest.NewInterpreter(f)
	for _, code := range []string{
		"import os, pandas\nfrom servers import github as g\ng.list_issues('a', repo=1, **x)\ngoogle_drive.search({'q': 1})\ncall_mcp_tool('a')",
		"x = = 1", "getattr(github, 'nope')(1)\nservers.githb.x()\nfrom servers.github import *\nget_issue(1, 2, 3, 4)",
		"def f(a, b=1, *c, d: int = 2.5, **e):\n  global g\n  try: return [x async for x in a if x[::-1]]\n  except NameError as n: lambda: {**a, 'b': -1}",
		"class A(B, k=1):\n  x: int\n  def m(self): return f'{a!r:>3}' + 'é\\ud800' + b'\\xff' * 10**30 + 1j + ...",
	} {
		parsed, err := parser.Parse(context.Background(), code)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(parsed.Known), parsed.Tree)
	}
	tools := sample()
	f.Fuzz(func(t *testing.T, known, tree []byte) {
		c := New(says{string(known), string(tree), "{}"})
		const code = "one line\ntwo lines\nthree é"
		checked, refusal := c.CheckProgram(context.Background(), ProgramSource{Code: code, Level: rules.Standard}, tools)
		if refusal == nil {
			if checked.Code != code {
				t.Error("the program has changed")
			}
			return
		}
		if refusal.Message == "" || refusal.Line < 0 || len(refusal.Message) > 64<<10 {
			t.Errorf("%+v", refusal)
		}
	})
}
