package engine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"retort/internal/admin"
	"retort/internal/engine"
)

// openAndClose opens an engine and closes it.
func openAndClose(t *testing.T, c engine.Config) {
	t.Helper()
	e, err := engine.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestChangedSettingsAreRecorded checks that settings that were loosened while the audit log was disabled are
// recorded by the next engine that records, and appear in a report.
func TestChangedSettingsAreRecorded(t *testing.T) {
	c := engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: t.TempDir(), Keys: t.TempDir()}
	openAndClose(t, c)
	openAndClose(t, c)
	if r := reported(t, c); len(r.Activity.Settings) > 0 {
		t.Error(r.Activity.Settings)
	}
	c.Settings = "auditLogging: false\npermissionLevel: execute_full"
	openAndClose(t, c)
	if r := reported(t, c); r.Recorded || r.Activity.Engines != 2 {
		t.Error(r.Recorded, r.Activity.Engines)
	}
	c.Settings = "permissionLevel: execute_full"
	openAndClose(t, c)
	r := reported(t, c)
	if len(r.Activity.Settings) != 1 || !strings.Contains(strings.ToLower(r.Activity.Settings[0].What), "permissionlevel") || !r.Integrity.OK {
		t.Error(r.Activity.Settings, r.Integrity)
	}
}

func reported(t *testing.T, c engine.Config) *admin.AuditReport {
	t.Helper()
	r, err := admin.ReportAudit(t.Context(), c, "soc2", admin.ReportPeriod{From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestReportHasNoSecrets checks that a report says where the audit log is stored, without the password in that
// address.
func TestReportHasNoSecrets(t *testing.T) {
	c := engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Limits: unlimitedTime, Home: t.TempDir(), Keys: t.TempDir(), Settings: `
principals: {intern: {permissionLevel: read_only, servers: {crm: {deny: ["delete_*"]}}}}
approval: {webhook: {url: "https://hook.example/swordfish", secret: "whsec_c3dvcmRmaXNoc3dvcmRmaXNoc3dvcmRmaXNo"}}`}
	var out bytes.Buffer
	r := reported(t, c)
	if err := r.Write(&out, "json"); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "swordfish") || strings.Contains(out.String(), "c3dv") {
		t.Error(out.String())
	}
	if last := r.Access[len(r.Access)-1]; last.Name != "intern" || last.May != "read_only; crm: deny delete_*" {
		t.Error(r.Access)
	}
}

// failingWriter is a writer that accepts some bytes and then fails.
type failingWriter struct{ left int }

func (f *failingWriter) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errors.New("no room")
	}
	return len(p), nil
}

// TestExportThatFails checks that an export that cannot be written returns no cursor, so that the next one begins
// where this one did.
func TestExportThatFails(t *testing.T) {
	c := engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: t.TempDir(), Keys: t.TempDir()}
	openAndClose(t, c)
	out, err := admin.ExportAudit(t.Context(), c, &failingWriter{}, admin.AuditExport{Format: "jsonl"})
	if err == nil || out.Cursor != "" {
		t.Error(out, err)
	}
	var all bytes.Buffer
	out, err = admin.ExportAudit(t.Context(), c, &all, admin.AuditExport{Format: "jsonl"})
	var first admin.AuditEntry
	if err != nil || out.Entries != 2 || out.Cursor == "" || json.Unmarshal(bytes.SplitN(all.Bytes(), []byte("\n"), 2)[0], &first) != nil || first.Kind != "start" {
		t.Error(out, err, all.String())
	}
}
