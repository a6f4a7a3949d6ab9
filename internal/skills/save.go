package skills

import (
	"crypto/rand"
	"errors"
	"os"
	"strings"

	"retort/internal/core"
)

// SkillDraft holds a skill to be saved. The caller has already checked its code.
type SkillDraft struct {
	core.Skill
	SkillDocument
	Origin SkillOrigin // whose skills the skill belongs to; the store's first folder if empty
	// Before names the only version that the draft may replace. If Before points to "", the draft may only create a
	// new skill. If Before is nil, the draft may replace any version.
	Before *string
}

// SaveResult describes where a skill was saved.
type SaveResult struct {
	Version   string
	Path      string // path of the skill's folder
	Origin    SkillOrigin
	Unchanged bool   // whether the version already existed, so that nothing was written
	Before    string // version that was replaced; "" if the skill is new
}

// SaveSkill durably makes a draft the current version of its skill. If saving is interrupted, the previous version is
// still complete. Earlier versions stay in the history, including those that a person has edited.
func (s *SkillStore) SaveSkill(d SkillDraft) (SaveResult, *core.Error) {
	if err := core.ValidSkillName(d.Name); err != nil {
		return SaveResult{}, err
	}
	p, err := s.findPlace(d.Origin)
	if err != nil {
		return SaveResult{}, core.AsError(err)
	}
	saved, err := p.saveSkill(d.Name, d.Before, func(before string) (skillFiles, error) { return s.composeFiles(d, before) })
	if err != nil {
		var e *core.Error
		if errors.As(err, &e) {
			return SaveResult{}, e
		}
		return SaveResult{}, core.Errorf(core.KindInternal, "skills", "the skill could not be saved: %w", err)
	}
	return saved, nil
}

// composeFiles returns the files of a draft. It keeps what a person has written in before, which is the SKILL.md that
// the draft replaces.
func (s *SkillStore) composeFiles(d SkillDraft, before string) (skillFiles, error) {
	if d.Language == "" && d.Body == "" {
		d.Body = "\n" + d.Usage + "\n" // replaces the existing text
	}
	d.KeepFrom(before)
	document, err := d.SkillDocument.renderMarkdown(d.Skill, s.words)
	if err != nil {
		return skillFiles{}, err
	}
	t := skillFiles{document: document, file: scriptFile, code: endWithNewline(d.Code)}
	switch d.Language {
	case core.Python:
		t.file = pythonFile
	case "":
		t.file, t.code = "", ""
	}
	if len(t.code) > MaxCode || len(t.document) > MaxDocument {
		return skillFiles{}, core.Errorf(
			core.KindLimit, "skills", "the skill is too large: its code may have at most %d bytes, its description at most %d", MaxCode,
			MaxDocument,
		)
	}
	return t, nil
}

// endWithNewline returns code with exactly one line break at its end.
func endWithNewline(code string) string {
	return strings.TrimRight(strings.ReplaceAll(code, "\r\n", "\n"), " \t\n") + "\n"
}

func (s *SkillStore) findPlace(o SkillOrigin) (SkillPlace, error) {
	for _, p := range s.places {
		if o == "" || p.Origin == o {
			return p, nil
		}
	}
	return SkillPlace{}, core.Errorf(
		core.KindInvalidArguments, "skills", "there is no folder for skills",
	).WithHint("choose a data directory with --home DIR")
}

// saveSkill saves a skill. It passes the current text of SKILL.md to compose, or "" if the file does not exist. It
// saves the files that compose returns.
func (p SkillPlace) saveSkill(name string, expected *string, compose func(before string) (skillFiles, error)) (SaveResult, error) {
	root, err := p.openFolder(true)
	if err != nil {
		return SaveResult{}, err
	}
	defer root.Close()
	unlock, err := p.lockPlace()
	if err != nil {
		return SaveResult{}, err
	}
	defer unlock()
	if err := p.writeIgnore(root); err != nil {
		return SaveResult{}, err
	}
	if err := makeFolder(root, name); err != nil {
		return SaveResult{}, err
	}
	if v := markedVersion(root, name); v != "" {
		if err := installVersion(root, name, v); err != nil {
			return SaveResult{}, err
		}
	}
	before, err := readFiles(root, name)
	if err != nil && !isMissing(err) {
		return SaveResult{}, err
	}
	exists := err == nil
	t, err := compose(before.document)
	if err != nil {
		return SaveResult{}, err
	}
	saved := SaveResult{Version: t.contentVersion(), Path: p.Dir + "/" + name, Origin: p.Origin}
	if exists {
		if saved.Before = before.contentVersion(); saved.Before == saved.Version && fileExists(root, name+"/"+historyFolder+"/"+saved.Version) {
			saved.Unchanged = true
			return saved, nil
		}
		if expected != nil && *expected != saved.Before {
			return SaveResult{}, errReplaced(name)
		}
		if err := storeVersion(root, name, before); err != nil {
			return SaveResult{}, err
		}
	}
	return saved, p.replaceFiles(root, name, t)
}

// replaceFiles stores a version of a skill and makes it the current version.
func (p SkillPlace) replaceFiles(root *os.Root, name string, t skillFiles) error {
	if err := storeVersion(root, name, t); err != nil {
		return err
	}
	if err := installVersion(root, name, t.contentVersion()); err != nil {
		return err
	}
	removeOldVersions(root, name, t.contentVersion())
	return nil
}

// errReplaced returns the error for a draft that may not be saved because its skill has changed since the draft was
// begun.
func errReplaced(name string) *core.Error {
	return core.Errorf(
		core.KindPolicy, "skills", "the skill %s was changed in the meantime", name,
	).WithHint("read the skill again, and apply your change to the new version")
}

// gitignoreText is the content of the .gitignore in a project's skills folder. It excludes files that should not be
// committed.
const gitignoreText = ".gitignore\n.lock\n.history/\n.saving\n.new-*\n.gone-*\n"

// writeIgnore writes a .gitignore into the skills folder of a project. It does not replace an existing one.
func (p SkillPlace) writeIgnore(root *os.Root) error {
	if p.Origin != Project || fileExists(root, ".gitignore") {
		return nil
	}
	return writeFile(root, ".gitignore", gitignoreText)
}

// removeOldVersions removes the oldest versions if there are more than maxHistory. It also removes files that
// interrupted saves left behind.
func removeOldVersions(root *os.Root, name, current string) {
	for i, v := range versionHistory(root, name) {
		if i > maxHistory && v != current {
			_ = root.RemoveAll(name + "/" + historyFolder + "/" + v)
		}
	}
	for _, dir := range []string{".", name, name + "/" + historyFolder} {
		f, err := root.Open(dir)
		if err != nil {
			continue
		}
		entries, _ := f.ReadDir(10 * maxSkills)
		_ = f.Close()
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".new-") || strings.HasPrefix(e.Name(), ".gone-") {
				_ = root.RemoveAll(dir + "/" + e.Name())
			}
		}
	}
}

// RemoveSkill deletes a skill with all its versions.
func (s *SkillStore) RemoveSkill(name string) (Skill, *core.Error) {
	skill, refused := s.Get(name, "")
	if refused != nil {
		return Skill{}, refused
	}
	p, err := s.findPlace(skill.Origin)
	if err == nil {
		err = p.removeSkill(name)
	}
	if err != nil {
		return Skill{}, core.Errorf(core.KindInternal, "skills", "the skill could not be removed: %w", err)
	}
	return skill, nil
}

func (p SkillPlace) removeSkill(name string) error {
	root, err := p.openFolder(false)
	if err != nil {
		return err
	}
	defer root.Close()
	unlock, err := p.lockPlace()
	if err != nil {
		return err
	}
	defer unlock()
	gone := ".gone-" + rand.Text()[:8]
	if err := root.Rename(name, gone); err != nil { // rename first, which is atomic, then remove
		return err
	}
	if err := syncFolder(root, "."); err != nil {
		return err
	}
	return root.RemoveAll(gone)
}
