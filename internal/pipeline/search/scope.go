package search

import (
	"slices"
	"strings"
	"unicode"

	"retort/internal/core"
	"retort/internal/pipeline/search/index"
)

// maxNamed bounds how many names of servers or categories an error's hint lists.
const maxNamed = 20

// newFilter returns the filter for a query's server and category.
func newFilter(tools *core.Toolset, q SearchQuery) (index.SearchFilter, error) {
	var f index.SearchFilter
	if q.Server != "" {
		s, ok := findServer(tools, q.Server)
		if !ok {
			return f, unknownError("server", q.Server, serverNames(tools))
		}
		f.Server = s.Name
	}
	if q.Category != "" {
		all := toolCategories(tools)
		at := slices.IndexFunc(all, func(c string) bool { return foldName(c) == foldName(q.Category) })
		if at < 0 {
			return f, unknownError("category", q.Category, all)
		}
		f.Category = all[at]
	}
	return f, nil
}

// findServer finds a server by any spelling, ignoring case and punctuation.
func findServer(tools *core.Toolset, name string) (*core.ToolServer, bool) {
	if s, ok := tools.FindServer(name); ok {
		return s, true
	}
	want := foldName(name)
	for _, s := range tools.Servers {
		if want != "" && (foldName(s.Name) == want || foldName(s.TypeScript) == want) {
			return s, true
		}
	}
	return nil, false
}

func unknownError(what, name string, known []string) *core.Error {
	e := core.Errorf(core.KindInvalidArguments, "discover.search", "there is no %s %q", what, name)
	if len(known) == 0 {
		return e.WithHint("no server is configured")
	}
	if near := core.NearestNames(name, known, 3); len(near) > 0 {
		return e.WithHint("did you mean %s?", strings.Join(near, ", "))
	}
	rest := ""
	if len(known) > maxNamed {
		known, rest = known[:maxNamed], ", …"
	}
	return e.WithHint("there are %s%s", strings.Join(known, ", "), rest)
}

func serverNames(tools *core.Toolset) []string {
	names := make([]string, len(tools.Servers))
	for i, s := range tools.Servers {
		names[i] = s.Name
	}
	return names
}

// toolCategories returns all categories of the tools, sorted.
func toolCategories(tools *core.Toolset) []string {
	seen := map[string]bool{}
	var all []string
	for _, s := range tools.Servers {
		for _, t := range s.Tools {
			if t.Category != "" && !seen[t.Category] {
				seen[t.Category] = true
				all = append(all, t.Category)
			}
		}
	}
	slices.Sort(all)
	return all
}

// foldName returns the letters and digits of a name, in lower case. Names that differ only in other characters or in
// case count as equal.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}
