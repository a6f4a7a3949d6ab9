package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"retort/internal/admin"
	"retort/internal/audit"
	"retort/internal/core"
	"retort/internal/devel/demo"
	"retort/internal/engine"
)

// TestRecord checks that each step of an execution has an entry, in order. It also checks that no entry contains
// personal data, except for a name that the program itself contains.
func TestRecord(t *testing.T) {
	c := engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: t.TempDir(), Keys: t.TempDir(), Settings: "approval: {autoApproveMedium: false, askFirst: false}", Limits: unlimitedTime}
	for _, name := range []string{"crm", "chat"} {
		c.Servers = append(c.Servers, engine.Server{Name: name, Dial: demo.DialFunc(name)})
	}
	e, err := engine.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ask := engine.WithChannel(t.Context(), func(_ context.Context, a engine.Approval) (engine.Answer, bool) {
		return engine.Answer{Approve: a.Tool == "create_record", By: "test"}, true
	})
	o := e.Execute(ask, engine.Request{ID: "one", Session: "s", Client: "client 1", Code: `
		const found = await crm.searchRecords({objectType: 'Contact', limit: 3});
		await crm.createRecord({objectType: 'Lead', data: {LastName: 'Holstad', Company: 'C', Email: found.records[0].Email}});
		try { await crm.updateRecord({objectType: 'Contact', recordId: '003001000', data: {Title: 'x'}}) } catch (e) { console.log(e.kind) }
		return found.records[0].Email`})
	if o.Status != core.StatusDenied {
		t.Fatal(o.Status, o.Error)
	}
	page, err := admin.QueryExecution(t.Context(), c, "one")
	if err != nil {
		t.Fatal(err)
	}
	var story []string
	for _, entry := range page.Entries {
		line := strings.Join([]string{string(entry.Kind), entry.Tool, entry.Status}, " ")
		story = append(story, line)
		if text, _ := json.Marshal(entry); entry.Kind != core.EventRequest && strings.Contains(string(text), "Holstad") || strings.Contains(string(text), "@") {
			t.Errorf("an entry tells something personal: %s", text)
		}
		if entry.Kind == core.EventEnd {
			checkEndEntry(t, entry)
		}
	}
	const want = "request  |verdict  ok|decision  automatic|call search_records ok|question create_record |decision create_record approved|" +
		"call create_record |answer create_record ok|question update_record |decision update_record denied|refusal update_record policy|end  denied"
	if got := strings.Join(story, "|"); got != want {
		t.Errorf("recorded is\n%s\nand not\n%s", got, want)
	}
}

// checkEndEntry checks the last entry of an execution against the Outcome.
func checkEndEntry(t *testing.T, e audit.Entry) {
	t.Helper()
	var facts struct {
		Calls    int
		Refusals int
		Personal map[string]int
		Client   string
	}
	if err := json.Unmarshal(e.Facts, &facts); err != nil {
		t.Fatal(err)
	}
	if facts.Calls != 2 || facts.Refusals != 1 || facts.Personal["email"] < 3 || facts.Personal["name"] < 3 || facts.Client != "client 1" {
		t.Errorf("of its end is recorded %s", e.Facts)
	}
}
