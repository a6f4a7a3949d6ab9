//go:build unix

package engine_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"retort/internal/admin"
	"retort/internal/engine"
)

// FuzzHomeFiles checks that damaged files of a data directory are handled safely. It replaces some bytes of one file
// by data of any length. Everything that reads the directory without an engine must return. If entries of the audit
// log differ afterwards, verifying it must fail or reading it must give a warning.
func FuzzHomeFiles(f *testing.F) {
	whole, dir := f.TempDir(), f.TempDir()
	paths := fillHome(f, whole)
	paths = slices.DeleteFunc(paths, func(path string) bool {
		info, err := os.Stat(path)
		return err != nil || !info.Mode().IsRegular()
	})
	before, _ := entriesOf(f, killable(whole))
	for i := range paths {
		f.Add(uint8(i), uint32(0), uint16(0xffff), []byte("{}"))
		f.Add(uint8(i), uint32(20), uint16(4), []byte{0xff, 0, 0xff, 0xff})
		f.Add(uint8(i), uint32(1000), uint16(1), []byte("x"))
		f.Add(uint8(i), uint32(8192), uint16(0xffff), []byte{})
	}
	f.Fuzz(func(t *testing.T, which uint8, offset uint32, length uint16, data []byte) {
		check(t, os.RemoveAll(dir))
		check(t, os.CopyFS(dir, os.DirFS(whole)))
		name, err := filepath.Rel(whole, paths[int(which)%len(paths)])
		check(t, err)
		replaceBytes(t, filepath.Join(dir, name), int(offset), int(length), data)
		c := killable(dir)
		verdict := readWithoutEngine(t.Context(), c)
		if after, warned := entriesOf(t, c); verdict.OK && !warned && after != before {
			t.Errorf("after a change of %s, verify says that the audit log is whole, but its entries are\n%s\ninstead of\n%s", name, after, before)
		}
	})
}

// replaceBytes replaces up to length bytes of a file at an offset, both taken modulo the file's size.
func replaceBytes(t *testing.T, path string, offset, length int, data []byte) {
	t.Helper()
	text, err := os.ReadFile(path)
	check(t, err)
	offset %= len(text) + 1
	check(t, os.WriteFile(path, slices.Replace(text, offset, min(offset+length, len(text)), data...), 0o600))
}

// readWithoutEngine calls everything that reads a data directory without an engine. The calls may fail, but must
// return.
func readWithoutEngine(ctx context.Context, c engine.Config) admin.AuditVerdict {
	verdict, err := admin.VerifyAudit(ctx, c, admin.VerifyOptions{})
	verdict.OK = verdict.OK && err == nil
	_, _ = admin.SumUsage(ctx, c, admin.UsageSpan{})
	_, _ = admin.ExportAudit(ctx, c, io.Discard, admin.AuditExport{Format: "jsonl"})
	_, _ = admin.ListApprovals(c)
	_, _ = admin.ListTokens(c)
	_, _ = admin.ListJobs(c)
	return verdict
}

// entriesOf returns all entries of the audit log as JSON, and whether a warning said that some are missing.
func entriesOf(t testing.TB, c engine.Config) (text string, warned bool) {
	t.Helper()
	page, err := admin.QueryAudit(t.Context(), c, admin.AuditQuery{})
	if err != nil {
		return err.Error(), true
	}
	entries, err := json.Marshal(page.Entries)
	check(t, err)
	return string(entries), len(page.Warnings) > 0
}
