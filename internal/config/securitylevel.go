package config

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
func (s *Settings) readSecurityLevel() settingReader {
	words := []SecurityLevel{SecurityPermissive, SecurityStandard, SecurityHigh, SecurityMaximum, "low", "medium", "moderate", "critical"}
	level := readOneOf(&s.SecurityLevel, words...)
	return level.checkedBy(func(r *nodeReader, n *valueNode) {
		level.read(r, n)
		if o, ok := levelSynonyms()[s.SecurityLevel]; ok {
			s.SecurityLevel, s.SandboxFloor = o.level, o.auto
		}
	})
}
