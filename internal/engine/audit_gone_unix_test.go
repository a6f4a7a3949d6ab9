//go:build unix

package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retort/internal/admin"
	"retort/internal/audit"
	"retort/internal/core"
	"retort/internal/engine"
)

// TestAuditLogDeleted checks that each call with effects has an entry that can be found, even if the files of the
// audit log are deleted while the engine runs. The log then continues in a new file, and verify reports that the old
// one is missing.
func TestAuditLogDeleted(t *testing.T) {
	dir := t.TempDir()
	c := killable(dir)
	e, err := engine.Open(t.Context(), c)
	check(t, err)
	defer e.Close()
	write := func(id string) {
		t.Helper()
		if o := e.Execute(t.Context(), engine.Request{Code: "return await notes.createNote({id: '" + id + "'})"}); o.Status != core.StatusOK {
			t.Errorf("%s: %s %v", id, o.Status, o.Error)
		}
	}
	write("before")
	files, err := filepath.Glob(filepath.Join(dir, "home", "audit", "record-*"))
	check(t, err)
	for _, file := range files {
		check(t, os.Remove(file))
	}
	for range 5 {
		write("after")
	}
	check(t, os.RemoveAll(filepath.Join(dir, "home", "audit")))
	for range 5 {
		write("later")
	}
	check(t, e.Close())
	rec := readRecord(t, dir)
	if n := rec.calls[rec.digest([]byte(`{"id":"later"}`))]; n != 5 {
		t.Errorf("%d calls of 5 are recorded", n)
	}
	if n := len(lines(t, filepath.Join(dir, "effects"))); n != 11 {
		t.Errorf("%d calls of 11 were sent", n)
	}
	v, err := admin.VerifyAudit(t.Context(), c, admin.VerifyOptions{})
	check(t, err)
	if v.OK || v.First.What != audit.Missing || !strings.Contains(strings.Join(v.Notes, "\n"), "continues chain") {
		t.Errorf("%+v", v)
	}
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}
