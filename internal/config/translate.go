package config

import (
	"fmt"
	"maps"
	"slices"
)

// translateAfter returns a reader that reads the settings in a file with whole, and then converts the policy blocks in
// the same file to settings.
func (p *policyBlocks) translateAfter(s *Settings, whole settingReader) settingReader {
	return whole.checkedBy(func(r *nodeReader, n *valueNode) {
		whole.read(r, n)
		p.hasNetwork, p.hasPolicy, p.hasCommands = n.findEntry("network") != nil, n.findEntry("network_policy") != nil, n.findEntry("commands") != nil
		p.checkConflicts(r, n, *s)
		*s = p.translateSettings(*s)
	})
}

// checkConflicts adds a problem for each policy that contradicts other settings.
func (p *policyBlocks) checkConflicts(r *nodeReader, n *valueNode, s Settings) {
	at := n.findEntry("network_policy")
	if at == nil {
		return
	}
	if p.hasNetwork {
		r.addProblem(at.key, "move its rules to network_policy", "network and network_policy are both set")
	}
	watches := p.monitoring.all == On || p.monitoring.blacklist == On || p.monitoring.volume == On
	if watches && s.AuditLogging == Off {
		r.addProblem(at.key, "set auditLogging: true", "network_policy.monitoring needs the audit log")
	}
}

// translateSettings returns a copy of the settings s to which it has added what the policy blocks p say. It changes
// neither s nor p.
func (p *policyBlocks) translateSettings(s Settings) Settings {
	notes := slices.Clone(p.notes)
	if p.hasPolicy {
		s.Network.Default, s.Network.Whitelist, s.Network.Blacklist = p.network.Default, p.network.Whitelist, p.network.Blacklist
		s.Network.RateLimitPerDomain = p.monitoring.rate
		s.Anomalies = p.monitoring.applyTo(s.Anomalies)
	}
	if len(p.levels) > 0 {
		s.Levels = maps.Clone(p.levels)
		notes = append(notes, p.openNetwork(&s)...)
		notes = append(notes, p.allowCommands(&s)...)
	}
	if len(notes) > 0 {
		s.PolicyNotes = notes
	}
	return s
}

// applyTo adds the actions that the monitoring block asks for to the reactions to anomalies in a, and returns the
// changed copy. It never replaces an action by a milder one.
func (m monitoringPolicy) applyTo(a Anomalies) Anomalies {
	a.Actions = maps.Clone(a.Actions)
	if a.Actions == nil {
		a.Actions = map[string]AnomalyAction{}
	}
	raise := func(kind string, asked Switch) {
		switch ranked := anomalyActions(); {
		case asked == On && slices.Index(ranked, a.plannedAction(kind)) < slices.Index(ranked, AnomalyAlert):
			a.Actions[kind] = AnomalyAlert
		case asked == Off && a.Actions[kind] == "":
			a.Actions[kind] = AnomalyOff
		}
	}
	raise("blacklist", m.blacklist)
	raise("volume", m.volume)
	if m.volume == On {
		raise("size", On)
		raise("exfiltration", On)
	}
	return a
}

// plannedAction returns the action that one kind of anomaly will have after the defaults have been filled in.
func (a Anomalies) plannedAction(kind string) AnomalyAction {
	if usual := usualActions()[kind]; a.Default == "" && a.Actions[kind] == "" && usual != "" {
		return usual
	}
	if action := a.ActionFor(kind); action != "" {
		return action
	}
	return AnomalyNote
}

func anomalyActions() []AnomalyAction {
	return []AnomalyAction{AnomalyOff, AnomalyNote, AnomalyAlert, AnomalyApprove, AnomalyStop}
}

// openNetwork adds the hosts that the permission levels in use allow to the whitelist of the network. If the settings
// configure the network themselves, it adds nothing: a program then reaches only those hosts of its level that the
// network settings also allow. If it adds hosts, a level that names no hosts reaches no host.
func (p *policyBlocks) openNetwork(s *Settings) (notes []string) {
	if !slices.ContainsFunc(slices.Collect(maps.Values(p.levels)), func(l LevelRules) bool { return l.Hosts != nil }) {
		return nil
	}
	if p.hasNetwork || p.hasPolicy {
		return []string{"permission_levels: programs reach those hosts of a level that network also allows"}
	}
	for _, level := range s.levelsInForce() {
		for _, host := range s.Levels[level].Hosts {
			known := slices.ContainsFunc(s.Network.Whitelist, func(r NetworkRule) bool { return r.Domain == host })
			switch {
			case host == "*":
				s.Network.Default = NetworkAllow
			case !known:
				s.Network.Whitelist = append(s.Network.Whitelist, NetworkRule{Domain: host})
			}
		}
	}
	for _, level := range permissionLevels() {
		rules := s.Levels[level]
		if rules.Hosts == nil {
			rules.Hosts = []string{}
			s.Levels[level] = rules
		}
	}
	return nil
}

// allowCommands adds the commands that the permission levels name to the allowed commands, with any arguments. If the
// settings list commands themselves, it adds nothing: a program may then start only those commands of its level that
// the settings also list.
func (p *policyBlocks) allowCommands(s *Settings) (notes []string) {
	var named []string
	stated := false
	for _, level := range permissionLevels() {
		stated = stated || p.levels[level].Commands != nil
		for _, name := range p.levels[level].Commands {
			if name != "*" && !slices.Contains(named, name) {
				named = append(named, name)
			}
		}
	}
	if !stated {
		return nil
	}
	if p.hasCommands {
		for _, name := range named {
			if !slices.ContainsFunc(s.Commands, func(c Command) bool { return c.baseName() == name }) {
				notes = append(notes, fmt.Sprintf("permission_levels: %s cannot be started, because the setting commands does not name it", name))
			}
		}
		return notes
	}
	for _, name := range named {
		s.Commands = append(s.Commands, Command{Command: name, Args: []string{"*", "-*"}})
	}
	for _, level := range permissionLevels() {
		rules := s.Levels[level]
		if rules.Commands == nil {
			rules.Commands = []string{}
			s.Levels[level] = rules
		}
	}
	return notes
}

// levelsInForce returns the permission levels in use: the default level, and the levels that the settings give to
// single principals.
func (s Settings) levelsInForce() []PermissionLevel {
	everybody := s.PermissionLevel
	setDefault(&everybody, PermissionWriteRestricted)
	levels := []PermissionLevel{everybody}
	for _, name := range slices.Sorted(maps.Keys(s.Principals)) {
		if l := s.Principals[name].PermissionLevel; l != "" && !slices.Contains(levels, l) {
			levels = append(levels, l)
		}
	}
	return levels
}
