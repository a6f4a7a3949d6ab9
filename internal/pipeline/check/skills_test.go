package check

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/pipeline/check/python/parsertest"
	"retort/internal/pipeline/check/rules"
	"retort/internal/pipeline/check/source"
)

// shelf implements a skill library in memory. The keys are file names such as name.ts or name.py.
type shelf map[string]string

func (s shelf) FindSkill(name string, lang core.Language) (core.Skill, *core.Error) {
	file := name + ".ts"
	if lang == core.Python {
		file = name + ".py"
	}
	code, ok := s[file]
	if !ok {
		return source.NoSkills{}.FindSkill(name, lang)
	}
	return core.Skill{Name: name, Language: lang, Code: code}, nil
}

var shelved = shelf{
	"events.ts": "/** Finds events. */\nexport async function find(title: string, most = 5): Promise<string[]> {\n  const found = await calendar.listEvents({}) as any;\n  return found.events.map((e: any) => e.title).slice(0, most);\n}\n",
	"wipe.ts":   "import { find } from './skills/events';\nexport async function wipe(id: string) { await find('x'); await calendar.deleteEvent(id) }\n",
	"any.ts":    "export const any = (name: string) => callMCPTool(name, {});\n",
	"broken.ts": "export const f = () => drive.nothing();\n",
	"evil.ts":   "export const f = (s: string) => eval(s);\n",
	"a.ts":      "import { b } from './skills/b';\nexport const a = () => b();\n",
	"b.ts":      "import { a } from './skills/a';\nexport const b = () => a();\n",
	"outer.ts":  "export * from './skills/events';\n",
	"events.py": "from typing import Optional\ndef find(title: str, most: int = 5) -> list[str]:\n    \"\"\"Finds events.\"\"\"\n    return [e['title'] for e in calendar.list_events()['events']][:most]\n",
	"wipe.py":   "from skills.events import find\ndef wipe(id):\n    find('x')\n    calendar.delete_event(event_id=id)\n",
	"broken.py": "def f():\n    return drive.nothing()\n",
	"evil.py":   "def f(s):\n    return eval(s)\n",
	"a.py":      "from skills import b\ndef f():\n    return b.f()\n",
	"b.py":      "def f():\n    from skills import a\n    return a.f()\n",
}

func TestSkillsOfPrograms(t *testing.T) {
	p, tools := parsertest.NewInterpreter(t), demoTools(t)
	g := New(Options{Start: inside, Parser: p, Level: rules.Standard})
	t.Cleanup(func() { _ = g.Close() })
	for _, c := range []struct {
		language core.Language
		code     string
		want     string // risk and modules, or kind, place and first line of the message
	}{
		{core.TypeScript, "import { find } from './skills/events'; return find('x')", "5 low [events]"},
		{core.TypeScript, "return skills.events.find('x')", "5 low [events:events]"},
		{core.TypeScript, "import * as s from './skills'; return s.events.find('x')", "5 low [events:events]"},
		{core.TypeScript, "import { wipe } from './skills/wipe'; await wipe('a')", "50 high calendar.deleteEvent [events wipe]"},
		{core.TypeScript, "import { wipe } from './skills/wipe'; for (const id of ['a', 'b']) await wipe(id)", "70 high calendar.deleteEvent* [events wipe]"},
		{core.TypeScript, "import { any } from './skills/any'; await any('x')", "95 critical 38 [any]"},
		{core.JavaScript, "import { find } from './skills/events'; return find('x')", "5 low [events]"},
		{core.TypeScript, "import { find } from './skills/events'; return find(5)", `type 1:53 Argument of type 'number' is not assignable to parameter of type 'string'.`},
		{core.TypeScript, "import { lost } from './skills/events'; return lost()", `type 1:10 Module '"./skills/events"' has no exported member 'lost'.`},
		{core.TypeScript, "import { f } from './skills/lost-one'; return f()", `type 1:19 there is no skill "lost-one"`},
		{core.TypeScript, "const x = 1\nimport { f } from './skills/broken'; f()", `tool_not_found 2:19 the skill broken cannot be used: skills/broken/skill.ts:1:30: drive has no tool "nothing"`},
		{core.TypeScript, "import { a } from './skills/a'; a()", "type 1:19 skills import each other in a cycle: a → b → a"},
		{core.TypeScript, "import { find } from './skills/outer'; find('a')", "type 1:22 the skill outer cannot be used: skills/outer/skill.ts:1:15: a skill can export only what it declares itself"},
		{core.TypeScript, "return Object.keys(skills)", "type 1:20 import skills one by one"},
		{core.TypeScript, "import x from './skills/../x'", `type 1:15 there is no module "./skills/../x"`},
		{core.Python, "from skills import events\nresult = events.find('x')", "5 low [events]"},
		{core.Python, "result = skills.events.find('x')", "5 low [events:events]"},
		{core.Python, "from skills.wipe import wipe\nfor i in 'ab': wipe(i)", "70 high calendar.deleteEvent* [events wipe]"},
		{core.Python, "from skills.events import lost", "type 1:27 the skill events has no lost"},
		{core.Python, "import json\nfrom skills import lost_one", `type 2:20 there is no skill "lost-one"`},
		{core.Python, "from skills.broken import f\nf()", "tool_not_found 1:27 the skill broken cannot be used: skills/broken/skill.py:2:18: drive has no tool \"nothing\""},
		{core.Python, "from skills import a", "type 1:20 skills import each other in a cycle: a → b → a"},
		{core.Python, "import skills", "type 1:8 import skills one by one"},
		{core.Python, "from skills import *", "type 1:20 import skills one by one"},
	} {
		verdict, refusal := g.Check(context.Background(), core.ExecutionRequest{Code: c.code, Language: c.language}, tools, shelved)
		got := ""
		if refusal != nil {
			got = fmt.Sprintf("%s %d:%d %s", refusal.Kind, refusal.Line, refusal.Column, strings.SplitN(refusal.Message, "\n", 2)[0])
		} else {
			var modules []string
			for _, m := range verdict.Program.Modules {
				modules = append(modules, strings.TrimSuffix(m.Name+":"+m.Global, ":"))
			}
			got = fmt.Sprintf("%s %v", weighed(verdict.Risk), modules)
		}
		if got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.code, got, c.want)
		}
	}
}

// TestSkillsAreJudged checks that a program is refused if a skill that it imports violates a rule.
func TestSkillsAreJudged(t *testing.T) {
	p, tools := parsertest.NewInterpreter(t), demoTools(t)
	g := New(Options{Start: inside, Parser: p, Level: rules.Strict})
	t.Cleanup(func() { _ = g.Close() })
	for lang, code := range map[core.Language]string{core.TypeScript: "import { f } from './skills/evil'; f('1')", core.Python: "from skills.evil import f\nf('1')"} {
		_, refusal := g.Check(context.Background(), core.ExecutionRequest{Code: code, Language: lang}, tools, shelved)
		if refusal == nil || refusal.Kind != core.KindPolicy || refusal.Skill != "evil" {
			t.Errorf("%s: %+v", lang, refusal)
		}
	}
}

func TestExamine(t *testing.T) {
	p, tools := parsertest.NewInterpreter(t), demoTools(t)
	g := New(Options{Start: inside, Parser: p, Level: rules.Standard})
	t.Cleanup(func() { _ = g.Close() })
	for _, c := range []struct {
		skill core.Skill
		want  string
	}{
		{core.Skill{Name: "x", Language: core.TypeScript, Code: shelved["wipe.ts"]}, "wipe(id string {\"type\":\"string\"}) uses [events] calls [calendar.deleteEvent]"},
		{core.Skill{Name: "x", Language: core.Python, Code: shelved["events.py"]}, "find(title str {\"type\":\"string\"}, most int {\"type\":\"integer\"}?) list[str] 'Finds events.' uses [] calls [calendar.listEvents]"},
		{core.Skill{Name: "events", Language: core.TypeScript, Code: "import { find } from './skills/wipe'; export const f = 1"}, "type 0:0 skills import each other in a cycle: events → wipe → events"},
		{core.Skill{Name: "x", Language: core.TypeScript, Code: "return 1"}, "type 0:0 the skill exports no function, so programs could not use it"},
		{core.Skill{Name: "x", Language: core.Python, Code: "x = 1\ndef _f(): pass"}, "type 0:0 the skill exports no function, so programs could not use it"},
		{core.Skill{Name: "x", Language: core.Python, Code: "async def f():\n    return await drive.search_files(query='a')\nx = await f()"}, "syntax 3:5 await outside of functions, in a skill"},
		{core.Skill{Name: "x", Language: core.Python, Code: "def f(): pass\nif f():\n    return 1"}, "syntax 3:5 return outside of functions, in a skill"},
		{core.Skill{Name: "x", Language: core.TypeScript, Code: "\nexport const f = () => drive.nothing()"}, "tool_not_found 2:30 drive has no tool \"nothing\""},
	} {
		e, refusal := g.ExamineSkill(context.Background(), c.skill, tools, shelved)
		got := ""
		if refusal != nil {
			got = fmt.Sprintf("%s %d:%d %s", refusal.Kind, refusal.Line, refusal.Column, refusal.Message)
		} else {
			for _, f := range e.Functions {
				var params []string
				for _, p := range f.Params {
					text := p.Name + " " + p.Type + " " + p.Schema
					if p.Optional {
						text += "?"
					}
					params = append(params, text)
				}
				got += f.Name + "(" + strings.Join(params, ", ") + ") "
				if f.Result != "" {
					got += f.Result + " "
				}
				if f.Doc != "" {
					got += "'" + f.Doc + "' "
				}
			}
			var calls []string
			for _, t := range e.Tools {
				calls = append(calls, tools.QualifiedName(t))
			}
			got += fmt.Sprintf("uses %v calls %v", e.Uses, calls)
		}
		if got != c.want {
			t.Errorf("got %s\nwant %s", got, c.want)
		}
	}
}
