package demo

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retort/internal/tokens"
)

func TestTranscriptHasFiftyThousandTokens(t *testing.T) {
	c, _ := open(t, "drive")
	doc := mustCall[textDocument](c, "get_document", `{"documentId":"abc123"}`)
	if n := tokens.CountTokens(doc.Content); n < 49_000 || n > 51_000 {
		t.Errorf("%d tokens", n)
	}
	if f := mustCall[driveFile](c, "get_file_metadata", `{"fileId":"abc123"}`); f.Size != len(doc.Content) {
		t.Errorf("the metadata says %d bytes, the content has %d", f.Size, len(doc.Content))
	}
}

// TestTwoInstancesAreTheSame checks that two instances of a server give byte-identical answers to the same calls.
func TestTwoInstancesAreTheSame(t *testing.T) {
	for _, name := range ServerNames() {
		a, _ := open(t, name)
		b, _ := open(t, name)
		for line := range strings.Lines(calls) {
			m := callLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
			if m == nil || m[1] != name {
				continue
			}
			if x, y := a.call(m[2], m[3]), b.call(m[2], m[3]); x.raw != y.raw {
				t.Errorf("%s.\n%.200s\n%.200s", line, x.raw, y.raw)
			}
		}
	}
}

// TestPages checks that reading all pages of a list gives every item once.
func TestPages(t *testing.T) {
	for _, test := range []struct {
		server, tool, args, items, next, token string
		want                                   int
	}{
		{"drive", "search_files", `"pageSize":177`, "files", "nextPageToken", "pageToken", fileCount + 3},
		{"drive", "list_folder", `"pageSize":7`, "files", "nextPageToken", "pageToken", folderCount + 1},
		{"calendar", "list_events", `"calendarId":"sales","maxResults":99`, "items", "nextPageToken", "pageToken", -1},
		{"mail", "search_messages", `"maxResults":499`, "messages", "nextPageToken", "pageToken", mailCount},
		{"chat", "get_channel_history", `"channel":"general","limit":9`, "messages", "response_metadata", "cursor", -1},
		{"chat", "list_users", `"limit":7`, "members", "response_metadata", "cursor", staffCount},
		{"crm", "search_records", `"objectType":"Lead","limit":499`, "records", "nextOffset", "offset", leadCount},
		{"sheets", "list_spreadsheets", `"query":""`, "spreadsheets", "nextPageToken", "pageToken", 31},
	} {
		t.Run(test.server+"/"+test.tool, func(t *testing.T) {
			c, _ := open(t, test.server)
			seen := map[string]bool{}
			args := test.args
			for range 500 {
				page := mustCall[map[string]json.RawMessage](c, test.tool, "{"+args+"}")
				var items []json.RawMessage
				if err := json.Unmarshal(page[test.items], &items); err != nil {
					t.Fatal(err)
				}
				for _, item := range items {
					if seen[string(item)] {
						t.Fatalf("twice: %s", item)
					}
					seen[string(item)] = true
				}
				next := nextPage(page[test.next])
				if next == "" {
					break
				}
				args = fmt.Sprintf(`%s,%q:%s`, test.args, test.token, next)
			}
			if test.want >= 0 && len(seen) != test.want || len(seen) < 20 {
				t.Errorf("%d items, want %d", len(seen), test.want)
			}
		})
	}
}

// nextPage returns the token for the next page as JSON, or "" on the last page. raw is the token itself or an object
// with next_cursor.
func nextPage(raw json.RawMessage) string {
	var meta struct {
		Next string `json:"next_cursor"`
	}
	if json.Unmarshal(raw, &meta) == nil {
		if meta.Next == "" {
			return ""
		}
		return `"` + meta.Next + `"`
	}
	return string(raw)
}

func TestNumberedPages(t *testing.T) {
	c, _ := open(t, "issues")
	seen := map[int]bool{}
	for page := 1; ; page++ {
		list := mustCall[[]repoIssue](c, "list_issues", fmt.Sprintf(`{"owner":"nordlys","repo":"aurora","state":"all","per_page":100,"page":%d}`, page))
		for _, x := range list {
			if seen[x.Number] || x.Pull != nil {
				t.Fatalf("issue %d", x.Number)
			}
			seen[x.Number] = true
		}
		if len(list) < 100 {
			break
		}
	}
	if len(seen) < 900 {
		t.Errorf("%d issues", len(seen))
	}
}

func TestRateLimitGivesWay(t *testing.T) {
	for _, test := range []struct{ server, tool, args, then string }{
		{"drive", "get_document", `{"documentId":"rate-limited"}`, `"documentId":"rate-limited"`},
		{"crm", "get_record", `{"objectType":"Lead","recordId":"rate-limited"}`, "404 Not found"},
	} {
		c, _ := open(t, test.server)
		for i := range 4 {
			want := "429 Too Many Requests"
			if i%2 == 1 {
				want = test.then
			}
			if got := c.call(test.tool, test.args).text(); !strings.Contains(got, want) {
				t.Errorf("%s, call %d: %.200s", test.tool, i+1, got)
			}
		}
	}
}

func TestDeployment(t *testing.T) {
	look := func(c *client) string {
		page := mustCall[messagePage](c, "get_channel_history", `{"channel":"deployments","limit":1}`)
		return page.Messages[0].Text
	}
	t.Run("is done after some looks", func(t *testing.T) {
		c, _ := open(t, "chat")
		for i := 1; i < deployPolls; i++ {
			if text := look(c); strings.Contains(text, "complete") {
				t.Fatalf("done after %d looks", i)
			}
		}
		for range 2 {
			if text := look(c); !strings.Contains(text, "deployment complete") {
				t.Errorf("after %d looks: %s", deployPolls, text)
			}
		}
	})
	t.Run("is done after some time", func(t *testing.T) {
		chat := &chatServer{serverBase: &serverBase{}, w: newWorld()}
		at := demoToday
		chat.clockNow = func() time.Time { return at }
		chat.fillChannels()
		ch, err := chat.findChannel("deployments")
		if err != nil {
			t.Fatal(err)
		}
		chat.advanceDeployment(ch)
		at = at.Add(deployPatience)
		chat.advanceDeployment(ch)
		if text := ch.messages[len(ch.messages)-1].Text; !strings.Contains(text, "deployment complete") {
			t.Error(text)
		}
	})
}

func TestOneOfManyChangesWins(t *testing.T) {
	s, _ := Open("crm")
	var won, lost int
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range 40 {
		c := connect(t, s)
		all.Go(func() {
			o := c.call("update_record", fmt.Sprintf(`{"objectType":"Lead","recordId":"00Q001000","data":{"Notes":"by %d"},"ifVersion":1}`, i))
			mu.Lock()
			defer mu.Unlock()
			if o.IsError {
				lost++
			} else {
				won++
			}
		})
	}
	all.Wait()
	if won != 1 || lost != 39 || len(s.RecordedEffects()) != 1 {
		t.Errorf("%d won, %d lost, effects %v", won, lost, s.RecordedEffects())
	}
}

// TestFailuresHaveNoEffect checks that the failing calls in the variable calls record no change.
func TestFailuresHaveNoEffect(t *testing.T) {
	for _, name := range ServerNames() {
		c, s := open(t, name)
		for line := range strings.Lines(calls) {
			if m := callLine.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil && m[1] == name && m[4] != "" {
				c.call(m[2], m[3])
			}
		}
		if e := s.RecordedEffects(); len(e) > 0 {
			t.Errorf("%s: %v", name, e)
		}
	}
}

func TestEffectsAreListedByTheServerToo(t *testing.T) {
	c, s := open(t, "crm")
	for range 3 { // the second and third change nothing
		c.call("update_record", `{"objectType":"Lead","recordId":"00Q001000","data":{"Notes":"x"}}`)
	}
	c.call("delete_record", `{"objectType":"Lead","recordId":"00Q001000"}`)
	log := mustCall[struct{ Events []RecordedEffect }](c, "list_audit_events", `{}`)
	effects := s.RecordedEffects()
	slices.Reverse(effects)
	if len(effects) != 2 || !slices.Equal(log.Events, effects) {
		t.Errorf("log %v, effects %v", log.Events, effects)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	c, s := open(t, "crm")
	s.base.effects = make([]RecordedEffect, maxEffects)
	if o := c.call("delete_record", `{"objectType":"Lead","recordId":"00Q001000"}`); !strings.Contains(o.text(), "507") {
		t.Error(o.text())
	}
	c, s = open(t, "files")
	s.base.written = maxGiven
	if o := c.call("write_file", `{"path":"x","content":"y"}`); !strings.Contains(o.text(), "507") {
		t.Error(o.text())
	}
}

// TestDefinitions checks that the tool definitions resemble real ones: valid schemas, a description of at least a
// sentence, and annotations on most tools but not on all.
func TestDefinitions(t *testing.T) {
	annotated, total, withOutput := 0, 0, 0
	for _, server := range ServerNames() {
		s, err := Open(server)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range s.definitions {
			var def struct {
				Description               string
				InputSchema, OutputSchema json.RawMessage
				Annotations               map[string]any
			}
			if err := json.Unmarshal(d.raw, &def); err != nil {
				t.Fatal(err)
			}
			total++
			if def.Annotations != nil {
				annotated++
			}
			if len(def.Description) < 20 || !strings.HasSuffix(def.Description, ".") {
				t.Errorf("%s.%s: description %q", server, d.name, def.Description)
			}
			for _, schema := range []json.RawMessage{def.InputSchema, def.OutputSchema} {
				if schema == nil {
					continue
				}
				_, err := compileSchema(schema)
				_, own := inputFormats().Compile(schema)
				if err := errors.Join(err, own); err != nil {
					t.Errorf("%s.%s: %v", server, d.name, err)
				}
			}
			if def.OutputSchema != nil {
				withOutput++
			}
			writes := s.tools()[d.name].writes && d.name != "get_channel_history"
			if readOnly, said := def.Annotations["readOnlyHint"]; said && readOnly == writes {
				t.Errorf("%s.%s: readOnlyHint is %v", server, d.name, readOnly)
			}
		}
	}
	if annotated == total || annotated < total*3/4 || withOutput < total/3 || withOutput > total*2/3 {
		t.Errorf("%d tools, %d annotated, %d with outputSchema", total, annotated, withOutput)
	}
}

func TestComplaintsAreShort(t *testing.T) {
	s, _ := Open("drive")
	i := slices.IndexFunc(s.definitions, func(d *toolDefinition) bool { return d.name == "share_file" })
	err := s.definitions[i].checkArguments(json.RawMessage(`{"fileId":"x","grant":{"type":"user","email":"a@b.example"}}`))
	if err == nil || !strings.Contains(err.Error(), "missing property 'role'") || len(err.Error()) > 400 {
		t.Error(err)
	}
}

var update = flag.Bool("update", false, "write the goldens")

// TestDataIsTheSameEverywhere checks that the data does not depend on the machine or the day. It compares the
// beginnings of several answers with a stored file.
func TestDataIsTheSameEverywhere(t *testing.T) {
	var got strings.Builder
	for _, call := range [][3]string{
		{"drive", "search_files", `{"pageSize":3}`},
		{"drive", "get_document", `{"documentId":"abc123"}`},
		{"crm", "search_records", `{"objectType":"Lead","limit":2}`},
		{"crm", "get_pipeline_summary", `{}`},
		{"chat", "get_channel_history", `{"channel":"general","limit":3}`},
		{"calendar", "list_events", `{"calendarId":"sales","timeMin":"2026-11-02T00:00:00Z","maxResults":2}`},
		{"mail", "get_message", `{"id":"18f000011170"}`},
		{"sheets", "read_range", `{"spreadsheetId":"orders-2026","range":"A9990:K10001"}`},
		{"issues", "search_issues", `{"query":"is:open","per_page":2}`},
		{"database", "query", `{"sql":"SELECT status, COUNT(*) AS orders, SUM(amount) AS amount FROM orders GROUP BY status ORDER BY orders DESC"}`},
		{"files", "read_file", `{"path":"logs/2026/10/ingest-07.log","head":5}`},
	} {
		c, _ := open(t, call[0])
		text := []rune(c.call(call[1], call[2]).text())
		fmt.Fprintf(&got, "%s.%s(%s)\n%s\n\n", call[0], call[1], call[2], string(text[:min(len(text), 1200)]))
	}
	const golden = "testdata/data.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if diff := cmp.Diff(string(want), got.String()); err != nil || diff != "" {
		t.Errorf("%v (-want +got; go test -update writes it)\n%s", err, diff)
	}
}

func TestPageByOffset(t *testing.T) {
	for _, test := range []struct{ offset, limit, want int }{{0, 3, 3}, {8, 5, 2}, {10, 1, 0}, {99, 1, 0}, {-5, 2, 2}, {3, -1, 0}, {1, 1 << 62, 9}} {
		if got := pageByOffset(make([]int, 10), test.offset, test.limit); len(got) != test.want {
			t.Errorf("pageByOffset(%d, %d): %d items", test.offset, test.limit, len(got))
		}
	}
}

var programCall = regexp.MustCompile(`\b(drive|crm|chat|calendar|mail|sheets|issues|database|files)\.(\w+)\(`)

func camel(tool string) string {
	words := strings.Split(tool, "_")
	for i, w := range words[1:] {
		words[i+1] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "")
}

func TestPrograms(t *testing.T) {
	all := ExamplePrograms()
	if len(all) != 5 {
		t.Fatalf("%d programs", len(all))
	}
	have := everyTool(t)
	for _, p := range all {
		if p.Title == "" || p.About == "" || strings.Contains(p.Title+p.About, "//") || strings.HasPrefix(p.Code, "//") {
			t.Errorf("%s: title %q, about %q", p.Name, p.Title, p.About)
		}
		calls := programCall.FindAllStringSubmatch(p.Code, -1)
		if len(calls) == 0 {
			t.Errorf("%s calls no tool", p.Name)
		}
		for _, m := range calls {
			if !slices.ContainsFunc(have[m[1]], func(tool string) bool { return camel(tool) == m[2] }) {
				t.Errorf("%s: there is no tool %s", p.Name, m[0])
			}
		}
	}
}
