package internal_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the pages that are made from code and scripts")

const documentsPage = "docs/SOURCE-DOCUMENTS.md"

// documents lists the source documents in the order of their numbers. These are the texts with which the design of
// Retort began.
var documents = []struct{ number, title, about string }{
	{"000", "Phase 4: MCP Code Execution Engine", "An engine in five phases, its components, what it blocks and what it saves."},
	{"001", "MCP Code Execution Integration", "Programs against generated wrappers, and the sandboxes, policies, approvals and audit log around them."},
	{"002", "MCP Code Execution System", "Diagrams of the flow, one configuration block, one example and figures."},
	{"003", "Code Execution MCP", "A server with twelve tools that runs Python."},
	{"004", "MCP Code Execution System (mcp-executor)", "An orchestrator with tasks, skills and statistics, for Deno."},
}

const documentsIntro = `# The source documents, item by item

<!-- Written by go test ./internal -run TestSourceDocuments -update from the lines "#:" of testdata/script/seed-*.txtar. -->

Retort began with five documents on running programs instead of calling tools of MCP servers one by one.
The tables below list what each document shows: its examples, blocks of configuration, options and figures.
Each item is run by the script beside it, in ` + "`testdata/script`" + `, and either works as written or differs for the reason that is given.

How the policy blocks of the documents are translated is in [POLICIES.md](POLICIES.md).
`

// documentItem holds one line of the form "#: DOCUMENT | ITEM | works, or differs: REASON" in a script. It says that
// the script demonstrates an item of a source document.
type documentItem struct{ document, item, why, script string }

var (
	itemLine   = regexp.MustCompile(`^#: (00[0-4]) \| ([^|]+) \| (works|differs: ([^|]+))$`)
	txtarStart = regexp.MustCompile(`(?m)^-- .+ --$`)
)

// TestSourceDocuments checks that the page about the source documents agrees with the lines "#:" of the scripts.
func TestSourceDocuments(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "testdata/script/seed-*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	scripts := map[string]string{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		scripts[filepath.Base(file)] = string(raw)
	}
	items, problems := documentItems(scripts)
	for _, problem := range problems {
		t.Error(problem)
	}
	compareDocumentsPage(t, writeDocuments(items))
}

func compareDocumentsPage(t *testing.T, want string) {
	page := filepath.Join(root, documentsPage)
	if *update && !t.Failed() {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have, err := os.ReadFile(page); err != nil || string(have) != want {
		t.Errorf("%s is not what the scripts say (%v); run this test with -update", documentsPage, err)
	}
}

func TestSourceDocumentLines(t *testing.T) {
	for line, want := range map[string]string{
		"#: 001 | an example | works":                                   "",
		"#: 004 | flags of Deno | differs: Retort has walls of its own": "",
		"exec true":                                                       "no line",
		"#: 005 | an example | works":                                     "malformed",
		"#: 001 | an example | work":                                      "malformed",
		"#: 001 | an example":                                             "malformed",
		"#:001 | an example | works":                                      "malformed",
		"#: 001 | an example | works | and more":                          "malformed",
		"#: 001 | an example | differs":                                   "malformed",
		"#: 001 | an example | differs: ":                                 "malformed",
		"#: 001 | an example | works\n#: 001 | An  example | works":       "twice",
		"exec true\n-- file.txt --\n#: 001 | in a file | works":           "below",
		"#: 001 | an example | works\n-- f --\n#: 001 | another | works":  "below",
		"  #: 001 | an example | works":                                   "malformed",
		"#: 001 | an example | works\n#: 002 | an example | differs: why": "",
	} {
		_, problems := documentItems(map[string]string{"seed-x.txtar": line})
		if got := strings.Join(problems, "\n"); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, expected %q", line, got, want)
		}
	}
}

// documentItems returns the items that all scripts demonstrate, in the order of the scripts' names. problems
// describes malformed, missing and duplicate items.
func documentItems(scripts map[string]string) (items []documentItem, problems []string) {
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(scripts)) {
		found, wrong := scriptItems(name, scripts[name])
		problems = append(problems, wrong...)
		if len(found) == 0 && len(wrong) == 0 {
			problems = append(problems, name+": no line #: says what it shows")
		}
		for _, i := range found {
			key := i.document + strings.ToLower(strings.Join(strings.Fields(i.item), " "))
			if other := seen[key]; other != "" {
				problems = append(problems, fmt.Sprintf("%s: %q of document %s is there twice, the first time in %s", name, i.item, i.document, other))
			}
			seen[key] = name
			items = append(items, i)
		}
	}
	return items, problems
}

// scriptItems returns the items that one script demonstrates. It reads only the script section, not the files below
// it.
func scriptItems(name, text string) (items []documentItem, problems []string) {
	script, files := text, ""
	if at := txtarStart.FindStringIndex(text); at != nil {
		script, files = text[:at[0]], text[at[0]:]
	}
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\r\n")
		if !strings.HasPrefix(strings.TrimSpace(line), "#:") {
			continue
		}
		m := itemLine.FindStringSubmatch(line)
		if m == nil || m[3] != "works" && strings.TrimSpace(m[4]) == "" {
			problems = append(problems, fmt.Sprintf("%s: malformed: %q; write #: DOCUMENT | ITEM | works, or differs: REASON", name, line))
			continue
		}
		items = append(items, documentItem{m[1], strings.TrimSpace(m[2]), strings.TrimSpace(m[4]), name})
	}
	if strings.Contains(files, "\n#: ") {
		problems = append(problems, name+": a line #: is below the script section, where it shows nothing")
	}
	return items, problems
}

// writeDocuments returns the text of the page about the source documents, which has one table per document.
func writeDocuments(items []documentItem) string {
	var b strings.Builder
	b.WriteString(documentsIntro)
	for _, d := range documents {
		fmt.Fprintf(&b, "\n## %s: %s\n\n%s\n\n| item | as written | why it differs | script |\n|---|---|---|---|\n", d.number, d.title, d.about)
		for _, i := range items {
			if i.document != d.number {
				continue
			}
			how := "works"
			if i.why != "" {
				how = "differs"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | `%s` |\n", i.item, how, i.why, i.script)
		}
	}
	return b.String()
}
