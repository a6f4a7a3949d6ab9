package admin

import (
	"retort/internal/engine"
)

// ConfigExplanation describes a configuration: the files that were read, and the resulting settings.
type ConfigExplanation struct {
	Files    []string `json:"files"`
	Home     string   `json:"home"`
	Settings string   `json:"settings"` // as a retort.yaml, with the place of each setting as a comment
	Notes    []string `json:"notes,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// ExplainConfig reads a configuration and describes it. With defaults, the description contains all settings, otherwise
// those that differ from their defaults or decide what programs may do. It starts nothing and creates no file.
func ExplainConfig(c engine.Config, defaults bool) (ConfigExplanation, error) {
	s, err := openStores(c)
	if err != nil {
		return ConfigExplanation{}, err
	}
	loaded := s.LoadedConfig()
	return ConfigExplanation{
		Files: loaded.Files, Home: loaded.Home, Settings: loaded.RenderSettings(defaults),
		Notes: loaded.Settings.PolicyNotes, Warnings: loaded.Warnings,
	}, nil
}
