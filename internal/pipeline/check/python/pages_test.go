package python

import (
	"testing"

	"retort/internal/core"
	"retort/internal/pipeline/check/python/parsertest"
	"retort/internal/pipeline/check/rules"
)

// TestPages checks that the arguments of pages are checked as those of the tool, and that the tool is one that the
// program can reach.
func TestPages(t *testing.T) {
	c := New(parsertest.NewInterpreter(t))
	for code, want := range map[string]string{
		`list(pages(github.list_issues, owner="o", repo="r"))`:         "",
		`list(pages(github.list_issues, {"owner": "o", "repo": "r"}))`: "",
		`list(pages(github.list_issues, "o", "r"))`:                    "",
		`list(pages(github.list_issues, *["o", "r"]))`:                 "",
		`from client import pages as read
list(read(github.list_issues, owner="o"))`: "github.list_issues is called without repo",
		`from servers.github import pages
list(pages(github.list_issues, owner="o"))`: "github.list_issues is called without repo",
		`list(pages(github.list_issues, owner=1, repo="r"))`:          "owner: expected str, got 1",
		`list(pages(github.list_issues, {"owner": "o", "rep": "r"}))`: `github.list_issues has no argument "rep". Did you mean repo?`,
		`list(pages(github.list_isues))`:                              `github has no tool "list_isues". Did you mean list_issues?`,
		`pages.create(title="x")`:                                     "there is no server \"pages\"",
		`def pages(f, n):
    return f
pages(github.list_issues, 1)`: "",
	} {
		checked, refusal := c.CheckProgram(t.Context(), ProgramSource{Code: code, Level: rules.Standard}, sample())
		if want == "" && refusal == nil {
			if len(checked.Tools) != 1 || checked.Tools[0].Name != "list_issues" || checked.Unknown {
				t.Errorf("%s: reaches %v", code, checked.Tools)
			}
			continue
		}
		if got := messageOf(refusal); want == "" || got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}

func messageOf(e *core.Error) string {
	if e == nil {
		return ""
	}
	return e.Message
}

// TestPagesYields checks that a server named pages keeps its global name.
func TestPagesYields(t *testing.T) {
	tools := core.NewToolset([]*core.ToolServer{{Name: "pages", TypeScript: "pages", Python: "pages", Tools: []*core.Tool{
		{Server: "pages", Name: "create", TypeScript: "create", Python: "create", Pin: "1"},
	}}})
	checked, refusal := New(parsertest.NewInterpreter(t)).CheckProgram(
		t.Context(), ProgramSource{Code: `pages.create()`, Level: rules.Standard}, tools,
	)
	if refusal != nil || len(checked.Tools) != 1 || len(checked.Namespaces) != 1 || checked.Namespaces[0].Global != "pages" {
		t.Errorf("%v %+v", refusal, checked.Namespaces)
	}
}
