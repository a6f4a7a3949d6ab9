package guest

import (
	"strings"
	"testing"

	"retort/internal/core"
)

func skillModule(name, code string) core.SkillModule {
	return core.SkillModule{Name: name, File: "skills/" + name + "/skill.ts", Code: code}
}

func TestSkills(t *testing.T) {
	onAll(t, func(t *testing.T, runProgram runner) {
		shared := skillModule("shared", "__exports.names = { n: () => n, next: () => next }; let n = 0; function next() { return ++n; }")
		user := skillModule("my-user", `const { next } = await __import("/skills/shared"); __exports.names = { twice: () => twice }; __exports.default = 7; function twice() { next(); return next(); }`)
		failing := skillModule("failing", "__exports.names = { fail: () => fail };\nfunction fail() {\n  throw new TypeError('no');\n}")
		global := skillModule("at-hand", "__exports.names = { f: () => f }; const f = () => 'f';")
		global.Global = "atHand"
		for _, c := range []struct{ code, want string }{
			{`const { twice } = await __import("./skills/my-user"); const s = await __import("./skills/shared"); return [twice(), s.n, s.next(), s.n]`, `[2,2,3,3]`},
			{`return (await __import("./skills/my_user/skill.ts")).default`, `7`},
			{`return (await __import("./skills/myUser")) === (await __import("skills/my-user"))`, `true`},
			{`return [skills.atHand.f(), Object.keys(skills), Object.keys(await __import("./skills"))]`, `["f",["atHand"],["atHand"]]`},
			{`return Object.isFrozen(await __import("./skills/shared"))`, `true`},
		} {
			end := runProgram(t, core.CheckedProgram{Code: c.code, Modules: []core.SkillModule{failing, shared, user, global}}, nil)
			if end.Error != nil || string(end.Value) != c.want {
				t.Errorf("%s: %s %v, want %s", c.code, end.Value, end.Error, c.want)
			}
		}
		end := runProgram(t, core.CheckedProgram{Code: "const { fail } = await __import('./skills/failing');\nfail()", Modules: []core.SkillModule{failing}}, nil)
		if end.Error == nil || end.Error.Message != "TypeError: no" || end.Error.Line != 2 || !strings.HasPrefix(end.Error.Stack, "at fail (skills/failing/skill.ts:3:") {
			t.Errorf("%+v", end.Error)
		}
		end = runProgram(t, core.CheckedProgram{Code: "await __import('./skills/none')"}, nil)
		if end.Error == nil || !strings.Contains(end.Error.Message, `there is no module "./skills/none"`) {
			t.Errorf("%+v", end.Error)
		}
	})
}
