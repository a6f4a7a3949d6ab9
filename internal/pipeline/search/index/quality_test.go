package index

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"retort/internal/core"
)

// question holds a query and its correct answers. Gold lists the ids of the tools that answer the query. Any lists
// these tools and all other tools of the same names.
type question struct {
	Query string   `json:"query"`
	Gold  []string `json:"gold"`
	Any   []string `json:"gold_any"`
	Split string   `json:"split"`
}

// collection holds tools and questions. A tool's id is its name, followed by "~n" if several tools have that name.
type collection struct {
	tools     *core.Toolset
	ids       map[*core.Tool]string
	questions []question
}

func readLines[T any](tb testing.TB, name string) []T {
	tb.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	var all []T
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			tb.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

func loadCollection(tb testing.TB, tools, questions string) collection {
	tb.Helper()
	c := collection{ids: map[*core.Tool]string{}}
	type definition struct {
		ID, Server, Name, Title, Description string
		InputSchema                          json.RawMessage
	}
	servers := map[string]*core.ToolServer{}
	for _, d := range readLines[definition](tb, tools) {
		name := d.Server
		if n := strings.LastIndexByte(d.ID, '~'); n >= 0 {
			name += strings.Repeat("_", len(d.ID[n+1:])) + d.ID[n:] // apart, without words
		}
		s, ok := servers[name]
		if !ok {
			s = &core.ToolServer{Name: name}
			servers[name] = s
		}
		t := &core.Tool{Server: d.Server, Name: d.Name, Title: d.Title, Description: d.Description, InputSchema: d.InputSchema}
		s.Tools = append(s.Tools, t)
		c.ids[t] = d.ID
	}
	var sorted []*core.ToolServer
	for _, s := range servers {
		sorted = append(sorted, s)
	}
	slices.SortFunc(sorted, func(a, b *core.ToolServer) int { return strings.Compare(a.Name, b.Name) })
	c.tools = core.NewToolset(sorted)
	if questions != "" {
		c.questions = readLines[question](tb, questions)
	}
	return c
}

// figures holds quality measures of the ranking as averages over questions, in percent.
type figures struct{ hit1, hit5, hit10, ndcg float64 }

func (f figures) String() string {
	return fmt.Sprintf("hit@1 %.1f  hit@5 %.1f  hit@10 %.1f  nDCG@10 %.1f", f.hit1, f.hit5, f.hit10, f.ndcg)
}

// measure returns the quality of an index for the questions for which pass returns true. For nDCG, tools with the
// same name count as one.
func (c collection) measure(x *ToolIndex, pass func(question) bool) figures {
	var f figures
	n := 0.0
	for _, q := range c.questions {
		if !pass(q) {
			continue
		}
		n++
		hits, _ := x.Search(q.Query, SearchFilter{}, 50)
		first := slices.IndexFunc(hits, func(h SearchHit) bool { return slices.Contains(q.Any, c.ids[h.Tool]) })
		for _, at := range []struct {
			k   int
			sum *float64
		}{{1, &f.hit1}, {5, &f.hit5}, {10, &f.hit10}} {
			if first >= 0 && first < at.k {
				*at.sum += 100
			}
		}
		f.ndcg += 100 * c.ndcg(q, hits)
	}
	return figures{f.hit1 / n, f.hit5 / n, f.hit10 / n, f.ndcg / n}
}

func (c collection) ndcg(q question, hits []SearchHit) float64 {
	base := func(id string) string { name, _, _ := strings.Cut(id, "~"); return name }
	wanted := map[string]bool{}
	for _, id := range q.Gold {
		wanted[base(id)] = true
	}
	var ideal, gain float64
	for i := range min(10, len(wanted)) {
		ideal += 1 / math.Log2(float64(i+2))
	}
	seen := map[string]bool{}
	for _, h := range hits {
		name := base(c.ids[h.Tool])
		if !seen[name] && len(seen) < 10 {
			if wanted[name] {
				gain += 1 / math.Log2(float64(len(seen)+2))
			}
			seen[name] = true
		}
	}
	return gain / ideal
}

// half returns the half of the questions, 0 or 1, to which a question belongs. It is always the same for the same
// question.
func half(q question) uint32 {
	h := fnv.New32a()
	h.Write([]byte(q.Query))
	return h.Sum32() >> 7 & 1
}

// TestAblation logs how much each part of the ranking contributes to its quality on larger collections. The
// environment variable RETORT_SEARCH_DATA lists folders with tools.jsonl and queries.jsonl, in the format of
// testdata. Judge a change of the ranking by the half of the questions that was not used to tune it.
func TestAblation(t *testing.T) {
	dirs := os.Getenv("RETORT_SEARCH_DATA")
	if dirs == "" {
		t.Skip("RETORT_SEARCH_DATA is not set")
	}
	for _, dir := range filepath.SplitList(dirs) {
		c := loadCollection(t, filepath.Join(dir, "tools.jsonl"), filepath.Join(dir, "queries.jsonl"))
		t.Log(filepath.Base(dir), c.tools.CountTools(), "tools", len(c.questions), "queries")
		for _, v := range variants() {
			tuned := defaultTuning()
			v.change(&tuned)
			x := newTuned(tuned)
			x.UpdateTools(c.tools)
			seen := c.measure(x, func(q question) bool { return half(q) == 0 })
			held := c.measure(x, func(q question) bool { return half(q) == 1 })
			t.Logf("%-24s seen %v   held out %v", v.name, seen, held)
		}
	}
}

type variant struct {
	name   string
	change func(*rankingTuning)
}

func variants() []variant {
	vs := []variant{
		{"as it is", func(t *rankingTuning) {}},
		{"without stemming", func(t *rankingTuning) { t.stem = func(s string) string { return s } }},
		{"without stop words", func(t *rankingTuning) { t.stop = false }},
		{"without coverage", func(t *rankingTuning) { t.coverage = 0 }},
		{"without naming", func(t *rankingTuning) { t.naming = 0 }},
		{"without fuzziness", func(t *rankingTuning) { t.fuzzy = false }},
		{"numbers in full", func(t *rankingTuning) { t.number = 1 }},
		{"no synonyms", func(t *rankingTuning) { t.synonym = 0 }},
		{"synonyms .15", func(t *rankingTuning) { t.synonym = 0.15 }},
		{"synonyms .5", func(t *rankingTuning) { t.synonym = 0.5 }},
		{"synonyms .8", func(t *rankingTuning) { t.synonym = 0.8 }},
	}
	for f, name := range []string{"server", "name", "title", "description", "params", "prose"} {
		vs = append(vs,
			variant{"no " + name, func(t *rankingTuning) { t.fields[f].weight = 0 }},
			variant{name + " x0.5", func(t *rankingTuning) { t.fields[f].weight *= 0.5 }},
			variant{name + " x1.5", func(t *rankingTuning) { t.fields[f].weight *= 1.5 }},
			variant{name + " slope +.25", func(t *rankingTuning) { t.fields[f].slope += 0.25 }},
			variant{name + " slope -.25", func(t *rankingTuning) { t.fields[f].slope -= 0.25 }},
		)
	}
	return vs
}

// TestQuality checks that the quality of the ranking does not fall below fixed minimum values.
func TestQuality(t *testing.T) {
	c := loadCollection(t, "testdata/tools.jsonl", "testdata/queries.jsonl")
	x := New()
	x.UpdateTools(c.tools)
	got := c.measure(x, func(question) bool { return true })
	t.Log(got)
	if floor := (figures{81, 92, 94, 88}); got.hit1 < floor.hit1 || got.hit5 < floor.hit5 || got.hit10 < floor.hit10 || got.ndcg < floor.ndcg {
		t.Errorf("%v is less than %v", got, floor)
	}
}
