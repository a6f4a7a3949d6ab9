package clientfiles

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"retort/internal/devel/testenv"
)

// TestClientReference checks that docs/reference/clients.md agrees with the table of clients. With -update it writes
// the page.
func TestClientReference(t *testing.T) {
	var summary, sections strings.Builder
	for _, c := range AllClients() {
		writeClientReference(&summary, &sections, c)
	}
	page := clientPage + summary.String() + sections.String()
	file := filepath.Join("..", "..", "..", "docs", "reference", "clients.md")
	testenv.CheckGenerated(t, file, page, "go test ./internal/config/clientfiles -run TestClientReference -update", *update)
}

const clientPage = "# Clients\n\n" +
	"<!-- Written by: go test ./internal/config/clientfiles -run TestClientReference -update -->\n" + `
These are the MCP clients whose files Retort reads and changes. [Connect your client](../start/connect-your-client.md) says
how. Retort knows the fields of an entry that are listed here. It keeps other fields, but they have no effect.

If a client has several files for one scope, the first one that exists counts. Your own files are searched for below other
folders if [environment variables](environment.md) say so.

| client | name for ` + "`retort install`" + ` |
|---|---|
`

func writeClientReference(summary, sections *strings.Builder, c Client) {
	anchor := strings.ReplaceAll(strings.ToLower(c.Title), " ", "-")
	fmt.Fprintf(summary, "| [%s](#%s) | `%s` |\n", c.Title, anchor, c.Name)
	fmt.Fprintf(sections, "\n## %s\n\n| scope | file | servers are at |\n|---|---|---|\n", c.Title)
	for _, p := range c.places {
		scope := string(p.scope)
		if p.readOnly {
			scope += ", never changed"
		}
		fmt.Fprintf(sections, "| %s | %s | `%s` |\n", scope, describeFiles(p), strings.Join(p.at, "."))
	}
	fmt.Fprintf(sections, "\nFields: `%s`.\n", strings.Join(slices.Sorted(maps.Keys(c.fields)), "`, `"))
	if forms := c.forms(); len(forms) > 0 {
		fmt.Fprintf(sections, "Placeholders: %s.\n", strings.Join(forms, ", "))
	}
}

// describeFiles returns the files of a place. It names the systems if the files are at different paths there.
func describeFiles(p filePlace) string {
	var paths []string
	for _, pattern := range p.files {
		linux := shownPath("linux", pattern)
		paths = append(paths, "`"+linux+"`")
		for _, other := range []struct{ goos, title string }{{"darwin", "macOS"}, {"windows", "Windows"}} {
			if path := shownPath(other.goos, pattern); path != linux {
				paths = append(paths, other.title+": `"+path+"`")
			}
		}
	}
	return strings.Join(paths, ", ")
}

func shownPath(goos, pattern string) string {
	e := Environment{GOOS: goos, Getenv: func(string) string { return "" }, UserHome: "~", Dir: "PROJECT"}
	name, rest, _ := strings.Cut(strings.TrimPrefix(pattern, "{"), "}/")
	return filepath.ToSlash(filepath.Join(e.rootFolder(name), rest))
}

// forms returns the forms of placeholders that the client replaces.
func (d placeholderDialect) forms() (forms []string) {
	for _, f := range []struct {
		has  bool
		text string
	}{
		{d.braces, "`${VAR}` and `${VAR:-default}`"},
		{d.dollar, "`$VAR`"},
		{d.percent, "`%VAR%` on Windows"},
		{d.prefixed, "`${env:VAR}`, `${input:ID}`, `${workspaceFolder}` and the like"},
		{d.curly, "`{env:VAR}` and `{file:PATH}`"},
		{d.inHeaders, "`${VAR}` and `$VAR` in headers"},
	} {
		if f.has {
			forms = append(forms, f.text)
		}
	}
	return forms
}
