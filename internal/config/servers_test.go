package config

import (
	"maps"
	"slices"
	"testing"
)

// TestToolsOfEntries checks that the tool rules in a client's entry apply, and that they never allow more than the
// settings.
func TestToolsOfEntries(t *testing.T) {
	c := newMachine(t, map[string]string{
		"project/.mcp.json": `{"mcpServers": {
			"a": {"command": "a", "includeTools": ["read"], "excludeTools": ["write"]},
			"b": {"command": "b", "disabled_tools": ["drop"], "enabled_tools": ["x"]},
			"c": {"command": "c", "available_tools": []}
		}}`,
		"project/retort.yaml": "servers: {b: {allow: [y], deny: [z]}}\n",
	}).load()
	want := map[string][2][]string{"a": {{"read"}, {"write"}}, "b": {{"y"}, {"z", "drop"}}, "c": {nil, nil}}
	for name, rules := range want {
		got := c.Settings.Servers[name]
		if !slices.Equal(got.Allow, rules[0]) || !slices.Equal(got.Deny, rules[1]) {
			t.Errorf("%s: %v %v", name, got.Allow, got.Deny)
		}
	}
}

func TestEnvFile(t *testing.T) {
	c := newMachine(t, map[string]string{
		"project/.mcp.json": `{"mcpServers": {
			"a": {"command": "a", "env": {"B": "mine"}, "envFile": "${workspaceFolder}/.env"},
			"gone": {"command": "a", "envFile": "none.env"}
		}}`,
		"project/.env": "# comment\r\nA=1 # one\r\nexport B=theirs\nC='x # y'\nD=\"two\\nlines\"\nE=\n=no\n1F=no\nG=${A}\n",
	}).load()
	want := map[string]string{"A": "1", "B": "mine", "C": "x # y", "D": "two\nlines", "E": "", "G": "${A}"}
	if got := c.Servers[0]; got.Err != nil || !maps.Equal(got.Env, want) {
		t.Errorf("%v %v", got.Env, got.Err)
	}
	if c.Servers[1].Err == nil {
		t.Error("a file that is not there is no error")
	}
}
