package relay

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/policy"
)

// policed returns an ExecutionContext with the policy rules r and two servers. Some tools of the two servers have the
// same qualified name.
func policed(t *testing.T, r policy.Rules) ExecutionContext {
	t.Helper()
	rules, err := policy.New(r)
	if err != nil {
		t.Fatal(err)
	}
	server := func(name string, tools ...string) *core.ToolServer {
		s := &core.ToolServer{Name: name, TypeScript: name, Python: name}
		for _, tool := range tools {
			s.Tools = append(s.Tools, &core.Tool{Server: name, Name: tool, TypeScript: tool, Python: tool})
		}
		return s
	}
	x, _ := execution(nil)
	x.Policy = rules.ViewFor("")
	x.Tools = x.Policy.VisibleToolset(core.NewToolset([]*core.ToolServer{server("a", "b__get", "get"), server("a__b", "get", "delete")}))
	return x
}

func TestPolice(t *testing.T) {
	full := policy.ExecuteFull
	rules := func(server string, s policy.ServerRules) policy.Rules {
		return policy.Rules{AccessLimits: policy.AccessLimits{Level: full, Servers: map[string]policy.ServerRules{server: s}}}
	}
	byName := func(name, args string) core.ToolCall {
		return core.ToolCall{Tool: "call", Arguments: json.RawMessage(`{"name":"` + name + `","arguments":` + args + `}`)}
	}
	deny := func(p string) policy.ServerRules { return policy.ServerRules{Deny: []string{p}} }
	small := policy.ServerRules{Conditions: map[string]string{"get": "args.n < 10"}}
	for _, c := range []struct {
		name  string
		rules policy.Rules
		call  core.ToolCall
		want  string
		left  string
	}{
		{"denied, as a member", rules("a__b", deny("del*")), core.ToolCall{Server: "a__b", Tool: "delete"}, "error policy: the policy does not allow a__b.delete: servers.a__b.deny: del*", ""},
		{"denied, by its raw name", rules("a__b", deny("del*")), byName("a__b__delete", "{}"), "error policy: the policy does not allow a__b.delete: servers.a__b.deny: del*", ""},
		{"the other of two tools with one name", rules("a", deny("b__get")), core.ToolCall{Server: "a__b", Tool: "get"}, `"ok"`, "a__b get {}"},
		{"the one of two tools with one name", rules("a__b", deny("get")), core.ToolCall{Server: "a", Tool: "b__get"}, `"ok"`, "a b__get {}"},
		{"the same, judged by its own server", rules("a__b", small), core.ToolCall{Server: "a__b", Tool: "get", Arguments: json.RawMessage(`{"n":10}`)}, "error policy: the policy does not allow these arguments of a__b.get: servers.a__b.conditions: get", ""},
		{"a condition that is met", rules("a__b", small), core.ToolCall{Server: "a__b", Tool: "get", Arguments: json.RawMessage(`{"n":9}`)}, `"ok"`, `a__b get {"n":9}`},
		{"two keys", rules("a", small), byName("a.get", `{"n":1,"n":100}`), "error policy: the policy does not allow these arguments of a.get: servers.a.conditions: get", ""},
		{"read_only", policy.Rules{AccessLimits: policy.AccessLimits{Level: policy.ReadOnly}}, core.ToolCall{Server: "a__b", Tool: "delete"}, "error policy: the policy does not allow a__b.delete: permissionLevel: read_only", ""},
		{"an Ask that nobody answers passes", policy.Rules{}, core.ToolCall{Server: "a__b", Tool: "delete"}, `"ok"`, "a__b delete {}"},
	} {
		up := &recorder{answer: `{"content":[{"type":"text","text":"ok"}]}`}
		host, _ := New(up, nil).Open(policed(t, c.rules))
		got, _, _ := strings.Cut(outcome(host.Call(t.Context(), c.call)), " | ")
		if left := strings.Join(up.calls, "; "); got != c.want || left != c.left {
			t.Errorf("%s:\n got %s, left %q\nwant %s, left %q", c.name, got, left, c.want, c.left)
		}
	}
}

// approveOnly implements a Supervisor that trusts all tools. The function itself decides which calls are approved.
type approveOnly func(t *core.Tool, c core.ToolCall, d policy.AccessDecision) (core.ToolCall, *core.Error)

func (approveOnly) Vet(context.Context, *core.Tool) (*core.Tool, *core.Error) { return nil, nil }

func (f approveOnly) Approve(_ context.Context, t *core.Tool, c core.ToolCall, d policy.AccessDecision) (core.ToolCall, *core.Error) {
	return f(t, c, d)
}

func (approveOnly) Login(_ context.Context, _ core.ToolCall, needed *core.Error) *core.Error {
	return needed
}

// TestApprove checks that the Supervisor is asked about destructive calls, but not about calls that only read, and
// that a refused call is not sent.
func TestApprove(t *testing.T) {
	x := policed(t, policy.Rules{})
	var asked []string
	x.Supervisor = approveOnly(func(_ *core.Tool, c core.ToolCall, d policy.AccessDecision) (core.ToolCall, *core.Error) {
		asked = append(asked, c.Server+"."+c.Tool+": "+d.Rule+", "+d.Effect.Kind.String())
		return c, core.Errorf(core.KindPolicy, "test", "a person denied it")
	})
	up := &recorder{answer: `{"content":[]}`}
	host, _ := New(up, nil).Open(x)
	for _, tool := range []string{"get", "delete"} {
		_, _ = host.Call(t.Context(), core.ToolCall{Server: "a__b", Tool: tool})
	}
	if got := strings.Join(asked, "; "); got != "a__b.delete: permissionLevel: write_restricted, irreversible" || strings.Join(up.calls, "; ") != "a__b get {}" {
		t.Errorf("asked %q, left %q", got, up.calls)
	}
}
