package config

import "slices"

// levelSynonym gives the meaning of a synonym for a security level. auto is the weakest sandbox that may be chosen
// under this synonym if the setting sandboxMode is auto; if it is empty, the security level decides.
type levelSynonym struct {
	level SecurityLevel
	auto  SandboxMode
}

// levelSynonyms returns the synonyms that the setting securityLevel accepts. None of them is more permissive than the
// default level.
func levelSynonyms() map[SecurityLevel]levelSynonym {
	return map[SecurityLevel]levelSynonym{
		"low":      {SecurityStandard, ""},
		"moderate": {SecurityStandard, ""},
		"medium":   {SecurityStandard, SandboxDocker},
		"critical": {SecurityMaximum, SandboxVM},
	}
}

// readSecurityLevel reads a security level by its own name or a synonym.
func (s *Settings) readSecurityLevel(r *nodeReader, n *valueNode) {
	words := []SecurityLevel{SecurityPermissive, SecurityStandard, SecurityHigh, SecurityMaximum, "low", "medium", "moderate", "critical"}
	var written SecurityLevel
	readOneOf(&written, words...)(r, n)
	if slices.Contains(words[:4], written) {
		s.SecurityLevel = written
		return
	}
	if o, ok := levelSynonyms()[written]; ok {
		s.SecurityLevel, s.SandboxFloor = o.level, o.auto
	}
}
