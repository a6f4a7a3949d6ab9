package core

import "encoding/json"

// SearchDetail says how much a search returns about each tool.
type SearchDetail string

// Values of SearchDetail.
const (
	DetailName        SearchDetail = "name"
	DetailDescription SearchDetail = "description" // and the first sentence
	DetailSummary     SearchDetail = "summary"     // the same as DetailDescription
	DetailFull        SearchDetail = "full"        // everything that Describe returns, shorter
)

// ToolQuery describes a search for tools.
type ToolQuery struct {
	Text     string       // empty lists tools
	Server   string       // any spelling; empty = all
	Category string       // empty = all
	Detail   SearchDetail // DetailDescription if empty
	Language Language
	Limit    int  // the most tools; 10 if zero
	Weak     bool // tools that match much less well than others are returned, too
	Settled  bool // nothing is answered before all tools that are known now can be found, however long that takes
}

// FoundTools holds the result of a search.
type FoundTools struct {
	Tools    []FoundTool  `json:"tools"`
	Total    int          `json:"total"`            // how many tools match
	Others   []string     `json:"others,omitempty"` // example calls of the tools whose definitions are left out, to save tokens
	More     int          `json:"more,omitempty"`   // how many of them are left out, because they match less well
	Skills   []FoundSkill `json:"skills,omitempty"` // that fit the question, the best first
	Warnings []string     `json:"warnings,omitempty"`
}

// FoundTool describes one tool that a search found. Name is the name that programs use.
type FoundTool struct {
	Name        string `json:"name"`
	Server      string `json:"server"`
	Tool        string `json:"tool"`
	Category    string `json:"category"`
	Description string `json:"description,omitempty"`
	Definition  string `json:"definition,omitempty"`
	Cached      bool   `json:"cached,omitempty"` // known from an earlier run; the server has not answered yet
	// RegistryOnly means that only the tool's definition is known and there is no server to call.
	RegistryOnly bool `json:"registry_only,omitempty"`
}

// FoundSkill describes one skill that a search found.
type FoundSkill struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Use         string `json:"use"` // how a program imports it
}

// ToolDefinition holds the typed definition of one tool.
type ToolDefinition struct {
	Name       string `json:"name"`
	Definition string `json:"definition"`
}

// SampleRequest asks for one call of a tool, to learn the type of its result.
type SampleRequest struct {
	Name      string // in any spelling
	Category  string // empty = all
	Arguments json.RawMessage
	Language  Language // of the definition
}
