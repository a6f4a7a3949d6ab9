package sqlstore

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"retort/internal/audit"
	"retort/internal/base/seal"
	"retort/internal/core"
	"retort/internal/devel/testenv"
)

// What the record proves and erases, with SQLite below it.

func keys() audit.LogKeys {
	key := func(b byte) func() ([]byte, error) {
		return func() ([]byte, error) { return bytes.Repeat([]byte{b}, 32), nil }
	}
	return audit.LogKeys{Bodies: key(1), Codes: key(2)}
}

// openLog returns a log that writes to a new file, a reader for it, and the path of the file.
func openLog(t testing.TB, o Options) (*audit.Log, *audit.LogReader, string) {
	dir := t.TempDir()
	path := filepath.Join(dir, "record-1.db")
	r := &audit.LogReader{Archives: filepath.Join(dir, "archive"), Checkpoints: t.TempDir(), Home: "home", Keys: keys()}
	owner, err := keys().OwnerID()
	must(t, err)
	l, err := audit.Open(background, open(t, path, Options{Owner: owner}), audit.Options{Keys: keys(), Checkpoints: r.Checkpoints, Home: "home"})
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	o.ReadOnly = true
	r.Stores = []audit.LogStore{open(t, path, o)}
	r.Erasing = func(e core.AuditEvent) error {
		if refused := l.Record(e, true); refused != nil {
			return refused
		}
		return nil
	}
	return l, r, path
}

func ran(l *audit.Log, id, session, text string) {
	body, _ := json.Marshal(map[string]string{"code": text})
	for _, kind := range []core.EventKind{core.EventRequest, core.EventCall, core.EventAnswer, core.EventEnd} {
		e := core.AuditEvent{Kind: kind, Execution: id, Session: session, Server: "crm", Tool: "update", Status: "ok"}
		if kind == core.EventRequest {
			e.Body = body
		}
		_ = l.Record(e, kind == core.EventEnd)
	}
}

func TestTampering(t *testing.T) {
	l, r, path := openLog(t, Options{})
	for i := range 50 {
		ran(l, fmt.Sprintf("x%d", i), "s", "return 1")
	}
	must(t, r.Stores[0].Close())
	must(t, l.Close()) // the last one takes its log into the file
	whole, err := os.ReadFile(path)
	must(t, err)
	r.Stores = []audit.LogStore{open(t, path, Options{ReadOnly: true})}
	copied := "chain, at, kind, execution, session, principal, server, tool, status, risk, micros, bytes, returned, avoided, hash, code, facts, body"
	for _, c := range []struct {
		what       string
		seq        int64
		statements []string
	}{
		{audit.Edited, 42, []string{"UPDATE entries SET status = kind WHERE seq = 42"}},
		{audit.Edited, 41, []string{"UPDATE entries SET body = x'00' WHERE seq = 41"}},
		{audit.Deleted, 42, []string{"DELETE FROM entries WHERE seq BETWEEN 42 AND 50"}},
		{audit.Deleted, 42, []string{"DELETE FROM entries WHERE seq = 42", "UPDATE entries SET seq = -seq WHERE seq > 42", "UPDATE entries SET seq = -seq - 1 WHERE seq < 0"}},
		{audit.Swapped, 42, []string{"UPDATE entries SET seq = -1 WHERE seq = 42", "UPDATE entries SET seq = 42 WHERE seq = 90", "UPDATE entries SET seq = 90 WHERE seq = -1"}},
		{audit.Inserted, 42, []string{"UPDATE entries SET seq = -seq WHERE seq >= 42", "UPDATE entries SET seq = -seq + 1 WHERE seq < 0",
			"INSERT INTO entries (seq, " + copied + ") SELECT 42, " + copied + " FROM entries WHERE seq = 8"}},
		{audit.Truncated, 191, []string{"DELETE FROM entries WHERE seq > 190"}},
		{audit.Truncated, 191, []string{"DELETE FROM entries WHERE seq > 190", "UPDATE chains SET seq = 190, hash = (SELECT hash FROM entries WHERE seq = 190)"}},
		{audit.Rehashed, 42, []string{"UPDATE entries SET code = x'00000000000000000000000000000000' WHERE seq >= 42"}},
		{audit.Deleted, 1, []string{"DELETE FROM entries WHERE seq <= 20", "UPDATE chains SET base = 20"}},
		{audit.Missing, 1, []string{"DELETE FROM entries", "DELETE FROM chains"}},
	} {
		changed := filepath.Join(t.TempDir(), "record-1.db")
		must(t, os.WriteFile(changed, whole, 0o600))
		db, err := sql.Open("sqlite", changed)
		must(t, err)
		for _, s := range c.statements {
			if _, err := db.Exec(s); err != nil {
				t.Fatal(s, err)
			}
		}
		must(t, db.Close())
		seen := &audit.LogReader{
			Stores:   []audit.LogStore{open(t, changed, Options{ReadOnly: true})},
			Archives: r.Archives, Checkpoints: r.Checkpoints, Home: r.Home, Keys: r.Keys,
		}
		v, err := seen.Verify(background, audit.VerifyOptions{})
		must(t, err)
		if v.OK || v.First.What != c.what || v.First.Seq != c.seq {
			t.Errorf("%s: %+v", c.statements[0], v.First)
		}
	}
	v, err := r.Verify(background, audit.VerifyOptions{})
	if must(t, err); !v.OK || v.Entries != 201 {
		t.Errorf("%+v", v)
	}
}

func chainOnly(t *testing.T, r *audit.LogReader) string {
	all, err := r.Stores[0].Chains(background)
	must(t, err)
	return all[0].Chain
}

// filesWith returns the names of the files below a folder that contain the given bytes.
func filesWith(t *testing.T, dir string, what []byte) (files []string) {
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, what) {
			files = append(files, filepath.Base(path))
		}
		return err
	}))
	return files
}

// TestErasedBesideAnEngine checks that another process can erase a person's entries while an engine is writing.
// Afterwards no file contains the text or the keys, later bodies of the running execution cannot be read, and the log
// is still valid.
func TestErasedBesideAnEngine(t *testing.T) {
	l, r, path := openLog(t, Options{Forgets: true})
	dir := filepath.Dir(path)
	for i := range 100 {
		ran(l, fmt.Sprintf("x%d", i), "s", "return "+strings.Repeat("x", 50+i))
	}
	ran(l, "anna", "s", `mail.send("Anna.Smith@example.com")`)
	ran(l, "bert", "s", `mail.send("bert@example.com")`)
	body := json.RawMessage(`{"code":"// anna.smith@EXAMPLE.com"}`)
	_ = l.Record(core.AuditEvent{Kind: core.EventRequest, Execution: "open", Session: "s", Body: body}, true)
	before, err := r.Stores[0].Keys(background, []string{"anna", "bert", "open"})
	must(t, err)
	if len(before) != 3 || len(filesWith(t, dir, before["anna"].Wrapped)) == 0 {
		t.Fatal("the keys are nowhere")
	}
	seal.IsClockSteady(filepath.Join(r.Archives, "."+chainOnly(t, r)), time.Now().Add(-time.Hour))
	if _, err := l.ApplyRetention(background, audit.RetentionPolicy{Dir: r.Archives, Keep: time.Nanosecond}); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(r.Archives, "*.gz")); len(left) != 1 {
		t.Fatalf("archives: %v", left)
	}
	out, err := r.EraseMentions(background, func(_, _, s string) bool { return strings.Contains(strings.ToLower(s), "anna.smith@example.com") }, nil)
	if must(t, err); out.Keys != 2 {
		t.Errorf("%+v", out)
	}
	_ = l.Record(core.AuditEvent{Kind: core.EventCall, Execution: "open", Session: "s", Body: body}, true)
	_ = l.Record(core.AuditEvent{Kind: core.EventEnd, Execution: "open", Session: "s"}, true)
	for _, id := range []string{"anna", "open"} {
		if files := filesWith(t, dir, before[id].Wrapped); len(files) > 0 {
			t.Errorf("the key of %s is in %v", id, files)
		}
	}
	if len(filesWith(t, dir, before["bert"].Wrapped)) == 0 {
		t.Error("the key of somebody else is gone")
	}
	for _, text := range []string{"Anna.Smith", "anna.smith", "mail.send", "bert@example"} {
		if files := filesWith(t, dir, []byte(text)); len(files) > 0 {
			t.Errorf("%s is in %v", text, files)
		}
	}
	page, err := r.Find(background, audit.Query{Limit: 10_000})
	must(t, err)
	for _, e := range page.Entries {
		erased := e.Execution == "anna" || e.Execution == "open"
		if hasBody := e.Kind == "request" || e.Execution == "open" && e.Kind == "call"; hasBody && (e.Erased != erased || erased == (e.Body != nil)) {
			t.Errorf("%+v", e)
		}
	}
	v, err := r.Verify(background, audit.VerifyOptions{})
	if must(t, err); !v.OK || len(page.Entries) != int(v.Entries) {
		t.Errorf("%+v", v)
	}
}

func BenchmarkRecord(b *testing.B) {
	l, r, _ := openLog(b, Options{})
	const executions = million / 4
	text := strings.Repeat("return await crm.update({id: 1}); ", 10)
	for i := range executions {
		body, _ := json.Marshal(map[string]string{"code": text + fmt.Sprint(i)})
		for _, kind := range []core.EventKind{core.EventRequest, core.EventCall, core.EventAnswer, core.EventEnd} {
			e := core.AuditEvent{Kind: kind, Execution: fmt.Sprintf("x%012d", i), Session: fmt.Sprint("s", i/100), Server: "crm", Tool: fmt.Sprint("update", i%50), Status: "ok", Body: body}
			if !testenv.Poll(func() bool { return l.Record(e, i%500 == 0 && kind == core.EventEnd) == nil }) {
				b.Fatal("what happens is not recorded")
			}
		}
	}
	must(b, l.Close())
	for name, q := range map[string]audit.Query{
		"newest": {}, "session": {Filter: audit.Filter{Session: "s700"}}, "tool": {Filter: audit.Filter{Tool: "update7"}},
		"execution": {Filter: audit.Filter{Executions: []string{"x000000001234"}}}, "text": {Text: fmt.Sprint("; ", executions-900, `"`)},
	} {
		b.Run("Find/"+name, func(b *testing.B) {
			for b.Loop() {
				page, err := r.Find(background, q)
				if err != nil || len(page.Entries) == 0 {
					b.Fatal(page, err)
				}
			}
		})
	}
	b.Run("Verify", func(b *testing.B) {
		entries := int64(0)
		for b.Loop() {
			v, err := r.Verify(background, audit.VerifyOptions{})
			if err != nil || !v.OK {
				b.Fatal(v.First, err)
			}
			entries += v.Entries
		}
		b.ReportMetric(float64(entries)/b.Elapsed().Seconds(), "entries/s")
	})
}

// TestForgetBeside checks that a read-only store with Options.Forgets can delete keys, but nothing else, while
// another process writes.
func TestForgetBeside(t *testing.T) {
	runWithEach(t, func(t *testing.T, url string) {
		s := open(t, url, Options{})
		must(t, s.Append(background, audit.WriteBatch{Rows: nextRows(t, s, 2), Keys: []audit.BodyKey{{ID: "a", Wrapped: []byte("1")}, {ID: "b", Wrapped: []byte("2")}}}))
		f := open(t, url, Options{ReadOnly: true, Forgets: true})
		for i, want := range []int{1, 0} {
			if n, err := f.Forget(background, []string{"a", "c"}); err != nil || n != want {
				t.Errorf("%d: %d, %v", i, n, err)
			}
		}
		left, err := s.Keys(background, []string{"a", "b"})
		if must(t, err); len(left) != 1 || left["b"].ID != "b" {
			t.Errorf("%v", left)
		}
		rows := nextRows(t, s, 1)
		if f.Append(background, audit.WriteBatch{Rows: rows}) == nil {
			t.Error("it writes")
		}
		must(t, s.Append(background, audit.WriteBatch{Rows: rows}))
		if _, err := open(t, url, Options{ReadOnly: true}).Forget(background, []string{"b"}); err == nil {
			t.Error("who only reads has forgotten")
		}
	})
}
