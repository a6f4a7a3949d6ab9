package engine_test

import (
	"slices"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/demo"
	"retort/internal/engine"
)

// TestPrincipals checks that a principal finds the tools that it may call, and no others, with every way of
// searching.
func TestPrincipals(t *testing.T) {
	e, err := engine.Open(t.Context(), engine.Config{
		NoFiles: true, Reserve: engine.ReserveNone, Home: t.TempDir(), Servers: []engine.Server{{Name: "crm", Dial: demo.DialFunc("crm")}, {Name: "mail", Dial: demo.DialFunc("mail")}},
		Settings: `
servers: {mail: {deny: [list_history]}}
principals:
  reader: {permissionLevel: read_only}
  clerk: {servers: {crm: {deny: ["delete_*"], conditions: {search_records: "args.objectType == 'Lead' && principal == 'clerk'"}}}}
`})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.WaitForServers(t.Context())
	for _, c := range []struct {
		principal string
		tools     int
		hidden    string
	}{
		{"", 21, "mail.listHistory"}, {"stranger", 21, "mail.listHistory"},
		{"reader", 11, "crm.deleteRecord crm.updateRecord mail.sendMessage mail.listHistory"}, {"clerk", 20, "crm.deleteRecord mail.listHistory"},
	} {
		as := e.As(c.principal)
		all, err := as.Search(t.Context(), engine.Query{Limit: 100})
		if err != nil || all.Total != c.tools || len(all.Tools) != c.tools || as.Toolset().CountTools() != c.tools {
			t.Errorf("%q finds %d of %d tools and has %d, want %d, %v", c.principal, len(all.Tools), all.Total, as.Toolset().CountTools(), c.tools, err)
		}
		found, err := as.Search(t.Context(), engine.Query{Text: "record message history list send delete update", Limit: 100, Weak: true})
		if err != nil || found.Total != len(found.Tools) {
			t.Errorf("%q: %d of %d, %v", c.principal, len(found.Tools), found.Total, err)
		}
		for _, name := range strings.Fields(c.hidden) {
			if slices.ContainsFunc(append(all.Tools, found.Tools...), func(f core.FoundTool) bool { return f.Name == name }) {
				t.Errorf("%q finds %s", c.principal, name)
			}
			if _, err := as.Describe(t.Context(), []string{name}, ""); kind(err) != core.KindPolicy {
				t.Errorf("%q describes %s: %v", c.principal, name, err)
			}
			if o := as.Call(t.Context(), engine.Request{}, name, []byte(`{}`)); o.Status != core.StatusDenied || o.Error.Kind != core.KindPolicy {
				t.Errorf("%q calls %s: %s %+v", c.principal, name, o.Status, o.Error)
			}
			if o := as.Execute(t.Context(), engine.Request{Code: "return " + name + "({})"}); o.Status != core.StatusRejected || o.Error.Kind != core.KindPolicy {
				t.Errorf("%q runs %s: %s %+v", c.principal, name, o.Status, o.Error)
			}
			if o := as.Execute(t.Context(), engine.Request{Code: "return (await searchTools('record message history list send delete update', 'name')).some((t: any) => t.name === '" + name + "')"}); string(o.Result) != "false" {
				t.Errorf("%q: searchTools finds %s: %s %+v", c.principal, name, o.Result, o.Error)
			}
		}
	}
	for principal, want := range map[string]core.OutcomeStatus{"": core.StatusOK, "reader": core.StatusOK, "clerk": core.StatusDenied} {
		if o := e.As(principal).Call(t.Context(), engine.Request{}, "crm.search_records", []byte(`{"objectType":"Contact"}`)); o.Status != want {
			t.Errorf("%q: %s, %+v, want %s", principal, o.Status, o.Error, want)
		}
	}
}

// TestSettingsForNobody checks that settings for a misspelt server are an error, because their restrictions would
// otherwise apply to no server.
func TestSettingsForNobody(t *testing.T) {
	for _, text := range []string{`servers: {crn: {deny: ["*"]}}`, `principals: {ada: {servers: {crn: {deny: ["*"]}}}}`} {
		_, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: t.TempDir(), Settings: text, Servers: []engine.Server{{Name: "crm", Dial: demo.DialFunc("crm")}}})
		if kind(err) != core.KindInvalidArguments || !strings.Contains(err.Error(), `the server "crn", which is not configured`) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func kind(err error) core.Kind {
	if err == nil {
		return ""
	}
	return core.AsError(err).Kind
}
