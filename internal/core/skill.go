package core

import "strings"

// Skill represents a saved program that other programs can import.
type Skill struct {
	Name     string   `json:"name"` // as ValidSkillName says
	Language Language `json:"language"`
	Version  string   `json:"version,omitempty"` // of its content
	Code     string   `json:"code"`
}

// FileName returns the path of the skill's source code as programs see it, in the workspace and in stack traces.
func (s Skill) FileName() string {
	if s.Language == Python {
		return "skills/" + s.Name + "/skill.py"
	}
	return "skills/" + s.Name + "/skill.ts"
}

// SkillModule holds a skill that has passed the check and is ready for a sandbox to evaluate.
type SkillModule struct {
	Name   string `json:"name"`             // of the skill
	Global string `json:"global,omitempty"` // its name as a member of the global skills; empty if the program does not name it there
	File   string `json:"file"`             // for stack traces
	Code   string `json:"code"`
}

const maxSkillName = 64

// notSkills lists names that skills cannot have, because file systems, a language or the workspace give them another
// meaning.
const notSkills = " con prn aux nul com0 com1 com2 com3 com4 com5 com6 com7 com8 com9 lpt0 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9 " +
	"index default skill skills servers client workspace " +
	"and as assert async await break case catch class const continue debugger def del delete do elif else enum except export extends false finally for from " +
	"function global if implements import in instanceof interface is lambda let new nonlocal not null or pass private protected prototype public raise return static super " +
	"switch this throw true try typeof var void while with yield arguments eval constructor proto none "

// ValidSkillName returns an error unless name can name a skill: lower-case letters, digits and single hyphens,
// beginning with a letter, at most 64 characters. Such a name is a valid folder on every system and, without its
// hyphens, a valid variable in every language.
func ValidSkillName(name string) *Error {
	const letters, digits = "abcdefghijklmnopqrstuvwxyz", "0123456789"
	e := Errorf(KindInvalidArguments, "skills.name", "%q cannot be the name of a skill", EscapeIllegible(clipText(name)))
	switch {
	case name == "":
		return e.WithHint("give it a name such as weekly-report")
	case len(name) > maxSkillName:
		return e.WithHint("a name has at most %d letters, digits and hyphens", maxSkillName)
	case !strings.Contains(letters, name[:1]), strings.Trim(name, letters+digits+"-") != "",
		strings.HasSuffix(name, "-"), strings.Contains(name, "--"):
		return e.WithHint("a name has lower-case letters, digits and single hyphens, and begins with a letter: %s", SkillName(name))
	case strings.Contains(notSkills, " "+name+" "):
		return e.WithHint("that word is reserved; try %s-skill", name)
	}
	return nil
}

func clipText(s string) string {
	if len(s) > 2*maxSkillName {
		return strings.ToValidUTF8(s[:2*maxSkillName], "") + "…"
	}
	return s
}

// SkillName derives a skill name from an identifier in a program: weekly-report from weeklyReport or weekly_report.
func SkillName(identifier string) string {
	var b strings.Builder
	for _, r := range clipText(identifier) {
		switch {
		case r >= 'A' && r <= 'Z':
			b.WriteByte('-')
			b.WriteRune(r - 'A' + 'a')
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		default:
			b.WriteByte('-')
		}
	}
	parts := strings.FieldsFunc(b.String(), func(r rune) bool { return r == '-' })
	for len(parts) > 0 && parts[0][0] < 'a' {
		parts = parts[1:]
	}
	name := strings.Join(parts, "-")
	if name == "" {
		return "my-skill"
	}
	return strings.TrimRight(name[:min(len(name), maxSkillName)], "-")
}

// SkillIdentifier returns the identifier of a skill in programs: weeklyReport in TypeScript, weekly_report in Python.
func SkillIdentifier(name string, lang Language) string {
	if lang == Python {
		return strings.ReplaceAll(name, "-", "_")
	}
	parts := strings.Split(name, "-")
	for i, p := range parts[1:] {
		if p[0] >= '0' && p[0] <= '9' {
			parts[i+1] = "_" + p // or a-1 and a1 were one
		} else {
			parts[i+1] = string(p[0]-'a'+'A') + p[1:]
		}
	}
	return strings.Join(parts, "")
}

// SkillDraft holds the request to save a skill.
type SkillDraft struct {
	Name         string
	Code         string
	Description  string
	Language     Language // recognized by the syntax of Code if empty
	Tags         []string
	Triggers     []string // words and phrases of questions that it is for
	Instructions string   // in the place of Code, of a skill without any
	Document     string   // SKILL.md that the skill came with: its text and unknown fields are kept
	ForUser      bool     // among the user's own, not in the project
}

// SavedSkill describes a skill that was saved.
type SavedSkill struct {
	Name      string   `json:"name"`
	Version   string   `json:"version"`
	Path      string   `json:"path"` // of its source, as programs see it
	Use       string   `json:"use,omitempty"`
	Unchanged bool     `json:"unchanged,omitempty"` // it was there already
	Warnings  []string `json:"warnings,omitempty"`
}

// SkillInfo describes one skill in a list of skills.
type SkillInfo struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Language    Language `json:"language"`
	Version     string   `json:"version"`
	Tags        []string `json:"tags,omitempty"`
	Use         string   `json:"use"`              // how a program imports it
	Origin      string   `json:"origin,omitempty"` // "project" if it came with the project's files
	Warnings    []string `json:"warnings,omitempty"`
}

// LoadedSkill holds a skill with its code and everything known about it.
type LoadedSkill struct {
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Language    Language `json:"language"`
	Code        string   `json:"code"`
	Description string   `json:"description"`
	Usage       string   `json:"usage"`
	Tags        []string `json:"tags,omitempty"`
	Tools       []string `json:"tools,omitempty"`    // that it needs
	Versions    []string `json:"versions,omitempty"` // that can be loaded, the newest first
	Origin      string   `json:"origin,omitempty"`
	Warnings    []string `json:"warnings,omitempty"`
}
