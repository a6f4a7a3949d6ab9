package admin

import (
	"retort/internal/engine"
)

// ConfigExplanation describes a configuration: the files that were read, and the resulting settings for sandboxes, levels,
// network and commands.
type ConfigExplanation struct {
	Files    []string `json:"files"`
	Home     string   `json:"home"`
	Settings string   `json:"settings"` // as a retort.yaml; what changes nothing is a comment
	Notes    []string `json:"notes,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// ExplainConfig reads a configuration and describes it. It starts nothing and creates no file.
func ExplainConfig(c engine.Config) (ConfigExplanation, error) {
	s, err := openStores(c)
	if err != nil {
		return ConfigExplanation{}, err
	}
	return ConfigExplanation{
		Files: s.LoadedConfig().Files, Home: s.LoadedConfig().Home, Settings: s.LoadedConfig().Settings.RenderYAML(), Notes: s.LoadedConfig().Settings.PolicyNotes, Warnings: s.LoadedConfig().Warnings,
	}, nil
}
