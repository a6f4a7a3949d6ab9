package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"retort/internal/core"
)

// twoEngines returns a reader for the audit log of two engines that ran at the same time, and the stores of these
// engines. The first engine also has an archive.
func twoEngines(t *testing.T) (*LogReader, []*memory) {
	t.Helper()
	r := &LogReader{Archives: t.TempDir(), Checkpoints: t.TempDir(), Home: "home", Keys: testKeys()}
	c := newClock()
	var stores []*memory
	var logs []*Log
	for i := range 2 {
		m := newMemory(fmt.Sprint("c", i+1))
		logs = append(logs, opening(t, m, Options{Keys: testKeys(), Checkpoints: r.Checkpoints, Home: "home", Now: c.now}))
		stores = append(stores, m)
		r.Stores = append(r.Stores, m)
	}
	for i := range 300 {
		l, id := logs[i%2], fmt.Sprintf("x%d", i)
		e := request(id)
		e.Session, e.Principal, e.Facts = fmt.Sprint("s", i%3), fmt.Sprint("p", i%5), map[string]any{"note": fmt.Sprint("Straße ", i)}
		_ = l.Record(e, false)
		ended := end(id)
		ended.Session, ended.Principal = e.Session, e.Principal
		_ = l.Record(ended, i >= 298)
		c.add(time.Minute)
	}
	if _, err := logs[0].retain(t, RetentionPolicy{Dir: r.Archives, Keep: 2 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	for _, l := range logs {
		_ = l.Close()
	}
	if len(stores[0].rows["c1"]) > 150 {
		t.Fatal("nothing was archived")
	}
	return r, stores
}

func TestFind(t *testing.T) {
	r, _ := twoEngines(t)
	var all []Entry
	cursor := ""
	for pages := 0; ; pages++ {
		page, err := r.Find(t.Context(), Query{Limit: 70, Cursor: cursor})
		if err != nil || len(page.Warnings) > 0 || pages > 20 {
			t.Fatal(page.Warnings, err)
		}
		all = append(all, page.Entries...)
		if cursor = page.Cursor; cursor == "" {
			break
		}
	}
	sorted := slices.IsSortedFunc(all, func(a, b Entry) int {
		return (RowPosition{b.At.UnixNano(), b.Chain, b.Seq}).compareTo(RowPosition{a.At.UnixNano(), a.Chain, a.Seq})
	})
	if len(all) != 600+3 || !sorted {
		t.Fatalf("%d entries, sorted %v", len(all), sorted)
	}
	from := newClock().at
	for name, c := range map[string]struct {
		Query
		want int
	}{
		"session":   {Query{Filter: Filter{Session: "s1"}}, 200},
		"principal": {Query{Filter: Filter{Principal: "p2", Kinds: []string{"end"}}}, 60},
		"time":      {Query{Filter: Filter{From: from.Add(10 * time.Minute), To: from.Add(20 * time.Minute)}}, 20},
		"chain":     {Query{Filter: Filter{Chain: "c2", Kinds: []string{"request"}}}, 150},
		"body":      {Query{Text: `CODE":"X29"`}, 1},
		"umlaut":    {Query{Text: "STRASSE 29"}, 0},
		"facts":     {Query{Text: "straße 29"}, 11},
		"nothing":   {Query{Text: "nowhere"}, 0},
		"field":     {Query{Text: "x299"}, 2},
	} {
		c.Limit = 1000
		page, err := r.Find(t.Context(), c.Query)
		if err != nil || len(page.Entries) != c.want || page.Cursor != "" {
			t.Errorf("%s: %d, want %d, %v", name, len(page.Entries), c.want, err)
		}
	}
	page, _ := r.Find(t.Context(), Query{Text: "straße 29", Limit: 4})
	rest, _ := r.Find(t.Context(), Query{Text: "straße 29", Cursor: page.Cursor})
	if len(page.Entries) != 4 || len(rest.Entries) != 7 || rest.Cursor != "" {
		t.Errorf("%d and %d", len(page.Entries), len(rest.Entries))
	}
	var e *core.Error
	if _, err := r.Find(t.Context(), Query{Cursor: "x"}); !errors.As(err, &e) || e.Kind != core.KindInvalidArguments {
		t.Error(err)
	}
}

func TestFindWithoutKey(t *testing.T) {
	r, _ := twoEngines(t)
	r.Keys.Bodies = func() ([]byte, error) { return nil, errors.New("it lies elsewhere") }
	page, err := r.Find(t.Context(), Query{Filter: Filter{Kinds: []string{"request"}}})
	if err != nil || len(page.Entries) != 50 || page.Entries[0].Body != nil || page.Entries[0].Erased || len(page.Warnings) != 1 || !strings.Contains(page.Warnings[0], "elsewhere") {
		t.Errorf("%+v, %v", page.Warnings, err)
	}
}

// recordErasures makes r record its erasures in a new chain. r does not read this chain until the test calls the
// returned function seen.
func recordErasures(t *testing.T, r *LogReader) (seen func()) {
	m := newMemory("c9")
	l := opening(t, m, Options{Keys: testKeys()})
	r.Erasing = func(e core.AuditEvent) error {
		if refused := l.Record(e, true); refused != nil {
			return refused
		}
		return nil
	}
	return func() { r.Stores = append(r.Stores, m) }
}

func TestEraseSession(t *testing.T) {
	r, _ := twoEngines(t)
	seen := recordErasures(t, r)
	out, err := r.EraseSession(t.Context(), "p1", "s1") // 1 in 15
	if err != nil || out.Keys != 20 {
		t.Fatalf("%+v, %v", out, err)
	}
	page, _ := r.Find(t.Context(), Query{Filter: Filter{Kinds: []string{"request"}}, Limit: 1000})
	erased := 0
	for _, e := range page.Entries {
		if e.Erased != (e.Session == "s1" && e.Principal == "p1") || e.Erased != (e.Body == nil) {
			t.Errorf("%+v", e)
		}
		if e.Erased {
			erased++
		}
	}
	if v := verified(t, r, VerifyOptions{}); v.OK || v.First.What != Keyless {
		t.Errorf("nobody misses the keys that no erasure names: %+v", v.First)
	}
	seen()
	if v := verified(t, r, VerifyOptions{}); erased != 20 || !v.OK {
		t.Errorf("%d erased, %+v", erased, v.First)
	}
}

func TestEraseMentions(t *testing.T) {
	r, _ := twoEngines(t)
	seen := recordErasures(t, r)
	looked := int64(0)
	out, err := r.EraseMentions(t.Context(), func(_, _, s string) bool { return s == "x30" || s == "x31" || s == "x298" }, func(n int64) { looked = n })
	if err != nil || out.Keys != 3 || out.Scanned != 603 || looked != 603 {
		t.Fatalf("%+v, %v, looked at %d", out, err, looked)
	}
	page, _ := r.Find(t.Context(), Query{Filter: Filter{Executions: []string{"x29", "x30", "x31", "x298"}, Kinds: []string{"request"}}})
	if len(page.Entries) != 4 {
		t.Fatal(len(page.Entries))
	}
	for _, e := range page.Entries {
		if e.Erased != (e.Execution != "x29") {
			t.Errorf("%+v", e)
		}
	}
	seen()
	if v := verified(t, r, VerifyOptions{}); !v.OK {
		t.Errorf("%+v", v.First)
	}
	r.Keys.Bodies = func() ([]byte, error) { return nil, errors.New("it lies elsewhere") }
	if _, err := r.EraseMentions(t.Context(), func(_, _, _ string) bool { return true }, nil); err == nil {
		t.Error("it says that it has erased what it could not read")
	}
}

// TestEraseWhatIsOnItsWay checks that EraseSession also erases entries that a running engine had queued but not yet
// written.
func TestEraseWhatIsOnItsWay(t *testing.T) {
	m, o := newMemory("c1"), options(t)
	l := opening(t, m, o)
	r := &LogReader{Stores: []LogStore{m}, Keys: o.Keys}
	_ = l.Record(request("x"), false) // not written yet
	if _, err := r.EraseSession(t.Context(), "", "s"); err != nil {
		t.Fatal(err)
	}
	_ = l.Record(call("x"), true)
	_ = l.Record(core.AuditEvent{Kind: core.EventRequest, Execution: "y", Session: "s", Body: json.RawMessage(`"after"`)}, true)
	page, err := r.Find(t.Context(), Query{})
	if err != nil || len(page.Entries) != 3 || page.Entries[0].Erased || !page.Entries[1].Erased || !page.Entries[2].Erased {
		t.Errorf("%+v, %v", page.Entries, err)
	}
}

// TestAnotherPerson checks how the entries of another person in a shared store are reported: not as faulty, and not
// as erased, although they cannot be read.
func TestAnotherPerson(t *testing.T) {
	m := newMemory("c1")
	mine := Options{Keys: testKeys(), Checkpoints: t.TempDir(), Home: "home"}
	other := Options{Keys: LogKeys{Bodies: testKeys().Codes, Codes: testKeys().Bodies}, Checkpoints: t.TempDir(), Home: "other"}
	for chain, o := range map[string]Options{"c1": mine, "c2": other} {
		m.chain = chain
		l := opening(t, m, o)
		_ = l.Record(request(chain), true)
		_ = l.Record(end(chain), true)
		_ = l.Close()
	}
	r := &LogReader{Stores: []LogStore{m}, Checkpoints: mine.Checkpoints, Home: "home", Keys: mine.Keys}
	v := verified(t, r, VerifyOptions{})
	if !v.OK || len(v.Notes) != 1 || v.Chains[0].Foreign || !v.Chains[1].Foreign {
		t.Errorf("%+v", v)
	}
	page, err := r.Find(t.Context(), Query{Filter: Filter{Kinds: []string{"request"}}})
	for _, e := range page.Entries {
		if err != nil || e.Erased || (e.Body != nil) != (e.Chain == "c1") {
			t.Errorf("%+v, %v", e, err)
		}
	}
	if _, err := r.EraseMentions(t.Context(), func(_, _, _ string) bool { return false }, nil); err == nil || !strings.Contains(err.Error(), "1 entries") {
		t.Error(err)
	}
	m.rows["c2"][1].Status = "x"
	if v := verified(t, r, VerifyOptions{}); v.OK || v.First.What != Edited {
		t.Errorf("%+v", v.First)
	}
	rows := m.rows["c1"]
	rows[1].Code = rows[0].Code
	m.rows["c2"] = nil
	if v := verified(t, r, VerifyOptions{}); v.OK || v.First.What != Rehashed {
		t.Errorf("%+v", v.First)
	}
}
