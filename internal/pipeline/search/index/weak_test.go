package index

import (
	"slices"
	"testing"

	"retort/internal/core"
)

// TestWeakHits checks that leaving out weak hits costs no question its tool, hardly a pair of questions one of its two
// tools, and shortens the list.
func TestWeakHits(t *testing.T) {
	const limit = 10
	c := loadCollection(t, "testdata/tools.jsonl", "testdata/queries.jsonl")
	x := New()
	x.UpdateTools(c.tools)
	count := func(query string, wanted ...question) (found, kept, shown int) {
		hits, _ := x.Search(query, SearchFilter{}, limit)
		strong := slices.DeleteFunc(slices.Clone(hits), func(h SearchHit) bool { return h.Weak })
		for _, q := range wanted {
			isGold := func(h SearchHit) bool { return slices.Contains(q.Any, c.ids[h.Tool]) }
			if slices.ContainsFunc(hits, isGold) {
				found++
			}
			if slices.ContainsFunc(strong, isGold) {
				kept++
			}
		}
		return found, kept, len(strong)
	}
	var one, two struct{ found, kept, shown int }
	for i, q := range c.questions {
		found, kept, shown := count(q.Query, q)
		one.found, one.kept, one.shown = one.found+found, one.kept+kept, one.shown+shown
		for _, distance := range []int{1, 17, 50} {
			other := c.questions[(i+distance)%len(c.questions)]
			found, kept, shown := count(other.Query+" "+q.Query, other, q)
			two.found, two.kept, two.shown = two.found+found, two.kept+kept, two.shown+shown
		}
	}
	n := float64(len(c.questions))
	t.Logf("one question: %d of %d kept, %.2f tools shown", one.kept, one.found, float64(one.shown)/n)
	t.Logf("two questions: %d of %d kept, %.2f tools shown", two.kept, two.found, float64(two.shown)/(3*n))
	if one.kept < one.found {
		t.Errorf("%d of %d questions lose their tool", one.found-one.kept, one.found)
	}
	if two.kept*100 < two.found*97 {
		t.Errorf("pairs of questions keep %d of %d tools, at least 97 %% wanted", two.kept, two.found)
	}
	if most := 7.2; float64(one.shown)/n > most {
		t.Errorf("%.2f tools are shown on average, at most %.1f wanted", float64(one.shown)/n, most)
	}
}

// TestNamedHitsAreNotWeak checks that a tool that the query names is not weak, however well others match.
func TestNamedHitsAreNotWeak(t *testing.T) {
	s := &core.ToolServer{Name: "crm"}
	for _, d := range [][2]string{
		{"open", "Opens."}, {"list_open_invoices_of_customers", "Lists the open invoices of customers of a region by amount."},
		{"list_open_invoices", "Lists open invoices by amount."}, {"list_invoices_of_customers", "Lists invoices of customers of a region."},
		{"sum_open_invoices", "Sums the amounts of open invoices of customers."}, {"ping", "Everything is fine."},
	} {
		s.Tools = append(s.Tools, &core.Tool{Server: "crm", Name: d[0], Description: d[1]})
	}
	x := New()
	x.UpdateTools(core.NewToolset([]*core.ToolServer{s}))
	for _, query := range []string{
		"open", "list the open invoices of customers of a region by amount, then crm.open",
	} {
		hits, _ := x.Search(query, SearchFilter{}, 10)
		if !slices.ContainsFunc(hits, func(h SearchHit) bool { return h.Tool.Name == "open" && !h.Weak }) {
			t.Errorf("%s: the named tool is not among the strong hits", query)
		}
	}
	hits, _ := x.Search("sum_open_invoices", SearchFilter{}, 10)
	if hits[0].Tool.Name != "sum_open_invoices" || hits[0].Weak {
		t.Errorf("the named tool is not first: %v", hits[0])
	}
	if len(hits) > 1 && !hits[len(hits)-1].Weak {
		t.Errorf("the last of %d hits is not weak: %v", len(hits), hits[len(hits)-1])
	}
}
