package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// RenderYAML returns the settings for sandboxes, levels, network, commands and anomalies as YAML. It writes network_policy,
// permission_levels and sandbox_options as the settings they were translated to; parts of them without effect become
// comments. The output has no value that may be secret. s must be complete.
func (s Settings) RenderYAML() string {
	w := &yamlWriter{}
	w.writeLine("sandboxMode: %s", s.SandboxMode)
	w.writeLine("securityLevel: %s", s.SecurityLevel)
	if s.SandboxFloor != "" {
		w.writeLine("# with sandboxMode: auto, at least the sandbox %s", s.SandboxFloor)
	}
	w.writeLine("permissionLevel: %s", s.PermissionLevel)
	w.writeLine(
		"resourceLimits: {memory: %s, cpu: %v, disk: %s}", showSize(s.ResourceLimits.Memory), s.ResourceLimits.CPU,
		showSize(s.ResourceLimits.Disk),
	)
	w.writeNetwork(s.Network)
	w.writeAnomalies(s.Anomalies)
	w.writeCommands(s.Commands)
	w.writeLevels(s.Levels)
	w.writePrincipals(s.Principals)
	for _, n := range s.PolicyNotes {
		w.writeLine("# %s", n)
	}
	return w.b.String()
}

type yamlWriter struct{ b strings.Builder }

func (w *yamlWriter) writeLine(format string, args ...any) { fmt.Fprintf(&w.b, format+"\n", args...) }

// quoteList returns a list of strings as YAML on one line.
func quoteList(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = strconv.Quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func (w *yamlWriter) writeNetwork(n Network) {
	w.writeLine("network:")
	w.writeLine("  default: %s", n.Default)
	if len(n.Whitelist) > 0 {
		w.writeLine("  whitelist:")
	}
	for _, r := range n.Whitelist {
		more := ""
		if len(r.Ports) > 0 {
			more += ", ports: " + strings.ReplaceAll(fmt.Sprint(r.Ports), " ", ", ")
		}
		if len(r.Protocols) > 0 {
			more += ", protocols: " + quoteList(r.Protocols)
		}
		w.writeLine("    - {domain: %s%s}", strconv.Quote(r.Domain), more)
	}
	if len(n.Blacklist) > 0 {
		w.writeLine("  blacklist: %s", quoteList(n.Blacklist))
	}
	w.writeLine("  rateLimitPerDomain: %s", n.RateLimitPerDomain)
	w.writeLine("  bytesPerRun: %s", showSize(n.BytesPerRun))
}

func (w *yamlWriter) writeAnomalies(a Anomalies) {
	w.writeLine("anomalies:")
	w.writeLine("  default: %s", a.Default)
	for _, kind := range slices.Sorted(maps.Keys(a.Actions)) {
		w.writeLine("  %s: %s", kind, strconv.Quote(string(a.Actions[kind])))
	}
}

func (w *yamlWriter) writeCommands(all []Command) {
	if len(all) > 0 {
		w.writeLine("commands:")
	}
	for _, c := range all {
		w.writeLine("  - {command: %s, args: %s}", strconv.Quote(c.Command), quoteList(c.Args))
	}
}

// writeLevels writes permission_levels. It writes paths in the form that programs use.
func (w *yamlWriter) writeLevels(levels map[PermissionLevel]LevelRules) {
	if len(levels) > 0 {
		w.writeLine("permission_levels:")
	}
	for _, level := range permissionLevels() {
		l, ok := levels[level]
		if !ok {
			continue
		}
		w.writeLine("  %s:", level)
		if level == PermissionReadOnly {
			w.writeLine("    # it writes to /workspace/%s and no other folder", Scratch)
		}
		w.writePair("filesystem", "read", visiblePaths(l.Read), "write", visiblePaths(l.Write))
		w.writePair("network", "allow", l.Hosts, "deny", l.DenyHosts)
		w.writePair("commands", "allow", l.Commands, "deny", l.DenyCommands)
		w.writeLine("    approval_required: %v", l.ApprovalRequired)
	}
}

func (w *yamlWriter) writePair(key, first string, a []string, second string, b []string) {
	var parts []string
	if a != nil {
		parts = append(parts, first+": "+quoteList(a))
	}
	if b != nil {
		parts = append(parts, second+": "+quoteList(b))
	}
	if len(parts) > 0 {
		w.writeLine("    %s: {%s}", key, strings.Join(parts, ", "))
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

func (w *yamlWriter) writePrincipals(all map[string]Principal) {
	named := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool { return all[name].PermissionLevel == "" })
	if len(named) > 0 {
		w.writeLine("principals:")
	}
	for _, name := range named {
		w.writeLine("  %s: {permissionLevel: %s}", strconv.Quote(name), all[name].PermissionLevel)
	}
}
