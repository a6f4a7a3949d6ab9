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

// ran has an engine start and end.
func ran(t *testing.T, c engine.Config) {
	t.Helper()
	e, err := engine.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// Settings that were loosened while nothing was recorded are found at the next start that
// records, and a report tells of it.
func TestChangedSettingsAreRecorded(t *testing.T) {
	c := engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: t.TempDir(), Keys: t.TempDir()}
	ran(t, c)
	ran(t, c)
	if r := reported(t, c); len(r.Activity.Settings) > 0 {
		t.Error(r.Activity.Settings)
	}
	c.Settings = "auditLogging: false\npermissionLevel: execute_full"
	ran(t, c)
	if r := reported(t, c); r.Recorded || r.Activity.Engines != 2 {
		t.Error(r.Recorded, r.Activity.Engines)
	}
	c.Settings = "permissionLevel: execute_full"
	ran(t, c)
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

// A report tells where the record is kept, and not the password that is a part of it.
func TestReportHasNoSecrets(t *testing.T) {
	c := engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Limits: unhurried, Home: t.TempDir(), Keys: t.TempDir(), Settings: `
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

// failing takes some bytes, and then no more.
type failing struct{ left int }

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errors.New("no room")
	}
	return len(p), nil
}

// What could not be written has no cursor: the next export begins where this one did.
func TestExportThatFails(t *testing.T) {
	c := engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: t.TempDir(), Keys: t.TempDir()}
	ran(t, c)
	out, err := admin.ExportAudit(t.Context(), c, &failing{}, admin.AuditExport{Format: "jsonl"})
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
