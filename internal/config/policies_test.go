package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func parsePolicies(t *testing.T, text string) (Settings, error) {
	t.Helper()
	return ParseSettings("retort.yaml", "/p", []byte(text), nil)
}

// TestPoliciesAreTranslated checks which settings each policy block is translated to.
func TestPoliciesAreTranslated(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want func(*Settings)
	}{
		"the network": {`
network_policy:
  default: deny
  whitelist:
    - {domain: github.com, ports: [443, 22], protocols: [https, ssh]}
  blacklist: [10.0.0.0/8]
  monitoring: {log_all_connections: true, rate_limit_per_domain: 7/minute}
`, func(s *Settings) {
			s.Network.Whitelist = []NetworkRule{{Domain: "github.com", Ports: []int{443, 22}, Protocols: []string{"https", "ssh"}}}
			s.Network.Blacklist = []string{"10.0.0.0/8"}
			s.Network.RateLimitPerDomain = Rate{7, time.Minute}
		}},
		"alerts": {`
network_policy: {monitoring: {alert_on_blacklist: true, alert_on_unusual_volume: true}}
`, func(s *Settings) {
			s.Anomalies.Actions["blacklist"], s.Anomalies.Actions["volume"], s.Anomalies.Actions["size"] = AnomalyAlert, AnomalyAlert, AnomalyAlert
		}},
		"an alert makes nothing milder": {`
anomalies: {default: stop, volume: approve}
network_policy: {monitoring: {alert_on_blacklist: true, alert_on_unusual_volume: true}}
`, func(s *Settings) {
			s.Anomalies = Anomalies{Default: AnomalyStop, Actions: map[string]AnomalyAction{"volume": AnomalyApprove}}
		}},
		"levels without hosts and commands": {`
permission_levels:
  write_restricted: {filesystem: {read: ["/workspace"], write: ["/workspace/output", "workspace/x/"]}}
`, func(s *Settings) {
			s.Levels = map[PermissionLevel]LevelRules{PermissionWriteRestricted: {Read: []string{"."}, Write: []string{"output", "x"}}}
		}},
		"hosts of levels that nobody has open nothing": {`
permission_levels:
  execute_full: {network: {allow: ["*"]}}
`, func(s *Settings) {
			s.Levels = map[PermissionLevel]LevelRules{
				PermissionReadOnly: {Hosts: []string{}}, PermissionWriteRestricted: {Hosts: []string{}}, PermissionExecuteFull: {Hosts: []string{"*"}},
			}
		}},
		"hosts of a level that somebody has": {`
permissionLevel: execute_full
principals: {intern: {permissionLevel: read_only}}
permission_levels:
  execute_full: {network: [{allow: ["*"]}, {deny: [localhost, 127.0.0.1]}]}
  read_only: {network: [{allow: [a.example]}, {deny: ["*"]}]}
`, func(s *Settings) {
			s.PermissionLevel = PermissionExecuteFull
			s.Principals = map[string]Principal{"intern": {PermissionLevel: PermissionReadOnly}}
			s.Network.Default, s.Network.Whitelist = NetworkAllow, []NetworkRule{{Domain: "a.example"}}
			s.Levels = map[PermissionLevel]LevelRules{
				PermissionReadOnly: {Hosts: []string{"a.example"}, DenyHosts: []string{}}, PermissionWriteRestricted: {Hosts: []string{}},
				PermissionExecuteFull: {Hosts: []string{"*"}, DenyHosts: []string{"localhost", "127.0.0.1"}},
			}
			s.PolicyNotes = []string{"permission_levels.read_only.network: deny: * means that only the hosts of allow are reached, which is always the case"}
		}},
		"hosts of levels narrow what network allows": {`
network: {whitelist: [b.example]}
permission_levels: {write_restricted: {network: {allow: [a.example]}}}
`, func(s *Settings) {
			s.Network.Whitelist = []NetworkRule{{Domain: "b.example"}}
			s.Levels = map[PermissionLevel]LevelRules{PermissionWriteRestricted: {Hosts: []string{"a.example"}}}
			s.PolicyNotes = []string{"permission_levels: programs reach those hosts of a level that network also allows"}
		}},
		"commands": {`
permission_levels:
  write_restricted: {commands: [{allow: [ls, node]}, {deny: ["rm -rf", ":(){ :|:& };:", sudo]}]}
  execute_full: {commands: {allow: ["*"]}}
`, func(s *Settings) {
			s.Commands = []Command{{Command: "ls", Args: []string{"*", "-*"}}, {Command: "node", Args: []string{"*", "-*"}}}
			s.Levels = map[PermissionLevel]LevelRules{
				PermissionReadOnly: {Commands: []string{}}, PermissionExecuteFull: {Commands: []string{"*"}},
				PermissionWriteRestricted: {Commands: []string{"ls", "node"}, DenyCommands: []string{"rm", "sudo"}},
			}
			s.PolicyNotes = []string{
				"permission_levels.write_restricted.commands.deny: rm -rf denies rm with any arguments, because the same command can be written in other ways",
				"permission_levels.write_restricted.commands.deny: :(){ :|:& };: is left out: it is for a shell, and Retort starts commands without one",
				"permission_levels.execute_full.commands.allow: * means the commands that the settings name, never every program of the machine",
			}
		}},
		"commands that are denied altogether": {`
commands: [{command: ls}]
permission_levels: {write_restricted: {commands: {deny: ["*"]}}, execute_full: {commands: {allow: [ls, cat]}}}
`, func(s *Settings) {
			s.Commands = []Command{{Command: "ls"}}
			s.Levels = map[PermissionLevel]LevelRules{
				PermissionWriteRestricted: {Commands: []string{}, DenyCommands: []string{}}, PermissionExecuteFull: {Commands: []string{"ls", "cat"}},
			}
			s.PolicyNotes = []string{"permission_levels: cat cannot be started, because the setting commands does not name it"}
		}},
	} {
		got, err := parsePolicies(t, c.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := Settings{}.WithDefaults()
		c.want(&want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// TestUnsafePoliciesAreRefused checks that unsafe policies are refused with an error that says what to write instead.
func TestUnsafePoliciesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`network_policy: {monitoring: {log_all_connections: false}}`:                        "connections cannot be excluded from the audit log; leave it out",
		`{network: {}, network_policy: {}}`:                                                 "network and network_policy are both set; move its rules to network_policy",
		`{auditLogging: false, network_policy: {monitoring: {alert_on_blacklist: true}}}`:   "needs the audit log; set auditLogging: true",
		`network_policy: {whitelist: [{domain: a.b, ports: [443], protocols: [ssh]}]}`:      "ssh is allowed only on port 22; add 22 to ports",
		`network_policy: {whitelist: [{domain: 10.0.0.1}]}`:                                 "expected a domain",
		`permission_levels: {read_only: {filesystem: {write: [/workspace/output]}}}`:        "with read_only, programs can write only files in /workspace/scratch; write []",
		`permission_levels: {execute_full: {filesystem: {read: ["/workspace/../../etc"]}}}`: "expected a path",
		`permission_levels: {execute_full: {filesystem: {read: ["/workspace/*.csv"]}}}`:     "expected a path",
		`permission_levels: {execute_full: {network: {allow: [10.0.0.0/8]}}}`:               "cannot be allowed: programs reach hosts only by name; write the domain",
		`permission_levels: {execute_full: {network: {allow: [169.254.169.254]}}}`:          "cannot be allowed",
		`permission_levels: {execute_full: {network: {allow: ["*"], deny: ["*"]}}}`:         "allow and deny both contain *; leave one of them out",
		`permission_levels: {execute_full: {commands: {allow: [/bin/sh]}}}`:                 "expected the name of a command",
		`permission_levels: {execute_full: {commands: {allow: ["rm -rf /"]}}}`:              "expected the name of a command",
		`permission_levels: {execute_full: {commands: [{allow: [ls]}, {allow: [cat]}]}}`:    `the key "allow" is used twice`,
		`permission_levels: {root: {}}`:                                                     `unknown level "root"`,
		`sandbox_options: {process: {isolation: Maximum}}`:                                  `not as strong as "Maximum"; for "Maximum" write sandboxMode: vm`,
		`sandbox_options: {docker: {isolation: Total}}`:                                     "expected Moderate, Strong or Maximum",
	} {
		_, err := parsePolicies(t, text)
		var problems Problems
		if !errors.As(err, &problems) || !strings.Contains(problems.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestShownSettingsMeanTheSame checks that the output of RenderYAML has the same meaning as the settings that it
// shows.
func TestShownSettingsMeanTheSame(t *testing.T) {
	files, err := filepath.Glob("testdata/policies/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		written, err := parsePolicies(t, string(text))
		if err != nil {
			t.Fatal(file, err)
		}
		shown, err := parsePolicies(t, written.RenderYAML(false))
		if err != nil {
			t.Fatalf("%s: %v\n%s", file, err, written.RenderYAML(false))
		}
		for _, s := range []*Settings{&written, &shown} {
			s.PolicyNotes = nil
			for level, l := range s.Levels {
				if len(l.DenyHosts) == 0 {
					l.DenyHosts = nil
				}
				s.Levels[level] = l
			}
		}
		if diff := cmp.Diff([]any{written.Network, written.Commands, written.Levels, written.Anomalies}, []any{shown.Network, shown.Commands, shown.Levels, shown.Anomalies}); diff != "" {
			t.Errorf("%s: -written +shown:\n%s", file, diff)
		}
	}
}
