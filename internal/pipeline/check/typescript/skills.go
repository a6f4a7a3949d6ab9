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

// LinkedSkill holds a checked skill, and what is needed to check programs that import the skill.
type LinkedSkill struct {
	source.CheckedSkill

	closure string        // hash of it and of all that it imports
	text    string        // for its importers
	reach   *programReach // of it and of all that it imports
}

// skillKey holds everything on which the result of checking a skill depends. The result is cached under this key.
type skillKey struct {
	closure string
	level   rules.StrictnessLevel
	tools   *core.Toolset
}

// skillLinker checks the skills that a program uses. It checks each skill only once.
type skillLinker struct {
	checker  *ScriptChecker
	compiler *compilerProcess
	library  source.SkillLibrary
	level    rules.StrictnessLevel
	tools    *core.Toolset
	linked   map[string]*LinkedSkill
	dirty    bool // the compiler has parsed skills since it has the program
}

func (c *ScriptChecker) newLinker(compiler *compilerProcess, src ProgramSource, tools *core.Toolset) *skillLinker {
	library := src.Skills
	if library == nil {
		library = source.NoSkills{}
	}
	return &skillLinker{checker: c, compiler: compiler, library: library, level: src.Level, tools: tools, linked: map[string]*LinkedSkill{}}
}

// checkUses checks the skills that the argument r lists, in the order in which the text names them. If a skill has an
// error, checkUses passes it to the function at, together with the place where the text names the skill, and returns
// the error that this function returns.
func (l *skillLinker) checkUses(
	ctx context.Context, r *programReach, chain source.ImportChain, at func(sourcePlace, *core.Error) *core.Error,
) *core.Error {
	names := slices.SortedFunc(maps.Keys(r.skills), func(a, b string) int { return r.skills[a].start - r.skills[b].start })
	for _, name := range names {
		s, refusal := l.linkSkill(ctx, name, chain)
		if refusal != nil {
			return at(r.skills[name], refusal)
		}
		r.joinReach(s.reach)
	}
	return nil
}

// checkProgram type-checks a program with the skills that it uses.
func (l *skillLinker) checkProgram(ctx context.Context, p *scriptProgram) (*tsc.Result, []checkFinding, *core.Error) {
	if len(p.reach.skills) > 0 {
		if refusal := l.checkUses(ctx, p.reach, nil, p.importError); refusal != nil {
			return nil, nil, refusal
		}
	}
	if l.dirty { // skills came between
		if _, err := l.compiler.parseText(ctx, p.source.Text(), p.sourceKind()); err != nil {
			return nil, nil, p.failureError(err)
		}
	}
	result, findings, err := l.collectFindings(ctx, p, p.source)
	if err != nil {
		return nil, nil, p.failureError(err)
	}
	return result, findings, nil
}

// collectFindings type-checks src, which must be the text that was parsed last, and returns the findings. Inferred
// result types are used only for warnings about fields. If there are other findings, src is checked again without
// inferred types.
func (l *skillLinker) collectFindings(ctx context.Context, p *scriptProgram, src *tsc.Source) (*tsc.Result, []checkFinding, error) {
	result, err := l.compiler.checkSource(ctx, src, l.compilerInput(p, true), !p.module && p.reach.isBare() && l.level&rules.Commanding == 0)
	if err != nil {
		return nil, nil, err
	}
	diagnostics, advice := p.splitAdvice(result.Diagnostics)
	if len(diagnostics) > 0 && p.reach.usesLearned() {
		if result, err = l.compiler.checkSource(ctx, src, l.compilerInput(p, false), false); err != nil {
			return nil, nil, err
		}
		diagnostics = result.Diagnostics
	}
	return result, p.judgeFindings(diagnostics, l.checker.wrappers.otherModules(), advice), nil
}

// importError converts an error in a skill to an error at the position where the program names the skill.
func (p *scriptProgram) importError(at sourcePlace, e *core.Error) *core.Error {
	c := *e
	c.Line, c.Column = p.originalPosition(at.start)
	if c.Frame == "" {
		c.Frame = source.CodeFrame(p.src.Code, c.Line, c.Column, p.findingWidth(checkFinding{start: at.start, end: at.end}))
	}
	return &c
}

// linkSkill returns the checked skill with this name. It checks the skill on first use.
func (l *skillLinker) linkSkill(ctx context.Context, name string, chain source.ImportChain) (*LinkedSkill, *core.Error) {
	return source.LinkSkill(l.linked, l.library, name, core.TypeScript, chain, func(s core.Skill, chain source.ImportChain) (*LinkedSkill, *core.Error) {
		return l.checkSkill(ctx, s, chain)
	})
}

// checkSkill checks a skill and the skills that it imports. The compiler keeps only the text that it has parsed last,
// so the text that imports the skill must be parsed again before it is type-checked.
func (l *skillLinker) checkSkill(ctx context.Context, skill core.Skill, chain source.ImportChain) (*LinkedSkill, *core.Error) {
	p, refusal := l.parseSkill(ctx, skill)
	if refusal != nil {
		return nil, refusal
	}
	if refusal := p.checkPolicy(); refusal != nil {
		return nil, refusal
	}
	p.reach = reachOf(p.source.Facts(), l.tools, l.checker.names.globalServers(l.tools))
	own := *p.reach
	own.servers = cloneNeeds(p.reach.servers)
	own.called, own.unknown = maps.Clone(p.reach.called), p.reach.unknown
	if refusal := l.checkUses(ctx, p.reach, chain, func(_ sourcePlace, e *core.Error) *core.Error { return e }); refusal != nil {
		return nil, refusal
	}
	s := &LinkedSkill{closure: l.closureHash(skill, p.reach), reach: p.reach, CheckedSkill: source.CheckedSkill{
		Skill: skill, Uses: slices.Sorted(maps.Keys(p.reach.skills)),
		Functions: functionsOf(p.source.Facts()), Tools: own.reachableTools(), Unknown: own.unknown, Report: p.report,
	}}
	key := skillKey{s.closure, l.level, l.tools}
	if kept, ok := l.checker.skills.Find(key); ok {
		return kept, nil
	}
	if refusal := l.compileSkill(ctx, p, s); refusal != nil {
		return nil, refusal
	}
	l.checker.skills.Put(key, s)
	return s, nil
}

// parseSkill parses a skill, unless it was parsed before.
func (l *skillLinker) parseSkill(ctx context.Context, skill core.Skill) (*scriptProgram, *core.Error) {
	key := [2]string{skill.Name, skill.Code}
	if kept, ok := l.checker.parsed.Find(key); ok {
		p := *kept
		p.src.Level, p.tools = l.level, l.tools
		return &p, nil
	}
	l.dirty = true
	p, refusal := parseProgram(
		ctx, l.compiler,
		ProgramSource{Code: skill.Code, Name: skill.FileName(), Language: core.TypeScript, Level: l.level}, l.tools,
	)
	if refusal != nil {
		return nil, refusal
	}
	p.module, p.builtins = true, l.checker.names.builtins
	kept := *p
	kept.tools = nil
	l.checker.parsed.Put(key, &kept)
	return p, nil
}

// compileSkill type-checks a skill and produces its module.
func (l *skillLinker) compileSkill(ctx context.Context, p *scriptProgram, s *LinkedSkill) *core.Error {
	l.dirty = true
	parsed, err := l.compiler.parseText(ctx, p.source.Text(), tsc.TypeScript)
	if err != nil {
		return p.failureError(err)
	}
	result, findings, err := l.collectFindings(ctx, p, parsed)
	if err != nil {
		return p.failureError(err)
	}
	if refusal := p.refuseFindings(findings); refusal != nil {
		return refusal
	}
	lines := p.lines
	s.text, s.Warnings = result.Text, append(p.report.ListWarnings(l.level, p.findingPlace), p.findingWarnings(findings)...)
	s.Module = core.SkillModule{Name: s.Name, File: s.FileName(), Code: result.JavaScript}
	s.Locate = func(line, column int) (int, int) {
		line, column = result.Locate(line, column)
		return line + lines, column
	}
	return nil
}

// closureHash returns a hash of a skill and of everything that it imports.
func (l *skillLinker) closureHash(skill core.Skill, r *programReach) string {
	h := sha256.New()
	h.Write([]byte(skill.Name + "\x00" + skill.Code))
	for _, name := range slices.Sorted(maps.Keys(r.skills)) {
		h.Write([]byte("\x00" + l.linked[name].closure))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// compilerInput returns the declarations that the compiler needs to check a program: those of the tools that it can
// call, and those of the linked skills.
func (l *skillLinker) compilerInput(p *scriptProgram, learned bool) tsc.Input {
	r := p.reach
	in := l.checker.wrappers.declareInput(r, learned)
	if l.level&rules.Commanding != 0 {
		in.Files["/commands.d.ts"] = bindings.CommandDeclarations()
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

// skillModules returns the checked skills of a program, sorted by name, in the form that the sandbox gets.
func (l *skillLinker) skillModules(r *programReach) (all []*LinkedSkill) {
	for _, name := range slices.Sorted(maps.Keys(l.linked)) {
		s := *l.linked[name]
		if l.namesGlobally(name, r) {
			s.Module.Global = core.SkillIdentifier(name, core.TypeScript)
		}
		all = append(all, &s)
	}
	return all
}

// namesGlobally reports whether the program or a linked skill uses this skill as a member of the global object
// skills.
func (l *skillLinker) namesGlobally(name string, r *programReach) bool {
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

func cloneNeeds(servers map[*core.ToolServer]*serverNeeds) map[*core.ToolServer]*serverNeeds {
	c := make(map[*core.ToolServer]*serverNeeds, len(servers))
	for s, n := range servers {
		copied := *n
		copied.tools, copied.other = maps.Clone(n.tools), maps.Clone(n.other)
		c[s] = &copied
	}
	return c
}

func functionsOf(facts tsc.Facts) []source.SkillFunction {
	var list []source.SkillFunction
	for _, e := range facts.Exports {
		f := source.SkillFunction{Name: e.Name, Result: e.Result, Async: e.Async, Doc: e.Doc}
		for _, p := range e.Params {
			f.Params = append(f.Params, source.FunctionParam{
				Name: p.Name, Type: p.Type, Schema: p.Schema, Default: p.Default, Optional: p.Optional, Rest: p.Rest,
			})
		}
		list = append(list, f)
	}
	return list
}

// ExamineSkill checks a skill that has not been saved yet.
func (c *ScriptChecker) ExamineSkill(
	ctx context.Context, skill core.Skill, level rules.StrictnessLevel, library source.SkillLibrary, tools *core.Toolset,
) (*LinkedSkill, *core.Error) {
	compiler, err := c.compilers.takeProcess(ctx)
	if err != nil {
		return nil, (&scriptProgram{}).failureError(err)
	}
	defer c.compilers.returnProcess(compiler)
	l := c.newLinker(compiler, ProgramSource{Level: level, Skills: library}, tools)
	chain, refusal := source.ImportChain{}.WithSkill(skill.Name, 0)
	if refusal != nil {
		return nil, refusal
	}
	return l.checkSkill(ctx, skill, chain)
}
