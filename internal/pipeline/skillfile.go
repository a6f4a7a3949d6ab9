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

// maxSkillWrites bounds how often one program may write skill files, because each is checked like a program.
const maxSkillWrites = 20

// skillFiles handles the files that a program writes below skills/. Each file is saved as a skill, with the same
// checks as by save_skill.
type skillFiles struct {
	x *programExecution

	mu     sync.Mutex
	begun  map[string]string // what was written to a file so far, by its path
	saved  map[string]bool   // skills that this program has saved
	writes int
}

// skillFile parses a path below skills/. It returns the name and language of the skill whose code the file contains.
// ok is false unless the path is NAME.ts, NAME.js, NAME.mjs, NAME.py, NAME/skill.ts or NAME/skill.py.
func skillFile(name string) (skill string, lang core.Language, ok bool) {
	languages := map[string]core.Language{".ts": core.TypeScript, ".js": core.TypeScript, ".mjs": core.TypeScript, ".py": core.Python}
	lang, ok = languages[path.Ext(name)]
	skill = strings.TrimSuffix(name, path.Ext(name))
	if folder, file, nested := strings.Cut(skill, "/"); nested {
		skill, ok = folder, ok && file == "skill" && path.Ext(name) != ".js" && path.Ext(name) != ".mjs"
	}
	return strings.ReplaceAll(skill, "_", "-"), lang, ok
}

// writeSkillFile saves a file that a program writes below skills/. An empty file is not saved yet, because open in
// Python and Node first writes nothing. Appended data is added to what the program has written before.
func (s *skillFiles) writeSkillFile(ctx context.Context, name, shown string, data []byte, appends bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	refused := s.addSkill(ctx, name, data, appends)
	if refused == nil {
		return nil
	}
	s.x.recordRefusal(core.ToolCall{Server: "retort", Tool: "save_skill"}, refused)
	e := *refused
	e.Message = "EACCES: " + core.EscapeIllegible(clippedScope(shown)) + ": " + e.Message
	return &e
}

func (s *skillFiles) addSkill(ctx context.Context, name string, data []byte, appends bool) *core.Error {
	if refused := s.checkPermitted(); refused != nil {
		return refused
	}
	skill, lang, ok := skillFile(name)
	if !ok {
		return core.Errorf(core.KindPolicy, "skills.write", "only the code of a skill can be written to ./skills/").
			WithHint("write to ./skills/NAME.ts or ./skills/NAME.py; to set a description, tags and triggers, use save_skill")
	}
	before, begun := s.begun[name]
	if appends && !begun {
		return core.Errorf(
			core.KindPolicy, "skills.write", "programs cannot append to a skill",
		).WithHint("write the whole code of the skill in a single write")
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
		return core.Errorf(core.KindLimit, "skills.write", "a program may write skills at most %d times", maxSkillWrites)
	}
	return s.saveDraft(ctx, core.SkillDraft{Name: skill, Language: lang, Code: code})
}

// checkPermitted returns an error if the policy forbids all changes, or if the program may not use the whole
// workspace. A policy level or a request that restricts a program's files therefore also forbids writing skills.
func (s *skillFiles) checkPermitted() *core.Error {
	if rule := s.x.pipeline.Policy.ReadOnly(); rule != "" {
		return core.Errorf(core.KindPolicy, "skills.write", "skills cannot be saved: %s", rule)
	}
	if s.x.fileRestriction() != nil {
		return core.Errorf(
			core.KindPolicy, "skills.write", "this program is restricted to certain files, so it cannot save skills",
		).WithHint("use the tool save_skill to save the skill")
	}
	return nil
}

// saveDraft saves a skill from a draft, with the same checks as Pipeline.SaveSkill. The description becomes the first
// line of the code's first comment. The other properties of an existing skill are kept.
func (s *skillFiles) saveDraft(ctx context.Context, d core.SkillDraft) *core.Error {
	p := s.x.pipeline
	if !utf8.ValidString(d.Code) {
		return core.Errorf(core.KindSyntax, "skills.write", "the code is not UTF-8 text")
	}
	old, refused := s.findExisting(d.Name)
	if refused != nil {
		return refused
	}
	if old != nil {
		d.Description, d.Tags, d.Triggers = old.Description, old.Tags, old.Triggers
	}
	d.Description = cmp.Or(skills.FirstComment(d.Code), d.Description, "Saved by a program.")
	skill, refused := p.completeDraft(&d)
	if refused != nil {
		return refused
	}
	if refused := p.refuseForeign(core.Skill{Code: skill.Code + "\n" + d.Description}); refused != nil {
		return refused
	}
	examined, tools, refused := p.examineSkill(ctx, skill)
	if refused != nil {
		return refused
	}
	if s.x.isDryRun() || old != nil && old.Language == skill.Language && strings.TrimSpace(old.Code) == strings.TrimSpace(skill.Code) {
		return nil
	}
	if refused := s.approveSave(ctx, d, old); refused != nil {
		return refused
	}
	return s.storeDraft(draftOf(skill, d, examined, tools), old)
}

// findExisting returns the existing skill that would be replaced or hidden if a program wrote a skill of this name.
// It returns nil if no such skill exists. If the skill cannot be read, it returns an error, so that nothing is replaced.
func (s *skillFiles) findExisting(name string) (*skills.Skill, *core.Error) {
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

// approveSave asks for approval in the cases in which save_skill would. Two more cases count as high risk: the
// program replaces a skill that it has not saved itself, or the code does not appear in the program's own text and so
// may come from a server's answer.
func (s *skillFiles) approveSave(ctx context.Context, d core.SkillDraft, old *skills.Skill) *core.Error {
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
	q := s.x.newQuestion(rule)
	q.Server, q.Tool, q.Arguments, q.Effect = "retort", "save_skill", arguments, core.EffectWrite.String()
	_, refused := s.x.askApproval(ctx, q)
	return refused
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

// writtenIn reports whether a skill's code is written in a program's text. It ignores white space, and the characters
// that are added when code is written as a string literal, such as backslashes.
func writtenIn(program, code string) bool {
	bare := strings.NewReplacer(`\n`, "", `\t`, "", `\r`, "", `\`, "", " ", "", "\n", "", "\t", "", "\r", "")
	return strings.Contains(bare.Replace(program), bare.Replace(code))
}

// storeDraft saves the draft of a skill. It returns an error if the skill is no longer the version old, which the
// caller has read before. If old is nil, the skill must not exist.
func (s *skillFiles) storeDraft(draft skills.SkillDraft, old *skills.Skill) *core.Error {
	before := ""
	if old != nil {
		before = old.Version
	}
	draft.Before = &before
	saved, refused := s.x.pipeline.Skills.SaveSkill(draft)
	if refused != nil {
		return refused
	}
	if !s.saved[draft.Name] {
		s.x.changes.skills.Add(1)
	}
	s.saved[draft.Name] = true
	if refused := s.x.recordSkill(draft.Name, saved.Version); refused != nil {
		return refused
	}
	s.x.notes.addWarning("saved the skill " + draft.Name + ": " + skills.ImportLine(draft.Skill, draft.Functions))
	return nil
}

// draftOf returns the draft that is stored for a skill which has passed its check. The draft includes what the check
// has found out: the skill's functions and tools.
func draftOf(skill core.Skill, d core.SkillDraft, examined check.SkillCheck, tools *core.Toolset) skills.SkillDraft {
	draft := skills.SkillDraft{
		Skill:         skill,
		SkillDocument: skills.SkillDocument{Description: d.Description, Tags: d.Tags, Triggers: d.Triggers, Tools: map[string]string{}},
	}
	if d.Document != "" {
		draft.KeepFrom(d.Document)
	}
	if d.ForUser {
		draft.Origin = skills.User
	}
	for _, f := range examined.Functions {
		draft.Functions = append(draft.Functions, describeFunction(f, skill.Language))
	}
	if !examined.Unknown {
		for _, t := range examined.Tools {
			draft.Tools[tools.QualifiedName(t)] = t.Pin[:min(len(t.Pin), pinSize)]
		}
	}
	return draft
}
