package pipeline

import (
	"testing"

	"retort/internal/core"
)

func TestWrittenIn(t *testing.T) {
	for _, c := range []struct {
		program, code string
		want          bool
	}{
		{"await fs.writeFile('./skills/a.ts', 'export const f = () => 1;');", "export const f = () => 1;\n", true},
		{"write(\"export const f = () => \\\"a\\\";\\n\")", "export const f = () => \"a\";\n", true},
		{"write(`export const f = () => \\`${1}\\`;`)", "export const f = () => `${1}`;", true},
		{"write(answer.code)", "export const f = () => 1;", false},
		{"write(`export const f = () => ${answer};`)", "export const f = () => 2;", false},
		{"write('export const f = ' + '() => 1;')", "export const f = () => 1;", false},
		{"const a = 'export'; const b = 'const f = () => 1;'", "export\nconst f = () => 1;", false},
	} {
		if got := writtenIn(c.program, c.code); got != c.want {
			t.Errorf("writtenIn(%q, %q) = %v", c.program, c.code, got)
		}
	}
}

func TestSkillFile(t *testing.T) {
	for _, c := range []struct {
		path, skill string
		lang        core.Language
		ok          bool
	}{
		{"a.ts", "a", core.TypeScript, true}, {"a_b.py", "a-b", core.Python, true}, {"a.js", "a", core.TypeScript, true}, {"a/skill.py", "a", core.Python, true},
		{"a/skill.js", "a", core.TypeScript, false}, {"a/other.ts", "a", core.TypeScript, false}, {"a/b/skill.ts", "a", core.TypeScript, false},
		{"a.md", "a", "", false}, {"a", "a", "", false}, {"", "", "", false},
	} {
		if skill, lang, ok := skillFile(c.path); ok != c.ok || ok && (skill != c.skill || lang != c.lang) {
			t.Errorf("skillFile(%q) = %q, %q, %v", c.path, skill, lang, ok)
		}
	}
}
