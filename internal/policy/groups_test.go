package policy_test

import (
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/policy"
)

// denies returns limits that deny one tool of the server db.
func denies(name string) policy.AccessLimits {
	return policy.AccessLimits{Servers: map[string]policy.ServerRules{"db": {Deny: []string{name}}}}
}

// TestGroups checks that the entries of all groups of a principal and the principal's own entry restrict each call,
// and that no name or group can be mistaken for another entry.
func TestGroups(t *testing.T) {
	rules := policy.Rules{
		AccessLimits: policy.AccessLimits{Level: policy.ExecuteFull},
		Principals: map[string]policy.AccessLimits{
			"anna": denies("get_row"), "group:finance": denies("list_rows"), "group:interns": {Level: policy.ReadOnly},
		},
	}
	const get, list, drop = "get_row", "list_rows", "drop_table"
	for _, c := range []struct {
		principal string
		groups    []string
		denied    string // names of the denied tools
	}{
		{"", nil, ""},
		{"bert", nil, ""},
		{"bert", []string{"sales"}, ""},
		{"bert", []string{"finance"}, list},
		{"bert", []string{"interns", "finance", "finance"}, list + " " + drop},
		{"anna", nil, get},
		{"anna", []string{"sales", "finance"}, get + " " + list},
		{"anna", []string{"finance", "interns"}, get + " " + list + " " + drop},
		{"bert", []string{"anna"}, ""},          // a group called like a user
		{"bert", []string{"group:finance"}, ""}, // a group called like an entry
		{"bert", []string{"Finance"}, list},
		{"bert", []string{"ｆinance "}, list}, // a wide letter and a blank
		{"finance", nil, ""},                 // a user called like a group
		{"group:finance", nil, get + " " + list + " " + drop},
		{"group:none", []string{"sales"}, get + " " + list + " " + drop},
	} {
		static := must(t, rules).ViewFor(c.principal, c.groups...)
		following := policy.NewCurrent(must(t, rules)).ViewFor(c.principal, c.groups...)
		for _, v := range []*policy.PrincipalView{static, following, following.FreezePolicy()} {
			var denied []string
			for _, name := range []string{get, list, drop} {
				if v.DecideTool(tool("db", name)).Verdict == policy.Deny {
					denied = append(denied, name)
				}
			}
			if got := strings.Join(denied, " "); got != c.denied {
				t.Errorf("%s %q: denied %q, want %q", c.principal, c.groups, got, c.denied)
			}
		}
	}
}

// TestGroupsShareViews checks that principals to whom the same entries apply share one list of visible tools, and that
// the list is not made again for every question.
func TestGroupsShareViews(t *testing.T) {
	p := must(t, policy.Rules{Principals: map[string]policy.AccessLimits{"group:a": denies("get_row"), "group:b": denies("list_rows")}})
	all := whole()
	anna := p.ViewFor("anna", "a", "b").VisibleToolset(all)
	if anna == all || p.ViewFor("bert", "b", "c", "a").VisibleToolset(all) != anna {
		t.Error("the same entries apply, but the lists differ")
	}
	if p.ViewFor("anna", "a").VisibleToolset(all) == anna || p.ViewFor("anna", "c").VisibleToolset(all) != all {
		t.Error("different entries apply, but the lists are the same")
	}
}

// TestGroupsChange checks that a reload restricts the members of a group at once, and that everything is denied to the
// members of a group whose entry was removed.
func TestGroupsChange(t *testing.T) {
	entry := map[string]policy.AccessLimits{"group:a": denies("get_row")}
	current := policy.NewCurrent(must(t, policy.Rules{}))
	v, row := current.ViewFor("anna", "a", "b"), tool("db", "get_row")
	begun := v.FreezePolicy()
	if v.DecideTool(row).Verdict == policy.Deny {
		t.Error("denied without a rule")
	}
	current.ReplacePolicy(must(t, policy.Rules{Principals: entry}))
	for _, v := range []*policy.PrincipalView{v, begun} {
		if d := v.DecideTool(row); d.Verdict != policy.Deny || d.Rule != "principals.group:a.servers.db.deny: get_row" {
			t.Errorf("%+v", d)
		}
	}
	current.ReplacePolicy(must(t, policy.Rules{Removed: []string{"group:a"}}))
	if refused := v.RefusedError(); refused == nil || !strings.Contains(refused.Message, "principals.group:a was removed") {
		t.Error(refused)
	}
	if refused := current.ViewFor("anna", "b").RefusedError(); refused != nil {
		t.Error(refused)
	}
	if refused := current.ViewFor("group:a").RefusedError(); refused == nil || refused.Kind != core.KindPolicy {
		t.Error(refused)
	}
}
