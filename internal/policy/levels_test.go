package policy_test

import (
	"slices"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/policy"
)

// TestLevelRules checks that the rules of a principal's level and of the default level both apply to files, hosts and
// commands.
func TestLevelRules(t *testing.T) {
	p := must(t, policy.Rules{
		Commands: []policy.AllowedCommand{{Name: "ls", Args: []string{"*"}}, {Name: "rm"}, {Name: "cat", Args: []string{"*"}}},
		Levels: map[policy.PermissionLevel]policy.LevelRules{
			policy.WriteRestricted: {Read: []string{"data", "output"}, Write: []string{"output"}, Commands: []string{"*"}, DenyCommands: []string{"rm"}, Hosts: []string{"a.example"}},
			policy.ExecuteFull:     {Read: []string{"."}, Commands: []string{"ls", "rm"}, DenyHosts: []string{"10.0.0.0/8"}, ApprovalRequired: true},
			policy.ReadOnly:        {Write: []string{"."}, Commands: []string{"cat"}},
		},
		Principals: map[string]policy.AccessLimits{"ada": {Level: policy.ExecuteFull}, "eve": {Level: policy.ReadOnly}},
	})
	for _, c := range []struct {
		who, name string
		use       policy.FileUse
		refused   string
	}{
		{"", "data/a", policy.ReadFile, ""}, {"", "output/a", policy.ReadFile, ""}, {"", "other/a", policy.ReadFile, "filesystem.read"}, {"", "database", policy.ReadFile, "filesystem.read"},
		{"", ".", policy.LookAt, ""}, {"", ".", policy.ReadFile, "filesystem.read"}, {"", "other", policy.LookAt, "filesystem.read"}, {"", "data", policy.LookAt, ""},
		{"", "output/a", policy.WriteFile, ""}, {"", "data/a", policy.WriteFile, "filesystem.write"}, {"", ".", policy.WriteFile, "filesystem.write"},
		{"", "results/a.json", policy.ReadFile, ""}, {"", "results/a.json", policy.WriteFile, "filesystem.write"},
		{"ada", "output/a", policy.WriteFile, ""}, {"ada", "other/a", policy.ReadFile, "filesystem.read"},
		{"eve", "data/a", policy.ReadFile, ""}, {"eve", "output/a", policy.WriteFile, "permissionLevel read_only"}, {"eve", "scratch/a", policy.WriteFile, "write_restricted.filesystem.write"},
	} {
		refused := p.ViewFor(c.who).CheckFile(c.name, c.use)
		if (refused != nil) != (c.refused != "") || refused != nil && (refused.Kind != core.KindPolicy || !strings.Contains(refused.Message, c.refused)) {
			t.Errorf("%q uses %s (%d): %v, want %q", c.who, c.name, c.use, refused, c.refused)
		}
	}
	for who, want := range map[string]string{"": "cat ls", "ada": "ls", "eve": "cat"} {
		if got := strings.Join(p.ViewFor(who).CommandNames(), " "); got != want {
			t.Errorf("%q may start %s, want %s", who, got, want)
		}
	}
	if refused := p.ViewFor("").CheckCommand("rm", nil); refused == nil || !strings.Contains(refused.Message, "permission_levels.write_restricted.commands.deny: rm") {
		t.Error(refused)
	}
	if rule := p.ViewFor("ada").ApprovalRequired(); rule != "permission_levels.execute_full.approval_required" || p.ViewFor("").ApprovalRequired() != "" {
		t.Error(rule)
	}
	if hosts := p.ViewFor("ada").ListHostRules(); len(hosts) != 2 || hosts[0].Allow[0] != "a.example" || hosts[1].Deny[0] != "10.0.0.0/8" {
		t.Error(hosts)
	}
	if got := p.ViewFor("").WritableFolders(); !slices.Equal(got, []string{"output"}) {
		t.Error(got)
	}
	if got := p.ViewFor("eve").WritableFolders(); len(got) != 0 {
		t.Error(got)
	}
	if got := p.ViewFor("stranger").ReadableFolders(); !slices.Equal(got, []string{"data", "files", "output", "results"}) {
		t.Error(got)
	}
}

// TestFilesWithoutRules checks that without rules for files read_only allows writing only to its scratch folder, and
// other levels allow every file.
func TestFilesWithoutRules(t *testing.T) {
	p := must(t, policy.Rules{Principals: map[string]policy.AccessLimits{"eve": {Level: policy.ReadOnly}}})
	if !p.ViewFor("").AllFiles() || p.ViewFor("").CheckFile("a", policy.WriteFile) != nil || p.ViewFor("eve").AllFiles() {
		t.Error("files are narrowed without a rule, or read_only is not")
	}
	eve := p.ViewFor("eve")
	if eve.CheckFile("a", policy.ReadFile) != nil || eve.CheckFile("scratch/a", policy.WriteFile) != nil || eve.CheckFile("scratch", policy.WriteFile) != nil {
		t.Error("read_only does not read, or does not write to its scratch folder")
	}
	if refused := eve.CheckFile("a", policy.WriteFile); refused == nil || !strings.Contains(refused.Message, "./workspace/scratch/a") {
		t.Error(refused)
	}
}
