package catalog

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retort/internal/catalog/sanitize"
	"retort/internal/core"
)

func definitions(texts ...string) []json.RawMessage {
	all := make([]json.RawMessage, len(texts))
	for i, text := range texts {
		all[i] = json.RawMessage(text)
	}
	return all
}

func bodyOf(texts ...string) fileBody {
	b := fileBody{Instructions: "how", Tools: definitions(texts...)}
	for range texts {
		b.Pins = append(b.Pins, "pin")
	}
	return b
}

func open(t *testing.T, dir string) *Catalog {
	t.Helper()
	c, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func replace(t *testing.T, c *Catalog, server string, texts ...string) ListingChange {
	t.Helper()
	change, err := c.ReplaceListing(server, definitions(texts...), "how to use "+server)
	if err != nil {
		t.Fatal(err)
	}
	return change
}

// toolNames returns "server.tool" for each tool in a toolset.
func toolNames(ts *core.Toolset) []string {
	all := []string{}
	for _, s := range ts.Servers {
		for _, t := range s.Tools {
			all = append(all, s.Name+"."+t.Name)
		}
	}
	return all
}

func problems(c *Catalog) string {
	var b strings.Builder
	for _, p := range c.ListProblems() {
		fmt.Fprintln(&b, p)
	}
	return b.String()
}

const issue = `{"name":"list_issues","title":"List","description":"Lists issues","inputSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"destructiveHint":false}}`

func TestReplace(t *testing.T) {
	c := open(t, "")
	replace(t, c, "github", issue, `{"name":"b"}`)
	s, ok := c.Toolset().FindServer("github")
	if !ok || s.Cached || s.Instructions != "how to use github" || s.Category != "code" {
		t.Fatalf("server %+v", s)
	}
	yes, no := true, false
	want := &core.Tool{
		Server: "github", Name: "list_issues", Title: "List", Description: "Lists issues", Category: "code",
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}}`),
		OutputSchema: json.RawMessage(`{"type":"object"}`), Annotations: core.ToolAnnotations{ReadOnly: &yes, Destructive: &no},
		Raw: json.RawMessage(issue), Pin: s.Tools[0].Pin, TypeScript: "listIssues", Python: "list_issues",
	}
	if diff := cmp.Diff(want, s.Tools[0]); diff != "" {
		t.Error(diff)
	}
	if _, ok := c.Toolset().FindTool("github.listIssues"); !ok {
		t.Error("github.listIssues is not found")
	}
}

func TestChange(t *testing.T) {
	c := open(t, "")
	replace(t, c, "s", `{"name":"a"}`, `{"name":"b"}`, `{"name":"c"}`)
	got := replace(t, c, "s", `{"name":"d"}`, `{"name":"c","description":"new"}`, `{ "name" : "a" }`)
	if diff := cmp.Diff(ListingChange{Added: []string{"d"}, Removed: []string{"b"}, Changed: []string{"c"}, Unchanged: 1}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := c.ReplaceListing("", nil, ""); err == nil {
		t.Error("a server without a name is taken")
	}
}

func TestBrokenDefinitionsHurtNobodyElse(t *testing.T) {
	deep := `{"name":"deep","inputSchema":` + strings.Repeat(`{"a":`, 5_000) + `1` + strings.Repeat(`}`, 5_000) + `}`
	change := replace(t, open(t, ""), "s",
		`{"name":"first"}`, ``, `{`, `[]`, `"x"`, `null`, `{}`, `{"name":7}`, `{"name":""}`, `{"name":null}`,
		`{"name":"`+strings.Repeat("x", 300)+`"}`, `{"name":"a\u0000b"}`, `{"name":"a\u202eb"}`, `{"name":"a\nb"}`, "{\"name\":\"a\xffb\"}", deep,
		`{"name":"first","description":"second of the name"}`, `{"name":"last"}`)
	if diff := cmp.Diff([]string{"first", "last"}, change.Added); diff != "" {
		t.Error(diff)
	}
	if len(change.Problems) != 16 {
		t.Errorf("%d problems: %v", len(change.Problems), change.Problems)
	}
	for _, want := range []string{"definition 2 is skipped: it is not JSON", "it has no name", "its name has 300 bytes", "nested", `s: "first": definition 17 is skipped: another tool has the same name`} {
		if !slices.ContainsFunc(change.Problems, func(p CatalogProblem) bool { return strings.Contains(p.String(), want) }) {
			t.Errorf("no problem says %q: %v", want, change.Problems)
		}
	}
}

func TestOddPartsAreLeftOut(t *testing.T) {
	c := open(t, "")
	change := replace(t, c, "s",
		`{"name":"../../etc/passwd","description":{"no":"text"},"inputSchema":"no schema","outputSchema":[1],"annotations":7}`,
		`{"name":"b","inputSchema":true,"outputSchema":null,"annotations":{"title":"From annotations","readOnlyHint":"yes","idempotentHint":true}}`)
	if len(change.Problems) != 4 {
		t.Errorf("problems %v", change.Problems)
	}
	s, _ := c.Toolset().FindServer("s")
	a, b := s.Tools[0], s.Tools[1]
	if a.Name != "../../etc/passwd" || a.Description != "" || a.InputSchema != nil || a.OutputSchema != nil {
		t.Errorf("tool %+v", a)
	}
	if b.Title != "From annotations" || string(b.InputSchema) != "true" || b.OutputSchema != nil || b.Annotations.ReadOnly != nil || !*b.Annotations.Idempotent {
		t.Errorf("tool %+v", b)
	}
}

func TestLargeListings(t *testing.T) {
	c := open(t, t.TempDir())
	var all []string
	for i := range 10_000 {
		all = append(all, fmt.Sprintf(`{"name":"tool_%d","inputSchema":{"type":"object"}}`, i))
	}
	all = append(all, `{"name":"long","description":"`+strings.Repeat("x", 1<<20)+`"}`)
	replace(t, c, "s", all...)
	if n := c.Toolset().CountTools(); n != 10_001 {
		t.Fatalf("%d tools", n)
	}
	if n := open(t, c.dir).Toolset().CountTools(); n != 10_001 {
		t.Fatalf("%d tools after a new start", n)
	}
	many := make([]json.RawMessage, maxTools+5)
	for i := range many {
		many[i] = json.RawMessage(fmt.Sprintf(`{"name":"t%d"}`, i))
	}
	if tools, problems := readAll("s", many, sanitize.New()); len(tools) != maxTools || len(problems) != 1 {
		t.Errorf("%d tools, problems %v", len(tools), problems)
	}
}

func TestColdStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home", "catalog")
	odd := "{ \"name\" : \"odd\",\n\t\"description\":\"<b>\\u003c\\/ é\\u2028\", \"x\": 1.0e2 }"
	c := open(t, dir)
	replace(t, c, "git/hub", issue, odd)
	replace(t, c, "GIT/HUB", `{"name":"other"}`)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = open(t, dir)
	if diff := cmp.Diff([]string{"GIT/HUB.other", "git/hub.list_issues", "git/hub.odd"}, toolNames(c.Toolset())); diff != "" {
		t.Fatal(diff)
	}
	s, _ := c.Toolset().FindServer("git/hub")
	if !s.Cached || s.Instructions != "how to use git/hub" || string(s.Tools[0].Raw) != issue || string(s.Tools[1].Raw) != odd {
		t.Errorf("server %+v", s)
	}
	fresh := open(t, "")
	replace(t, fresh, "git/hub", issue, odd)
	live, _ := fresh.Toolset().FindServer("git/hub")
	if diff := cmp.Diff(live.Tools, s.Tools); diff != "" {
		t.Errorf("what is read from disk differs: %s", diff)
	}
	if change := replace(t, c, "git/hub", issue, odd); change.Unchanged != 2 {
		t.Errorf("change %+v", change)
	}
	if s, _ := c.Toolset().FindServer("git/hub"); s.Cached {
		t.Error("still cached after the server has answered")
	}
	if err := c.ForgetServer("git/hub"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"GIT/HUB.other"}, toolNames(open(t, dir).Toolset())); diff != "" {
		t.Error(diff)
	}
	if err := c.ForgetServer("never known"); err != nil {
		t.Error(err)
	}
}

func TestDamagedFilesAreIgnored(t *testing.T) {
	whole, err := encodeFile("s", bodyOf(issue))
	if err != nil {
		t.Fatal(err)
	}
	flipped := []byte(strings.Replace(string(whole), "Lists issues", "Lists secrets", 1))
	for name, data := range map[string][]byte{
		"half":    whole[:len(whole)/2],
		"empty":   nil,
		"no line": []byte("{}"),
		"changed": flipped,
		"longer":  append(slices.Clone(whole), ' '),
		"newer":   []byte(strings.Replace(string(whole), `"format":1`, `"format":99`, 1)),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, fileName("s"))
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			c := open(t, dir)
			replace(t, c, "good", `{"name":"a"}`)
			c.KeepServers([]string{"good"})
			if diff := cmp.Diff([]string{"good.a"}, toolNames(c.Toolset())); diff != "" {
				t.Error(diff)
			}
			if said := problems(c); !strings.Contains(said, path) {
				t.Errorf("the file is not named: %q", said)
			}
			replace(t, c, "s", issue)
			if got := toolNames(open(t, dir).Toolset()); !slices.Contains(got, "s.list_issues") {
				t.Errorf("the file is not mended: %v", got)
			}
		})
	}
}

func TestUnchangedDefinitionsAreNotWrittenAgain(t *testing.T) {
	c := open(t, t.TempDir())
	replace(t, c, "s", issue)
	path := filepath.Join(c.dir, fileName("s"))
	long := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(path, long, long); err != nil {
		t.Fatal(err)
	}
	replace(t, c, "s", issue)
	if info, err := os.Stat(path); err != nil || !info.ModTime().Equal(long) {
		t.Errorf("written again: %v", err)
	}
	replace(t, c, "s", `{"name":"b"}`)
	if info, err := os.Stat(path); err != nil || info.ModTime().Equal(long) {
		t.Errorf("not written: %v", err)
	}
}

func TestFileOfAnotherServerIsIgnored(t *testing.T) {
	dir := t.TempDir()
	data, _ := encodeFile("other", bodyOf(issue))
	if err := os.WriteFile(filepath.Join(dir, fileName("s")), data, 0o600); err != nil {
		t.Fatal(err)
	}
	c := open(t, dir)
	if c.Toolset().CountTools() != 0 || !strings.Contains(problems(c), "another server") {
		t.Errorf("%v, %s", toolNames(c.Toolset()), problems(c))
	}
}

func TestOpenSweepsAndFails(t *testing.T) {
	dir := t.TempDir()
	old, fresh := filepath.Join(dir, ".tmp-1"), filepath.Join(dir, ".tmp-2")
	for _, path := range []string{old, fresh} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-2*abandonedAfter)); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	left, _ := filepath.Glob(filepath.Join(dir, temporaryPattern))
	if diff := cmp.Diff([]string{fresh}, left); diff != "" {
		t.Error(diff)
	}
	if _, err := Open(Options{Dir: filepath.Join(fresh, "catalog")}); err == nil || core.AsError(err).Hint == "" {
		t.Errorf("opened below a file: %v", err)
	}
}

func TestDiskFullIsAProblemOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "catalog")
	c := open(t, dir)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	replace(t, c, "s", issue)
	if c.Toolset().CountTools() != 1 || !strings.Contains(problems(c), "not stored for the next start") {
		t.Errorf("problems %q", problems(c))
	}
}

func TestKeep(t *testing.T) {
	c := open(t, "")
	replace(t, c, "a", `{"name":"x"}`)
	replace(t, c, "b", `{"name":"x"}`, `{}`)
	c.KeepServers([]string{"a", "c"})
	if diff := cmp.Diff([]string{"a.x"}, toolNames(c.Toolset())); diff != "" || problems(c) != "" {
		t.Errorf("%s %s", diff, problems(c))
	}
	c.KeepServers([]string{"b"})
	if diff := cmp.Diff([]string{"b.x"}, toolNames(c.Toolset())); diff != "" || problems(c) == "" {
		t.Errorf("%s %s", diff, problems(c))
	}
	c.KeepServers(nil)
	if c.Toolset().CountTools() != 0 {
		t.Error("something is kept")
	}
}

func TestToolsetIsASnapshot(t *testing.T) {
	c := open(t, "")
	replace(t, c, "a", `{"name":"x"}`)
	before := c.Toolset()
	if c.Toolset() != before {
		t.Error("another toolset without a change")
	}
	replace(t, c, "a", `{"name":"y"}`)
	if diff := cmp.Diff([]string{"a.x"}, toolNames(before)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a.y"}, toolNames(c.Toolset())); diff != "" {
		t.Error(diff)
	}
}

func TestOnChange(t *testing.T) {
	c := open(t, "")
	var told []string
	stop := c.OnChange(func(ts *core.Toolset) { told = append(told, strings.Join(toolNames(ts), " ")) })
	replace(t, c, "a", `{"name":"x"}`)
	replace(t, c, "b", `{"name":"y"}`)
	c.KeepServers([]string{"b"})
	stop()
	replace(t, c, "b", `{"name":"z"}`)
	if diff := cmp.Diff([]string{"a.x", "a.x b.y", "b.y"}, told); diff != "" {
		t.Error(diff)
	}
}

// TestConcurrentUse uses a catalog concurrently for the race detector, and checks that disk and memory agree at the
// end.
func TestConcurrentUse(t *testing.T) {
	c := open(t, t.TempDir())
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			server := fmt.Sprintf("s%d", i%2)
			for round := range 20 {
				if _, err := c.ReplaceListing(server, definitions(fmt.Sprintf(`{"name":"t%d_%d"}`, i, round)), ""); err != nil {
					t.Error(err)
				}
				c.SetCategory(server, []string{"", "code"}[round%2])
				c.Toolset()
				c.SetTokenCount(fmt.Sprint(i, round), round)
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(toolNames(c.Toolset()), toolNames(open(t, c.dir).Toolset())); diff != "" {
		t.Error(diff)
	}
}

func TestTokenCounts(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	replace(t, c, "s", issue)
	pin := c.Toolset().Servers[0].Tools[0].Pin
	if _, ok := c.TokenCount(pin); ok {
		t.Error("a count before there is one")
	}
	c.SetTokenCount(pin, 196)
	c.SetTokenCount("gone", 1)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = open(t, dir)
	if n, ok := c.TokenCount(pin); n != 196 || !ok {
		t.Errorf("count %d %v", n, ok)
	}
	if _, ok := c.TokenCount("gone"); ok {
		t.Error("the count of a tool that is gone is kept")
	}
	if err := os.WriteFile(filepath.Join(dir, countsFile), []byte(`{"for`), 0o600); err != nil {
		t.Fatal(err)
	}
	if c = open(t, dir); !strings.Contains(problems(c), countsFile) {
		t.Errorf("problems %q", problems(c))
	}
}

func TestLoadStatic(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"crm/find_lead.json":       `{"name":"find_lead","description":"Finds a lead"}`,
		"crm/unnamed.json":         `{"description":"Takes the name of its file"}`,
		"crm/empty.json":           `{}`,
		"crm/broken.json":          `{"name":`,
		"crm/again.json":           `{"name":"find_lead"}`,
		"crm/README.md":            `no definition`,
		"Legacy Things/query.json": `{"server":"warehouse","name":"query"}`,
		"other/live.json":          `{"server":"live","name":"hidden"}`,
		"other/bad.json":           `{"server":7,"name":"x"}`,
		"other/control.json":       `{"server":"\u001b[2J","name":"x"}`,
		"top.json":                 `{"name":"x"}`,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := open(t, "")
	replace(t, c, "live", `{"name":"real"}`)
	c.KeepServers([]string{"live"})
	for range 2 { // loading again replaces
		if err := c.LoadStatic([]string{dir}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"crm.find_lead", "crm.empty", "crm.unnamed", "live.real", "warehouse.query"}, toolNames(c.Toolset())); diff != "" {
		t.Error(diff)
	}
	crm, _ := c.Toolset().FindServer("crm")
	warehouse, _ := c.Toolset().FindServer("warehouse")
	if !crm.Static || crm.Category != "crm" || crm.Tools[0].Category != "crm" || warehouse.Category != "legacy things" {
		t.Errorf("%+v %+v", crm, warehouse)
	}
	if live, _ := c.Toolset().FindServer("live"); live.Static {
		t.Error("a live server is static")
	}
	for _, file := range []string{"broken.json", "find_lead.json", "bad.json", "control.json", "top.json"} {
		if strings.Count(problems(c), file) != 1 {
			t.Errorf("%s is not named once:\n%s", file, problems(c))
		}
	}
	if err := c.LoadStatic([]string{filepath.Join(dir, "missing")}); core.AsError(err) == nil || core.AsError(err).Hint == "" {
		t.Errorf("a missing folder: %v", err)
	}
}

func TestCategories(t *testing.T) {
	for _, c := range []struct{ server, want, tools string }{
		{"github", "code", "code code"},
		{"my-GitHub_mcp", "code", "code code"},
		{"mcp-slack", "communication", "communication communication"},
		{"googleCalendar", "calendar", "calendar calendar"},
		{"workspace", "files", "calendar files"},
		{"x", "files", "calendar files"},
	} {
		whole, each := classifyTools(c.server, []*core.Tool{
			{Name: "createEvent", Description: "Adds an event to the calendar"},
			{Name: "upload_files", Description: "of any kind"},
		})
		if got := strings.Join(each, " "); whole != c.want || got != c.tools {
			t.Errorf("%s: %s, %s; want %s, %s", c.server, whole, got, c.want, c.tools)
		}
	}
	many := []*core.Tool{{Name: "echo"}, {Name: "add"}, {Name: "gzip_file"}, {Name: "get_env"}}
	if whole, each := classifyTools("x", many); whole != Other || each[2] != "files" {
		t.Errorf("%s %v", whole, each)
	}
	if whole, each := classifyTools("x", []*core.Tool{{Name: "frobnicate"}}); whole != Other || each[0] != Other {
		t.Errorf("%s %v", whole, each)
	}
}

func TestSetCategory(t *testing.T) {
	c := open(t, "")
	replace(t, c, "github", issue)
	categories := func() [2]string {
		s := c.Toolset().Servers[0]
		return [2]string{s.Category, s.Tools[0].Category}
	}
	for _, step := range [][2]string{{"", "code"}, {" Tickets ", "tickets"}, {"", "code"}} {
		c.SetCategory("github", step[0])
		if got := categories(); got != [2]string{step[1], step[1]} {
			t.Errorf("%q gives %v", step[0], got)
		}
	}
}
