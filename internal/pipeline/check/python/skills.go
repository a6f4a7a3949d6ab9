package python

import (
	"context"
	"maps"
	"slices"
	"strings"

	"retort/internal/core"
	"retort/internal/pipeline/check/rules"
	"retort/internal/pipeline/check/source"
)

// LinkedSkill holds a checked skill, and what is needed to check programs that import the skill.
type LinkedSkill struct {
	source.CheckedSkill

	imports []namedSkill
	names   map[string]bool // that its module has
	reach   *programReach   // of it and of all that it imports
}

// skillKey holds everything on which the result of checking a skill depends. The result is cached under this key.
type skillKey struct {
	name, code string
	level      rules.StrictnessLevel
	tools      *core.Toolset
}

// skillLinker checks the skills that a program uses. It checks each skill only once.
type skillLinker struct {
	checker *PythonChecker
	library source.SkillLibrary
	level   rules.StrictnessLevel
	tools   *core.Toolset
	linked  map[string]*LinkedSkill
}

func (c *PythonChecker) newLinker(src ProgramSource, tools *core.Toolset) *skillLinker {
	library := src.Skills
	if library == nil {
		library = source.NoSkills{}
	}
	return &skillLinker{checker: c, library: library, level: src.Level, tools: tools, linked: map[string]*LinkedSkill{}}
}

// namedSkill describes a place where a program names a skill.
type namedSkill struct {
	skill  string
	member string // that is imported from it; "" if it is the whole
	global bool   // as a member of the global skills
	sourcePlace
}

// namedSkills returns the places where a program names skills: first the imports, then the other uses. The second
// result, loose, lists the places where it uses the package skills without naming a certain skill.
func (p *pythonProgram) namedSkills() (found []namedSkill, loose []sourcePlace) {
	for _, i := range p.facts.Imports {
		parts := strings.Split(i.Module, ".")
		if parts[0] != "skills" {
			continue
		}
		n := namedSkill{sourcePlace: i.sourcePlace}
		switch {
		case len(parts) == 1 && i.Name != "" && i.Name != "*":
			n.skill = skillOf(i.Name)
		case len(parts) == 2:
			n.skill, n.member = skillOf(parts[1]), i.Name
		}
		if n.skill == "" {
			loose = append(loose, i.sourcePlace)
			continue
		}
		found = append(found, n)
	}
	for _, u := range p.facts.Uses {
		if !u.Free || u.Path[0] != "skills" {
			continue
		}
		if len(u.Path) == 1 || skillOf(u.Path[1]) == "" {
			loose = append(loose, u.sourcePlace)
			continue
		}
		found = append(found, namedSkill{skill: skillOf(u.Path[1]), global: true, sourcePlace: u.sourcePlace})
	}
	return found, loose
}

// skillOf returns the name of the skill that a Python identifier stands for, or "" if the identifier cannot stand for
// a skill.
func skillOf(identifier string) string {
	name := core.SkillName(identifier)
	if core.ValidSkillName(name) != nil || core.SkillIdentifier(name, core.Python) != identifier {
		return ""
	}
	return name
}

// checkUses checks all skills that the program p names. If a skill has an error, the returned error has the position
// at which p names the skill.
func (l *skillLinker) checkUses(ctx context.Context, p *pythonProgram, chain source.ImportChain) *core.Error {
	list, loose := p.namedSkills()
	for _, at := range loose {
		return p.refuseFindings(
			[]refusalFinding{{
				kind: core.KindType, message: "import skills one by one",
				hint:        "write from skills import <name>, or from skills.<name> import <function>; list_skills lists the skills",
				sourcePlace: at,
			}},
		)
	}
	for _, n := range list {
		s, refusal := l.linkSkill(ctx, n.skill, chain)
		if refusal != nil {
			return p.importError(n.sourcePlace, refusal)
		}
		if n.member != "" && n.member != "*" && !s.names[n.member] {
			return p.refuseFindings(
				[]refusalFinding{{
					kind: core.KindType, message: "the skill " + n.skill + " has no " + n.member,
					hint: source.ListExported(n.skill, s.Functions), sourcePlace: n.sourcePlace,
				}},
			)
		}
		p.reach.joinReach(s.reach)
	}
	return nil
}

// importError converts an error in a skill to an error at the position where the program names the skill.
func (p *pythonProgram) importError(at sourcePlace, e *core.Error) *core.Error {
	c := *e
	c.Line, c.Column = at.Line+p.lines, at.Column+p.indent
	if c.Frame == "" {
		c.Frame = source.CodeFrame(p.written, c.Line, c.Column, at.Width)
	}
	return &c
}

func (l *skillLinker) linkSkill(ctx context.Context, name string, chain source.ImportChain) (*LinkedSkill, *core.Error) {
	return source.LinkSkill(l.linked, l.library, name, core.Python, chain, func(s core.Skill, chain source.ImportChain) (*LinkedSkill, *core.Error) {
		return l.checkSkill(ctx, s, chain)
	})
}

// checkSkill checks a skill and the skills that it imports.
func (l *skillLinker) checkSkill(ctx context.Context, skill core.Skill, chain source.ImportChain) (*LinkedSkill, *core.Error) {
	key := skillKey{skill.Name, skill.Code, l.level, l.tools}
	p, kept := l.checker.skills.Find(key)
	if !kept {
		var refusal *core.Error
		if p, refusal = l.checker.judgeProgram(ctx, ProgramSource{Code: skill.Code, Level: l.level}, l.tools); refusal != nil {
			return nil, refusal
		}
		if refusal := p.checkImportable(); refusal != nil {
			return nil, refusal
		}
		l.checker.skills.Put(key, p)
	}
	all := *p
	all.reach = newReach()
	all.reach.joinReach(p.reach)
	if refusal := l.checkUses(ctx, &all, chain); refusal != nil {
		return nil, refusal
	}
	list, _ := p.namedSkills()
	var uses []string
	for _, n := range list {
		uses = append(uses, n.skill)
	}
	slices.Sort(uses)
	s := &LinkedSkill{names: p.topNames(), reach: all.reach, imports: list, CheckedSkill: source.CheckedSkill{
		Skill: skill, Module: core.SkillModule{Name: skill.Name, File: skill.FileName(), Code: p.code}, Uses: slices.Compact(uses),
		Functions: p.exportedFunctions(), Tools: p.reach.reachableTools(l.tools), Unknown: p.reach.unknown, Report: p.report,
		Warnings: append(p.report.ListWarnings(l.level, p.findingPlace), p.adviseAnswers()...),
		Locate:   func(line, column int) (int, int) { return line + p.lines, column + p.indent },
	}}
	return s, nil
}

// skillModules returns the checked skills of a program, sorted by name, in the form that the interpreter in the
// sandbox gets.
func (l *skillLinker) skillModules(p *pythonProgram) (all []*LinkedSkill) {
	global := map[string]bool{}
	list, _ := p.namedSkills()
	for _, s := range l.linked {
		list = append(list, s.imports...)
	}
	for _, n := range list {
		global[n.skill] = global[n.skill] || n.global
	}
	for _, name := range slices.Sorted(maps.Keys(l.linked)) {
		s := l.linked[name]
		if global[name] {
			s.Module.Global = core.SkillIdentifier(name, core.Python)
		}
		all = append(all, s)
	}
	return all
}

// joinReach adds the tools that a skill can call to the tools that the importing program can call.
func (r *programReach) joinReach(o *programReach) {
	r.unknown = r.unknown || o.unknown
	for t := range o.called {
		r.called[t] = true
	}
	for s, n := range o.servers {
		mine := r.needServer(s)
		maps.Copy(mine.tools, n.tools)
		mine.whole = mine.whole || n.whole
	}
}

// ExamineSkill checks a skill that has not been saved yet.
func (c *PythonChecker) ExamineSkill(
	ctx context.Context, skill core.Skill, level rules.StrictnessLevel, library source.SkillLibrary, tools *core.Toolset,
) (*LinkedSkill, *core.Error) {
	l := c.newLinker(ProgramSource{Level: level, Skills: library}, tools)
	chain, refusal := source.ImportChain{}.WithSkill(skill.Name, 0)
	if refusal != nil {
		return nil, refusal
	}
	return l.checkSkill(ctx, skill, chain)
}
