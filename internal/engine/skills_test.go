package engine_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/engine"
)

func saved(t *testing.T, e *engine.Engine, d engine.SkillDraft) engine.SavedSkill {
	t.Helper()
	yes := func(context.Context, core.Approval) (core.ApprovalAnswer, bool) {
		return core.ApprovalAnswer{Approve: true}, true
	}
	o := e.SaveSkill(engine.WithChannel(t.Context(), yes), engine.Request{}, d)
	var s engine.SavedSkill
	if o.Error != nil || json.Unmarshal(o.Result, &s) != nil {
		t.Fatalf("%+v %v", o, o.Error)
	}
	return s
}

// openSkilled opens an engine with a data directory.
func openSkilled(t *testing.T, settings string) *engine.Engine {
	t.Helper()
	e, _ := judgedAt(t, t.TempDir(), settings)
	return e
}

// TestApprovalOfSkills checks that a person who is asked about a program also approves the skills it imports, and
// that the approval does not cover another version of a skill.
func TestApprovalOfSkills(t *testing.T) {
	e := openSkilled(t, "approval: {autoApproveLow: false, autoApproveMedium: true}")
	asked := func(version string) core.Approval {
		saved(t, e, engine.SkillDraft{Name: "greet", Description: "Greets.", Code: "export const greet = () => '" + version + "';"})
		var seen core.Approval
		ctx := engine.WithChannel(t.Context(), func(_ context.Context, a core.Approval) (core.ApprovalAnswer, bool) {
			seen = a
			return core.ApprovalAnswer{Approve: true}, true
		})
		o := e.Execute(ctx, engine.Request{Code: "import { greet } from './skills/greet'; return greet()"})
		if o.Error != nil || string(o.Result) != `"`+version+`"` {
			t.Fatalf("%+v %v", o, o.Error)
		}
		return seen
	}
	one, two := asked("one"), asked("two")
	if one.Digest == two.Digest || one.Code != two.Code {
		t.Errorf("%s and %s", one.Digest, two.Digest)
	}
	if !strings.Contains(one.RenderText(), "the skill greet, which the program uses:\nexport const greet = () => 'one';") {
		t.Error(one.RenderText())
	}
}

// TestPersonalDataInSkills checks that models and programs see tokens for the personal values in a skill's code, and
// people see the values.
func TestPersonalDataInSkills(t *testing.T) {
	const address = "olga.petrova@norden-tech.example"
	e := openSkilled(t, "")
	saved(t, e, engine.SkillDraft{Name: "boss", Description: "Writes to " + address, Code: "export const boss = () => '" + address + "';"})
	l, err := e.LoadSkill("boss", "")
	list, _ := e.ListSkills("", nil)
	o := e.Execute(t.Context(), engine.Request{Code: "import { boss } from './skills/boss'; import fs from 'node:fs/promises';\nreturn [boss(), boss().includes('olga'), (await fs.readFile('skills/boss/skill.ts', 'utf8')).includes('olga')]"})
	for _, text := range []string{l.Code, l.Usage, l.Description, list[0].Description, string(o.Result)} {
		if strings.Contains(text, "olga") || !strings.Contains(text, "[EMAIL_1]") {
			t.Errorf("%s %v", text, err)
		}
	}
	if !strings.Contains(string(o.Result), "false,false") {
		t.Errorf("%s", o.Result)
	}
	if l, err := e.ShowSkill("boss", ""); err != nil || !strings.Contains(l.Code, address) {
		t.Errorf("%+v %v", l, err)
	}
}

// TestTokensInSkills checks that a skill that contains a token can be neither saved nor imported, because a token
// stands for another value in each session.
func TestTokensInSkills(t *testing.T) {
	home := t.TempDir()
	e, _ := judgedAt(t, home, "")
	code := "export const f = () => '[EMAIL_1]';"
	o := e.SaveSkill(t.Context(), engine.Request{}, engine.SkillDraft{Name: "token", Description: "Has a token", Code: code})
	if o.Status != core.StatusDenied || o.Error == nil || !strings.Contains(o.Error.Message, "[EMAIL_1]") {
		t.Errorf("%+v %v", o, o.Error)
	}
	dir := filepath.Join(home, "skills", "token")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "skill.ts"), []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	o = e.Execute(t.Context(), engine.Request{Code: "import { f } from './skills/token'; return f()"})
	if o.Error == nil || !strings.Contains(o.Error.Message, "the token [EMAIL_1]") {
		t.Errorf("%+v %v", o, o.Error)
	}
}

// programOfThreeSkills imports the skills a, b and c that saveThreeSkills saves. It returns 4.
const programOfThreeSkills = "import { f } from './skills/a'; import { f as g } from './skills/b'; import { f as h } from './skills/c'; return h(g(f(1)))"

func saveThreeSkills(tb testing.TB, e *engine.Engine) {
	tb.Helper()
	for _, name := range []string{"a", "b", "c"} {
		d := engine.SkillDraft{Name: name, Description: "One of three.", Code: strings.Repeat("/** A line of text. */\n", 200) + "export const f = (n: number) => n + 1;"}
		if o := e.SaveSkill(tb.Context(), engine.Request{}, d); o.Status != core.StatusOK {
			tb.Fatalf("%+v", o.Error)
		}
	}
}

// TestThreeSkills checks that a program can import three skills, both before and after the engine remembers that they
// have passed the check.
func TestThreeSkills(t *testing.T) {
	e := openSkilled(t, "")
	saveThreeSkills(t, e)
	for range 2 {
		if o := e.Execute(t.Context(), engine.Request{Code: programOfThreeSkills}); string(o.Result) != "4" {
			t.Fatalf("result %s, want 4: %s %+v", o.Result, o.Status, o.Error)
		}
	}
}

// BenchmarkSkills executes a program without skills, and one with three skills that were checked
// before. The second should take hardly longer.
func BenchmarkSkills(b *testing.B) {
	e := openWith(b, "")
	saveThreeSkills(b, e)
	for name, code := range map[string]string{
		"none": "return 4 + 0", "three": programOfThreeSkills,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if o := e.Execute(b.Context(), engine.Request{Code: code}); string(o.Result) != "4" {
					b.Fatalf("%s %+v", o.Status, o.Error)
				}
			}
		})
	}
}

// TestSkillFrom checks that a program that succeeded becomes a skill whose literals are parameters, except for
// literals that would not pass the check as parameters.
func TestSkillFrom(t *testing.T) {
	e := open(t, "drive", "crm")
	e.WaitForServers(t.Context())
	for _, c := range []struct {
		code   string
		lang   core.Language
		lifted string
	}{
		{"return (await drive.getDocument({ documentId: 'abc123', format: 'text' })).title", core.TypeScript, "documentId format"},
		{"const kinds: Record<'a' | 'b', number> = { a: 1, b: 2 };\nconst k = { kind: 'a' } as const;\nreturn kinds[k.kind] + (await drive.getDocument({ documentId: '[EMAIL_1]' })).title", core.TypeScript, "a b kind documentId"},
		{"const f = 'text';\nconst n: 'text' = f;\nreturn n.nothing ?? (await drive.getDocument({ documentId: 'abc123', format: f }))", core.TypeScript, "f documentId"},
		{"return await drive.shareFile({ fileId: 'f1', grant: { type: 'domain', domain: 'example.org', role: 'reader' } })", core.TypeScript, "fileId type domain role"},
		{"type K = { kind: 'a', n: number };\nconst k: K = { n: 7, kind: 'a' };\nreturn k.n + (await drive.getDocument({ documentId: 'abc123' })).title", core.TypeScript, "n kind documentId"},
		{"const x = [{ arguments: 'no name' }];\nreturn x.length + (await drive.getDocument({ documentId: 'abc123' })).title", core.TypeScript, ""},
		{"doc = drive.get_document(documentId='abc123')\nresult = doc['title']", core.Python, "document_id"},
	} {
		o, lifted, err := e.SaveSkillFrom(t.Context(), engine.Request{}, engine.RecordedProgram{Code: c.code, Language: c.lang, Status: core.StatusOK}, engine.SkillDraft{Name: "from-it", Description: "Titles."})
		if err != nil || o.Status != core.StatusOK || strings.Join(lifted, " ") != c.lifted {
			t.Errorf("%s: %s %v, %v %+v", c.code, o.Status, lifted, err, o.Error)
		}
	}
	if _, _, err := e.SaveSkillFrom(t.Context(), engine.Request{}, engine.RecordedProgram{Code: "return 1", Status: core.StatusError}, engine.SkillDraft{Name: "x", Description: "x"}); err == nil {
		t.Error("a program that failed was saved")
	}
}

// TestSavingSkillsIsAskedForUser checks that the question whether a skill may be saved names the principal who saves
// it.
func TestSavingSkillsIsAskedForUser(t *testing.T) {
	e := openSkilled(t, "approval: {autoApproveMedium: false}")
	var seen core.Approval
	ctx := engine.WithChannel(t.Context(), func(_ context.Context, a core.Approval) (core.ApprovalAnswer, bool) {
		seen = a
		return core.ApprovalAnswer{}, true
	})
	o := e.As("anna").SaveSkill(ctx, engine.Request{}, engine.SkillDraft{Name: "x", Description: "Greets.", Code: "export const x = () => 1;"})
	if o.Error == nil || seen.Principal != "anna" || seen.Tool != "save_skill" {
		t.Errorf("%+v, %v", seen, o.Error)
	}
}
