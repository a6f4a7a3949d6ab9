package engine

// Meaning describes a configuration: the files that were read, and the resulting settings for sandboxes, levels,
// network and commands.
type Meaning struct {
	Files    []string `json:"files"`
	Home     string   `json:"home"`
	Settings string   `json:"settings"` // as a retort.yaml; what changes nothing is a comment
	Notes    []string `json:"notes,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// Explain reads a configuration and describes it. It starts nothing and creates no file.
func Explain(c Config) (Meaning, error) {
	loaded, err := c.load()
	if err != nil {
		return Meaning{}, err
	}
	return Meaning{
		Files: loaded.Files, Home: loaded.Home, Settings: loaded.Settings.Show(), Notes: loaded.Settings.PolicyNotes, Warnings: loaded.Warnings,
	}, nil
}
