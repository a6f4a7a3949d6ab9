package recommend

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"retort/internal/audit"
	"retort/internal/core"
)

// entryWriter adds entries to an EventTally, each a little later than the previous one.
type entryWriter struct {
	t  *testing.T
	to *EventTally
	at time.Time
	n  int
}

func newStory(t *testing.T) *entryWriter {
	return &entryWriter{t: t, to: &EventTally{}, at: time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)}
}

func (s *entryWriter) add(kind core.EventKind, e audit.Entry, facts map[string]any) {
	s.t.Helper()
	s.at = s.at.Add(time.Second)
	text, err := json.Marshal(facts)
	if err != nil {
		s.t.Fatal(err)
	}
	e.Kind, e.At, e.Facts = kind, s.at, text
	s.to.Add(&e)
}

func (s *entryWriter) run(code string, tools ...string) {
	s.n++
	id := fmt.Sprintf("x%d", s.n)
	s.add(core.EventRequest, audit.Entry{Execution: id}, map[string]any{"code_sha256": code})
	s.add(core.EventVerdict, audit.Entry{Execution: id, Status: "ok"}, map[string]any{"tools": tools})
	s.add(core.EventEnd, audit.Entry{Execution: id, Status: "ok"}, nil)
}

func (s *entryWriter) read(server, tool, arguments, result, status string) {
	s.add(core.EventCall, audit.Entry{Server: server, Tool: tool, Status: status, Bytes: 100, Millis: 50}, map[string]any{"effect": "read", "arguments": arguments, "result": result})
}

func (s *entryWriter) search(query string, found int) {
	body, _ := json.Marshal(map[string]string{"name": query})
	s.add(core.EventSearch, audit.Entry{Status: "search", Body: body}, map[string]any{"found": found})
}

func kinds(all []Advice) (list []string) {
	for _, a := range all {
		list = append(list, string(a.Kind)+" "+a.Subject)
	}
	return list
}

// TestAdvise checks that each kind of advice is given above its threshold and not below it.
func TestAdvise(t *testing.T) {
	s := newStory(t)
	for i := range 20 {
		s.run(fmt.Sprintf("c%d", i))
		s.read("drive", "get_document", "a1", "r1", "ok")
		s.read("clock", "now", "a1", fmt.Sprint(i), "ok")
		s.read("mail", "list", fmt.Sprint(i), "r", map[bool]string{true: "tool_error", false: "ok"}[i%3 == 0])
	}
	for range 3 {
		s.run("same", "drive.getDocument")
	}
	for i := range 5 {
		s.run(fmt.Sprintf("d%d", i), "drive.getDocument", "crm.updateRecord")
	}
	s.search("Translate  documents", 0)
	s.search("translate documents", 0)
	s.search("send a fax", 0)
	s.search("list issues", 4)
	list := &RegistryList{Servers: []RegistryServer{{Name: "org.example/translator", Description: "Translates documents between languages"}, {Name: "org.example/weather", Description: "Forecasts"}}}
	got := s.to.ListAdvice(KnownState{Servers: []string{"clock", "drive", "idle", "mail"}, List: list})
	want := []string{"unused_server idle", "failing_tool mail.list", "cache drive.get_document", "skill x28", "skill x23", "registry translate documents", "search send a fax"}
	if !slices.Equal(kinds(got), want) {
		t.Errorf("%v, want %v", kinds(got), want)
	}
	for _, a := range got {
		if a.Says == "" || a.Do == "" || a.Kind == Registry && (len(a.Servers) != 1 || a.Servers[0].Name != "org.example/translator" || a.Count != 2) {
			t.Errorf("%+v", a)
		}
	}
	if got := s.to.ListAdvice(KnownState{Cached: func(string) bool { return true }}); slices.ContainsFunc(got, func(a Advice) bool { return a.Kind == Cache || a.Kind == Unused }) {
		t.Errorf("%v", kinds(got))
	}
	few := newStory(t)
	few.run("a")
	few.read("mail", "list", "a", "r", "tool_error")
	if got := few.to.ListAdvice(KnownState{Servers: []string{"idle"}}); len(got) != 0 {
		t.Errorf("advice from one execution: %v", kinds(got))
	}
}

// TestRepeatedCalls checks that a repeated call does not count if it comes much later or from another principal,
// because a cache would not have answered it.
func TestRepeatedCalls(t *testing.T) {
	s := newStory(t)
	for i := range 30 {
		s.at = s.at.Add(20 * time.Minute)
		s.read("drive", "late", "a", "r", "ok")
		s.add(core.EventCall, audit.Entry{Server: "drive", Tool: "theirs", Principal: fmt.Sprint(i), Status: "ok"}, map[string]any{"effect": "read", "arguments": "a", "result": "r"})
	}
	if got := s.to.ListAdvice(KnownState{}); len(got) != 0 {
		t.Errorf("%v", kinds(got))
	}
}

// TestFetch checks that a registry is read page by page in both usual formats, and that texts from it are shortened
// and made safe to display.
func TestFetch(t *testing.T) {
	hostile := strings.Repeat("x", 1000)
	pages := map[string]string{
		"":  `{"servers":[{"server":{"name":"a/one","description":"first\u202e","repository":{"url":"https://example.org/one"}}},{"server":{"name":""}}],"metadata":{"nextCursor":"2"}}`,
		"2": `{"servers":[{"name":"a/two","description":"` + hostile + `"},{"name":"a/one"}],"metadata":{"next_cursor":""}}`,
	}
	status := http.StatusOK
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/base/v0/servers" {
			t.Errorf("%s was asked", r.URL.Path)
		}
		if status == http.StatusFound {
			w.Header().Set("Location", "http://127.0.0.1:1/")
		}
		w.WriteHeader(status)
		fmt.Fprint(w, pages[r.URL.Query().Get("cursor")])
	}))
	t.Cleanup(web.Close)
	list, refused := FetchRegistry(t.Context(), web.URL+"/base/")
	if refused != nil || len(list.Servers) != 2 || list.Servers[0] != (RegistryServer{"a/one", `first\u202e`, "https://example.org/one"}) || len(list.Servers[1].Description) > maxText+3 {
		t.Fatalf("%+v %v", list, refused)
	}
	path := filepath.Join(t.TempDir(), "registry.json")
	if l, refused := LoadRegistry(path); l != nil || refused != nil {
		t.Errorf("%+v %v", l, refused)
	}
	if refused := list.SaveFile(path); refused != nil {
		t.Fatal(refused)
	}
	if l, refused := LoadRegistry(path); refused != nil || len(l.Servers) != 2 || l.Registry != list.Registry {
		t.Errorf("%+v %v", l, refused)
	}
	for _, code := range []int{http.StatusFound, http.StatusInternalServerError} {
		status = code
		if _, refused := FetchRegistry(t.Context(), web.URL+"/base"); refused == nil {
			t.Errorf("HTTP %d is a list", code)
		}
	}
	status, pages[""] = http.StatusOK, `<html>`
	if _, refused := FetchRegistry(t.Context(), web.URL+"/base"); refused == nil || !strings.Contains(refused.Message, "not the expected JSON") {
		t.Error(refused)
	}
}
