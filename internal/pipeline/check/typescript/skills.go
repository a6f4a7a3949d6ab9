package typescript

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/microsoft/typescript-go/tsc"

	"retort/internal/core"
	"retort/internal/pipeline/bindings"
	"retort/internal/pipeline/check/rules"
	"retort/internal/pipeline/check/source"
)

// Skill holds a checked skill and what the next importer needs.
type Skill struct {
	source.Passed

	closure string // hash of it and of all that it imports
	text    string // for its importers
	reach   *reach // of it and of all that it imports
}

// skillKey contains everything that the judgement on a skill depends on.
type skillKey struct {
	closure string
	level   rules.Level
	tools   *core.Toolset
}

// linker checks the skills that a program uses, each once.
type linker struct {
	checker  *Checker
	compiler *process
	library  source.Library
	level    rules.Level
	tools    *core.Toolset
	linked   map[string]*Skill
	dirty    bool // the compiler has parsed skills since it has the program
}

func (c *Checker) linker(compiler *process, src Source, tools *core.Toolset) *linker {
	library := src.Skills
	if library == nil {
		library = source.NoSkills{}
	}
	return &linker{checker: c, compiler: compiler, library: library, level: src.Level, tools: tools, linked: map[string]*Skill{}}
}

// uses checks the skills that r names, in order. at converts an error to one about a place in the importing text.
func (l *linker) uses(ctx context.Context, r *reach, chain source.Chain, at func(place, *core.Error) *core.Error) *core.Error {
	names := slices.SortedFunc(maps.Keys(r.skills), func(a, b string) int { return r.skills[a].start - r.skills[b].start })
	for _, name := range names {
		s, refusal := l.link(ctx, name, chain)
		if refusal != nil {
			return at(r.skills[name], refusal)
		}
		r.join(s.reach)
	}
	return nil
}

// program type-checks a program with the skills that it uses.
func (l *linker) program(ctx context.Context, p *program) (*tsc.Result, []finding, *core.Error) {
	if len(p.reach.skills) > 0 {
		if refusal := l.uses(ctx, p.reach, nil, p.importing); refusal != nil {
			return nil, nil, refusal
		}
	}
	if l.dirty { // skills came between
		if _, err := l.compiler.parse(ctx, p.source.Text(), p.kind()); err != nil {
			return nil, nil, p.failure(err)
		}
	}
	result, findings, err := l.findings(ctx, p, p.source)
	if err != nil {
		return nil, nil, p.failure(err)
	}
	return result, findings, nil
}

// findings returns the compiler's findings in src, the text it parsed last. Learned answer types only serve advice
// about fields. If a text has other findings, it is checked again without learned types.
func (l *linker) findings(ctx context.Context, p *program, src *tsc.Source) (*tsc.Result, []finding, error) {
	result, err := l.compiler.check(ctx, src, l.input(p, true), !p.module && p.reach.isBare() && l.level&rules.Commanding == 0)
	if err != nil {
		return nil, nil, err
	}
	diagnostics, advice := p.advised(result.Diagnostics)
	if len(diagnostics) > 0 && p.reach.learned() {
		if result, err = l.compiler.check(ctx, src, l.input(p, false), false); err != nil {
			return nil, nil, err
		}
		diagnostics = result.Diagnostics
	}
	return result, p.judge(diagnostics, l.checker.wrappers.modules(), advice), nil
}

// importing returns a skill's error, located where the program names the skill.
func (p *program) importing(at place, e *core.Error) *core.Error {
	c := *e
	c.Line, c.Column = p.position(at.start)
	if c.Frame == "" {
		c.Frame = source.Frame(p.src.Code, c.Line, c.Column, p.width(finding{start: at.start, end: at.end}))
	}
	return &c
}

// link returns the checked skill of this name, checking it on first use.
func (l *linker) link(ctx context.Context, name string, chain source.Chain) (*Skill, *core.Error) {
	return source.Link(l.linked, l.library, name, core.TypeScript, chain, func(s core.Skill, chain source.Chain) (*Skill, *core.Error) {
		return l.check(ctx, s, chain)
	})
}

// check checks a skill. Afterwards the compiler has parsed another text.
func (l *linker) check(ctx context.Context, skill core.Skill, chain source.Chain) (*Skill, *core.Error) {
	p, refusal := l.parse(ctx, skill)
	if refusal != nil {
		return nil, refusal
	}
	if refusal := p.policy(); refusal != nil {
		return nil, refusal
	}
	p.reach = reachOf(p.source.Facts(), l.tools, l.checker.names.globals(l.tools))
	own := *p.reach
	own.servers = cloneNeeds(p.reach.servers)
	own.called, own.unknown = maps.Clone(p.reach.called), p.reach.unknown
	if refusal := l.uses(ctx, p.reach, chain, func(_ place, e *core.Error) *core.Error { return e }); refusal != nil {
		return nil, refusal
	}
	s := &Skill{closure: l.closure(skill, p.reach), reach: p.reach, Passed: source.Passed{
		Skill: skill, Uses: slices.Sorted(maps.Keys(p.reach.skills)),
		Functions: functionsOf(p.source.Facts()), Tools: own.list(), Unknown: own.unknown, Report: p.report,
	}}
	key := skillKey{s.closure, l.level, l.tools}
	if kept, ok := l.checker.skills.Find(key); ok {
		return kept, nil
	}
	if refusal := l.compile(ctx, p, s); refusal != nil {
		return nil, refusal
	}
	l.checker.skills.Put(key, s)
	return s, nil
}

// parse parses a skill, unless it was parsed before.
func (l *linker) parse(ctx context.Context, skill core.Skill) (*program, *core.Error) {
	key := [2]string{skill.Name, skill.Code}
	if kept, ok := l.checker.parsed.Find(key); ok {
		p := *kept
		p.src.Level, p.tools = l.level, l.tools
		return &p, nil
	}
	l.dirty = true
	p, refusal := parse(ctx, l.compiler, Source{Code: skill.Code, Name: skill.File(), Language: core.TypeScript, Level: l.level}, l.tools)
	if refusal != nil {
		return nil, refusal
	}
	p.module, p.builtins = true, l.checker.names.builtins
	kept := *p
	kept.tools = nil
	l.checker.parsed.Put(key, &kept)
	return p, nil
}

// compile type-checks a skill and produces its module.
func (l *linker) compile(ctx context.Context, p *program, s *Skill) *core.Error {
	l.dirty = true
	parsed, err := l.compiler.parse(ctx, p.source.Text(), tsc.TypeScript)
	if err != nil {
		return p.failure(err)
	}
	result, findings, err := l.findings(ctx, p, parsed)
	if err != nil {
		return p.failure(err)
	}
	if refusal := p.refuse(findings); refusal != nil {
		return refusal
	}
	lines := p.lines
	s.text, s.Warnings = result.Text, append(p.report.Warnings(l.level, p.place), p.warnings(findings)...)
	s.Module = core.Module{Name: s.Name, File: s.File(), Code: result.JavaScript}
	s.Locate = func(line, column int) (int, int) {
		line, column = result.Locate(line, column)
		return line + lines, column
	}
	return nil
}

// closure returns the hash of a skill and of everything it imports.
func (l *linker) closure(skill core.Skill, r *reach) string {
	h := sha256.New()
	h.Write([]byte(skill.Name + "\x00" + skill.Code))
	for _, name := range slices.Sorted(maps.Keys(r.skills)) {
		h.Write([]byte("\x00" + l.linked[name].closure))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// input returns what a text is checked against: what it can reach, and the linked skills.
func (l *linker) input(p *program, learned bool) tsc.Input {
	r := p.reach
	in := l.checker.wrappers.input(r, learned)
	if l.level&rules.Commanding != 0 {
		in.Files["/commands.d.ts"] = bindings.Commands()
		in.Ambient = append(in.Ambient, "/commands.d.ts")
	}
	in.Specifiers = maps.Clone(in.Specifiers)
	if in.Module = p.module; p.module {
		for written, canonical := range in.Specifiers {
			in.Specifiers[written] = strings.TrimPrefix(canonical, ".") // its text will lie in another folder
		}
	}
	var index, ambient strings.Builder
	for _, name := range slices.Sorted(maps.Keys(l.linked)) {
		in.Files["/skills/"+name+".ts"] = l.linked[name].text
		if r.skillIndex[name] {
			identifier := core.SkillIdentifier(name, core.TypeScript)
			index.WriteString("export * as " + identifier + ` from "/skills/` + name + "\";\n")
			ambient.WriteString("  readonly " + identifier + `: typeof import("/skills/` + name + "\");\n")
		}
	}
	if len(r.skillIndex) > 0 {
		in.Files["/skills/index.d.ts"] = index.String()
		in.Files["/skills.d.ts"] = "declare const skills: {\n" + ambient.String() + "};\n"
		in.Ambient = append(in.Ambient, "/skills.d.ts")
	}
	return in
}

// modules returns the skills as the guest gets them, sorted by name.
func (l *linker) modules(r *reach) (all []*Skill) {
	for _, name := range slices.Sorted(maps.Keys(l.linked)) {
		s := *l.linked[name]
		if l.global(name, r) {
			s.Module.Global = core.SkillIdentifier(name, core.TypeScript)
		}
		all = append(all, &s)
	}
	return all
}

// global reports whether the program, or a skill, accesses this skill as a member of skills.
func (l *linker) global(name string, r *reach) bool {
	if r.skillIndex[name] {
		return true
	}
	for _, s := range l.linked {
		if s.reach.skillIndex[name] {
			return true
		}
	}
	return false
}

func cloneNeeds(servers map[*core.Server]*needs) map[*core.Server]*needs {
	c := make(map[*core.Server]*needs, len(servers))
	for s, n := range servers {
		copied := *n
		copied.tools, copied.other = maps.Clone(n.tools), maps.Clone(n.other)
		c[s] = &copied
	}
	return c
}

func functionsOf(facts tsc.Facts) []source.Function {
	var list []source.Function
	for _, e := range facts.Exports {
		f := source.Function{Name: e.Name, Result: e.Result, Async: e.Async, Doc: e.Doc}
		for _, p := range e.Params {
			f.Params = append(f.Params, source.Param{Name: p.Name, Type: p.Type, Schema: p.Schema, Default: p.Default, Optional: p.Optional, Rest: p.Rest})
		}
		list = append(list, f)
	}
	return list
}

// Examine checks a skill that has not been saved yet.
func (c *Checker) Examine(ctx context.Context, skill core.Skill, level rules.Level, library source.Library, tools *core.Toolset) (*Skill, *core.Error) {
	compiler, err := c.compilers.take(ctx)
	if err != nil {
		return nil, (&program{}).failure(err)
	}
	defer c.compilers.give(compiler)
	l := c.linker(compiler, Source{Level: level, Skills: library}, tools)
	chain, refusal := source.Chain{}.With(skill.Name, 0)
	if refusal != nil {
		return nil, refusal
	}
	return l.check(ctx, skill, chain)
}
