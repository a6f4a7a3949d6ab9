package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Show returns the settings for sandboxes, levels, network, commands and anomalies as YAML. It writes network_policy,
// permission_levels and sandbox_options as the settings they were translated to; parts of them without effect become
// comments. The output has no value that may be secret. s must be complete.
func (s Settings) Show() string {
	w := &shower{}
	w.line("sandboxMode: %s", s.SandboxMode)
	w.line("securityLevel: %s", s.SecurityLevel)
	if s.SandboxFloor != "" {
		w.line("# with sandboxMode: auto, at least the sandbox %s", s.SandboxFloor)
	}
	w.line("permissionLevel: %s", s.PermissionLevel)
	w.line(
		"resourceLimits: {memory: %s, cpu: %v, disk: %s}", showSize(s.ResourceLimits.Memory), s.ResourceLimits.CPU,
		showSize(s.ResourceLimits.Disk),
	)
	w.network(s.Network)
	w.anomalies(s.Anomalies)
	w.commands(s.Commands)
	w.levels(s.Levels)
	w.principals(s.Principals)
	for _, n := range s.PolicyNotes {
		w.line("# %s", n)
	}
	return w.b.String()
}

type shower struct{ b strings.Builder }

func (w *shower) line(format string, args ...any) { fmt.Fprintf(&w.b, format+"\n", args...) }

// words returns a list of strings on one line.
func words(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = strconv.Quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func (w *shower) network(n Network) {
	w.line("network:")
	w.line("  default: %s", n.Default)
	if len(n.Whitelist) > 0 {
		w.line("  whitelist:")
	}
	for _, r := range n.Whitelist {
		more := ""
		if len(r.Ports) > 0 {
			more += ", ports: " + strings.ReplaceAll(fmt.Sprint(r.Ports), " ", ", ")
		}
		if len(r.Protocols) > 0 {
			more += ", protocols: " + words(r.Protocols)
		}
		w.line("    - {domain: %s%s}", strconv.Quote(r.Domain), more)
	}
	if len(n.Blacklist) > 0 {
		w.line("  blacklist: %s", words(n.Blacklist))
	}
	w.line("  rateLimitPerDomain: %s", n.RateLimitPerDomain)
	w.line("  bytesPerRun: %s", showSize(n.BytesPerRun))
}

func (w *shower) anomalies(a Anomalies) {
	w.line("anomalies:")
	w.line("  default: %s", a.Default)
	for _, kind := range slices.Sorted(maps.Keys(a.Actions)) {
		w.line("  %s: %s", kind, strconv.Quote(string(a.Actions[kind])))
	}
}

func (w *shower) commands(all []Command) {
	if len(all) > 0 {
		w.line("commands:")
	}
	for _, c := range all {
		w.line("  - {command: %s, args: %s}", strconv.Quote(c.Command), words(c.Args))
	}
}

// levels writes permission_levels with the paths that programs use.
func (w *shower) levels(levels map[PermissionLevel]LevelRules) {
	if len(levels) > 0 {
		w.line("permission_levels:")
	}
	for _, level := range permissionLevels() {
		l, ok := levels[level]
		if !ok {
			continue
		}
		w.line("  %s:", level)
		if level == PermissionReadOnly {
			w.line("    # it writes to /workspace/%s and no other folder", Scratch)
		}
		w.pair("filesystem", "read", visiblePaths(l.Read), "write", visiblePaths(l.Write))
		w.pair("network", "allow", l.Hosts, "deny", l.DenyHosts)
		w.pair("commands", "allow", l.Commands, "deny", l.DenyCommands)
		w.line("    approval_required: %v", l.ApprovalRequired)
	}
}

func (w *shower) pair(key, first string, a []string, second string, b []string) {
	var parts []string
	if a != nil {
		parts = append(parts, first+": "+words(a))
	}
	if b != nil {
		parts = append(parts, second+": "+words(b))
	}
	if len(parts) > 0 {
		w.line("    %s: {%s}", key, strings.Join(parts, ", "))
	}
}

func visiblePaths(inside []string) []string {
	if inside == nil {
		return nil
	}
	paths := make([]string, len(inside))
	for i, p := range inside {
		paths[i] = strings.TrimSuffix("/workspace/"+p, "/.")
	}
	return paths
}

func (w *shower) principals(all map[string]Principal) {
	named := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool { return all[name].PermissionLevel == "" })
	if len(named) > 0 {
		w.line("principals:")
	}
	for _, name := range named {
		w.line("  %s: {permissionLevel: %s}", strconv.Quote(name), all[name].PermissionLevel)
	}
}
