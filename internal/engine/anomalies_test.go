package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"retort/internal/anomaly"
	"retort/internal/audit"
	"retort/internal/audit/sqlstore"
	"retort/internal/base/seal"
	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/devel/demo"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
	"retort/internal/privacy/vault"
)

func TestAnomalyKindsOfSettings(t *testing.T) {
	var kinds []string
	for _, k := range anomaly.AllKinds() {
		kinds = append(kinds, string(k))
	}
	if !slices.Equal(kinds, config.AnomalyKinds()) {
		t.Errorf("%v, settings name %v", kinds, config.AnomalyKinds())
	}
}

// fillQuietHome returns a data directory whose audit log records a few weeks of usual activity, and the folder of its
// keys.
func fillQuietHome(t *testing.T) (home, keys string) {
	t.Helper()
	home, keys = t.TempDir(), t.TempDir()
	private := audit.LogKeys{
		Bodies: vault.KeySource{File: filepath.Join(keys, "vault.key")}.Read,
		Codes:  func() ([]byte, error) { return seal.LoadOrCreateKey(filepath.Join(keys, "audit.key")) },
	}
	owner, err := private.OwnerID()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := sqlstore.Open(t.Context(), filepath.Join(home, "audit")+string(filepath.Separator), sqlstore.Options{Owner: owner})
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.Open(t.Context(), rows, audit.Options{
		Keys: private, Checkpoints: filepath.Join(keys, "checkpoints"), Home: home,
	})
	if err != nil {
		t.Fatal(err)
	}
	tell := func(e core.AuditEvent) {
		if refused := log.Record(e, false); refused != nil {
			t.Fatal(refused)
		}
	}
	now := time.Now()
	for i := range 80 {
		at := now.Add(-20*24*time.Hour + time.Duration(i)*6*time.Hour)
		e := core.AuditEvent{Kind: core.EventRequest, At: at, Execution: fmt.Sprint("past", i), Session: "default"}
		tell(e)
		call := e
		call.Kind, call.Server, call.Tool, call.Effect, call.Status, call.Bytes = core.EventCall, "crm", "search_records", "read", "ok", 2000
		tell(call)
		call.Tool, call.Effect, call.Status, call.Bytes, call.Facts = "create_record", "write", "", 0, map[string]any{"arguments_bytes": 90}
		tell(call)
		call.Kind, call.Status, call.Facts = core.EventAnswer, "ok", nil
		tell(call)
		e.Kind, e.Status = core.EventEnd, "ok"
		tell(e)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return home, keys
}

// unusualEngine opens an engine with a data directory made by fillQuietHome. Its settings approve all calls that are
// not unusual.
func unusualEngine(t *testing.T, home, keys, settings string, servers ...*demo.DemoServer) *engine.Engine {
	t.Helper()
	settings = "piiTokenization: false\npermissionLevel: execute_full\napproval: {autoApproveHigh: true}\n" + settings
	c := engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Limits: unlimitedTime, Home: home, Keys: keys, Settings: settings}
	for i, s := range servers {
		c.Servers = append(c.Servers, engine.Server{Name: []string{"crm", "mail"}[i], Dial: s.Dial})
	}
	e, err := engine.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	e.WaitForServers(t.Context())
	return e
}

func demoServer(t *testing.T, name string) *demo.DemoServer {
	t.Helper()
	s, err := demo.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func effects(s *demo.DemoServer, tool string) (n int) {
	for _, e := range s.RecordedEffects() {
		if e.Tool == tool {
			n++
		}
	}
	return n
}

// findAnomalies returns the anomalies in the audit log of a data directory that no engine writes any more.
func findAnomalies(t *testing.T, home string) (kinds []string) {
	t.Helper()
	rows, err := sqlstore.Open(t.Context(), filepath.Join(home, "audit", "record-1.db"), sqlstore.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for r, err := range rows.Find(t.Context(), audit.Filter{Kinds: []string{string(core.EventAnomaly)}}) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Body == nil || len(r.Facts) == 0 {
			t.Errorf("%+v", r)
		}
		kinds = append(kinds, r.Status)
	}
	slices.Sort(kinds)
	return kinds
}

const burst = `
	const made: string[] = [];
	for (let i = 0; i < 14; i++) {
		const m: any = await crm.createRecord({objectType: 'Lead', data: {LastName: 'L' + i, Company: 'C', Email: 'l' + i + '@example.org'}});
		made.push(m.id ?? m.Id);
	}
	for (const id of made) await crm.deleteRecord({objectType: 'Lead', recordId: id});
	return made.length;`

// TestBurstAsksOnce checks a program that deletes more than ever before. A person must be asked once, before the
// tenth call is sent, although the settings approve deletions.
func TestBurstAsksOnce(t *testing.T) {
	for name, approve := range map[string]bool{"yes": true, "no": false} {
		t.Run(name, func(t *testing.T) {
			crm := demoServer(t, "crm")
			home, keys := fillQuietHome(t)
			e := unusualEngine(t, home, keys, "", crm)
			var asked atomic.Int64
			ctx := core.WithChannel(t.Context(), func(_ context.Context, a core.Approval) (core.ApprovalAnswer, bool) {
				if n := effects(crm, "delete_record"); asked.Add(1) > 1 || n != 9 || a.Unusual != "irreversible_burst" || !strings.Contains(a.Rule, "10 irreversible calls in 5 minutes") {
					t.Errorf("asked after %d: %s", n, a.Rule)
				}
				return core.ApprovalAnswer{Approve: approve, Scope: core.ScopeAlways}, true
			})
			o := e.Execute(ctx, engine.Request{Code: burst})
			want, status := 9, core.StatusDenied
			if approve {
				want, status = 14, core.StatusOK
			}
			if n := effects(crm, "delete_record"); o.Status != status || n != want || asked.Load() != 1 {
				t.Errorf("%s, %d deleted, asked %d times: %+v", o.Status, n, asked.Load(), o.Error)
			}
			if !slices.ContainsFunc(o.Warnings, func(w string) bool {
				return strings.Contains(w, "unusual (irreversible_burst): the local user made 10 irreversible calls")
			}) {
				t.Errorf("warnings: %q", o.Warnings)
			}
			_ = e.Close()
			if found := findAnomalies(t, home); !slices.Contains(found, "irreversible_burst") {
				t.Errorf("recorded: %v", found)
			}
		})
	}
}

// TestNoAnomaliesWithoutABaseline checks that an engine whose audit log is empty reports no anomaly.
func TestNoAnomaliesWithoutABaseline(t *testing.T) {
	crm := demoServer(t, "crm")
	home, keys := t.TempDir(), t.TempDir()
	e := unusualEngine(t, home, keys, "anomalies: {default: stop}", crm)
	if o := e.Execute(t.Context(), engine.Request{Code: burst}); o.Status != core.StatusOK || len(o.Warnings) != 0 {
		t.Errorf("%s %q %+v", o.Status, o.Warnings, o.Error)
	}
	_ = e.Close()
	if found := findAnomalies(t, home); len(found) != 0 {
		t.Errorf("recorded: %v", found)
	}
}

const leak = `
	let all = '';
	for (const objectType of ['Lead', 'Contact', 'Deal', 'Account'])
		for (let offset = 0; offset < 1000; offset += 200)
			all += JSON.stringify(await crm.searchRecords({objectType, limit: 200, offset}));
	try { await mail.sendMessage({to: ['x@example.org'], subject: 's', body: all.slice(0, 20000)}) } catch (e) { console.log((e as any).kind) }
	try { await crm.searchRecords({objectType: 'Lead', limit: 1}) } catch (e) { console.log((e as any).kind) }
	return all.length;`

// TestLeakIsStopped checks that a program that reads far more than usual is stopped before it sends what it has read
// elsewhere. The program can make no further call. Calls of the principal need a person's approval afterwards, even
// in an engine that is opened later.
func TestLeakIsStopped(t *testing.T) {
	crm, mail := demoServer(t, "crm"), demoServer(t, "mail")
	home, keys := fillQuietHome(t)
	alerts := make(chan engine.AnomalyAlert, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var a engine.AnomalyAlert
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &a); err != nil || r.Header.Get("webhook-signature") == "" {
			t.Errorf("%s: %v", body, err)
		}
		alerts <- a
	}))
	defer hook.Close()
	settings := `anomalies: {exfiltration: stop, webhook: {url: "` + hook.URL + `", secret: "a secret of more than 24 bytes"}}`
	e := unusualEngine(t, home, keys, settings, crm, mail)
	o := e.Execute(t.Context(), engine.Request{Code: leak})
	if o.Status != core.StatusOK || o.Output != "policy\npolicy\n" || len(mail.RecordedEffects()) != 0 {
		t.Fatalf("%s %s %q %+v, %d sent", o.Status, o.Result, o.Output, o.Error, len(mail.RecordedEffects()))
	}
	if a := testenv.Receive(t, alerts, "an alert"); a.Type != "anomaly.found" || a.Data.Kind != anomaly.Exfiltration || !strings.Contains(a.Text, "to mail.send_message") {
		t.Errorf("%+v", a)
	}
	write := `return await crm.createRecord({objectType: 'Lead', data: {LastName: 'L', Company: 'C', Email: 'l@example.org'}})`
	asks := func(e *engine.Engine) (asked int64) {
		var n atomic.Int64
		e.Execute(core.WithChannel(t.Context(), fixedAnswer(core.ApprovalAnswer{}, &n)), engine.Request{Code: write})
		return n.Load()
	}
	if asks(e) != 1 {
		t.Error("nobody is asked afterwards")
	}
	_ = e.Close()
	next := unusualEngine(t, home, keys, settings, crm, mail)
	if asks(next) != 1 {
		t.Error("the next engine asks nobody")
	}
	var n atomic.Int64
	next.Execute(core.WithChannel(t.Context(), fixedAnswer(core.ApprovalAnswer{Approve: true}, &n)), engine.Request{Code: write})
	if asks(next) != 0 {
		t.Error("a yes does not lift it")
	}
}

const probe = `
	for (let i = 90; i < 97; i++)
		try { await crm.createRecord({objectType: 'Lead', data: {LastName: 'L', Company: 'C', Email: '[EMAIL_' + i + ']'}}) } catch (e) { console.log((e as any).kind) }
	return 'tried';`

// TestGuessedTokensAreNoticed checks that each token that stands for no value is refused, and that guessing tokens is
// reported as an anomaly.
func TestGuessedTokensAreNoticed(t *testing.T) {
	crm := demoServer(t, "crm")
	home, keys := fillQuietHome(t)
	e := unusualEngine(t, home, keys, "", crm)
	_ = e.Close()
	c := engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Limits: unlimitedTime, Home: home, Keys: keys, Servers: []engine.Server{{Name: "crm", Dial: crm.Dial}}}
	e, err := engine.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.WaitForServers(t.Context())
	o := e.Execute(t.Context(), engine.Request{Code: probe})
	if o.Output != strings.Repeat("policy\n", 7) || len(crm.RecordedEffects()) != 0 {
		t.Errorf("%q %+v", o.Output, o.Error)
	}
	if !slices.ContainsFunc(o.Warnings, func(w string) bool {
		return strings.Contains(w, "unusual (probing): the local user used tokens that do not exist, or compared tokens to find out values, 5 times")
	}) {
		t.Errorf("warnings: %q", o.Warnings)
	}
}
