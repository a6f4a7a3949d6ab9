package typescript

import (
	"encoding/json"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/pipeline/check/rules"
)

// billing returns a toolset with a tool of declared type that pages, and one of unknown type.
func billing() *core.Toolset {
	tool := func(name, ts, input, output string) *core.Tool {
		return &core.Tool{
			Server: "billing", Name: name, TypeScript: ts, Python: name, Pin: name, InputSchema: json.RawMessage(input), OutputSchema: json.RawMessage(output),
		}
	}
	const input = `{"type":"object","properties":{"status":{"enum":["open","overdue"]},"cursor":{"type":"string"}}}`
	return core.NewToolset([]*core.ToolServer{{Name: "billing", TypeScript: "billing", Python: "billing", Tools: []*core.Tool{
		tool("list_invoices", "listInvoices", input, `{"type":"object","required":["items"],"properties":{"next_cursor":{"type":["string","null"]},"items":{"type":"array",
			"items":{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"amount":{"type":"number"}}}}}}`),
		tool("list_other", "listOther", input, ""),
	}}})
}

// TestPages checks the types of pages: of the arguments, and of the items where the tool declares them.
func TestPages(t *testing.T) {
	c := newChecker(t)
	for code, want := range map[string]string{
		`for await (const x of pages(billing.listInvoices, { status: 'overdue' })) { const id: string = x.id; console.log(id) }`: "",
		`const all = []; for await (const x of pages(billing.listInvoices)) all.push(x.amount ?? 0); return all`:                 "",
		`for await (const x of pages(billing.listOther)) console.log(x.anything)`:                                                "",
		`for await (const x of servers.pages(servers.billing.listInvoices)) console.log(x.id)`:                                   "",
		`import { pages as read } from './client'; for await (const x of read(billing.listInvoices)) console.log(x.id)`:          "",
		`import { pages, listInvoices } from './servers/billing'; for await (const x of pages(listInvoices)) console.log(x.id)`:  "",
		`const pages = (n: number) => n + 1; return [pages(1), billing.listOther]`:                                               "",
		`function pages(f: any) { return f } return pages(billing.listOther)`:                                                    "",
		`for await (const x of pages(billing.listInvoices, { status: 'late' })) console.log(x.id)`:                               `Type '"late"' is not assignable to type`,
		`for await (const x of pages(billing.listInvoices, { statu: 'open' })) console.log(x.id)`:                                `'statu' does not exist in type`,
	} {
		for _, language := range []core.Language{core.TypeScript, core.JavaScript} {
			if language == core.JavaScript && strings.Contains(code, ": ") && (strings.Contains(code, ": string") || strings.Contains(code, ": number") || strings.Contains(code, ": any")) {
				continue
			}
			checked, refusal := c.CheckProgram(t.Context(), ProgramSource{Code: code, Language: language, Level: rules.Standard}, billing())
			switch {
			case want != "" && (refusal == nil || !strings.Contains(refusal.Message, want)):
				t.Errorf("%s in %s: %v, want %s", code, language, refusal, want)
			case want == "" && refusal != nil:
				t.Errorf("%s in %s: %v", code, language, refusal)
			case want == "" && (len(checked.Tools) != 1 || checked.Unknown):
				t.Errorf("%s in %s reaches %v", code, language, checked.Tools)
			}
		}
	}
}

// TestPagesMembers checks that a wrong name of an item is found as in the answer of an ordinary call.
func TestPagesMembers(t *testing.T) {
	for _, code := range []string{
		`for await (const x of pages(billing.listInvoices)) console.log(x.amout)`,
		`for (const x of (await billing.listInvoices()).items) console.log(x.amout)`,
		`const { pages: read } = servers; for await (const { amout } of read(billing.listInvoices)) console.log(amout)`,
	} {
		checked, refusal := newChecker(t).CheckProgram(t.Context(), ProgramSource{Code: code, Level: rules.Standard}, billing())
		if refusal != nil || !strings.Contains(strings.Join(checked.Warnings, "\n"), `Property 'amout' does not exist on type`) {
			t.Errorf("%s: %v %q", code, refusal, checked.Warnings)
		}
	}
}

// TestPagesLearned checks that a wrong name of an item is only a warning if the type is inferred from earlier results.
func TestPagesLearned(t *testing.T) {
	tools := billing()
	other, _ := tools.FindTool("billing.listOther")
	other.Learned = &core.LearnedSchema{Observations: 12, Steady: 9, Schema: json.RawMessage(`{"type":"object","required":["rows"],"properties":{"next_cursor":{"type":"string"},
		"rows":{"type":"array","items":{"type":"object","required":["title","number"],"properties":{"title":{"type":"string"},"number":{"type":"integer"}}}}}}`)}
	checked, refusal := newChecker(t).CheckProgram(t.Context(), ProgramSource{
		Code: `for await (const x of pages(billing.listOther)) console.log(x.titel)`, Level: rules.Standard,
	}, tools)
	if refusal != nil || !strings.Contains(strings.Join(checked.Warnings, "\n"), `"titel" never occurred in 12 results of billing.listOther. Did you mean 'title'?`) {
		t.Errorf("%v %q", refusal, checked.Warnings)
	}
}

// TestPagesYields checks that a server named pages keeps its global name, and that pages is then imported.
func TestPagesYields(t *testing.T) {
	tools := core.NewToolset(append(billing().Servers, &core.ToolServer{Name: "pages", TypeScript: "pages", Python: "pages", Tools: []*core.Tool{
		{Server: "pages", Name: "create", TypeScript: "create", Python: "create", Pin: "1"},
	}}))
	code := `import { pages as read } from './client'; await pages.create({}); for await (const x of read(billing.listInvoices)) console.log(x.id)`
	checked, refusal := newChecker(t).CheckProgram(t.Context(), ProgramSource{Code: code, Level: rules.Standard}, tools)
	if refusal != nil || len(checked.Namespaces) != 2 || checked.Namespaces[1].Global != "pages" || len(checked.Warnings) > 0 {
		t.Errorf("%v %+v %q", refusal, checked.Namespaces, checked.Warnings)
	}
	_, refusal = newChecker(t).CheckProgram(t.Context(), ProgramSource{Code: `await pages.create({})`, Level: rules.Standard}, billing())
	if refusal == nil || refusal.Kind != core.KindType {
		t.Errorf("without the server: %v", refusal)
	}
}
