package skills

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"retort/internal/agent/templates"
	"retort/internal/core"
)

func draft(name, code string) SkillDraft {
	return SkillDraft{
		Skill: core.Skill{Name: name, Language: core.TypeScript, Code: code},
		SkillDocument: SkillDocument{
			Description: "Finds: \"events\"\n# by title", Tags: []string{"calendar", "a b"}, Tools: map[string]string{"calendar.list_events": "0123abc", "crm.x": ""},
			Functions: []SkillFunction{{Name: "find", Signature: "find(title: string, most = 5): Promise<string[]>", Doc: "Titles.\n\n@param title what", Parameters: json.RawMessage(`{"type":"object","properties":{"title":{"type":"string"},"a":{}},"required":["title"]}`)}},
		},
	}
}

func newStore(t *testing.T) (*SkillStore, string) {
	dir := t.TempDir()
	return New(builtin(), SkillPlace{Project, filepath.Join(dir, "project")}, SkillPlace{User, filepath.Join(dir, "user")}), dir
}

func mustSave(t *testing.T, s *SkillStore, d SkillDraft) SaveResult {
	t.Helper()
	saved, err := s.SaveSkill(d)
	if err != nil {
		t.Fatal(err, err.Err)
	}
	return saved
}

func mustGet(t *testing.T, s *SkillStore, name, version string) Skill {
	t.Helper()
	skill, err := s.Get(name, version)
	if err != nil {
		t.Fatal(err, err.Hint)
	}
	return skill
}

const code = "export async function find(title: string) { return title }\n"

func TestSave(t *testing.T) {
	s, dir := newStore(t)
	first := mustSave(t, s, draft("find-events", code))
	got := mustGet(t, s, "find-events", "")
	if got.Code != code || got.Version != first.Version || got.Description != "Finds: \"events\"\n# by title" || got.Edited || got.Origin != Project {
		t.Errorf("%+v", got)
	}
	if !reflect.DeepEqual(got.Tools, map[string]string{"calendar.list_events": "0123abc", "crm.x": ""}) || !slices.Equal(got.Tags, []string{"a b", "calendar"}) {
		t.Errorf("%+v", got.SkillDocument)
	}
	if again := mustSave(t, s, draft("find-events", code)); !again.Unchanged || again.Version != first.Version {
		t.Errorf("%+v", again)
	}
	second := mustSave(t, s, draft("find-events", code+"// more\n"))
	if second.Version == first.Version || second.Before != first.Version {
		t.Errorf("%+v", second)
	}
	if got := mustGet(t, s, "find-events", first.Version[:6]); got.Code != code || got.Version != first.Version {
		t.Errorf("%+v", got)
	}
	text, err := os.ReadFile(filepath.Join(dir, "project", "find-events", "SKILL.md"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/find-events.md")
	if err != nil || string(text) != string(want) {
		t.Errorf("SKILL.md:\n%s\n%v", text, err)
	}
}

// TestEdited checks that files which a person has edited become a version of the skill. This version must stay in the
// history when the skill is saved again.
func TestEdited(t *testing.T) {
	s, dir := newStore(t)
	mustSave(t, s, draft("x", code))
	file := filepath.Join(dir, "project", "x", "skill.ts")
	if err := os.WriteFile(file, []byte("export const byHand = () => 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	edited := mustGet(t, s, "x", "")
	if !edited.Edited || !strings.Contains(edited.Code, "byHand") {
		t.Errorf("%+v", edited)
	}
	mustSave(t, s, draft("x", code+"//\n"))
	if old := mustGet(t, s, "x", edited.Version); !strings.Contains(old.Code, "byHand") {
		t.Errorf("%+v", old)
	}
}

func TestPlaces(t *testing.T) {
	s, _ := newStore(t)
	d := draft("x", "// user\n")
	d.Origin = User
	mustSave(t, s, d)
	mustSave(t, s, SkillDraft{Skill: core.Skill{Name: "y", Language: core.Python, Code: "def f(): pass\n"}, Origin: User})
	mustSave(t, s, draft("x", "// project\n"))
	found, broken := s.ListSkills()
	if len(found) != 2 || len(broken) != 0 || found[0].Origin != Project || found[1].Language != core.Python {
		t.Errorf("%+v %+v", found, broken)
	}
	if _, err := s.RemoveSkill("x"); err != nil {
		t.Fatal(err)
	}
	if got := mustGet(t, s, "x", ""); got.Origin != User {
		t.Errorf("%+v", got)
	}
	if _, err := s.FindSkill("y", core.JavaScript); err == nil || !strings.Contains(err.Message, "is written in python") {
		t.Error(err)
	}
	if _, err := s.Get("xx", ""); err == nil || !strings.Contains(err.Hint, "did you mean x") {
		t.Error(err)
	}
}

// TestLanguage checks that saving a skill in another language removes the old code file.
func TestLanguage(t *testing.T) {
	s, dir := newStore(t)
	mustSave(t, s, draft("x", code))
	mustSave(t, s, SkillDraft{Skill: core.Skill{Name: "x", Language: core.Python, Code: "def f(): pass\n"}})
	if got := mustGet(t, s, "x", ""); got.Language != core.Python || len(got.Versions) != 2 {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "project", "x", "skill.ts")); err == nil {
		t.Error("skill.ts is still there")
	}
}

func TestHistoryIsBounded(t *testing.T) {
	s, _ := newStore(t)
	for i := range maxHistory + 10 {
		mustSave(t, s, draft("x", strings.Repeat("//\n", i+1)))
	}
	if got := mustGet(t, s, "x", ""); len(got.Versions) != maxHistory+1 || got.Edited {
		t.Errorf("%d versions, edited %v", len(got.Versions), got.Edited)
	}
}

func TestHostileNames(t *testing.T) {
	s, dir := newStore(t)
	for _, name := range []string{"", ".", "..", "../x", "a/b", `a\b`, "/etc", "CON", "con", "nul", "lpt1", "-x", "x-", "a--b", "1x", "x.y", ".history", "x\x00", "ünïcode", "ａ", "a b", "a\n", "index", "class", "constructor", strings.Repeat("a", 65), "x:y", "x~1", "$HOME", "servers"} {
		if _, err := s.SaveSkill(draft(name, code)); err == nil || err.Kind != core.KindInvalidArguments || err.Hint == "" {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := s.Get(name, ""); err == nil {
			t.Errorf("%q is found", name)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("%v was written", entries)
	}
	for _, name := range []string{"a", "weekly-report", "x2", "a-1", strings.Repeat("a", 64)} {
		if err := core.ValidSkillName(name); err != nil {
			t.Error(err)
		}
	}
}

// TestLinks checks that symbolic links are not followed anywhere in a skills folder.
func TestLinks(t *testing.T) {
	for _, link := range []string{"project", "project/x", "project/x/skill.ts", "project/x/SKILL.md", "project/x/.history", "project/x/.saving"} {
		s, dir := newStore(t)
		saved := mustSave(t, s, draft("x", code))
		mustSave(t, s, draft("y", code))
		secret := filepath.Join(dir, "project", "y", "secret") // which the root itself would let be reached
		if link == "project" || link == "project/x" {
			secret = filepath.Join(dir, "secret")
		}
		if err := os.Rename(filepath.Join(dir, link), secret); err != nil && !strings.HasSuffix(link, ".saving") {
			t.Fatal(err)
		}
		if _, err := os.Stat(secret); err != nil {
			if err := os.WriteFile(secret, []byte(saved.Version), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(relative(t, filepath.Dir(filepath.Join(dir, link)), secret), filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
		got, err := s.Get("x", "")
		switch {
		case strings.HasSuffix(link, ".saving"):
			if err != nil || got.Version != saved.Version {
				t.Errorf("%s: %v", link, err)
			}
		case strings.HasSuffix(link, ".history"):
			if err != nil || !got.Edited || len(got.Versions) != 0 {
				t.Errorf("%s: %+v %v", link, got, err)
			}
			if _, err := s.SaveSkill(draft("x", code+"//")); err == nil {
				t.Errorf("%s: saved over a link", link)
			}
		default:
			if err == nil {
				t.Errorf("%s was followed", link)
			}
		}
	}
}

func relative(t *testing.T, from, to string) string {
	path, err := filepath.Rel(from, to)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBroken(t *testing.T) {
	s, dir := newStore(t)
	for name, files := range map[string]map[string]string{
		"no-code": {"SKILL.md": "---\nname: x\n---\n"}, "no-end": {"SKILL.md": "---\nname: x\n", "skill.ts": code}, "no-text": {"skill.ts": "\xff"},
		"large": {"skill.ts": strings.Repeat("x", MaxCode+1)}, "bomb": {"SKILL.md": "---\na: &a [x]\nb: [*a]\n---\n", "skill.ts": code}, "bare": {"skill.py": "def f(): pass"},
	} {
		for file, content := range files {
			path := filepath.Join(dir, "project", name, file)
			_ = os.MkdirAll(filepath.Dir(path), 0o755)
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	found, broken := s.ListSkills()
	var names []string
	for _, b := range broken {
		names = append(names, b.Name)
	}
	slices.Sort(names)
	if len(found) != 2 || found[0].Name != "bare" || found[1].Name != "no-code" || found[1].Language != "" || !slices.Equal(names, []string{"bomb", "large", "no-end", "no-text"}) {
		t.Errorf("%v %v", found, broken)
	}
}

func TestExport(t *testing.T) {
	s, dir := newStore(t)
	mustSave(t, s, draft("x", code))
	folder, err := ExportSkill(mustGet(t, s, "x", ""), filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != "x" || got.Code != code || len(got.Tools) != 2 || len(got.Tags) != 3 || got.Description == "" {
		t.Errorf("%+v", got)
	}
	text, _ := os.ReadFile(filepath.Join(folder, "SKILL.md"))
	var keys []string
	front, _, _ := strings.Cut(strings.TrimPrefix(string(text), frontMatterFence), frontMatterFence)
	for line := range strings.Lines(front) {
		if key, _, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(key, " ") {
			keys = append(keys, key)
		}
	}
	if !slices.Equal(keys, []string{"name", "description", "metadata"}) {
		t.Errorf("%s", text)
	}
	if _, err := ExportSkill(got, filepath.Join(dir, "out")); err == nil {
		t.Error("exported over what is there")
	}
	if guide, err := parseDocument(Guide); err != nil || guide.Description == "" || len(guide.Description) > 1024 {
		t.Errorf("%+v %v", guide, err)
	}
}

// builtin returns a DocumentRenderer with the built-in templates.
func builtin() DocumentRenderer {
	set, refused := templates.Open("")
	if refused != nil {
		panic(refused)
	}
	return set
}
