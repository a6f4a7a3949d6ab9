package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/policy"
)

// policyRules returns the policy rules of the settings: which principal may call which tool. Listing, searching and
// calling all use them.
func policyRules(s config.Settings) policy.Rules {
	r := policy.Rules{
		AccessLimits: policy.AccessLimits{Level: policy.PermissionLevel(s.PermissionLevel), Servers: map[string]policy.ServerRules{}},
		Trusted:      map[string]bool{}, Principals: map[string]policy.AccessLimits{}, Commands: allowedCommands(s),
		Levels: map[policy.PermissionLevel]policy.LevelRules{}, Effects: map[string]map[string]string{},
	}
	for name, server := range s.Servers {
		r.Servers[name], r.Trusted[name] = policy.ServerRules(server.ToolRules), server.Trusted
		if len(server.Effects) > 0 {
			r.Effects[name] = server.Effects
		}
	}
	for name, principal := range s.Principals {
		limits := policy.AccessLimits{Level: policy.PermissionLevel(principal.PermissionLevel), Servers: map[string]policy.ServerRules{}}
		for server, rules := range principal.Servers {
			limits.Servers[server] = policy.ServerRules(rules)
		}
		r.Principals[name] = limits
	}
	for level, rules := range s.Levels {
		r.Levels[policy.PermissionLevel(level)] = policy.LevelRules(rules)
	}
	r.Approval = policy.AutoApprovals{
		Low: s.Approval.AutoApproveLow.IsOn(), Medium: s.Approval.AutoApproveMedium.IsOn(),
		High: s.Approval.AutoApproveHigh.IsOn(),
	}
	r.Grades = gradeRules(s.Approval.Irreversible)
	if !s.Enabled.IsOn() {
		r.Disabled = "enabled: false"
	}
	r.Version = policyVersion(r, s)
	return r
}

// gradeRules returns the rules for grades of irreversible effects.
func gradeRules(settings map[string]config.GradeRule) map[core.EffectGrade]policy.GradeRule {
	rules := map[core.EffectGrade]policy.GradeRule{}
	for name, rule := range settings {
		if g, ok := core.ParseGrade(name); ok {
			rules[g] = policy.GradeRule(rule)
		}
	}
	return rules
}

// policyVersion returns a digest of all settings that decide what is allowed, so that it differs whenever one of them
// changes. It leaves out the approval webhook and the secrets of the network, because they decide nothing.
func policyVersion(r policy.Rules, s config.Settings) string {
	s.Approval.Webhook = config.Webhook{}
	s.Network.Secrets = nil
	text, err := json.Marshal([]any{r, s.Approval, s.SecurityLevel, s.Network})
	if err != nil {
		panic(err) // they are made of strings, numbers and maps of them
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
