package extract

import (
	"strings"
	"testing"

	"retort/internal/core"
)

func TestProgram(t *testing.T) {
	for _, c := range []struct {
		lang core.Language
		code string
		skip []string
		want string
	}{
		{core.TypeScript, `import * as drive from './servers/drive';
const id = 'abc123';
// a comment with documentId: 'not this'
const doc = await drive.getDocument({ documentId: id, format: "text" });
await crm.updateRecord({ objectType: 'SalesMeeting', recordId: "00Q", data: { Notes: doc.content, to: '[EMAIL_1]' } });
return { words: doc.content.split(/\s+/).length, kind: ` + "`a ${ {x: 'y'}.x }\n  b`" + `, n: 7 };
`, []string{"objectType"}, `import * as drive from './servers/drive';

export async function saveNotes(to: string, id: string = 'abc123', format: string = "text", recordId: string = "00Q", n: number = 7) {
  // a comment with documentId: 'not this'
  const doc = await drive.getDocument({ documentId: id, format: format });
  await crm.updateRecord({ objectType: 'SalesMeeting', recordId: recordId, data: { Notes: doc.content, to: to } });
  return { words: doc.content.split(/\s+/).length, kind: ` + "`a ${ {x: 'y'}.x }\n  b`" + `, n: n };
}
`},
		{core.TypeScript, "const r = await issues.listIssues({ owner: 'o', repo: 'r' });\nconst owner = r.length;\nr.map(i => i.title)", nil, `export async function saveNotes(owner2: string = 'o', repo: string = 'r') {
  const r = await issues.listIssues({ owner: owner2, repo: repo });
  const owner = r.length;
  return r.map(i => i.title)
}
`},
		{core.TypeScript, "a.f({ x: 'same' }); a.g({ x: 'same' }); a.h({ x: 'other' });", nil, `export async function saveNotes(x: string = 'same', x2: string = 'other') {
  a.f({ x: x }); a.g({ x: x }); return a.h({ x: x2 });
}
`},
		{core.TypeScript, "async function main() { return 1 }", nil, "export async function saveNotes() {\n  async function main() { return 1 }\n  return await main();\n}\n"},
		{core.TypeScript, "export function f(a: string = 'x') { return a }", nil, "export function f(a: string = 'x') { return a }"},
		{core.TypeScript, "for (const x of [1]) { f({ a: 'b' }) }", nil, "export async function saveNotes(a: string = 'b') {\n  for (const x of [1]) { f({ a: a }) }\n}\n"},
		{core.Python, `import json
from servers import drive
limit = 10
doc = drive.get_document(documentId="abc123", query={"kind": 'x'})
text = """a
b"""
result = {"words": len(doc["content"].split()), "n": limit}
`, nil, `import json
from servers import drive


def save_notes(limit: int = 10, document_id: str = "abc123", kind: str = 'x'):
    result = None
    doc = drive.get_document(documentId=document_id, query={"kind": kind})
    text = """a
b"""
    result = {"words": len(doc["content"].split()), "n": limit}
    return result
`},
		{core.Python, "rows = await sheets.read_rows(spreadsheetId='[NAME_1]', offset=1.5)\nlen(rows)", nil, "async def save_notes(spreadsheet_id: str, offset: float = 1.5):\n    rows = await sheets.read_rows(spreadsheetId=spreadsheet_id, offset=offset)\n    return len(rows)\n"},
		{core.Python, "match x:\n    case P(kind='a'):\n        f(kind='b')", nil, "def save_notes(kind: str = 'b'):\n    match x:\n        case P(kind='a'):\n            f(kind=kind)\n"},
	} {
		got, err := FromProgram(c.code, c.lang, "save-notes", c.skip)
		if err != nil || got.Code != c.want {
			t.Errorf("--- got\n%s--- want\n%s", got.Code, c.want)
		}
	}
}

// FuzzProgram checks that every text is converted in finite time to a function of limited size.
func FuzzProgram(f *testing.F) {
	for _, code := range []string{"return { a: 'b' }", "`${`${1}`}`", "a = '", "/[/]/.test({x: \"", "}}}", "import", "f'''", "x = 1\n\\", "a /= 2 / 3;\n{b: 4}", "\"\\"} {
		f.Add(code, true)
		f.Add(code, false)
	}
	f.Fuzz(func(t *testing.T, code string, python bool) {
		lang := core.TypeScript
		if python {
			lang = core.Python
		}
		got, err := FromProgram(code, lang, "x", nil)
		if err == nil && len(got.Code) > 10*len(code)+500 || len(got.Params) > maxParams {
			t.Errorf("%d bytes of %d: %d parameters", len(got.Code), len(code), len(got.Params))
		}
		if !python && strings.Count(got.Code, "export") == 0 {
			t.Errorf("%q", got.Code)
		}
	})
}
