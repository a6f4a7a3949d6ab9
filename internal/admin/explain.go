package admin

import (
	"retort/internal/engine"
)

// ConfigExplanation describes a configuration: the files that were read, and the resulting settings.
type ConfigExplanation struct {
	Files    []string `json:"files"`
	Home     string   `json:"home"`
	Settings string   `json:"settings"` // as a retort.yaml; comments name the file and line of each setting
	Notes    []string `json:"notes,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Broken   []string `json:"broken,omitempty"` // errors of servers that cannot be started because of their entries
}

// ExplainConfig reads a configuration and describes it. With defaults, the description contains all settings, otherwise
// those that differ from their defaults or decide what programs may do. It starts nothing and creates no file.
func ExplainConfig(c engine.Config, defaults bool) (ConfigExplanation, error) {
	s, err := openStores(c)
	if err != nil {
		return ConfigExplanation{}, err
	}
	loaded := s.LoadedConfig()
	var broken []string
	for _, server := range loaded.Servers {
		if server.Err != nil {
			broken = append(broken, server.Err.Message)
		}
	}
	return ConfigExplanation{
		Broken: broken,
		Files:  loaded.Files, Home: loaded.Home, Settings: loaded.RenderSettings(defaults),
		Notes: loaded.Settings.PolicyNotes, Warnings: loaded.Warnings,
	}, nil
}
