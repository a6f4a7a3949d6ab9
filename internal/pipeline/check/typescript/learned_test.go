package typescript

import (
	"encoding/json"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/pipeline/check/rules"
)

// learning returns the sample toolset with an inferred result type for get_issue.
func learning(answers, steady int) *core.Toolset {
	tools := sample()
	t, _ := tools.FindTool("github.getIssue")
	t.Learned = &core.LearnedSchema{Observations: answers, Steady: steady, Schema: json.RawMessage(`{"type":["object","string"],"properties":{
		"title":{"type":"string"},"number":{"type":"integer"},"state":{"type":"string"},"labels":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}},
		"user":{"type":"object","properties":{"login":{"type":"string"}},"required":["login"]},"body":{"type":["string","null"]},"milestones":{"type":["string","number"]}},"required":["title","number","state","labels","user"]}`)}
	return tools
}

const getIssue = `const i = await github.getIssue({owner: 'o', repo: 'r', number: 1});` + "\n"

// TestLearnedTypesAdvise checks that reading a field which no earlier result had gives a warning and never an error.
func TestLearnedTypesAdvise(t *testing.T) {
	c := newChecker(t)
	for _, tt := range []struct {
		answers, steady int
		code, want      string
	}{
		{3, 0, `return i.titel`, `line 2: "titel" never occurred in 3 results of github.getIssue. Did you mean 'title'?`},
		{2, 2, `return i.titel`, ""},
		{10, 5, `return i.priority`, `line 2: "priority" never occurred in 10 results of github.getIssue; there are title, number, state, labels, user, body`},
		{10, 4, `return i.priority`, ""},
		{4, 4, `return i.priority`, ""},
		{10, 5, `return i.priority ?? i.title`, ""},
		{10, 5, `return i.priority?.due`, ""},
		{10, 5, `if (i.priority) { return 1 } return 2`, ""},
		{10, 5, `return i.priority === undefined`, ""},
		{10, 5, `const { priority = 1 } = i; return priority`, ""},
		{10, 5, `const { titel = 1 } = i; return titel`, "Did you mean 'title'?"},
		{10, 5, `return i.titel ?? ''`, "Did you mean 'title'?"},
		{10, 5, `return [i.milestones.toFixed(1), i.milestones.trim()]`, ""},
		{10, 5, `return i.labels.map(l => l.nam)`, "Did you mean 'name'?"},
		{10, 5, `return i.labels.name`, `"name" never occurred in 10 results of github.getIssue: the value at that place is a list`},
		{10, 5, `const n = i.number; return n.lenght`, `the value has the type number`},
		{10, 5, `return i.body.toLowerCase() + i.body.trim()`, ""},
		{10, 5, `return i.toUpperCase()`, ""}, // some answers were text
		{10, 5, `return github.getIssue({owner: i.number, repo: i.labels, number: i.title})`, ""},
		{10, 5, `const all: string[] = i; const n: number = i.title; return [all, n, i.title * 2, i.number.xy.z]`, `"xy" never occurred`},
		{10, 5, `const sums = [i].reduce((a, x) => { a.total = (a.total || 0) + x.number; return a }, {}); return sums`, ""},
		{10, 5, `i.extra = 1; return i`, `"extra" never occurred`},
		{10, 5, `type I = typeof i; const f = (x: any) => x.titel; return f(i)`, ""},
	} {
		for _, language := range []core.Language{core.TypeScript, core.JavaScript} {
			if language == core.JavaScript && (strings.Contains(tt.code, ": string") || strings.Contains(tt.code, "type I")) {
				continue
			}
			checked, refusal := c.CheckProgram(t.Context(), ProgramSource{Code: getIssue + tt.code, Language: language, Level: rules.Standard}, learning(tt.answers, tt.steady))
			if refusal != nil {
				t.Errorf("%s: refused: %v", tt.code, refusal)
				continue
			}
			if got := strings.Join(checked.Warnings, "\n"); tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("%s in %s: %q, want %q", tt.code, language, got, tt.want)
			}
		}
	}
	refused := getIssue + `return github.getIssue({owner: i.titel, repo: 'r', number: 'x'})`
	if _, refusal := c.CheckProgram(t.Context(), ProgramSource{Code: refused, Level: rules.Standard}, learning(10, 5)); refusal == nil || refusal.Line != 2 {
		t.Errorf("what is declared is a fact: %v", refusal)
	}
}

// BenchmarkCheckLearned measures the check of a program without inferred types, with inferred types, and with a type
// error. Because of the error, the program is checked a second time without inferred types.
func BenchmarkCheckLearned(b *testing.B) {
	c := newChecker(b)
	const program = getIssue + `return [i.title, i.labels.map(l => l.name), i.user.login].flat().join(' ')`
	for name, run := range map[string]struct {
		tools *core.Toolset
		code  string
	}{"without": {sample(), program}, "with": {learning(10, 5), program}, "twice": {learning(10, 5), "const x: number = 'x';\n" + program}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, refusal := c.CheckProgram(b.Context(), ProgramSource{Code: run.code, Level: rules.Standard}, run.tools); refusal != nil {
					b.Fatal(refusal)
				}
			}
		})
	}
}
