package skills

import (
	"strings"
	"testing"

	"retort/internal/core"
)

// FuzzDocument checks that parsing a text as SKILL.md never crashes. A document that can be parsed must stay the same
// when it is written and parsed again.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{"", "---\n---\n", "---\nname: x\ndescription: 'y: z'\ntags: [a, b]\ntools: {a.b: c}\nparameters: {f: {type: object}}\n---\n# x\n", "---\ntools: [a, b]\nmetadata: {tags: 'a, b'}\n---", "---\na: &a [*a]\n---\n", "---\n? - - - a\n---\n", "\ufeff---\r\nname: x\r\n---\r\n", "---\n{}\n---", "---\n {}\n---\n", "---\n{license: MIT}\n---\n", "---\n# a\nlicense: MIT\n---\nx"} {
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
		if strings.TrimSpace(doc.Body) != "" && !hasGenerated(doc.Body) && again.Body != endBody(doc.Body) {
			t.Errorf("the text %q became %q", doc.Body, again.Body)
		}
		if _, was, err := parseMatter(doc.Fields); err == nil {
			if _, is, err := parseMatter(again.Fields); err != nil || len(was) != len(is) {
				t.Errorf("the fields %q became %q: %v", doc.Fields, again.Fields, err)
			}
		}
		if again.Description != doc.Description || len(again.Tools) != len(doc.Tools) {
			t.Errorf("%q became %q, %v became %v\n%s", doc.Description, again.Description, doc.Tools, again.Tools, written)
		}
	})
}

func hasGenerated(body string) bool {
	_, _, ok := splitBody(body)
	return ok
}
