package config

import "slices"

// otherLevel describes what a word for a security level or risk means as a SecurityLevel. auto is the weakest sandbox
// that sandboxMode: auto takes then; empty is that of the level.
type otherLevel struct {
	level SecurityLevel
	auto  SandboxMode
}

// otherLevels returns the words that securityLevel takes beside its own. None of them judges programs more mildly
// than the default.
func otherLevels() map[SecurityLevel]otherLevel {
	return map[SecurityLevel]otherLevel{
		"low":      {SecurityStandard, ""},
		"moderate": {SecurityStandard, ""},
		"medium":   {SecurityStandard, SandboxDocker},
		"critical": {SecurityMaximum, SandboxVM},
	}
}

// readSecurityLevel reads a level in our own words, or in others.
func (s *Settings) readSecurityLevel(r *reader, n *node) {
	words := []SecurityLevel{SecurityPermissive, SecurityStandard, SecurityHigh, SecurityMaximum, "low", "medium", "moderate", "critical"}
	var written SecurityLevel
	oneOf(&written, words...)(r, n)
	if slices.Contains(words[:4], written) {
		s.SecurityLevel = written
		return
	}
	if o, ok := otherLevels()[written]; ok {
		s.SecurityLevel, s.SandboxFloor = o.level, o.auto
	}
}
