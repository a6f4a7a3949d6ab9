package python

import (
	"encoding/json"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/pipeline/check/python/parsertest"
	"retort/internal/pipeline/check/rules"
)

// TestAdvice checks the warnings about keys that no earlier result of a tool had.
func TestAdvice(t *testing.T) {
	tools := sample()
	me, _ := tools.FindTool("github.getMe")
	me.Learned = &core.LearnedSchema{Observations: 12, Steady: 9, Schema: json.RawMessage(`{"type":"array","items":{"type":"object","properties":{
		"title":{"type":"string"},"number":{"type":"integer"},"user":{"type":"object","properties":{"login":{"type":"string"}},"required":["login"]},
		"by_id":{"type":"object","additionalProperties":{"type":"object","properties":{"total":{"type":"integer"}},"required":["total"]}}},"required":["title","number","user"]}}`)}
	c := New(parsertest.NewInterpreter(t))
	for code, want := range map[string]string{
		`r = github.get_me()
result = [i["titel"] for i in r]`: `line 2: "titel" never occurred in 12 results of github.get_me. Did you mean 'title'?`,
		`for i in await github.get_me():
    print(i["user"]["logn"])`: "Did you mean 'login'?",
		`i = sorted(github.get_me(), key=lambda x: x["number"])[0]
print(i.get("Title", ""))`: "Did you mean 'title'?",
		`r = github.get_me()
a = [i["titel"] for i in r]
b = [i["number"] for i in r[1:]]`: "Did you mean 'title'?",
		`print(github.get_me()["items"])`:           "the value at that place is a list",
		`print(github.get_me()[0]["assignee"])`:     "; there are by_id, number, title, user",
		`print(github.get_me()[0].get("assignee"))`: "",
		`r = github.get_me()
print([i["title"] for i in r], r[0]["user"]["login"], r[0]["by_id"]["whatever"]["x"], r[0][0])`: "",
		`i = github.get_me()[0]
i = {"titel": 1}
print(i["titel"])`: "",
		`r = github.get_me()
i = r[0]
i = r[0]["user"]
print(i["titel"], i["logn"])`: "",
		`def f(i):
    return i["titel"]
print([f(i) for i in github.get_me()])`: "",
		`r = github.get_me()[0]
r["titel"] = 1`: "",
		`a = b = c = a
print(a["x"], github.get_me())`: "",
		`for i in pages(github.get_me):
    print(i["titel"])`: `line 2: "titel" never occurred in 12 results of github.get_me. Did you mean 'title'?`,
		`from client import pages as read
print([i["title"] for i in read(github.get_me)])`: "",
		`def pages(f):
    return f()
for i in pages(github.get_me):
    print(i["titel"])`: "",
	} {
		checked, refusal := c.CheckProgram(t.Context(), ProgramSource{Code: code, Level: rules.Standard}, tools)
		if refusal != nil {
			t.Errorf("%s: %v", code, refusal)
			continue
		}
		if got := strings.Join(checked.Warnings, "\n"); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}
