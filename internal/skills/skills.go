// Package skills stores skills, which are programs saved for later use. Each skill is a folder that a person could
// have written: skills/<name>/SKILL.md and skill.ts or skill.py, with earlier versions in .history. The package never
// parses, runs or checks the code. Callers must check a skill each time they use it, because a person may have edited
// the files.
package skills

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"retort/internal/agent/templates"
	"retort/internal/base/seal"
	"retort/internal/core"
)

// Maximum sizes of a skill's files, in bytes.
const (
	MaxCode     = 256 << 10
	MaxDocument = 64 << 10
)

const (
	maxSkills  = 2000 // maximum number of folders that are read in one skills folder
	maxHistory = 20   // maximum number of old versions of a skill that are kept besides the current one
)

// SkillOrigin says whether a skill belongs to a project or to a user.
type SkillOrigin string

// Values of SkillOrigin. If a project and a user have skills with the same name, the project's skill is used.
const (
	Project SkillOrigin = "project" // skills next to the configuration file; a team shares them by committing them
	User    SkillOrigin = "user"
)

// Skill holds a skill as it is stored on disk.
type Skill struct {
	core.Skill
	SkillDocument
	Text     string // text of SKILL.md
	Origin   SkillOrigin
	Modified time.Time
	Edited   bool     // whether the files were changed other than by SaveSkill
	Versions []string // versions in the history, newest first; they include the current version unless Edited is set
}

// SkillPlace describes a skills folder, in which each folder is a skill.
type SkillPlace struct {
	Origin SkillOrigin
	Dir    string
}

// SkillStore reads and writes the skills of several skills folders. If several skills have the same name, the one in
// the first folder is used. A SkillStore is safe for concurrent use, and several stores may use the same folders.
type SkillStore struct {
	places []SkillPlace
	words  DocumentRenderer
}

// DocumentRenderer renders the part of SKILL.md below the front matter.
type DocumentRenderer interface {
	Render(name templates.TemplateName, data any) (string, *core.Error)
}

// New returns a store for the skills in these folders. A missing folder is created when something is saved in it.
func New(words DocumentRenderer, places ...SkillPlace) *SkillStore {
	return &SkillStore{slices.DeleteFunc(slices.Clone(places), func(p SkillPlace) bool { return p.Dir == "" }), words}
}

// BrokenFolder describes a folder that should contain a skill but cannot be read, and why.
type BrokenFolder struct {
	Name   string
	Origin SkillOrigin
	Err    *core.Error
}

// ListSkills returns all skills, sorted by name, and the folders that cannot be read.
func (s *SkillStore) ListSkills() (found []Skill, broken []BrokenFolder) {
	seen := map[string]bool{}
	for _, p := range s.places {
		for _, name := range p.skillNames() {
			if seen[name] {
				continue
			}
			seen[name] = true
			skill, err := p.readSkill(name)
			switch {
			case err == nil:
				found = append(found, skill)
			case !isMissing(err):
				broken = append(broken, BrokenFolder{name, p.Origin, core.AsError(err)})
			}
		}
	}
	slices.SortFunc(found, func(a, b Skill) int { return cmp.Compare(a.Name, b.Name) })
	return found, broken
}

// skillNames returns the names of the folders and files that may be skills.
func (p SkillPlace) skillNames() []string {
	root, err := p.openFolder(false)
	if err != nil {
		return nil
	}
	defer root.Close()
	dir, err := root.Open(".")
	if err != nil {
		return nil
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(maxSkills)
	var names []string
	for _, e := range entries {
		if core.ValidSkillName(e.Name()) == nil {
			names = append(names, e.Name())
		} else if name := plainName(e.Name()); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// Get returns the current version of a skill, or another version if version is not empty. A prefix of a version is
// enough.
func (s *SkillStore) Get(name, version string) (Skill, *core.Error) {
	if err := core.ValidSkillName(name); err != nil {
		return Skill{}, err
	}
	for _, p := range s.places {
		skill, err := p.readSkill(name)
		if err == nil && version != "" {
			skill, err = p.readVersion(skill, version)
		}
		if err == nil {
			return skill, nil
		}
		if !isMissing(err) {
			return Skill{}, core.AsError(err)
		}
	}
	return Skill{}, s.absentError(name)
}

// IsAbsent reports whether an error of Get means that the skill, or its version, does not exist.
func IsAbsent(err *core.Error) bool { return isMissing(err) }

func (s *SkillStore) absentError(name string) *core.Error {
	e := core.Errorf(core.KindType, "skills", "there is no skill %q", name)
	e.Err = fs.ErrNotExist
	found, _ := s.ListSkills()
	var names []string
	for _, f := range found {
		names = append(names, f.Name)
	}
	if near := core.NearestNames(name, names, 2); len(near) > 0 {
		return e.WithHint("did you mean %s? To see all skills, use list_skills", strings.Join(near, " or "))
	}
	return e.WithHint("list the skills with list_skills, or save one with save_skill")
}

// FindSkill returns the code of a skill for programs in a language. It returns an error if the skill is written in a
// different language.
func (s *SkillStore) FindSkill(name string, lang core.Language) (core.Skill, *core.Error) {
	found, err := s.Get(name, "")
	if err != nil {
		return core.Skill{}, err
	}
	if lang == core.JavaScript {
		lang = core.TypeScript
	}
	if found.Language == "" {
		return core.Skill{}, core.Errorf(
			core.KindType, "skills", "the skill %s contains only instructions, so there is no code to import", name,
		).WithHint("read it with load_skill")
	}
	if found.Language != lang {
		return core.Skill{}, core.Errorf(
			core.KindType, "skills", "the skill %s is written in %s, so a program in %s cannot import it", name,
			found.Language, lang,
		).
			WithHint("write the program in %s; or read it with load_skill and save it in %s under another name", found.Language, lang)
	}
	return found.Skill, nil
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// readSkill reads the current files of a skill. While a save is unfinished, or after one was interrupted, it reads the
// files that this save installs.
func (p SkillPlace) readSkill(name string) (Skill, error) {
	root, err := p.openFolder(false)
	if err != nil {
		return Skill{}, err
	}
	defer root.Close()
	if err := isFolder(root, name); isMissing(err) {
		return p.readPlain(root, name)
	} else if err != nil {
		return Skill{}, err
	}
	if markedVersion(root, name) != "" {
		p.finishSave(name)
	}
	text, err := readPair(root, name)
	if err != nil {
		return Skill{}, err
	}
	skill, err := p.parseSkill(name, text)
	if err != nil {
		return Skill{}, err
	}
	skill.Versions = versionHistory(root, name)
	skill.Edited = !slices.Contains(skill.Versions, skill.Version)
	if info, err := root.Lstat(name + "/" + text.file); err == nil {
		skill.Modified = info.ModTime().UTC()
	}
	return skill, nil
}

// readPlain reads a skill that is a single file in the skills folder. Such a skill has no SKILL.md and counts as
// edited by hand.
func (p SkillPlace) readPlain(root *os.Root, name string) (Skill, error) {
	t, err := readPlain(root, name)
	if err != nil {
		return Skill{}, err
	}
	skill, err := p.parseSkill(name, t)
	if err != nil {
		return Skill{}, err
	}
	skill.Edited, skill.Description = true, FirstComment(t.code)
	if info, err := root.Lstat(t.file); err == nil {
		skill.Modified = info.ModTime().UTC()
	}
	return skill, nil
}

// FirstComment returns the first line of the first comment or docstring in a program, shortened. It returns "" if the
// program has none.
func FirstComment(code string) string {
	for line := range strings.Lines(code) {
		said := strings.TrimSpace(line)
		for _, lead := range []string{"/**", "/*", "*/", "*", "//", "#", `"""`, "'''"} {
			if rest, ok := strings.CutPrefix(said, lead); ok {
				said = strings.Trim(rest, " */\"'")
				if said != "" && !strings.HasPrefix(said, "@") {
					return said[:min(len(said), maxWord)]
				}
			}
		}
	}
	return ""
}

func (p SkillPlace) readVersion(current Skill, version string) (Skill, error) {
	if version == current.Version {
		return current, nil
	}
	root, err := p.openFolder(false)
	if err != nil {
		return Skill{}, err
	}
	defer root.Close()
	for _, v := range current.Versions {
		if len(version) >= 4 && strings.HasPrefix(v, version) {
			text, err := readPair(root, current.Name+"/"+historyFolder+"/"+v)
			if err != nil {
				return Skill{}, err
			}
			old, err := p.parseSkill(current.Name, text)
			old.Versions = current.Versions
			return old, err
		}
	}
	return Skill{}, core.Errorf(core.KindInvalidArguments, "skills", "the skill %s has no version %q", current.Name, version).
		WithHint("existing versions: %s", strings.Join(append([]string{current.Version}, current.Versions...), ", "))
}

// parseSkill returns the skill with the given name and files.
func (p SkillPlace) parseSkill(name string, t skillFiles) (Skill, error) {
	doc, err := parseDocument(t.document)
	if err != nil {
		return Skill{}, core.Errorf(
			core.KindSyntax, "skills", "the skill %s: SKILL.md: %v", name, err,
		).WithHint("fix the file, or save the skill again")
	}
	return Skill{
		Skill:         core.Skill{Name: name, Language: t.codeLanguage(), Code: t.code, Version: t.contentVersion()},
		SkillDocument: doc, Text: t.document, Origin: p.Origin,
	}, nil
}

// openFolder opens a skills folder. It refuses a symbolic link.
func (p SkillPlace) openFolder(create bool) (*os.Root, error) {
	if create {
		if err := os.MkdirAll(p.Dir, 0o755); err != nil {
			return nil, err
		}
	}
	info, err := os.Lstat(p.Dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, core.Errorf(core.KindPolicy, "skills", "the folder of the skills is a link or a file; it is not followed")
	}
	return seal.OpenRoot(p.Dir)
}
