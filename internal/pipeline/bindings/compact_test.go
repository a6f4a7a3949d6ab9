package bindings

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/tokens"
)

// TestCompact checks that the compact definitions of real servers' tools say what the full definitions say, with fewer
// tokens.
func TestCompact(t *testing.T) {
	ts := catalogs(t)
	tags := regexp.MustCompile(`@[a-z]\w*( [^ @*]+)?`)
	compactTokens, fullTokens, lines := 0, 0, 0
	for _, s := range ts.Servers {
		for _, tool := range s.Tools {
			compact, full := RenderStub(ts, tool, core.TypeScript, Compact), RenderStub(ts, tool, core.TypeScript, Full)
			compactTokens, fullTokens = compactTokens+tokens.CountTokens(compact), fullTokens+tokens.CountTokens(full)
			if !strings.Contains(compact, "\n") {
				lines++
			}
			for _, want := range append(tags.FindAllString(full, -1), oneLine(tool.Description)) {
				if !strings.Contains(oneLine(compact), strings.TrimSpace(want)) {
					t.Errorf("%s lacks %q:\n%s", tool.Name, want, compact)
				}
			}
		}
	}
	n := ts.CountTools()
	t.Logf("compact %d tokens, full %d, of %d tools; %d on one line", compactTokens/n, fullTokens/n, n, lines)
	if compactTokens*10 > fullTokens*9 || lines*10 < n*9 {
		t.Errorf("compact %d tokens, full %d, of %d tools; %d on one line", compactTokens/n, fullTokens/n, n, lines)
	}
}

// TestCompactIsNotPossible checks that a definition with a type that refers to itself is given in full, and that it is in
// Python.
func TestCompactIsNotPossible(t *testing.T) {
	tool := &core.Tool{Server: "s", Name: "grow", TypeScript: "grow", Python: "grow", InputSchema: json.RawMessage(
		`{"type":"object","properties":{"root":{"$ref":"#/$defs/node"}},"$defs":{"node":{"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#/$defs/node"}}}}}}`,
	)}
	ts := core.NewToolset([]*core.ToolServer{{Name: "s", TypeScript: "s", Python: "s", Tools: []*core.Tool{tool}}})
	for _, lang := range []core.Language{core.TypeScript, core.Python} {
		if compact, full := RenderStub(ts, tool, lang, Compact), RenderStub(ts, tool, lang, Full); compact != full {
			t.Errorf("%s: %s, want %s", lang, compact, full)
		}
	}
}

// TestBriefCall checks that a brief call names all parameters, and which of them are optional. A server
// cannot make it long.
func TestBriefCall(t *testing.T) {
	tool := func(name, properties, required string) *core.Tool {
		return &core.Tool{Server: "crm", Name: name, TypeScript: name, Python: name, InputSchema: []byte(
			`{"type":"object","properties":{` + properties + `},"required":[` + required + `]}`,
		)}
	}
	many := `"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"},"d":{"type":"string"},"e":{"type":"string"},"f":{"type":"string"},"x-y":{"type":"string"}`
	tools := []*core.Tool{
		tool("get", `"id":{"type":"string"},"fields":{"type":"array"}`, `"id"`), tool("search", many, `"b"`), tool("ping", "", ""),
		tool("fill", `"a":{"type":"string"},"`+strings.Repeat("x", 10_000)+`":{"type":"string"}`, ""),
	}
	ts := core.NewToolset([]*core.ToolServer{{Name: "crm", TypeScript: "crm", Python: "crm", Tools: tools}})
	for lang, want := range map[core.Language][]string{
		core.TypeScript: {"crm.get(id, fields?)", `crm.search({a?, b, c?, d?, e?, f?, "x-y"?})`, "crm.ping()", "crm.fill({a?, …})"},
		core.Python:     {"crm.get(id, fields=...)", `crm.search(b, a=..., c=..., d=..., e=..., f=..., **{"x-y": ...})`, "crm.ping()", "crm.fill(a=..., …)"},
	} {
		for i := range tools {
			if got := BriefCall(ts, tools[i], lang); got != want[i] {
				t.Errorf("%s: got %s, want %s", lang, got, want[i])
			}
		}
	}
}
