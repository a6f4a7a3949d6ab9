package policy_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/policy"
)

func must(t testing.TB, r policy.Rules) *policy.Policy {
	t.Helper()
	p, err := policy.New(r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func tool(server, name string) *core.Tool { return &core.Tool{Server: server, Name: name} }

// shape formats a decision as its verdict and rule, for comparison.
func shape(d policy.AccessDecision) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s", [...]string{"allow", "ask", "deny"}[d.Verdict], d.Rule))
}

// TestTable checks the decisions for every combination of permission levels, effects, and lists of allowed and denied
// tools, for everybody and for one principal.
func TestTable(t *testing.T) {
	levels := []policy.PermissionLevel{"", policy.ReadOnly, policy.WriteRestricted, policy.ExecuteFull}
	names := map[core.EffectKind]string{core.EffectRead: "get_row", core.EffectWrite: "update_row", core.EffectIrreversible: "delete_row"}
	lists := map[string]policy.ServerRules{
		"none": {}, "allowed": {Allow: []string{"*_row"}}, "not allowed": {Allow: []string{"*_column"}}, "nothing allowed": {Allow: []string{}},
		"denied": {Deny: []string{"*_row"}}, "not denied": {Deny: []string{"*_column"}}, "both": {Allow: []string{"*_row"}, Deny: []string{"*_r?w"}},
	}
	want := func(l policy.PermissionLevel, kind core.EffectKind, list string) policy.AccessVerdict {
		switch {
		case list == "not allowed", list == "nothing allowed", list == "denied", list == "both":
			return policy.Deny
		case l == policy.ReadOnly && kind != core.EffectRead:
			return policy.Deny
		case l == policy.WriteRestricted && kind == core.EffectIrreversible:
			return policy.Ask
		}
		return policy.Allow
	}
	cases := 0
	for _, base := range levels {
		for _, own := range levels {
			for baseList, baseServer := range lists {
				for ownList, ownServer := range lists {
					p := must(t, policy.Rules{
						AccessLimits: policy.AccessLimits{Level: base, Servers: map[string]policy.ServerRules{"db": baseServer}},
						Principals:   map[string]policy.AccessLimits{"ada": {Level: own, Servers: map[string]policy.ServerRules{"db": ownServer}}},
					})
					for kind, name := range names {
						cases++
						everybody := want(max(base, policy.PermissionLevel("")), kind, baseList)
						if base == "" {
							everybody = want(policy.WriteRestricted, kind, baseList)
						}
						ada := max(everybody, want(own, kind, ownList))
						at := fmt.Sprintf("%q %q %s, %q %q", base, baseList, name, own, ownList)
						for principal, verdict := range map[string]policy.AccessVerdict{"": everybody, "eve": everybody, "ada": ada} {
							d := p.ViewFor(principal).DecideTool(tool("db", name))
							if d.Verdict != verdict || (d.Rule == "") != (verdict == policy.Allow) || d.Effect.Kind != kind {
								t.Errorf("%s for %q: %s, want %d", at, principal, shape(d), verdict)
							}
							if other := p.ViewFor(principal).DecideTool(tool("other", "get_row")); other.Verdict != policy.Allow {
								t.Errorf("%s: another server: %s", at, shape(other))
							}
						}
					}
				}
			}
		}
	}
	if cases != 4*4*7*7*3 {
		t.Errorf("%d cases", cases)
	}
}

func TestRulesHaveNames(t *testing.T) {
	p := must(t, policy.Rules{
		AccessLimits: policy.AccessLimits{Level: policy.ReadOnly, Servers: map[string]policy.ServerRules{
			"pay": {Deny: []string{"list_secret*"}, Allow: []string{"*_payment*", "list_*"}, Conditions: map[string]string{"get_*": "args.id < 10"}},
		}},
		Principals: map[string]policy.AccessLimits{"ada": {Servers: map[string]policy.ServerRules{"pay": {Deny: []string{"list_p*"}}}}},
	})
	for _, c := range []struct{ principal, tool, args, want string }{
		{"", "list_payments", `{}`, "allow"},
		{"", "list_secrets", `{}`, "deny servers.pay.deny: list_secret*"},
		{"", "LIST_SECRETS", `{}`, "deny servers.pay.deny: list_secret*"},
		{"", "get_other", `{}`, "deny servers.pay.allow"},
		{"", "Get_payment", `{"id":1}`, "allow"},
		{"", "Get_payment", `{"id":11}`, "deny servers.pay.conditions: get_*"},
		{"", "refund_payment", `{}`, "deny permissionLevel: read_only"},
		{"", "get_payment", `{"id":1}`, "allow"},
		{"", "get_payment", `{"id":10}`, "deny servers.pay.conditions: get_*"},
		{"ada", "list_payments", `{}`, "deny principals.ada.servers.pay.deny: list_p*"},
		{"ada", "get_payment", `{"id":1}`, "allow"},
		{"Ada", "list_payments", `{}`, "allow"},
	} {
		if got := shape(p.ViewFor(c.principal).DecideCall(tool("pay", c.tool), json.RawMessage(c.args))); got != c.want {
			t.Errorf("%s %s %s: %s, want %s", c.principal, c.tool, c.args, got, c.want)
		}
	}
}

func TestTrustedHints(t *testing.T) {
	yes := true
	hinted := &core.Tool{Server: "db", Name: "run_query", Annotations: core.ToolAnnotations{ReadOnly: &yes}}
	for trusted, want := range map[bool]policy.AccessVerdict{true: policy.Allow, false: policy.Deny} {
		p := must(t, policy.Rules{AccessLimits: policy.AccessLimits{Level: policy.ReadOnly}, Trusted: map[string]bool{"db": trusted}})
		if d := p.ViewFor("").DecideTool(hinted); d.Verdict != want {
			t.Errorf("trusted %v: %s", trusted, shape(d))
		}
	}
}

// TestConditions checks that conditions decide on the arguments that the server would read, and that arguments which
// cannot be judged are denied.
func TestConditions(t *testing.T) {
	for _, c := range []struct{ condition, args, want string }{
		{"args.amount < 1000", `{"amount":999}`, "allow"},
		{"args.amount < 1000", `{"amount":999.5}`, "allow"},
		{"args.amount < 1000", `{"amount":1000}`, "deny"},
		{"args.amount < 1000", `{"amount":1e3}`, "deny"},
		{"args.amount < 1000", `{"amount":-0}`, "allow"},
		{"args.amount < 1000", `{"amount":"1"}`, "deny"},
		{"args.amount < 1000", `{"amount":null}`, "deny"},
		{"args.amount < 1000", `{"amount":[1]}`, "deny"},
		{"args.amount < 1000", `{}`, "deny"},
		{"args.amount < 1000", ``, "deny"},
		{"args.amount < 1000", `null`, "deny"},
		{"args.amount < 1000", `[1]`, "deny"},
		{"args.amount < 1000", `{"amount":1} `, "allow"},
		{"args.amount < 1000", `{"amount":1}{"amount":1e9}`, "deny"},
		{"args.amount < 1000", `{"amount":1,"amount":100000}`, "deny"},
		{"args.amount < 1000", `{"amount":100000,"amount":1}`, "deny"},
		{"args.amount < 1000", `{"amount":1,"\u0061mount":100000}`, "deny"},
		{"args.amount < 1000", `{"amount":1,"Amount":100000}`, "deny"},
		{"args.amount < 1000", `{"Amount":1}`, "deny"},
		{"!has(args.amount) || args.amount < 1000", `{}`, "allow"},
		{"!has(args.amount) || args.amount < 1000", `{"Amount":100000}`, "deny"},
		{"!has(args.amount) || args.amount < 1000", `{"AMOUNT":100000}`, "deny"},
		{"!has(args.kind) || args.kind == 'a'", `{"` + "\u212a" + `ind":"b"}`, "deny"},
		{"!('amount' in args) || args['amount'] < 1000", `{"AMOUNT":100000}`, "deny"},
		{"!has(args.amount) || args.amount < 1000", `{"list":[{"AMOUNT":100000}]}`, "deny"},
		{"args.amount < 9007199254740993", `{"amount":9007199254740992}`, "allow"},
		{"args.amount < 9007199254740993", `{"amount":9007199254740993}`, "deny"},
		{"args.amount < 1000", `{"amount":-99999999999999999999}`, "allow"},
		{"args.amount < 1000", `{"amount":99999999999999999999}`, "deny"},
		{"args.amount < 1000", `{"amount":1,"other":1e999}`, "deny"},
		{"args.to.all(a, a.endsWith('@example.com'))", `{"to":["a@example.com"]}`, "allow"},
		{"args.to.all(a, a.endsWith('@example.com'))", `{"to":["a@example.com","b@evil.org"]}`, "deny"},
		{"args.to.all(a, a.endsWith('@example.com'))", `{"to":"b@evil.org"}`, "deny"},
		{"tool == 'refund' && server == 'pay' && principal == ''", `{}`, "allow"},
	} {
		p := must(t, policy.Rules{AccessLimits: policy.AccessLimits{Level: policy.ExecuteFull, Servers: map[string]policy.ServerRules{"pay": {Conditions: map[string]string{"refund*": c.condition}}}}})
		if got := strings.Fields(shape(p.ViewFor("").DecideCall(tool("pay", "refund"), json.RawMessage(c.args))))[0]; got != c.want {
			t.Errorf("%s with %s: %s, want %s", c.condition, c.args, got, c.want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for want, r := range map[string]policy.Rules{
		`unknown level "read-only"`:               {AccessLimits: policy.AccessLimits{Level: "read-only"}},
		`servers.a."[" is not a valid pattern`:    {AccessLimits: policy.AccessLimits{Servers: map[string]policy.ServerRules{"a": {Deny: []string{"["}}}}},
		`servers.a.conditions.x: there is no arg`: {Principals: map[string]policy.AccessLimits{"p": {Servers: map[string]policy.ServerRules{"a": {Conditions: map[string]string{"x": "arg.b"}}}}}},
	} {
		if _, err := policy.New(r); err == nil || !strings.Contains(err.Error(), want) || core.AsError(err).Kind != core.KindInvalidArguments {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

var (
	servers = []string{"db", "pay", "a", "a__b"}
	names   = []string{"get_row", "update_row", "delete_row", "Delete_Row", "refund", "b__c", "c", "odd"}
	calls   = []string{`{}`, `{"amount":1}`, `{"amount":5000}`, `{"amount":"1"}`, `{"amount":1,"AMOUNT":5000}`, `{"to":["a"]}`, ``}
)

func whole() *core.Toolset {
	yes, no := true, false
	var list []*core.ToolServer
	for _, s := range servers {
		server := &core.ToolServer{Name: s, TypeScript: s, Python: s}
		for i, n := range names {
			t := &core.Tool{Server: s, Name: n, TypeScript: n, Python: n}
			t.Annotations.ReadOnly = []*bool{nil, &yes, &no}[i%3]
			server.Tools = append(server.Tools, t)
		}
		list = append(list, server)
	}
	slices.SortFunc(list, func(a, b *core.ToolServer) int { return strings.Compare(a.Name, b.Name) })
	return core.NewToolset(list)
}

// add returns the rules with one more restriction, chosen at random. It does not change r.
func add(r policy.Rules, rnd *rand.Rand) policy.Rules {
	pick := func(options ...string) string { return options[rnd.IntN(len(options))] }
	limits := func(l policy.AccessLimits) policy.AccessLimits {
		l.Servers = copied(l.Servers)
		name := pick(servers...)
		s := l.Servers[name]
		pattern := pick("*", "get_*", "*_row", "delete_*", "c", "?", "refund", "b__*")
		switch rnd.IntN(4) {
		case 0:
			stricter := map[policy.PermissionLevel]policy.PermissionLevel{"": policy.ExecuteFull, policy.ExecuteFull: policy.WriteRestricted, policy.WriteRestricted: policy.ReadOnly, policy.ReadOnly: policy.ReadOnly}
			l.Level = stricter[l.Level]
			return l
		case 1:
			s.Deny = append(slices.Clone(s.Deny), pattern)
		case 2:
			if s.Allow == nil {
				s.Allow = []string{pattern, pick("*", "get_*", "refund")}
			} else {
				s.Allow = s.Allow[:rnd.IntN(len(s.Allow)+1)]
			}
		case 3:
			s.Conditions = copied(s.Conditions)
			if _, taken := s.Conditions[pattern]; !taken {
				s.Conditions[pattern] = pick("args.amount < 1000", "!has(args.amount) || args.amount < 10", "has(args.to)", "true", "principal != 'ada'")
			}
		}
		l.Servers[name] = s
		return l
	}
	if rnd.IntN(2) == 0 {
		r.AccessLimits = limits(r.AccessLimits)
		return r
	}
	r.Principals = copied(r.Principals)
	r.Principals["ada"] = limits(r.Principals["ada"])
	return r
}

func copied[V any](m map[string]V) map[string]V {
	c := map[string]V{}
	for k, v := range m {
		c[k] = v
	}
	return c
}

// FuzzSubtracts checks that adding a rule never allows anything that was denied before, and that a principal's own
// rules only restrict the general ones. It also checks that DecideCall denies what DecideTool denies, and that listed
// tools can be called unless a condition denies it.
func FuzzSubtracts(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	all := whole()
	f.Fuzz(func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		rules := policy.Rules{AccessLimits: policy.AccessLimits{Level: policy.ExecuteFull}, Trusted: map[string]bool{"db": true}}
		before := must(t, rules)
		for range 8 {
			rules = add(rules, rnd)
			after := must(t, rules)
			for _, principal := range []string{"", "ada"} {
				compare(t, all, before.ViewFor(principal), after.ViewFor(principal), rules)
			}
			for _, s := range all.Servers {
				for _, tool := range s.Tools {
					if ada, all := after.ViewFor("ada").DecideTool(tool), after.ViewFor("").DecideTool(tool); ada.Verdict < all.Verdict {
						t.Errorf("%+v\n widens %s for ada: %s, %s", rules, tool.Name, shape(all), shape(ada))
					}
				}
			}
			before = after
		}
	})
}

func compare(t *testing.T, all *core.Toolset, before, after *policy.PrincipalView, rules policy.Rules) {
	visible := after.VisibleToolset(all)
	for _, s := range all.Servers {
		for _, tool := range s.Tools {
			static := after.DecideTool(tool)
			listed, found := visible.FindExact(tool.Server, tool.Name)
			if found != (static.Verdict != policy.Deny) || found && listed != tool || visible.IsHidden(tool) == found {
				t.Errorf("%+v\n %s.%s is listed: %v, %s", rules, tool.Server, tool.Name, found, shape(static))
			}
			if static.Verdict < before.DecideTool(tool).Verdict {
				t.Errorf("%+v\n allows %s.%s: %s", rules, tool.Server, tool.Name, shape(static))
			}
			for _, args := range calls {
				d := after.DecideCall(tool, json.RawMessage(args))
				if d.Verdict < static.Verdict || d.Verdict < before.DecideCall(tool, json.RawMessage(args)).Verdict {
					t.Errorf("%+v\n calls %s.%s %s: %s, before %s", rules, tool.Server, tool.Name, args, shape(d), shape(static))
				}
				if d.Verdict == policy.Deny && found && !strings.Contains(d.Rule, ".conditions: ") {
					t.Errorf("%+v\n lists %s.%s and refuses it: %s", rules, tool.Server, tool.Name, shape(d))
				}
			}
		}
	}
}

// TestToolset checks that a hidden tool is refused with the name of the rule, and that the filtered list of tools is
// cached.
func TestToolset(t *testing.T) {
	p := must(t, policy.Rules{AccessLimits: policy.AccessLimits{Level: policy.ReadOnly}})
	all := whole()
	visible := p.ViewFor("").VisibleToolset(all)
	if visible == all || p.ViewFor("").VisibleToolset(all) != visible || p.ViewFor("eve").VisibleToolset(all) != visible {
		t.Error("the same toolset must be filtered once")
	}
	e := visible.NotFound("pay.delete_row")
	if e.Kind != core.KindPolicy || e.Message != "the policy does not allow pay.delete_row: permissionLevel: read_only" {
		t.Errorf("%+v", e)
	}
	if e := visible.NotFound("pay.delete_rows"); e.Kind != core.KindToolNotFound || strings.Contains(e.Hint, "delete_row") {
		t.Errorf("%+v", e)
	}
	if full := must(t, policy.Rules{}).ViewFor(""); full.VisibleToolset(all) != all {
		t.Error("a policy that hides nothing must not copy")
	}
}

func many(n int) *core.Toolset {
	s := &core.ToolServer{Name: "big", TypeScript: "big", Python: "big"}
	for i := range n {
		s.Tools = append(s.Tools, &core.Tool{Server: "big", Name: fmt.Sprintf("%s_row_%d", []string{"get", "update"}[i%2], i), Description: "Does something with a row of a table."})
	}
	return core.NewToolset([]*core.ToolServer{s})
}

func BenchmarkToolset(b *testing.B) {
	all := many(100_000)
	v := must(b, policy.Rules{AccessLimits: policy.AccessLimits{Level: policy.ReadOnly}}).ViewFor("")
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			must(b, policy.Rules{AccessLimits: policy.AccessLimits{Level: policy.ReadOnly}}).ViewFor("").VisibleToolset(all)
		}
	})
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			v.VisibleToolset(all)
		}
	})
}

func BenchmarkCall(b *testing.B) {
	v := must(b, policy.Rules{AccessLimits: policy.AccessLimits{Servers: map[string]policy.ServerRules{"pay": {Conditions: map[string]string{"refund_*": "args.amount < 1000"}}}}}).ViewFor("")
	args := json.RawMessage(`{"amount":10,"currency":"EUR","reason":"it came broken"}`)
	for _, name := range []string{"get_payment", "refund_payment"} {
		t := tool("pay", name)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				v.DecideCall(t, args)
			}
		})
	}
}

// TestCurrentTakesAwayAtOnce checks that a new restriction applies at once to running operations, while a new
// permission applies only to operations that start afterwards.
func TestCurrentTakesAwayAtOnce(t *testing.T) {
	all := core.NewToolset([]*core.ToolServer{{Name: "db", Tools: []*core.Tool{tool("db", "get_row"), tool("db", "update_row")}}})
	readOnly := policy.Rules{AccessLimits: policy.AccessLimits{Level: policy.ReadOnly}}
	denies := policy.Rules{AccessLimits: policy.AccessLimits{Servers: map[string]policy.ServerRules{"db": {Deny: []string{"get_*"}}}}}
	condition := policy.Rules{AccessLimits: policy.AccessLimits{Servers: map[string]policy.ServerRules{"db": {Conditions: map[string]string{"*": "args.n < 3"}}}}}
	asks := policy.Rules{Approval: policy.AutoApprovals{Low: true}}
	verdicts := func(v *policy.PrincipalView) string {
		var s []string
		for _, t := range all.Servers[0].Tools {
			d, _ := v.VisibleToolset(all).FindExact("db", t.Name)
			s = append(s, strings.Fields(shape(v.DecideCall(t, json.RawMessage(`{"n":5}`))))[0], fmt.Sprint(d != nil))
		}
		return strings.Join(s, " ")
	}
	for name, c := range map[string]struct {
		before, after policy.Rules
		begun, fresh  string // get_row: verdict, seen; update_row the same
	}{
		"narrower level": {policy.Rules{}, readOnly, "allow true deny false", "allow true deny false"},
		"wider level":    {readOnly, policy.Rules{}, "allow true deny false", "allow true allow true"},
		"denied":         {policy.Rules{}, denies, "deny false allow true", "deny false allow true"},
		"both":           {readOnly, denies, "deny false deny false", "deny false allow true"},
		"condition":      {policy.Rules{}, condition, "deny true deny true", "deny true deny true"},
		"disabled":       {policy.Rules{}, policy.Rules{Disabled: "enabled: false"}, "deny false deny false", "deny false deny false"},
	} {
		t.Run(name, func(t *testing.T) {
			current := policy.NewCurrent(must(t, c.before))
			following := current.ViewFor("")
			begun := following.FreezePolicy()
			before := verdicts(begun)
			current.ReplacePolicy(must(t, c.after))
			if got := verdicts(begun); got != c.begun {
				t.Errorf("begun: %s, want %s", got, c.begun)
			}
			for _, v := range []*policy.PrincipalView{following, following.FreezePolicy()} {
				if got := verdicts(v); got != c.fresh {
					t.Errorf("what begins afterwards: %s, want %s", got, c.fresh)
				}
			}
			current.ReplacePolicy(must(t, c.before))
			if got := verdicts(begun); got != before {
				t.Errorf("brought back: %s, want %s", got, before)
			}
		})
	}
	current := policy.NewCurrent(must(t, policy.Rules{Approval: policy.AutoApprovals{Low: true, Medium: true}, Version: "1"}))
	begun := current.ViewFor("").FreezePolicy()
	current.ReplacePolicy(must(t, asks))
	if a := begun.AutoApproval(); a != asks.Approval {
		t.Errorf("less needs nobody now, and the view says %+v", a)
	}
	current.ReplacePolicy(must(t, policy.Rules{Approval: policy.AutoApprovals{Low: true, Medium: true, High: true}}))
	if a := begun.AutoApproval(); a.High {
		t.Error("more needs nobody now, and what had begun has it, too")
	}
}

// TestRemovedPrincipalHasNoRules checks that everything is denied to a principal whose rules were removed, while
// unnamed principals have the default rules.
func TestRemovedPrincipalHasNoRules(t *testing.T) {
	intern := map[string]policy.AccessLimits{"intern": {Level: policy.ReadOnly}}
	current := policy.NewCurrent(must(t, policy.Rules{Principals: intern}))
	v, other := current.ViewFor("intern"), current.ViewFor("other")
	current.ReplacePolicy(must(t, policy.Rules{Removed: []string{"intern"}}))
	for _, v := range []*policy.PrincipalView{v, v.FreezePolicy(), current.ViewFor("intern")} {
		d := v.DecideTool(tool("db", "get_row"))
		if d.Verdict != policy.Deny || !strings.Contains(d.Rule, "principals.intern was removed") || v.RefusedError() == nil || v.ReadOnly() == "" {
			t.Errorf("%+v, %v", d, v.RefusedError())
		}
	}
	if d := other.DecideTool(tool("db", "get_row")); d.Verdict != policy.Allow || other.RefusedError() != nil {
		t.Errorf("others: %+v, %v", d, other.RefusedError())
	}
	current.ReplacePolicy(must(t, policy.Rules{Principals: intern}))
	if d := v.DecideTool(tool("db", "get_row")); d.Verdict != policy.Allow || v.RefusedError() != nil {
		t.Errorf("named again: %+v, %v", d, v.RefusedError())
	}
}

// TestCurrentTakesCommandsAway checks that a running operation cannot start commands that the policy no longer
// allows.
func TestCurrentTakesCommandsAway(t *testing.T) {
	command := func(args ...string) policy.Rules {
		return policy.Rules{Commands: []policy.AllowedCommand{{Name: "git", Args: args}}}
	}
	current := policy.NewCurrent(must(t, command("log", "status")))
	begun := current.ViewFor("").FreezePolicy()
	current.ReplacePolicy(must(t, command("log", "push")))
	for argument, want := range map[string]bool{"log": true, "status": false, "push": false} {
		if refused := begun.CheckCommand("git", []string{argument}); (refused == nil) != want {
			t.Errorf("%s: %v", argument, refused)
		}
	}
	current.ReplacePolicy(must(t, policy.Rules{}))
	if names := begun.CommandNames(); len(names) > 0 {
		t.Error(names)
	}
}

// TestUnder checks that a policy restricted by another one allows only what both allow, and that the number of
// combined policies is bounded.
func TestUnder(t *testing.T) {
	denies := func(name string) *policy.Policy {
		return must(t, policy.Rules{AccessLimits: policy.AccessLimits{Servers: map[string]policy.ServerRules{"db": {Deny: []string{name}}}}, Approval: policy.AutoApprovals{Low: true, High: name == "get_row"}})
	}
	both, ok := denies("get_row").RestrictedBy(denies("update_row"))
	for _, name := range []string{"get_row", "update_row"} {
		if d := both.ViewFor("").DecideTool(tool("db", name)); !ok || d.Verdict != policy.Deny || d.Rule != "servers.db.deny: "+name {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if a := both.ViewFor("").AutoApproval(); !a.Low || a.High || both.ViewFor("").PolicyVersion() == denies("get_row").ViewFor("").PolicyVersion() {
		t.Errorf("%+v", a)
	}
	for range 20 {
		both, ok = denies("x").RestrictedBy(both)
	}
	if ok {
		t.Error("there is no bound")
	}
}
