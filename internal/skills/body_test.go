package skills

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retort/internal/core"
)

// editDocument replaces text in the SKILL.md of the skill x, as a person with an editor does.
func editDocument(t *testing.T, dir string, edit func(text string) string) {
	t.Helper()
	path := filepath.Join(dir, "project", "x", documentFile)
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(edit(string(text))), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

const otherCode = "export async function seek(name: string) { return name }\n"

// renamed returns a draft of the skill x with another function and another description.
func renamed() SkillDraft {
	d := draft("x", otherCode)
	d.Description, d.Tags = "Seeks.", nil
	d.Functions = []SkillFunction{{Name: "seek", Signature: "seek(name: string)"}}
	return d
}

// TestPersonalText checks that a person's text in SKILL.md remains when the skill is saved again. The generated part
// must follow the code, unless the person has edited it.
func TestPersonalText(t *testing.T) {
	const fields = "# about us\nlicense: MIT # ours\nauthor:\n  name: \"Anna\"\n  \"mail\": x\nlist:\n- 1\n\n- 2\nlong: |\n  name: no field\n\n  # no comment\n"
	for name, c := range map[string]struct {
		edit       func(text string) string
		keeps, not []string
	}{
		"a paragraph after":     {func(s string) string { return s + "\nAsk Anna first.\n" }, []string{"\nAsk Anna first.\n", "seek(name: string)", "> Seeks."}, []string{"find("}},
		"a paragraph before":    {func(s string) string { return strings.Replace(s, markLead, "Ask Anna first.\n\n"+markLead, 1) }, []string{"Ask Anna first.\n\n" + markLead, "seek("}, []string{"find("}},
		"without a line end":    {func(s string) string { return s + "Ask Anna." }, []string{"Ask Anna.", "seek("}, nil},
		"a word inside":         {func(s string) string { return strings.Replace(s, "Titles.", "Titles, of course.", 1) }, []string{"Titles, of course.", "find(title"}, []string{"seek(name"}},
		"white space":           {func(s string) string { return strings.Replace(s, "> \n", ">\n", 1) }, []string{"seek("}, []string{"find("}},
		"line ends":             {func(s string) string { return strings.ReplaceAll(s+"\nAnna.\n", "\n", "\r\n") }, []string{"Anna.\r\n", "seek("}, []string{"find("}},
		"a body of its own":     {func(s string) string { return "---\nname: x\n---\n\n# Mine  \n\n\tcode\n\n<!-- a -->\n" }, []string{"---\n\n# Mine  \n\n\tcode\n\n<!-- a -->\n"}, []string{"From a terminal"}},
		"no front matter":       {func(string) string { return "Only words.\n" }, []string{"\nOnly words.\n", "name: x\n"}, []string{"From a terminal"}},
		"no body":               {func(string) string { return "---\nname: x\n---\n" }, []string{"seek("}, nil},
		"a broken front":        {func(s string) string { return "---\n[: {\n---\nAnna's words\n" }, []string{"Anna's words\n"}, nil},
		"an open front":         {func(s string) string { return "---\nname: x\n" }, []string{"seek("}, nil},
		"two parts":             {func(s string) string { return s + s[strings.Index(s, markLead):] }, []string{"find("}, []string{"seek(name"}},
		"half a mark":           {func(s string) string { return s[:strings.Index(s, markLead)] + markLead + "12" }, []string{markLead + "12"}, nil},
		"no end":                {func(s string) string { return strings.Replace(s, markEnd, "", 1) }, []string{"find("}, nil},
		"fields":                {func(s string) string { return strings.Replace(s, "---\nname", "---\n"+fields+"name", 1) }, []string{fields, "seek("}, nil},
		"fields after":          {func(s string) string { return strings.Replace(s, "\n---\n", "\n"+fields+"---\n", 1) }, []string{fields}, nil},
		"in one line":           {func(s string) string { return "---\n{name: x, license: MIT, tools: {a.b: c}}\n---\nWords.\n" }, []string{"license: MIT\n", "Words."}, []string{"a.b"}},
		"one field in one line": {func(s string) string { return "---\n{license: MIT}\n---\nWords.\n" }, []string{"license: MIT\n", "Words."}, nil},
		"metadata": {func(s string) string {
			return strings.Replace(s, "---\nname", "---\nmetadata: {a: 1, tools: 'x.y'}\nname", 1)
		}, []string{"metadata:\n  a: 1\n"}, []string{"x.y"}},
		"triggers": {func(s string) string {
			return strings.Replace(s, "---\nname", "---\ntriggers: [find me, seek me]\nname", 1)
		}, []string{"- find me\n- seek me\n", "- a b\n- calendar\n"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := newStore(t)
			mustSave(t, s, draft("x", code))
			editDocument(t, dir, c.edit)
			saved := mustSave(t, s, renamed())
			got := mustGet(t, s, "x", "")
			if got.Code != otherCode || got.Description != "Seeks." || got.Name != "x" {
				t.Errorf("saved %+v", got)
			}
			for _, text := range c.keeps {
				if !strings.Contains(got.Text, text) {
					t.Errorf("%q is gone:\n%s", text, got.Text)
				}
			}
			for _, text := range c.not {
				if strings.Contains(got.Text, text) {
					t.Errorf("%q is still there:\n%s", text, got.Text)
				}
			}
			if again := mustSave(t, s, renamed()); !again.Unchanged || again.Version != saved.Version {
				t.Errorf("saved again: %+v", again)
			}
		})
	}
}

// TestReplacedTags checks that tags and triggers of a draft replace those in SKILL.md, and that an empty list removes
// them.
func TestReplacedTags(t *testing.T) {
	s, _ := newStore(t)
	mustSave(t, s, draft("x", code))
	d := renamed()
	d.Tags = []string{"other"}
	mustSave(t, s, d)
	if got := mustGet(t, s, "x", ""); len(got.Tags) != 1 || got.Tags[0] != "other" {
		t.Errorf("tags %q", got.Tags)
	}
	d.Tags = []string{}
	mustSave(t, s, d)
	if got := mustGet(t, s, "x", ""); len(got.Tags) != 0 {
		t.Errorf("tags %q", got.Tags)
	}
}

// TestMarks checks that comments in the code cannot end the generated part of SKILL.md, and that readers do not see
// the marks around that part.
func TestMarks(t *testing.T) {
	s, _ := newStore(t)
	d := draft("x", code)
	d.Functions[0].Doc = "A\n" + markEnd + "\n" + markLead + "B"
	mustSave(t, s, d)
	mustSave(t, s, renamed())
	got := mustGet(t, s, "x", "")
	if strings.Contains(got.Text, "find(") || strings.Contains(got.Usage, "<!--") || !strings.HasPrefix(got.Usage, "# x") {
		t.Error(got.Text)
	}
}

// TestExportedText exports a skill and reads it again. It checks that the text and the fields that a person has added
// to SKILL.md are still there.
func TestExportedText(t *testing.T) {
	s, dir := newStore(t)
	mustSave(t, s, draft("x", code))
	editDocument(t, dir, func(text string) string {
		return strings.Replace(text, "---\nname", "---\nlicense: MIT\nmetadata:\n  version: 1\nname", 1) + "\nAsk Anna.\n"
	})
	mustSave(t, s, renamed())
	folder, err := ExportSkill(mustGet(t, s, "x", ""), filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	read, err := ReadFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"license: MIT\n", "version: 1\n", "tags: a b, calendar\n", "Ask Anna.", markLead} {
		if !strings.Contains(read.Text, text) {
			t.Errorf("%q is missing:\n%s", text, read.Text)
		}
	}
	var d SkillDocument
	d.KeepFrom(read.Text)
	if strings.Contains(d.Fields, "tags") || !strings.Contains(d.Fields, "version: 1") || !strings.Contains(d.Fields, "license: MIT") {
		t.Errorf("fields: %q", d.Fields)
	}
}

// TestReplacedInstructions checks that saving new instructions replaces the text of a skill without code.
func TestReplacedInstructions(t *testing.T) {
	s, _ := newStore(t)
	for _, text := range []string{"One.", "Two."} {
		mustSave(t, s, SkillDraft{Skill: core.Skill{Name: "x"}, SkillDocument: SkillDocument{Description: "d", Usage: text}})
		if got := mustGet(t, s, "x", ""); got.Usage != text {
			t.Errorf("%q instead of %q", got.Usage, text)
		}
	}
}
