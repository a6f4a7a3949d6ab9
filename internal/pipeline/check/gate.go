// Package check decides whether a program may run; no program runs without passing this check. It parses the program,
// applies rules to it, type-checks it against the tools that it can reach, and computes its risk. It also produces
// the code that the sandbox runs.
package check

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"retort/internal/core"
	"retort/internal/pipeline/check/python"
	"retort/internal/pipeline/check/rules"
	"retort/internal/pipeline/check/source"
	"retort/internal/pipeline/check/typescript"
)

// Verdict describes a program that has passed the check. If a program does not pass, Check returns a *core.Error
// instead.
type Verdict struct {
	Program  core.CheckedProgram // complete but for ID and Limits
	Runtime  string              // that the program needs: "quickjs", "python"
	Tools    []*core.Tool        // that the program can reach; all of them if Unknown
	Unknown  bool                // the program computes which tools it calls
	Warnings []string
	Risk     rules.ProgramRisk // the risk, for those who decide whether it runs

	// Skills lists the checked skills that the program uses, directly or through other skills. The program runs with
	// exactly this code.
	Skills []core.Skill

	locate func(line, column int) (int, int)
	inside map[string]func(line, column int) (int, int) // the same for skills, by their files

	reports []rules.RuleReport // on its skills
}

// ProgramChecker checks programs in TypeScript, JavaScript and Python. It is safe for concurrent use.
type ProgramChecker struct {
	typescript *typescript.ScriptChecker
	python     *python.PythonChecker // nil if nothing parses Python here
	level      rules.StrictnessLevel
	effect     func(t *core.Tool) core.EffectInfo
}

// Options configures how programs are judged.
type Options struct {
	Start  typescript.ProcessStarter // makes the processes of the TypeScript compiler, which end with Close
	Parser python.CodeParser         // parses Python; without one, programs in Python are refused
	Level  rules.StrictnessLevel     // how strictly
	// Effect returns the effect of a tool. If it is nil, annotations of servers cannot lower effects.
	Effect func(t *core.Tool) core.EffectInfo
}

// New returns a ProgramChecker with these options.
func New(o Options) *ProgramChecker {
	g := &ProgramChecker{typescript: typescript.New(o.Start), level: o.Level, effect: o.Effect}
	if o.Parser != nil {
		g.python = python.New(o.Parser)
	}
	return g
}

// Warm starts the TypeScript compiler in advance, because starting takes about 50 ms.
func (g *ProgramChecker) Warm() { g.typescript.StartWarmup() }

// Close ends the processes of the TypeScript compiler.
func (g *ProgramChecker) Close() error { return g.typescript.Close() }

// Check checks the program of req against the tools that it may call and the skills that it may import. If skills is
// nil, there are no skills.
func (g *ProgramChecker) Check(
	ctx context.Context, req core.ExecutionRequest, tools *core.Toolset, skills source.SkillLibrary,
) (Verdict, *core.Error) {
	switch req.Language {
	case core.TypeScript, core.JavaScript:
		return g.checkTypeScript(ctx, req, tools, skills)
	case core.Python:
		return g.checkPython(ctx, req, tools, skills)
	}
	return Verdict{}, core.Errorf(core.KindInvalidArguments, "gate", "unknown language %q", req.Language).
		WithHint("the language must be typescript, javascript or python")
}

func notBuilt(what string) *core.Error {
	return core.Errorf(core.KindPolicy, "gate", "%s is not available in this version of Retort", what)
}

func (g *ProgramChecker) checkTypeScript(
	ctx context.Context, req core.ExecutionRequest, tools *core.Toolset, skills source.SkillLibrary,
) (Verdict, *core.Error) {
	name := req.Name
	if name == "" {
		name = "program.ts"
	}
	checked, refusal := g.typescript.CheckProgram(
		ctx,
		typescript.ProgramSource{Code: req.Code, Name: name, Language: req.Language, Level: g.level, Skills: skills},
		tools,
	)
	if refusal != nil {
		return Verdict{}, refusal
	}
	v := Verdict{
		Program:  core.CheckedProgram{Name: name, Language: core.JavaScript, Code: checked.Code, Namespaces: checked.Namespaces},
		Runtime:  cmp.Or(req.Runtime, "quickjs"),
		Tools:    checked.Tools,
		Unknown:  checked.Unknown,
		Warnings: checked.Warnings,
		locate:   checked.Locate,
	}
	for _, s := range checked.Skills {
		v.addSkill(s.CheckedSkill)
	}
	v.Risk = g.riskOf(rules.JoinReports(checked.Report, v.reports), tools, checked.Tools, checked.Unknown)
	return v, nil
}

func (g *ProgramChecker) checkPython(
	ctx context.Context, req core.ExecutionRequest, tools *core.Toolset, skills source.SkillLibrary,
) (Verdict, *core.Error) {
	if g.python == nil {
		return Verdict{}, notBuilt("running Python programs").WithHint("write the program in TypeScript")
	}
	name := req.Name
	if name == "" {
		name = "program.py"
	}
	checked, refusal := g.python.CheckProgram(ctx, python.ProgramSource{Code: req.Code, Level: g.level, Skills: skills}, tools)
	if refusal != nil {
		return Verdict{}, refusal
	}
	v := Verdict{
		Program:  core.CheckedProgram{Name: name, Language: core.Python, Code: checked.Code, Namespaces: checked.Namespaces},
		Runtime:  "python",
		Tools:    checked.Tools,
		Unknown:  checked.Unknown,
		Warnings: checked.Warnings,
		locate:   checked.Locate,
	}
	for _, s := range checked.Skills {
		v.addSkill(s.CheckedSkill)
	}
	v.Risk = g.riskOf(rules.JoinReports(checked.Report, v.reports), tools, checked.Tools, checked.Unknown)
	return v, nil
}

// addSkill adds a skill that the program uses to the Verdict, together with the skill's tools and risk.
func (v *Verdict) addSkill(s source.CheckedSkill) {
	v.Skills = append(v.Skills, s.Skill)
	v.Program.Modules = append(v.Program.Modules, s.Module)
	v.reports = append(v.reports, s.Report)
	if v.inside == nil {
		v.inside = map[string]func(int, int) (int, int){}
	}
	v.inside[s.Module.File] = s.Locate
}

// LocateError returns e with its positions converted from the code that ran to the program as it was written.
func (v Verdict) LocateError(e *core.Error) *core.Error {
	if e == nil || v.locate == nil {
		return e
	}
	c := *e
	if c.Line > 0 {
		c.Line, c.Column = v.locate(e.Line, e.Column)
	}
	c.Stack = v.locateFrames(e.Stack)
	return &c
}

var positionPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(skills/[a-z0-9-]+/skill\.(?:ts|py))?:(\d+):(\d+)`)
})

func (v Verdict) locateFrames(stack string) string {
	lines := strings.Split(stack, "\n")
	for i, line := range lines {
		lines[i] = positionPattern().ReplaceAllStringFunc(line, func(found string) string {
			m := positionPattern().FindStringSubmatch(found)
			l, _ := strconv.Atoi(m[2])
			c, _ := strconv.Atoi(m[3])
			locate := v.locate
			if inside := v.inside[m[1]]; inside != nil {
				locate = inside
			}
			l, c = locate(l, c)
			return fmt.Sprintf("%s:%d:%d", m[1], l, c)
		})
	}
	return strings.Join(lines, "\n")
}
