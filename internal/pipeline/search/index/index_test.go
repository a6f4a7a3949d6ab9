package index

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"retort/internal/core"
)

// server returns a server with tools, each given as "name: description".
func server(name string, tools ...string) *core.ToolServer {
	s := &core.ToolServer{Name: name, TypeScript: name, Python: name}
	for _, text := range tools {
		tool, description, _ := strings.Cut(text, ": ")
		s.Tools = append(s.Tools, &core.Tool{Server: name, Name: tool, Description: description, Pin: text, Category: "other"})
	}
	return s
}

func indexOf(servers ...*core.ToolServer) *ToolIndex {
	x := New()
	x.UpdateTools(core.NewToolset(servers))
	return x
}

func desk() *ToolIndex {
	crm := server("crm", "create_contact: Creates a contact person", "search_contacts: Finds contact persons by name", "delete_contact: Removes a contact")
	crm.Tools[1].InputSchema = json.RawMessage(`{"properties":{"company":{"description":"employer of the person"}}}`)
	crm.Tools[0].Category = "crm"
	return indexOf(
		crm,
		server("github", "create_issue: Opens a new issue in a repository", "list_issues: Lists issues in a repository", "create_webhook: Registers a webhook", "who_am_i: Tells the account"),
		server("gitlab", "list_issues: Lists issues of a project", "list_merge_requests: Lists merge requests"),
		server("mail", "sendMessage: Sends an e-mail message", "searchMessages: Finds messages by sender or subject"),
	)
}

func names(hits []SearchHit) []string {
	all := []string{}
	for _, h := range hits {
		all = append(all, h.Tool.Server+"."+h.Tool.Name)
	}
	return all
}

func TestSearchPutsFirst(t *testing.T) {
	x := desk()
	for query, want := range map[string]string{
		"create an issue":                     "github.create_issue",
		"creating issues":                     "github.create_issue",
		"list github issues":                  "github.list_issues",
		"list the issues of a project":        "gitlab.list_issues",
		"send mail":                           "mail.sendMessage",
		"send_message":                        "mail.sendMessage",
		"find people by employer":             "crm.search_contacts",
		"company":                             "crm.search_contacts",
		"web hook":                            "github.create_webhook",
		"weebhook":                            "github.create_webhook",
		"register webhok":                     "github.create_webhook",
		"repositry list":                      "github.list_issues",
		"repo":                                "github.list_issues",
		"mergerequests":                       "gitlab.list_merge_requests",
		"gitlab.list_issues":                  "gitlab.list_issues",
		"GitLab: list issues":                 "gitlab.list_issues",
		"github__listIssues":                  "github.list_issues",
		"who am i":                            "github.who_am_i",
		"delete the contact":                  "crm.delete_contact",
		strings.Repeat("x", 200) + " webhook": "github.create_webhook",
		"\x00\xff webhook \u202e":             "github.create_webhook",
		"please could you help me with a webhook": "github.create_webhook",
	} {
		hits, total := x.Search(query, SearchFilter{}, 3)
		if len(hits) == 0 || total < len(hits) || names(hits)[0] != want {
			t.Errorf("%q finds %v of %d, want %s first", query, names(hits), total, want)
		}
	}
}

func TestSearchFindsNothing(t *testing.T) {
	for _, query := range []string{"", "   ", "?!", "\xff", "zzzzqqqq", "the of"} {
		if hits, total := desk().Search(query, SearchFilter{}, 10); len(hits) != 0 || total != 0 {
			t.Errorf("%q finds %v", query, names(hits))
		}
	}
	if hits, total := New().Search("issue", SearchFilter{}, 10); len(hits)+total != 0 {
		t.Error("an empty index finds something")
	}
}

func TestExactNamesComeFirst(t *testing.T) {
	x := indexOf(
		server("a", "get: x", "search_search_everything: search search search get get"),
		server("search", "get: y"),
		server("z", "search: z"),
	)
	hits, _ := x.Search("search", SearchFilter{}, 0)
	if got := names(hits); got[0] != "z.search" || !hits[0].Exact || hits[1].Exact {
		t.Errorf("search finds %v", got)
	}
	hits, _ = x.Search("search get", SearchFilter{}, 0)
	if got := names(hits); got[0] != "search.get" {
		t.Errorf("search get finds %v", got)
	}
}

func TestFilters(t *testing.T) {
	x := desk()
	hits, total := x.Search("list issues", SearchFilter{Server: "gitlab"}, 1)
	if diff := cmp.Diff([]string{"gitlab.list_issues"}, names(hits)); diff != "" || total != 2 {
		t.Errorf("total %d, %s", total, diff)
	}
	hits, total = x.Search("contact issue message", SearchFilter{Category: "crm"}, 10)
	if diff := cmp.Diff([]string{"crm.create_contact"}, names(hits)); diff != "" || total != 1 {
		t.Errorf("total %d, %s", total, diff)
	}
}

func TestEqualScoresAreOrderedByName(t *testing.T) {
	x := indexOf(server("a", "c: alike", "b: alike", "a: alike"), server("b", "a: alike"))
	for limit := 1; limit <= 4; limit++ {
		hits, total := x.Search("alike", SearchFilter{}, limit)
		if diff := cmp.Diff([]string{"a.a", "a.b", "a.c", "b.a"}[:limit], names(hits)); diff != "" || total != 4 {
			t.Errorf("limit %d: total %d, %s", limit, total, diff)
		}
	}
}

// TestLimitKeepsTheBest checks that a limited search returns the first hits of an unlimited one.
func TestLimitKeepsTheBest(t *testing.T) {
	x := New()
	x.UpdateTools(synthetic(3_000))
	for _, q := range benchQueries()[:20] {
		all, total := x.Search(q, SearchFilter{}, 0)
		for _, limit := range []int{1, 2, 7, 100} {
			hits, n := x.Search(q, SearchFilter{}, limit)
			if diff := cmp.Diff(names(all)[:min(limit, len(all))], names(hits)); diff != "" || n != total {
				t.Fatalf("%q limit %d: %s", q, limit, diff)
			}
		}
	}
}

// TestUpdateIsLikeBuilding checks that an index updated several times gives the same hits as a new index.
func TestUpdateIsLikeBuilding(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	pool := synthetic(400)
	updated := New()
	for round := range 12 {
		var servers []*core.ToolServer
		for _, s := range pool.Servers {
			c := &core.ToolServer{Name: s.Name}
			for _, tool := range s.Tools {
				switch r.IntN(10) {
				case 0, 1, 2:
					continue
				case 3:
					changed := *tool
					changed.Description += " " + spell(r.Uint64N(1_000))
					changed.Pin = fmt.Sprint(round, tool.Name)
					tool = &changed
				}
				c.Tools = append(c.Tools, tool)
			}
			servers = append(servers, c)
		}
		ts := core.NewToolset(servers)
		updated.UpdateTools(ts)
		built := New()
		built.UpdateTools(ts)
		sameAnswers(t, built, updated)
	}
	updated.UpdateTools(core.NewToolset(nil))
	if s := updated.current.Load(); len(s.words.words)+len(s.words.stems)+len(s.docs)+len(s.exact) != 0 {
		t.Error("an emptied index keeps something")
	}
}

func sameAnswers(t *testing.T, want, got *ToolIndex) {
	t.Helper()
	for _, q := range append(benchQueries()[:30], "stamechanqk", "bakcek") {
		a, n := want.Search(q, SearchFilter{}, 20)
		b, m := got.Search(q, SearchFilter{}, 20)
		if diff := cmp.Diff(names(a), names(b)); diff != "" || n != m {
			t.Fatalf("%q: %d and %d, %s", q, n, m, diff)
		}
		for i := range a {
			if a[i].Score != b[i].Score {
				t.Fatalf("%q: %s scores %v and %v", q, a[i].Tool.Name, a[i].Score, b[i].Score)
			}
		}
	}
}

// TestUpdateReadsOnlyWhatChanged checks that a tool with an unchanged pin is not analysed again, although searches
// return the tool of the new toolset.
func TestUpdateReadsOnlyWhatChanged(t *testing.T) {
	x := indexOf(server("s", "a: apple", "b: banana"))
	next := server("s", "a: apple", "b: banana")
	next.Tools[0].Description = "unread"
	next.Tools[1].Description, next.Tools[1].Pin = "cherry", "new"
	x.UpdateTools(core.NewToolset([]*core.ToolServer{next}))
	for query, want := range map[string]int{"apple": 1, "unread": 0, "banana": 0, "cherry": 1} {
		if _, total := x.Search(query, SearchFilter{}, 10); total != want {
			t.Errorf("%q finds %d tools, want %d", query, total, want)
		}
	}
	if hits, _ := x.Search("apple", SearchFilter{}, 1); hits[0].Tool != next.Tools[0] {
		t.Error("the index hands out a tool of the old toolset")
	}
}

// TestWordsByLikeness checks each way in which a word that no tool contains can find a tool: as two words, as a
// prefix, or with typing errors.
func TestWordsByLikeness(t *testing.T) {
	x := indexOf(
		server("a", "mount: a filesystem", "open: the file", "restart: a system"),
		server("b", "who_am_i: account", "poll: notifications arriving", "calculate_tax: x"),
	)
	for query, want := range map[string]string{
		"file system":   "a.mount a.open a.restart", // two words for one
		"pollarriving":  "b.poll",                   // one word for two
		"am i":          "b.who_am_i",               // stop words count in names
		"notifcatoins":  "b.poll",                   // two edits
		"acount":        "b.who_am_i",               // one
		"calc":          "b.calculate_tax",          // a beginning
		"nootifcatoins": "",                         // three edits
	} {
		hits, _ := x.Search(query, SearchFilter{}, 0)
		got := names(hits)
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%q finds %v, want %s", query, got, want)
		}
	}
}

func TestUpdateKeepsTwins(t *testing.T) {
	x := New()
	for range 3 {
		s := server("s", "same: twin", "same: twin", "other: x")
		x.UpdateTools(core.NewToolset([]*core.ToolServer{s}))
		if _, total := x.Search("twin", SearchFilter{}, 10); total != 2 {
			t.Fatalf("%d tools", total)
		}
	}
}

func TestHostileTools(t *testing.T) {
	long := strings.Repeat("word ", 200_000)
	s := server("hostile", "../../etc: path", "same: first", "same: second", "\x00\x1b[31m: control", "big: "+long, ": no name")
	s.Tools[0].InputSchema = json.RawMessage(`{"properties":` + strings.Repeat(`{"a":`, 10_000))
	s.Tools[1].InputSchema = json.RawMessage(`"no object"`)
	x := indexOf(s)
	for query, want := range map[string]int{"etc": 1, "first": 1, "second": 1, "word": 1, "hostile": 6} {
		if _, total := x.Search(query, SearchFilter{}, 10); total != want {
			t.Errorf("%q finds %d tools, want %d", query, total, want)
		}
	}
}

// TestSearchDuringUpdates checks searches during updates for consistent results and, with the race detector, for data
// races.
func TestSearchDuringUpdates(t *testing.T) {
	x := New()
	sets := []*core.Toolset{synthetic(200), synthetic(300), core.NewToolset(nil)}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, q := range benchQueries() {
				hits, total := x.Search(q, SearchFilter{}, 5)
				if len(hits) > total {
					t.Error("more hits than there are")
				}
			}
		})
	}
	for i := range 30 {
		x.UpdateTools(sets[i%len(sets)])
	}
	wg.Wait()
}

func FuzzSearch(f *testing.F) {
	x := desk()
	for _, seed := range []string{"create issue", "github__list_issues", "天气", "\xff", "web hook", strings.Repeat("a ", 100), "é", "repositoryrepository"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		hits, total := x.Search(query, SearchFilter{}, 5)
		if len(hits) > 5 || total < len(hits) {
			t.Fatalf("%d hits of %d", len(hits), total)
		}
		again, _ := x.Search(query, SearchFilter{}, 5)
		if !slices.Equal(hits, again) {
			t.Fatal("the second answer differs")
		}
		for _, h := range hits {
			if !(h.Score >= 0) {
				t.Fatalf("score %v", h.Score)
			}
		}
	})
}
