package core

// Detail is how much a search says of each tool.
type Detail string

// The levels of detail of a search.
const (
	DetailName        Detail = "name"
	DetailDescription Detail = "description" // and the first sentence
	DetailSummary     Detail = "summary"     // the same as DetailDescription
	DetailFull        Detail = "full"        // and a one-line typed signature
)

// Query asks for tools.
type Query struct {
	Text     string // empty lists tools
	Server   string // any spelling; empty = all
	Category string // empty = all
	Detail   Detail // DetailDescription if empty
	Language Language
	Limit    int  // 10 if zero
	Settled  bool // nothing is answered before all tools that are known now can be found, however long that takes
}

// Found is what a search answers.
type Found struct {
	Tools    []FoundTool  `json:"tools"`
	Total    int          `json:"total"`
	Skills   []FoundSkill `json:"skills,omitempty"` // that fit the question, the best first
	Warnings []string     `json:"warnings,omitempty"`
}

// FoundTool is one tool of a search's answer. Name is what a program writes.
type FoundTool struct {
	Name        string `json:"name"`
	Server      string `json:"server"`
	Tool        string `json:"tool"`
	Category    string `json:"category"`
	Description string `json:"description,omitempty"`
	Definition  string `json:"definition,omitempty"`
	Cached      bool   `json:"cached,omitempty"` // known from an earlier run; the server has not answered yet
	// RegistryOnly says that only a definition is known: there is no server that could be called.
	RegistryOnly bool `json:"registry_only,omitempty"`
}

// FoundSkill is one skill of a search's answer.
type FoundSkill struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Use         string `json:"use"` // how a program imports it
}

// Definition is the typed definition of one tool.
type Definition struct {
	Name       string `json:"name"`
	Definition string `json:"definition"`
}
