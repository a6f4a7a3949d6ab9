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

// Skill holds a checked skill and what the next importer needs.
type Skill struct {
	source.Passed

	imports []named
	names   map[string]bool // that its module has
	reach   *reach          // of it and of all that it imports
}

// skillKey contains everything that the judgement on a skill's text depends on.
type skillKey struct {
	name, code string
	level      rules.Level
	tools      *core.Toolset
}

// linker checks the skills that a program uses, each once.
type linker struct {
	checker *Checker
	library source.Library
	level   rules.Level
	tools   *core.Toolset
	linked  map[string]*Skill
}

func (c *Checker) linker(src Source, tools *core.Toolset) *linker {
	library := src.Skills
	if library == nil {
		library = source.NoSkills{}
	}
	return &linker{checker: c, library: library, level: src.Level, tools: tools, linked: map[string]*Skill{}}
}

// named describes a skill as a program names it.
type named struct {
	skill  string
	member string // that is imported from it; "" if it is the whole
	global bool   // as a member of the global skills
	place
}

// skills returns the skills that a program names, in the order of the text, and the places where it refers to all
// skills.
func (p *program) skills() (found []named, loose []place) {
	for _, i := range p.facts.Imports {
		parts := strings.Split(i.Module, ".")
		if parts[0] != "skills" {
			continue
		}
		n := named{place: i.place}
		switch {
		case len(parts) == 1 && i.Name != "" && i.Name != "*":
			n.skill = skillOf(i.Name)
		case len(parts) == 2:
			n.skill, n.member = skillOf(parts[1]), i.Name
		}
		if n.skill == "" {
			loose = append(loose, i.place)
			continue
		}
		found = append(found, n)
	}
	for _, u := range p.facts.Uses {
		if !u.Free || u.Path[0] != "skills" {
			continue
		}
		if len(u.Path) == 1 || skillOf(u.Path[1]) == "" {
			loose = append(loose, u.place)
			continue
		}
		found = append(found, named{skill: skillOf(u.Path[1]), global: true, place: u.place})
	}
	return found, loose
}

// skillOf returns the skill that a Python identifier refers to, or "".
func skillOf(identifier string) string {
	name := core.SkillName(identifier)
	if core.ValidSkillName(name) != nil || core.SkillIdentifier(name, core.Python) != identifier {
		return ""
	}
	return name
}

// uses checks the skills that a program names. Its error refers to a place in p.
func (l *linker) uses(ctx context.Context, p *program, chain source.Chain) *core.Error {
	list, loose := p.skills()
	for _, at := range loose {
		return p.refuse([]finding{{kind: core.KindType, message: "skills are named one by one", hint: "from skills import <name>, or from skills.<name> import <function>; list_skills lists them", place: at}})
	}
	for _, n := range list {
		s, refusal := l.link(ctx, n.skill, chain)
		if refusal != nil {
			return p.importing(n.place, refusal)
		}
		if n.member != "" && n.member != "*" && !s.names[n.member] {
			return p.refuse([]finding{{kind: core.KindType, message: "the skill " + n.skill + " has no " + n.member, hint: source.Exported(n.skill, s.Functions), place: n.place}})
		}
		p.reach.join(s.reach)
	}
	return nil
}

// importing returns a skill's error, located where the program names the skill.
func (p *program) importing(at place, e *core.Error) *core.Error {
	c := *e
	c.Line, c.Column = at.Line+p.lines, at.Column+p.indent
	if c.Frame == "" {
		c.Frame = source.Frame(p.written, c.Line, c.Column, at.Width)
	}
	return &c
}

func (l *linker) link(ctx context.Context, name string, chain source.Chain) (*Skill, *core.Error) {
	return source.Link(l.linked, l.library, name, core.Python, chain, func(s core.Skill, chain source.Chain) (*Skill, *core.Error) {
		return l.check(ctx, s, chain)
	})
}

// check checks a skill and what it imports.
func (l *linker) check(ctx context.Context, skill core.Skill, chain source.Chain) (*Skill, *core.Error) {
	key := skillKey{skill.Name, skill.Code, l.level, l.tools}
	p, kept := l.checker.skills.Find(key)
	if !kept {
		var refusal *core.Error
		if p, refusal = l.checker.judged(ctx, Source{Code: skill.Code, Level: l.level}, l.tools); refusal != nil {
			return nil, refusal
		}
		if refusal := p.importable(); refusal != nil {
			return nil, refusal
		}
		l.checker.skills.Put(key, p)
	}
	all := *p
	all.reach = newReach()
	all.reach.join(p.reach)
	if refusal := l.uses(ctx, &all, chain); refusal != nil {
		return nil, refusal
	}
	list, _ := p.skills()
	var uses []string
	for _, n := range list {
		uses = append(uses, n.skill)
	}
	slices.Sort(uses)
	s := &Skill{names: p.topNames(), reach: all.reach, imports: list, Passed: source.Passed{
		Skill: skill, Module: core.Module{Name: skill.Name, File: skill.File(), Code: p.code}, Uses: slices.Compact(uses),
		Functions: p.functions(), Tools: p.reach.list(l.tools), Unknown: p.reach.unknown, Report: p.report,
		Warnings: append(p.report.Warnings(l.level, p.place), p.advice()...),
		Locate:   func(line, column int) (int, int) { return line + p.lines, column + p.indent },
	}}
	return s, nil
}

// modules returns the skills as the guest gets them, sorted by name.
func (l *linker) modules(p *program) (all []*Skill) {
	global := map[string]bool{}
	list, _ := p.skills()
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

// join adds what a skill can reach to the reach of an importing program.
func (r *reach) join(o *reach) {
	r.unknown = r.unknown || o.unknown
	for t := range o.called {
		r.called[t] = true
	}
	for s, n := range o.servers {
		mine := r.need(s)
		maps.Copy(mine.tools, n.tools)
		mine.whole = mine.whole || n.whole
	}
}

// Examine checks a skill that has not been saved yet.
func (c *Checker) Examine(ctx context.Context, skill core.Skill, level rules.Level, library source.Library, tools *core.Toolset) (*Skill, *core.Error) {
	l := c.linker(Source{Level: level, Skills: library}, tools)
	chain, refusal := source.Chain{}.With(skill.Name, 0)
	if refusal != nil {
		return nil, refusal
	}
	return l.check(ctx, skill, chain)
}
