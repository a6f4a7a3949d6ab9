package core

import (
	"encoding/json"
	"slices"
	"strings"
)

// Tool describes one tool of one server.
type Tool struct {
	Server       string          // the name in the configuration
	Name         string          // as the upstream calls it
	Title        string          // like Description and the prose of the schemas, without what Flags say
	Description  string          // without what Flags say
	InputSchema  json.RawMessage // as received but for its prose; may be empty
	OutputSchema json.RawMessage // as received but for its prose; empty if the tool declares none
	Annotations  ToolAnnotations
	Category     string
	Pin          string            // hex SHA-256 of the definition as received
	Raw          json.RawMessage   // the whole definition as received
	TypeScript   string            // identifier in TypeScript, unique on its server: listIssues
	Python       string            // identifier in Python, unique on its server: list_issues
	Flags        []DefinitionFlag  // what does not belong into the definition
	Withheld     string            // where a name or value is for which no model is offered the tool; "" if it is offered
	Change       *DefinitionChange // nil if the definition is the one that was trusted
	Learned      *LearnedSchema    // nil if the tool declares its output, or nothing is known of it
	// Sealed returns the type of the personal data in a property of the tool's answers, such as "email". Programs get
	// tokens in place of the values of such a property. It returns "" for a property whose values programs get. If
	// the function Sealed is nil, programs get all values.
	Sealed func(property string) string
	Asks   AskMark // of a copy that Toolset.MarkTool made
}

// AskMark says whether a person is asked about the calls of a tool.
type AskMark uint8

// Values of AskMark.
const (
	AsksNever     AskMark = iota // not because of what the tool does, or it is not known
	AsksSometimes                // it depends on the arguments
	AsksAlways
)

// LearnedSchema describes the answers that a tool has given so far. Unlike OutputSchema, which the server declares,
// it may be wrong for later answers.
type LearnedSchema struct {
	Schema       json.RawMessage // of what programs get
	Observations int             // answers that were looked at
	Steady       int             // of them, the last ones that brought nothing new
	Shared       bool            // it was learned elsewhere, and comes from a file of toolDefinitions
}

// AnswerSchema returns the schema of the values that programs get from the tool, or nil if it is unknown.
func (t *Tool) AnswerSchema() json.RawMessage {
	if len(t.OutputSchema) == 0 && t.Learned != nil {
		return t.Learned.Schema
	}
	return t.OutputSchema
}

// ToolAnnotations has MCP's hints about a tool. A nil field means that the server does not give the hint.
type ToolAnnotations struct {
	ReadOnly    *bool `json:"readOnlyHint,omitempty"`
	Destructive *bool `json:"destructiveHint,omitempty"`
	Idempotent  *bool `json:"idempotentHint,omitempty"`
	OpenWorld   *bool `json:"openWorldHint,omitempty"`
}

// ToolServer represents a server with its tools, in the order in which the server lists them.
type ToolServer struct {
	Name         string           // the name in the configuration
	TypeScript   string           // identifier in TypeScript, unique: googleDrive
	Python       string           // identifier in Python, unique: google_drive
	Instructions string           // without what Flags say
	Flags        []DefinitionFlag // of the instructions
	Category     string
	Cached       bool // true if the tools come from an earlier run and the server has not answered yet
	Static       bool // true for definitions from a folder, without a live server
	Tools        []*Tool
}

// Toolset holds the servers and tools that a principal may see. It is immutable; each change creates a new Toolset.
// All lists, searches, checks and calls of one execution use the same Toolset.
type Toolset struct {
	Servers []*ToolServer // sorted by name

	servers map[string]*ToolServer
	tools   map[string]*Tool

	whole  *Toolset           // of which this is a part
	refuse func(*Tool) *Error // why a tool of whole is not in it
	asks   func(*Tool) AskMark
}

// NewToolset returns a Toolset of servers, which must be sorted by name and must not change afterwards. If a spelling
// matches two tools, it means the tool with exactly that name, or else the first of the two.
func NewToolset(servers []*ToolServer) *Toolset {
	ts := &Toolset{Servers: servers, servers: map[string]*ToolServer{}, tools: map[string]*Tool{}}
	for _, spell := range []func(*ToolServer) string{rawServer, tsServer, pyServer} {
		for _, s := range servers {
			addNew(ts.servers, spell(s), s)
		}
	}
	for _, join := range toolSpellings {
		for _, s := range servers {
			for _, t := range s.Tools {
				addNew(ts.tools, join(s, t), t)
			}
		}
	}
	return ts
}

func addNew[T any](m map[string]*T, key string, v *T) {
	if _, taken := m[key]; !taken && key != "" {
		m[key] = v
	}
}

func rawServer(s *ToolServer) string { return s.Name }
func tsServer(s *ToolServer) string  { return s.TypeScript }
func pyServer(s *ToolServer) string  { return s.Python }

var toolSpellings = []func(*ToolServer, *Tool) string{
	func(s *ToolServer, t *Tool) string { return s.Name + "__" + t.Name },
	func(s *ToolServer, t *Tool) string { return s.Name + "." + t.Name },
	func(s *ToolServer, t *Tool) string { return s.TypeScript + "." + t.TypeScript },
	func(s *ToolServer, t *Tool) string { return s.Python + "." + t.Python },
	func(s *ToolServer, t *Tool) string { return s.Name + "." + t.TypeScript },
	func(s *ToolServer, t *Tool) string { return s.Name + "." + t.Python },
	func(s *ToolServer, t *Tool) string { return s.TypeScript + "." + t.Name },
	func(s *ToolServer, t *Tool) string { return s.Python + "__" + t.Python },
	func(s *ToolServer, t *Tool) string { return s.TypeScript + "__" + t.TypeScript },
}

// FindServer finds a server by any spelling of its name, such as google-drive, googleDrive or google_drive.
func (ts *Toolset) FindServer(name string) (*ToolServer, bool) {
	s, ok := ts.servers[name]
	return s, ok
}

// FindTool finds a tool by any spelling of its full name, such as github.listIssues, github.list_issues or
// github__list_issues.
func (ts *Toolset) FindTool(name string) (*Tool, bool) {
	name = strings.TrimPrefix(name, "servers.")
	if t, ok := ts.tools[name]; ok {
		return t, true
	}
	for _, separator := range []string{".", "__"} {
		server, tool, _ := strings.Cut(name, separator)
		if s, ok := ts.FindServer(server); ok && tool != "" {
			if t, ok := s.findAcronym(tool); ok {
				return t, true
			}
		}
	}
	return nil, false
}

// MatchTools returns the tools that a name refers to. The name is that of one tool in any spelling, or that of a
// server in any spelling, optionally followed by ".*", for all its tools. It returns nil for an unknown name.
func (ts *Toolset) MatchTools(name string) []*Tool {
	if t, ok := ts.FindTool(name); ok {
		return []*Tool{t}
	}
	for _, all := range []string{".*", "__*", "/*", ""} {
		if server, ok := strings.CutSuffix(name, all); ok {
			if s, found := ts.FindServer(strings.TrimPrefix(server, "servers.")); found {
				return s.Tools
			}
		}
	}
	return nil
}

// FindInCategory finds a tool in a category; an empty category means all. name is any name that FindTool accepts, or
// the tool's name without its server if only one tool has that name. If several tools match, the error lists them. If
// none does, the error is that of NotFound.
func (ts *Toolset) FindInCategory(name, category string) (*Tool, *Error) {
	if t, ok := ts.FindTool(name); ok {
		if !t.inCategory(category) {
			return nil, Errorf(KindToolNotFound, "toolset", "the tool %s is not in the category %q", ts.QualifiedName(t), category).
				WithHint("its category is %q", t.Category)
		}
		return t, nil
	}
	var found []*Tool
	for _, s := range ts.Servers {
		if t, ok := s.FindTool(name); ok && t.inCategory(category) {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 0:
		return nil, ts.NotFound(name)
	case 1:
		return found[0], nil
	}
	var names []string
	for _, t := range found[:min(len(found), 10)] {
		names = append(names, ts.QualifiedName(t))
	}
	return nil, Errorf(KindToolNotFound, "toolset", "%d servers have a tool %q", len(found), name).
		WithHint("write it with its server: %s", strings.Join(names, ", "))
}

// inCategory reports whether t is in a category, in any spelling. Every tool is in the empty category.
func (t *Tool) inCategory(category string) bool {
	return category == "" || foldName(t.Category) == foldName(category)
}

// RegistryOnly reports whether only the definition of t is known and there is no server to call.
func (ts *Toolset) RegistryOnly(t *Tool) bool {
	s, ok := ts.servers[t.Server]
	return ok && s.Name == t.Server && s.Static
}

// NoServerFor returns the error for a call of a tool that has a definition but no server.
func (ts *Toolset) NoServerFor(t *Tool) *Error {
	return Errorf(
		KindToolNotFound, "toolset",
		"%s is only a definition in the registry (toolDefinitions): the server %q, which would run it, is not connected",
		ts.QualifiedName(t), t.Server,
	).
		WithHint(
			"add the server %q to .mcp.json, or put the name of a configured server into the definition's member \"server\"",
			t.Server,
		).AtTool(t.Server, t.Name)
}

// FindExact finds a tool by the exact names of its server and the tool.
func (ts *Toolset) FindExact(server, tool string) (*Tool, bool) {
	if t, ok := ts.tools[server+"__"+tool]; ok && t.Server == server && t.Name == tool {
		return t, true
	}
	if s, ok := ts.servers[server]; ok && s.Name == server {
		for _, t := range s.Tools {
			if t.Name == tool {
				return t, true
			}
		}
	}
	return nil, false
}

// WithoutRefused returns a copy of ts without the tools for which refuse returns an error. The copy keeps these
// errors, to explain them to programs that name such a tool. refuse must always return the same result for the same
// tool.
func (ts *Toolset) WithoutRefused(refuse func(*Tool) *Error) *Toolset {
	servers, removed := make([]*ToolServer, len(ts.Servers)), false
	for i, s := range ts.Servers {
		kept := *s
		kept.Tools = slices.DeleteFunc(slices.Clone(s.Tools), func(t *Tool) bool { return refuse(t) != nil })
		if servers[i] = s; len(kept.Tools) < len(s.Tools) {
			servers[i], removed = &kept, true
		}
	}
	if !removed {
		return ts
	}
	part := NewToolset(servers)
	part.whole, part.refuse = ts, refuse
	return part
}

// WithAsks returns a copy of ts whose definitions say about which tools a person is asked, according to the function
// asks.
func (ts *Toolset) WithAsks(asks func(*Tool) AskMark) *Toolset {
	marked := *ts
	marked.asks = asks
	return &marked
}

// MarkTool returns a copy of t that says whether a person is asked about its calls. It returns t itself if WithAsks
// was not called.
func (ts *Toolset) MarkTool(t *Tool) *Tool {
	if ts.asks == nil {
		return t
	}
	marked := *t
	marked.Asks = ts.asks(t)
	return &marked
}

// MarkServer returns a copy of a server whose tools are those of MarkTool. It returns s itself if WithAsks was not
// called.
func (ts *Toolset) MarkServer(s *ToolServer) *ToolServer {
	if ts.asks == nil {
		return s
	}
	marked := *s
	marked.Tools = make([]*Tool, len(s.Tools))
	for i, t := range s.Tools {
		marked.Tools[i] = ts.MarkTool(t)
	}
	return &marked
}

// IsHidden reports whether WithoutRefused has removed a tool from ts.
func (ts *Toolset) IsHidden(t *Tool) bool {
	return ts.whole != nil && (ts.refuse(t) != nil || ts.whole.IsHidden(t))
}

// RefusalOf returns the error because of which WithoutRefused has removed the tool with this name, in any spelling.
// It returns nil if the tool was not removed.
func (ts *Toolset) RefusalOf(name string) *Error {
	if ts.whole == nil {
		return nil
	}
	if t, ok := ts.whole.FindTool(name); ok {
		return ts.refuse(t)
	}
	return ts.whole.RefusalOf(name)
}

// RefusedExact works like RefusalOf, but takes the exact names of the server and the tool.
func (ts *Toolset) RefusedExact(server, tool string) *Error {
	if ts.whole == nil {
		return nil
	}
	if t, ok := ts.whole.FindExact(server, tool); ok {
		if e := ts.refuse(t); e != nil {
			return e
		}
	}
	return ts.whole.RefusedExact(server, tool)
}

// WithHidden returns the Toolset from which WithoutRefused made ts, with all tools.
func (ts *Toolset) WithHidden() *Toolset {
	for ts.whole != nil {
		ts = ts.whole
	}
	return ts
}

// FindTool finds a tool of this server by any spelling of its name.
func (s *ToolServer) FindTool(name string) (*Tool, bool) {
	for _, spell := range []func(*Tool) string{
		func(t *Tool) string { return t.Name },
		func(t *Tool) string { return t.TypeScript },
		func(t *Tool) string { return t.Python },
	} {
		for _, t := range s.Tools {
			if spell(t) == name {
				return t, true
			}
		}
	}
	return s.findAcronym(name)
}

// findAcronym finds a tool by its TypeScript name with acronyms in another spelling, such as executeSQL for
// executeSql. It finds none if the name is ambiguous.
func (s *ToolServer) findAcronym(name string) (*Tool, bool) {
	var found *Tool
	for _, t := range s.Tools {
		if !strings.EqualFold(t.TypeScript, name) || !hasAcronym(name) && !hasAcronym(t.TypeScript) {
			continue
		}
		if found != nil {
			return nil, false
		}
		found = t
	}
	return found, found != nil
}

// hasAcronym reports whether a name has two capital letters in a row.
func hasAcronym(name string) bool {
	for i := 1; i < len(name); i++ {
		if isCapital(name[i-1]) && isCapital(name[i]) {
			return true
		}
	}
	return false
}

func isCapital(c byte) bool { return 'A' <= c && c <= 'Z' }

// CountTools returns the number of tools.
func (ts *Toolset) CountTools() int {
	n := 0
	for _, s := range ts.Servers {
		n += len(s.Tools)
	}
	return n
}

// QualifiedName returns the full name of a tool in TypeScript programs, such as github.listIssues.
func (ts *Toolset) QualifiedName(t *Tool) string {
	if s, ok := ts.servers[t.Server]; ok {
		return s.TypeScript + "." + t.TypeScript
	}
	return t.Server + "." + t.Name
}

// NoTool marks, for errors.As, the error for a tool that does not exist.
type NoTool struct{ Name string }

func (e *NoTool) Error() string { return "there is no tool " + e.Name }

// UnknownNames marks, for errors.As, the error for a program that uses undefined names. The author of the program may
// have meant one of these names as the name of a server.
type UnknownNames struct{ Names []string }

func (e *UnknownNames) Error() string {
	return "there is nothing with the name " + strings.Join(e.Names, " or ")
}

// NotFound returns the error for an unknown tool name. The error suggests similar tools. If the tool was removed from
// ts, NotFound returns the reason for the removal instead.
func (ts *Toolset) NotFound(name string) *Error {
	if e := ts.RefusalOf(name); e != nil {
		return e
	}
	e := Errorf(KindToolNotFound, "toolset", "there is no tool %q", name)
	e.Err = &NoTool{Name: name}
	if near := ts.NearestNames(name, 3); len(near) > 0 {
		return e.WithHint("did you mean %s?", strings.Join(near, ", "))
	}
	if len(ts.Servers) == 0 {
		return e.WithHint("no server is configured")
	}
	return e.WithHint("use search_tools to find tools")
}

// NearestNames returns at most n full tool names that resemble name, best first.
func (ts *Toolset) NearestNames(name string, n int) []string {
	var names []string
	for _, s := range ts.Servers {
		for _, t := range s.Tools {
			names = append(names, s.TypeScript+"."+t.TypeScript)
		}
	}
	return NearestNames(name, names, n)
}
