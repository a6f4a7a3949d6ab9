package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"path"
	"strings"
	"sync"
	"unicode/utf8"

	"retort/internal/core"
	"retort/internal/pipeline/check"
	"retort/internal/pipeline/check/rules"
	"retort/internal/skills"
)

// maxSkillWrites bounds how often one program may write skills: each one is checked like a program.
const maxSkillWrites = 20

// skillFiles are the files below skills/ that a program writes. Each is saved as a skill, with the checks of save_skill.
type skillFiles struct {
	x *execution

	mu     sync.Mutex
	begun  map[string]string // what was written of a file so far, by its path
	saved  map[string]bool   // skills that this program has saved
	writes int
}

// skillFile returns the name and the language of the skill that a path below skills/ is the code of: NAME.ts, NAME.js,
// NAME.py, or the file of its folder, such as NAME/skill.ts.
func skillFile(name string) (skill string, lang core.Language, ok bool) {
	languages := map[string]core.Language{".ts": core.TypeScript, ".js": core.TypeScript, ".mjs": core.TypeScript, ".py": core.Python}
	lang, ok = languages[path.Ext(name)]
	skill = strings.TrimSuffix(name, path.Ext(name))
	if folder, file, nested := strings.Cut(skill, "/"); nested {
		skill, ok = folder, ok && file == "skill" && path.Ext(name) != ".js" && path.Ext(name) != ".mjs"
	}
	return strings.ReplaceAll(skill, "_", "-"), lang, ok
}

// write saves what a program writes to a file below skills/. An empty file is only begun: Python's open and Node's write
// nothing at first. What is appended to it counts as one text with what came before.
func (s *skillFiles) write(ctx context.Context, name, shown string, data []byte, appends bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	refused := s.add(ctx, name, data, appends)
	if refused == nil {
		return nil
	}
	s.x.flight.record.refusal(core.Call{Server: "retort", Tool: "save_skill"}, refused)
	e := *refused
	e.Message = "EACCES: " + core.Legible(clippedScope(shown)) + ": " + e.Message
	return &e
}

func (s *skillFiles) add(ctx context.Context, name string, data []byte, appends bool) *core.Error {
	if refused := s.permitted(); refused != nil {
		return refused
	}
	skill, lang, ok := skillFile(name)
	if !ok {
		return core.Errorf(core.KindPolicy, "skills.write", "only the code of a skill can be written to ./skills/").
			WithHint("write ./skills/NAME.ts or ./skills/NAME.py; save_skill takes a description, tags and triggers")
	}
	before, begun := s.begun[name]
	if appends && !begun {
		return core.Errorf(core.KindPolicy, "skills.write", "programs cannot append to a skill").WithHint("write the whole code of the skill in a single write")
	}
	if !appends {
		before = ""
	}
	if len(before)+len(data) > skills.MaxCode {
		return core.Errorf(core.KindLimit, "skills.write", "a skill has at most %d bytes", skills.MaxCode)
	}
	code := before + string(data)
	s.begun[name] = code
	if strings.TrimSpace(code) == "" {
		return core.ValidSkillName(skill)
	}
	if s.writes++; s.writes > maxSkillWrites {
		return core.Errorf(core.KindLimit, "skills.write", "a program writes skills at most %d times", maxSkillWrites)
	}
	return s.save(ctx, core.SkillDraft{Name: skill, Language: lang, Code: code})
}

// permitted refuses what may not write all of the workspace: neither a level nor a request that narrows the files of a
// program can mean that it writes skills.
func (s *skillFiles) permitted() *core.Error {
	if rule := s.x.pipeline.Policy.ReadOnly(); rule != "" {
		return core.Errorf(core.KindPolicy, "skills.write", "skills cannot be saved: %s", rule)
	}
	if s.x.restricted() != nil {
		return core.Errorf(core.KindPolicy, "skills.write", "this program is restricted to certain files, so it cannot save skills").WithHint("save the skill with the tool save_skill")
	}
	return nil
}

// save does what Pipeline.saveSkill does for a request of its own. The description is the first line of the first
// comment; what is known of a skill that is there already is kept.
func (s *skillFiles) save(ctx context.Context, d core.SkillDraft) *core.Error {
	p := s.x.pipeline
	if !utf8.ValidString(d.Code) {
		return core.Errorf(core.KindSyntax, "skills.write", "the code is not text in UTF-8")
	}
	old, refused := s.existing(d.Name)
	if refused != nil {
		return refused
	}
	if old != nil {
		d.Description, d.Tags, d.Triggers = old.Description, old.Tags, old.Triggers
	}
	d.Description = cmp.Or(skills.Commented(d.Code), d.Description, "Saved by a program.")
	skill, refused := p.drafted(&d)
	if refused != nil {
		return refused
	}
	if refused := p.foreign(core.Skill{Code: skill.Code + "\n" + d.Description}); refused != nil {
		return refused
	}
	examined, tools, refused := p.examine(ctx, skill)
	if refused != nil {
		return refused
	}
	if s.x.rehearses() || old != nil && old.Language == skill.Language && strings.TrimSpace(old.Code) == strings.TrimSpace(skill.Code) {
		return nil
	}
	if refused := s.approve(ctx, d, old); refused != nil {
		return refused
	}
	return s.keep(draftOf(skill, d, examined, tools), old)
}

// existing returns the skill that a write would replace or hide. It returns nil if no skill has this name, and an error if
// the skill cannot be read, so that the write does not replace it.
func (s *skillFiles) existing(name string) (*skills.Skill, *core.Error) {
	if refused := core.ValidSkillName(name); refused != nil {
		return nil, refused
	}
	old, refused := s.x.pipeline.Skills.Get(name, "")
	switch {
	case refused == nil:
		return &old, nil
	case skills.IsAbsent(refused):
		return nil, nil
	}
	return nil, refused
}

// approve asks a person where save_skill would. A program is asked about in two more cases, which count as a high risk:
// when it replaces a skill that it has not saved itself, and when the code is not in its own text, since then it may come
// from the answer of a server.
func (s *skillFiles) approve(ctx context.Context, d core.SkillDraft, old *skills.Skill) *core.Error {
	p := s.x.pipeline
	rule := p.aboutLevel(rules.RiskMedium)
	replaces, computed := old != nil && !s.saved[d.Name], !writtenIn(s.x.req.Code, d.Code)
	if high := p.aboutLevel(rules.RiskHigh); high != "" && (replaces || computed) {
		rule = high + ": " + reasonFor(d.Name, replaces, computed)
	}
	if rule == "" {
		return nil
	}
	arguments, err := json.Marshal(map[string]any{"name": d.Name, "description": d.Description, "language": d.Language, "code": d.Code})
	if err != nil {
		return core.AsError(err)
	}
	q := s.x.question(rule)
	q.Server, q.Tool, q.Arguments, q.Effect = "retort", "save_skill", arguments, core.EffectWrite.String()
	return s.x.asks(ctx, q)
}

func reasonFor(name string, replaces, computed bool) string {
	switch {
	case replaces && computed:
		return "the program replaces the skill " + name + " with code that it computes"
	case replaces:
		return "the program replaces the skill " + name
	}
	return "the program computes the code of the skill " + name
}

// writtenIn reports whether the code of a skill stands in the text of a program. Space and the signs that a string
// literal adds do not count.
func writtenIn(program, code string) bool {
	bare := strings.NewReplacer(`\n`, "", `\t`, "", `\r`, "", `\`, "", " ", "", "\n", "", "\t", "", "\r", "")
	return strings.Contains(bare.Replace(program), bare.Replace(code))
}

// keep saves the draft, unless somebody else has changed the skill since old was read.
func (s *skillFiles) keep(draft skills.Draft, old *skills.Skill) *core.Error {
	before := ""
	if old != nil {
		before = old.Version
	}
	draft.Before = &before
	saved, refused := s.x.pipeline.Skills.Save(draft)
	if refused != nil {
		return refused
	}
	s.saved[draft.Name] = true
	if refused := s.x.flight.record.skill(draft.Name, saved.Version); refused != nil {
		return refused
	}
	s.x.notes.add("saved the skill " + draft.Name + ": " + skills.Import(draft.Skill, draft.Functions))
	return nil
}

// draftOf returns a skill that has passed the gate as it is saved.
func draftOf(skill core.Skill, d core.SkillDraft, examined check.Examined, tools *core.Toolset) skills.Draft {
	draft := skills.Draft{Skill: skill, Document: skills.Document{Description: d.Description, Tags: d.Tags, Triggers: d.Triggers, Tools: map[string]string{}}}
	if d.ForUser {
		draft.Origin = skills.User
	}
	for _, f := range examined.Functions {
		draft.Functions = append(draft.Functions, described(f, skill.Language))
	}
	if !examined.Unknown {
		for _, t := range examined.Tools {
			draft.Tools[tools.Qualified(t)] = t.Pin[:min(len(t.Pin), pinSize)]
		}
	}
	return draft
}
