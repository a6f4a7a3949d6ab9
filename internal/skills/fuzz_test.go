package skills

import (
	"testing"

	"retort/internal/core"
)

// FuzzDocument checks that parsing any text as SKILL.md does not crash. A document that can be parsed
// must be the same after it is written and parsed again.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{"", "---\n---\n", "---\nname: x\ndescription: 'y: z'\ntags: [a, b]\ntools: {a.b: c}\nparameters: {f: {type: object}}\n---\n# x\n", "---\ntools: [a, b]\nmetadata: {tags: 'a, b'}\n---", "---\na: &a [*a]\n---\n", "---\n? - - - a\n---\n", "\ufeff---\r\nname: x\r\n---\r\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > MaxDocument {
			return
		}
		doc, err := parseDocument(text)
		if err != nil {
			return
		}
		doc.Tags = doc.Tags[:min(len(doc.Tags), maxTags)]
		written, err := doc.renderMarkdown(core.Skill{Name: "x", Language: core.TypeScript}, builtin())
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseDocument(written)
		if err != nil {
			t.Fatalf("%v\n%s", err, written)
		}
		if again.Description != doc.Description || len(again.Tools) != len(doc.Tools) {
			t.Errorf("%q became %q, %v became %v\n%s", doc.Description, again.Description, doc.Tools, again.Tools, written)
		}
	})
}
