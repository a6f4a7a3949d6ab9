package sqlstore

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retort/internal/audit"
	"retort/internal/core"
)

// readChanged applies a change to a copy of an audit log, as another program could, and returns a reader of the
// copy.
func readChanged(t *testing.T, r *audit.LogReader, whole []byte, change func(db *sql.DB) error) *audit.LogReader {
	t.Helper()
	path := filepath.Join(t.TempDir(), "record-1.db")
	must(t, os.WriteFile(path, whole, 0o600))
	db, err := sql.Open("sqlite", path)
	must(t, err)
	db.SetMaxOpenConns(1)
	must(t, errors.Join(change(db), db.Close()))
	seen := &audit.LogReader{Archives: r.Archives, Checkpoints: r.Checkpoints, Home: r.Home, Keys: r.Keys}
	s, err := Open(background, path, Options{ReadOnly: true})
	if err != nil {
		seen.LeaveOut(err)
		return seen
	}
	t.Cleanup(func() { _ = s.Close() })
	seen.Stores = []audit.LogStore{s}
	return seen
}

// execStatements returns a change that executes SQL statements.
func execStatements(all ...string) func(db *sql.DB) error {
	return func(db *sql.DB) error {
		for _, s := range all {
			if _, err := db.Exec(s); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	}
}

// writtenLog returns a reader of a closed audit log with some executions, together with the content of its file.
func writtenLog(t *testing.T) (*audit.LogReader, []byte) {
	t.Helper()
	l, r, path := openLog(t, Options{})
	for i := range 20 {
		ran(l, fmt.Sprintf("x%d", i), "s", "return 1")
	}
	if refused := l.Record(core.AuditEvent{Kind: core.EventRequest, Execution: "open", Session: "s", Body: []byte(`{"code":"1"}`)}, true); refused != nil {
		t.Fatal(refused)
	}
	must(t, r.Stores[0].Close())
	must(t, l.Close()) // the last one takes its log into the file
	whole, err := os.ReadFile(path)
	must(t, err)
	return r, whole
}

// hideExecution returns a change that removes an execution from all indexes, while the schema stays the same.
func hideExecution(execution string) func(db *sql.DB) error {
	return func(db *sql.DB) error {
		made, err := schemaOf(background, db)
		if err != nil {
			return err
		}
		for name, text := range made {
			index, is := strings.CutPrefix(name, "index ")
			if !is || !strings.HasPrefix(index, "by_") {
				continue
			}
			evil := strings.Replace(text, index, "evil", 1)
			if strings.Contains(evil, " WHERE ") {
				evil += " AND execution <> CAST('" + execution + "' AS BLOB)"
			} else {
				evil += " WHERE execution <> CAST('" + execution + "' AS BLOB)"
			}
			if err := execStatements(evil)(db); err != nil {
				return err
			}
			var good, bad int
			root := "SELECT rootpage FROM sqlite_schema WHERE name = ?"
			if err := errors.Join(db.QueryRow(root, index).Scan(&good), db.QueryRow(root, "evil").Scan(&bad)); err != nil {
				return err
			}
			set := "UPDATE sqlite_schema SET rootpage = %d WHERE name = '%s'"
			err := execStatements("PRAGMA writable_schema = ON", fmt.Sprintf(set, bad, index), fmt.Sprintf(set, good, "evil"),
				"PRAGMA writable_schema = RESET", "DROP INDEX evil")(db)
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// TestHiddenByIndexes checks that entries which the indexes omit are still found, and that a warning names the
// indexes.
func TestHiddenByIndexes(t *testing.T) {
	r, whole := writtenLog(t)
	seen := readChanged(t, r, whole, hideExecution("x7"))
	v, err := seen.Verify(background, audit.VerifyOptions{})
	if must(t, err); v.OK || v.First.What != audit.Damaged || !strings.Contains(v.First.Says, "index") || v.Entries != 82 {
		t.Errorf("%+v", v)
	}
	for _, f := range []audit.Filter{{}, {Executions: []string{"x7"}}, {Tool: "update"}, {Kinds: []string{"end"}}, {Session: "s"}} {
		page, err := readChanged(t, r, whole, hideExecution("x7")).Find(background, audit.Query{Filter: f, Limit: 1000})
		must(t, err)
		n := 0
		for _, e := range page.Entries {
			if e.Execution == "x7" {
				n++
			}
		}
		if n == 0 || len(page.Warnings) != 1 || !strings.Contains(page.Warnings[0], "indexes") {
			t.Errorf("%+v: %d entries of the execution, %v", f, n, page.Warnings)
		}
	}
	sound := readChanged(t, r, whole, execStatements())
	want, err := sound.SumUsage(background, audit.UsageSpan{}, true)
	must(t, err)
	got, err := seen.SumUsage(background, audit.UsageSpan{}, true)
	if must(t, err); got.Executions != want.Executions || got.Calls != want.Calls || got.Entries != want.Entries || want.Executions != 20 {
		t.Errorf("%+v, want %+v", got, want)
	}
	if v, err := sound.Verify(background, audit.VerifyOptions{}); err != nil || !v.OK {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestCounts checks that counting entries, as for large files, detects indexes that omit some.
func TestCounts(t *testing.T) {
	r, whole := writtenLog(t)
	for want, change := range map[bool]func(*sql.DB) error{false: hideExecution("x7"), true: execStatements()} {
		own := readChanged(t, r, whole, change).Stores[0].(*sqlStore)
		c, err := own.db.Conn(background)
		must(t, err)
		if err := own.databaseEngine.(*sqliteEngine).checkCounts(background, c); (err == nil) != want {
			t.Errorf("sound %v: %v", want, err)
		}
		must(t, c.Close())
	}
}

// TestAlteredSchema checks that a file is neither read nor written if it has additional or missing tables, indexes,
// views or triggers.
func TestAlteredSchema(t *testing.T) {
	r, whole := writtenLog(t)
	for _, s := range []string{
		"CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM entries; END", "CREATE VIEW w AS SELECT 1", "CREATE INDEX i ON entries (code)",
		"DROP INDEX by_kind", "CREATE TABLE extra (a)", "ALTER TABLE keys ADD COLUMN a",
	} {
		seen := readChanged(t, r, whole, execStatements(s))
		if v, err := seen.Verify(background, audit.VerifyOptions{}); err != nil || v.OK {
			t.Errorf("%s: %+v, %v", s, v, err)
		}
		path := filepath.Join(t.TempDir(), "record-1.db")
		must(t, os.WriteFile(path, whole, 0o600))
		db, err := sql.Open("sqlite", path)
		must(t, err)
		must(t, errors.Join(execStatements(s)(db), db.Close()))
		_ = mustRefuse(t, path, Options{}, "a program other than Retort")
	}
}

// TestTablesBesideEntries checks that Verify finds changes in every table of the database apart from the table of
// entries.
func TestTablesBesideEntries(t *testing.T) {
	r, whole := writtenLog(t)
	for _, s := range []string{
		"DELETE FROM keys", "DELETE FROM keys WHERE id = CAST('x3' AS BLOB)", "UPDATE keys SET live = 0 WHERE id = CAST('x3' AS BLOB)",
		"UPDATE keys SET wrapped = zeroblob(60) WHERE id = CAST('x3' AS BLOB)",
		"UPDATE keys SET wrapped = (SELECT wrapped FROM keys WHERE id = CAST('x4' AS BLOB)) WHERE id = CAST('x3' AS BLOB)",
		"UPDATE keys SET session = 0 WHERE id = CAST('x3' AS BLOB)",
		"UPDATE chains SET seq = 40, hash = (SELECT hash FROM entries WHERE seq = 40)", "UPDATE chains SET seq = seq + 1", "UPDATE chains SET hash = x'00'",
		"UPDATE chains SET base = 3", "UPDATE chains SET owner = x'00'", "UPDATE chains SET owner = x''",
		"INSERT INTO chains SELECT 17, 0, NULL, 0, owner FROM chains",
		"DELETE FROM opened", "UPDATE opened SET execution = CAST('x3' AS BLOB)", "INSERT INTO opened SELECT name, CAST('x3' AS BLOB) FROM chains",
		"UPDATE names SET name = CAST('other' AS BLOB) WHERE name = CAST('crm' AS BLOB)",
	} {
		seen := readChanged(t, r, whole, execStatements(s))
		if v, err := seen.Verify(background, audit.VerifyOptions{}); err != nil || v.OK {
			t.Errorf("%s: %+v, %v", s, v, err)
		}
	}
	// Without the keys, whether each body has one is seen as well.
	seen := readChanged(t, r, whole, execStatements("DELETE FROM keys"))
	seen.Keys.Bodies = nil
	if v, err := seen.Verify(background, audit.VerifyOptions{}); err != nil || v.OK || v.First.What != audit.Keyless {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestErasureNamesKeys checks that Verify accepts missing keys only if an erasure entry lists them. If that entry
// cannot be recorded, nothing must be erased.
func TestErasureNamesKeys(t *testing.T) {
	l, r, path := openLog(t, Options{Forgets: true})
	for i := range 1200 {
		ran(l, fmt.Sprintf("x%d", i), "s", "return 1")
	}
	ran(l, "y", "other", "return 1")
	record := r.Erasing
	r.Erasing = func(core.AuditEvent) error { return errors.New("the disk is full") }
	if _, err := r.EraseSession(background, "", "s"); err == nil || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("%v", err)
	}
	if found, err := r.Stores[0].Keys(background, []string{"x3"}); err != nil || len(found) != 1 {
		t.Errorf("something is erased that is not recorded: %v, %v", found, err)
	}
	r.Erasing = record
	out, err := r.EraseSession(background, "", "s")
	if must(t, err); out.Keys != 1200 {
		t.Errorf("%+v", out)
	}
	if v, err := r.Verify(background, audit.VerifyOptions{}); err != nil || !v.OK {
		t.Errorf("%+v, %v", v, err)
	}
	must(t, r.Stores[0].Close())
	must(t, l.Close())
	whole, err := os.ReadFile(path)
	must(t, err)
	v, err := readChanged(t, r, whole, execStatements("DELETE FROM keys WHERE id = CAST('y' AS BLOB)")).Verify(background, audit.VerifyOptions{})
	if must(t, err); v.OK || v.First.What != audit.Keyless || !strings.Contains(v.First.Says, "missing keys: 1") {
		t.Errorf("%+v", v)
	}
}
