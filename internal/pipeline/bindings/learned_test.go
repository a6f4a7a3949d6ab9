package bindings

import (
	"encoding/json"
	"testing"

	"retort/internal/core"
)

func TestLearnedTypes(t *testing.T) {
	tool := &core.Tool{Server: "s", Name: "get", TypeScript: "get", Python: "get", Description: "Gets.", InputSchema: json.RawMessage(`{"type":"object","properties":{}}`),
		Learned: &core.LearnedSchema{Schema: json.RawMessage(`{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer"},"at":{"type":["string","null"]}},"required":["id"],"patternProperties":{"[^0-9A-Za-z_$]":{"type":"string"}}}}`), Observations: 12}}
	ts := toolsetOf(tool)
	for _, tt := range []struct {
		lang   core.Language
		detail StubDetail
		want   string
	}{
		{core.TypeScript, Signature, "s.get(): Promise<{id: number, at?: string | null}[]> // (learned from 12 answers) Gets."},
		{core.Python, Signature, "s.get() -> list[{\"id\": int, \"at\"?: str | None}]  # (learned from 12 answers) Gets."},
		{core.TypeScript, Full, "/** Gets. */\ns.get(input?: GetInput): Promise<GetOutput>\ninterface GetInput {\n  [key: string]: never;\n}\n/** @learned from 12 answers */\ntype GetOutput = ({ id: number; at?: string | null } /* and more under keys that are not identifiers */)[];\n"},
		{core.Python, Full, "# Gets.\ns.get() -> GetOutput\n\n# @learned from 12 answers\n# and more under keys that are not identifiers\nGetOutput: \"TypeAlias\" = \"list[Get_OutputItem]\"\nclass Get_OutputItem(TypedDict):\n    \"\"\"and more under keys that are not identifiers\"\"\"\n    id: int\n    at: NotRequired[str | None]\n"},
	} {
		if got := RenderStub(ts, tool, tt.lang, tt.detail); got != tt.want {
			t.Errorf("%s %d:\n got %q\nwant %q", tt.lang, tt.detail, got, tt.want)
		}
	}
	declared := *tool
	declared.OutputSchema = json.RawMessage(`{"type":"string"}`)
	if got, want := RenderStub(ts, &declared, core.TypeScript, Signature), "s.get(): Promise<string> // Gets."; got != want {
		t.Errorf("what is declared counts: %q", got)
	}
	nothing := *tool
	nothing.Learned = &core.LearnedSchema{Schema: json.RawMessage(`{"description":"null so far"}`), Observations: 1}
	if got, want := RenderStub(ts, &nothing, core.TypeScript, Signature), "s.get(): Promise<any> // Gets."; got != want {
		t.Errorf("what says nothing is not told: %q", got)
	}
}

func toolsetOf(t *core.Tool) *core.Toolset {
	return core.NewToolset([]*core.ToolServer{{Name: t.Server, TypeScript: t.Server, Python: t.Server, Tools: []*core.Tool{t}}})
}
