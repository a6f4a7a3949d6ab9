package python

import (
	"strings"
	"testing"

	"retort/internal/core"
)

func skillModule(name, code string) core.SkillModule {
	return core.SkillModule{Name: name, File: "skills/" + name + "/skill.py", Code: code}
}

func TestSkills(t *testing.T) {
	s := newStarter(t)
	modules := []core.SkillModule{
		skillModule("shared", "n = 0\ndef next_one():\n    global n\n    n += 1\n    return n\n"),
		skillModule("my-user", "from skills.shared import next_one\nimport datetime\ndef twice() -> int:\n    next_one()\n    return next_one()\ndef uses_free():\n    return Counter('aab')['a'], json.dumps(1)\n"),
		skillModule("failing", "def fail():\n    x = 1\n    raise ValueError('no')\n"),
		skillModule("calling", "def names():\n    return demo.echo(text='x')\nasync def together():\n    import asyncio\n    return await asyncio.gather(*[demo.echo(text=t) for t in 'ab'])\n"),
		skillModule("quiet", "print('evaluated')\nif __name__ == '__main__':\n    print('never')\n1 + 1\ndef f(): pass\n"),
	}
	for _, c := range []struct{ code, want string }{
		{"from skills import my_user, shared\nresult = [my_user.twice(), shared.n]", "[2,2]"},
		{"import skills.my_user as m\nfrom skills.my_user import twice as t\nresult = [m.twice(), t()]", "[2,4]"},
		{"result = skills.my_user.twice()", "2"},
		{"from skills.my_user import uses_free\nresult = uses_free()", `[2,"1"]`},
		{"import skills.quiet\nimport skills.quiet\nresult = dir(skills)", `["calling","failing","my_user","quiet","shared"]`},
	} {
		end := s.run(t, core.CheckedProgram{Code: c.code, Modules: modules, Namespaces: demoNamespaces}, &fakeHost{})
		if end.Error != nil || string(end.Value) != c.want {
			t.Errorf("%s: %s %+v, want %s", c.code, end.Value, end.Error, c.want)
		}
		if strings.Contains(c.code, "quiet") && string(end.Output) != "evaluated\n" {
			t.Errorf("output %q", end.Output)
		}
	}
	end := s.run(t, core.CheckedProgram{Code: "from skills.failing import fail\n\nfail()", Name: "program.py", Modules: modules}, &fakeHost{})
	if end.Error == nil || end.Error.Message != "ValueError: no" || end.Error.Line != 3 || !strings.HasPrefix(end.Error.Stack, "at fail (skills/failing/skill.py:3:") {
		t.Errorf("%+v", end.Error)
	}
	end = s.run(t, core.CheckedProgram{Code: "import importlib\nimportlib.import_module('skills.none')", Modules: modules}, &fakeHost{})
	if end.Error == nil || !strings.Contains(end.Error.Message, "there is no skill 'none'") {
		t.Errorf("%+v", end.Error)
	}
}
