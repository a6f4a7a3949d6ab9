package retort

// Meaning is what a configuration means: the files that were read, and what the settings
// say of sandboxes, levels, network and commands.
type Meaning struct {
	Files    []string `json:"files"`
	Home     string   `json:"home"`
	Settings string   `json:"settings"` // as a retort.yaml; what changes nothing is a comment
	Notes    []string `json:"notes,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// Explain reads a configuration and says what it means. It starts nothing and makes no file.
func Explain(c Config) (Meaning, error) {
	loaded, err := c.load()
	if err != nil {
		return Meaning{}, err
	}
	return Meaning{
		Files: loaded.Files, Home: loaded.Home, Settings: loaded.Settings.Show(), Notes: loaded.Settings.PolicyNotes, Warnings: loaded.Warnings,
	}, nil
}
