package search

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"retort/internal/core"
	"retort/internal/devel/testenv"
)

// shelf implements a ToolCatalog whose toolset the test sets.
type shelf struct{ current atomic.Pointer[core.Toolset] }

func (s *shelf) Toolset() *core.Toolset { return s.current.Load() }

func shelve(servers ...*core.ToolServer) *shelf {
	s := &shelf{}
	s.current.Store(core.NewToolset(servers))
	return s
}

// server returns a server with tools, each given as "name: description".
func server(name, category string, tools ...string) *core.ToolServer {
	s := &core.ToolServer{Name: name, TypeScript: strings.ReplaceAll(name, "-", ""), Python: strings.ReplaceAll(name, "-", "_"), Category: category}
	for _, text := range tools {
		tool, description, _ := strings.Cut(text, ": ")
		s.Tools = append(s.Tools, &core.Tool{Server: name, Name: tool, TypeScript: tool, Python: tool, Description: description, Category: category, Pin: text})
	}
	return s
}

func desk() *shelf {
	crm := server("my-crm", "crm", "create_contact: Creates a contact", "search_contacts: Finds contacts by name")
	crm.Cached = true
	return shelve(
		server("github", "code", "create_issue: Opens an issue", "list_issues: Lists issues"),
		server("mail", "communication", "send: Sends a message to somebody", "search: Finds messages"),
		crm,
	)
}

func start(t *testing.T, c ToolCatalog, o Options) *Searcher {
	t.Helper()
	d, err := New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	if d.semantic != nil {
		d.semantic.patience = testenv.Patience
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func search(t *testing.T, d *Searcher, q SearchQuery) SearchResult {
	t.Helper()
	a, err := d.Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if a.Total < len(a.Hits) {
		t.Errorf("%d hits of %d", len(a.Hits), a.Total)
	}
	return a
}

func names(a SearchResult) []string {
	all := []string{}
	for _, h := range a.Hits {
		all = append(all, h.Tool.Server+"."+h.Tool.Name)
	}
	return all
}

func TestSearchByWords(t *testing.T) {
	d := start(t, desk(), Options{})
	for _, c := range []struct {
		query  SearchQuery
		want   string
		total  int
		cached bool
	}{
		{SearchQuery{Text: "open an issue"}, "github.create_issue github.list_issues", 2, false},
		{SearchQuery{Text: "find contacts", Limit: 1}, "my-crm.search_contacts", 3, true},
		{SearchQuery{Text: "find", Server: "MyCRM"}, "my-crm.search_contacts", 1, true},
		{SearchQuery{Text: "find", Server: "my_crm"}, "my-crm.search_contacts", 1, true},
		{SearchQuery{Text: "find", Category: "Communication"}, "mail.search", 1, false},
		{SearchQuery{}, "github.create_issue github.list_issues mail.send mail.search my-crm.create_contact my-crm.search_contacts", 6, true},
		{SearchQuery{Text: "*", Limit: 1}, "github.create_issue", 6, false},
		{SearchQuery{Text: " ", Category: "crm"}, "my-crm.create_contact my-crm.search_contacts", 2, true},
		{SearchQuery{Text: "zzzqqq"}, "", 0, false},
	} {
		a := search(t, d, c.query)
		if got := strings.Join(names(a), " "); got != c.want || a.Total != c.total || a.Cached != c.cached || a.Warnings != nil {
			t.Errorf("%+v: %s of %d, cached %v, warnings %v", c.query, got, a.Total, a.Cached, a.Warnings)
		}
	}
}

func TestUnknownScope(t *testing.T) {
	d := start(t, desk(), Options{})
	for _, c := range []struct {
		query         SearchQuery
		message, hint string
	}{
		{SearchQuery{Server: "githbu"}, `there is no server "githbu"`, "did you mean github?"},
		{SearchQuery{Server: "salesforce"}, `there is no server "salesforce"`, "there are github, mail, my-crm"},
		{SearchQuery{Server: "--"}, `there is no server "--"`, "there are github, mail, my-crm"},
		{SearchQuery{Text: "x", Category: "codes"}, `there is no category "codes"`, "did you mean code?"},
		{SearchQuery{Text: "x", Category: "weather forecasts"}, `there is no category "weather forecasts"`, "there are code, communication, crm"},
	} {
		_, err := d.Search(t.Context(), c.query)
		want := &core.Error{Kind: core.KindInvalidArguments, Op: "discover.search", Message: c.message, Hint: c.hint}
		if diff := cmp.Diff(want, err); diff != "" {
			t.Error(diff)
		}
	}
	empty := start(t, shelve(), Options{})
	if _, err := empty.Search(t.Context(), SearchQuery{Server: "x"}); core.AsError(err).Hint != "no server is configured" {
		t.Errorf("hint %q", core.AsError(err).Hint)
	}
	if a := search(t, empty, SearchQuery{Text: "issue"}); len(a.Hits) != 0 {
		t.Errorf("%v", names(a))
	}
}

func TestSearchSeesChanges(t *testing.T) { synctest.Test(t, searchAfterAChange) }

func searchAfterAChange(t *testing.T) {
	tools := desk()
	d := start(t, tools, Options{})
	search(t, d, SearchQuery{Text: "issue"})
	tools.current.Store(core.NewToolset([]*core.ToolServer{server("jira", "projects", "find_issue: Finds an issue")}))
	if diff := cmp.Diff([]string{"jira.find_issue"}, names(search(t, d, SearchQuery{Text: "issue"}))); diff != "" {
		t.Error(diff)
	}
}

// TestLaggingIndex checks that a search returns only tools of the current toolset while the index is still being
// updated.
func TestLaggingIndex(t *testing.T) { synctest.Test(t, searchBesideABuild) }

func searchBesideABuild(t *testing.T) {
	tools := desk()
	d := start(t, tools, Options{})
	search(t, d, SearchQuery{Text: "issue"})
	next := server("github", "code", "list_issues: Lists issues")
	tools.current.Store(core.NewToolset([]*core.ToolServer{next}))
	blocked := make(chan struct{})
	d.mu.Lock()
	d.building = blocked // as if a build took for ever
	d.mu.Unlock()
	a := search(t, d, SearchQuery{Text: "issue"})
	if diff := cmp.Diff([]string{"github.list_issues"}, names(a)); diff != "" || a.Hits[0].Tool != next.Tools[0] || a.Total != 1 {
		t.Errorf("total %d, %s", a.Total, diff)
	}
}

func TestCancelledSearchDoesNotWait(t *testing.T) {
	d := start(t, desk(), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.building = make(chan struct{})
	if _, err := d.Search(ctx, SearchQuery{Text: "issue"}); err != nil {
		t.Error(err)
	}
}

func TestSearchAfterClose(t *testing.T) {
	d := start(t, desk(), Options{})
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	search(t, d, SearchQuery{Text: "issue"})
}

// TestConcurrentSearches checks searches during changes of the toolset for data races, which the race detector finds.
func TestConcurrentSearches(t *testing.T) {
	tools := desk()
	d := start(t, tools, Options{Embedder: newFake(), Dir: t.TempDir()})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 50 {
				if i == 0 {
					tools.current.Store(core.NewToolset([]*core.ToolServer{server("s", "", fmt.Sprintf("issue_%d: x", n))}))
				}
				if _, err := d.Search(t.Context(), SearchQuery{Text: "issue"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestHiddenTools checks that tools which a principal must not see are neither returned nor counted, and do not
// displace other hits.
func TestHiddenTools(t *testing.T) {
	tools := []string{"z: Once mentions a row among other things that it does"}
	for i := range 3 * maxCandidates {
		tools = append(tools, fmt.Sprintf("row_%d: Deletes a row", i))
	}
	c := shelve(server("db", "data", tools...))
	d := start(t, c, Options{})
	visible := c.Toolset().WithoutRefused(func(t *core.Tool) *core.Error {
		if t.Name == "z" {
			return nil
		}
		return core.Errorf(core.KindPolicy, "test", "hidden")
	})
	for _, text := range []string{"row", ""} {
		a := search(t, d, SearchQuery{Text: text, Tools: visible, Limit: 1})
		if diff := cmp.Diff([]string{"db.z"}, names(a)); diff != "" || a.Total != 1 {
			t.Errorf("%q: %d in all, %s", text, a.Total, diff)
		}
	}
}
