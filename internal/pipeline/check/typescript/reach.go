package typescript

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/microsoft/typescript-go/tsc"

	"retort/internal/core"
)

// programReach lists the tools, servers, modules and skills that a program can use, judged by its text.
type programReach struct {
	tools   *core.Toolset
	servers map[*core.ToolServer]*serverNeeds
	called  map[*core.Tool]bool // named in callMCPTool
	unknown bool                // it may call any tool
	all     bool                // it may name any server
	index   bool                // it names the global servers

	specifiers map[string]string // for tsc: as written → canonical
	missing    []absentName

	skills     map[string]sourcePlace // those that it names, by where it does first
	skillIndex map[string]bool        // those that it names as members of the global or the module skills
	loose      []sourcePlace          // where it names skills as a whole
}

type sourcePlace struct{ start, end int }

// serverNeeds lists the tools of one server that a program names.
type serverNeeds struct {
	tools  map[*core.Tool]bool
	whole  bool                  // any of its tools may be meant
	global bool                  // named without an import
	self   bool                  // the server is named as its own member
	other  map[string]*core.Tool // tools that are named with an acronym in another spelling
	client bool                  // what ./client has is named as a member
}

// clientNames lists the names that the module ./client exports. Each server's module exports them, too, except for
// names that a tool of the server has.
var clientNames = []string{"callMCPTool", "searchTools", "pages", "sleep", "ToolError"}

// absentName describes a server, tool or module that a program names but that does not exist.
type absentName struct {
	server     *core.ToolServer // nil if it is the server that does not exist
	name       string
	start, end int
}

// noteSpelling records that the program names a tool by a spelling other than the tool's generated TypeScript name.
func (n *serverNeeds) noteSpelling(name string, t *core.Tool) {
	if n.other == nil {
		n.other = map[string]*core.Tool{}
	}
	n.other[name] = t
}

func newReach(tools *core.Toolset) *programReach {
	return &programReach{tools: tools, servers: map[*core.ToolServer]*serverNeeds{}, called: map[*core.Tool]bool{}, specifiers: map[string]string{},
		skills: map[string]sourcePlace{}, skillIndex: map[string]bool{}}
}

func reachOf(facts tsc.Facts, tools *core.Toolset, globals map[string]*core.ToolServer) *programReach {
	r := newReach(tools)
	r.unknown, r.all = facts.Unknown, facts.Unknown
	for _, i := range facts.Imports {
		r.addImport(i)
	}
	for name, use := range facts.Globals {
		r.addGlobal(name, use, globals, false)
	}
	for name, use := range facts.Types {
		r.addGlobal(name, use, globals, true)
	}
	for _, c := range facts.Calls {
		r.addCall(c)
	}
	if r.all {
		for _, s := range tools.Servers {
			r.needServer(s)
		}
	}
	return r
}

func (r *programReach) addGlobal(name string, use *tsc.Use, globals map[string]*core.ToolServer, erased bool) {
	s, isServer := globals[name]
	switch {
	case isServer:
		r.needServer(s).global = true
		r.addServer(s, use, erased)
	case name == "servers":
		r.index = true
		r.addAll("*", use, erased)
	case name == "skills":
		r.addSkills(use)
	case name == "callMCPTool" && use.Whole:
		r.unknown = true
	}
}

func (r *programReach) needServer(s *core.ToolServer) *serverNeeds {
	n := r.servers[s]
	if n == nil {
		n = &serverNeeds{tools: map[*core.Tool]bool{}}
		r.servers[s] = n
	}
	return n
}

func (r *programReach) addImport(i tsc.Import) {
	m := resolveSpecifier(i.Specifier, r.tools)
	r.specifiers[i.Specifier] = m.canonical
	erased := i.Form == tsc.ImportType
	switch m.kind {
	case moduleMissing:
		r.missing = append(r.missing, absentName{m.server, m.missing, i.Start, i.End})
	case moduleTool:
		r.needServer(m.server).tools[m.tool] = true
	case moduleServer:
		r.needServer(m.server)
		for name, use := range i.Names {
			r.addNamed(m.server, name, use, erased)
		}
	case moduleSkill:
		r.addSkill(m.skill, i.Start, i.End)
	case moduleSkills:
		for name, use := range i.Names {
			if name == "*" || name == "default" {
				r.addSkills(use)
			} else {
				r.addMemberSkill(name, use)
			}
		}
	case moduleAll:
		for name, use := range i.Names {
			r.addAll(name, use, erased)
		}
	case moduleClient:
		for name, use := range i.Names {
			r.addClient(name, use)
		}
	}
}

func (r *programReach) addSkill(name string, start, end int) {
	if p, ok := r.skills[name]; !ok || start < p.start {
		r.skills[name] = sourcePlace{start, end}
	}
}

// addSkills records which skills the program uses through the global object skills. If the program may reach any
// skill, it records that instead.
func (r *programReach) addSkills(use *tsc.Use) {
	if use.Whole || use.Called {
		r.loose = append(r.loose, sourcePlace{use.Start, use.End})
	}
	for name, member := range use.Members {
		r.addMemberSkill(name, member)
	}
}

func (r *programReach) addMemberSkill(identifier string, use *tsc.Use) {
	name := core.SkillName(identifier)
	if core.ValidSkillName(name) != nil || core.SkillIdentifier(name, core.TypeScript) != identifier {
		r.loose = append(r.loose, sourcePlace{use.Start, use.End})
		return
	}
	r.skillIndex[name] = true
	r.addSkill(name, use.Start, use.End)
}

// joinReach adds what a skill can call, which is the argument o, to what the program that imports the skill can call.
func (r *programReach) joinReach(o *programReach) {
	r.unknown = r.unknown || o.unknown
	for t := range o.called {
		r.called[t] = true
	}
	r.index = r.index || o.index
	for s, n := range o.servers {
		mine := r.needServer(s)
		for t := range n.tools {
			mine.tools[t] = true
		}
		for name, t := range n.other {
			mine.noteSpelling(name, t)
		}
		mine.whole, mine.global, mine.self, mine.client = mine.whole || n.whole, mine.global ||
			n.global, mine.self || n.self, mine.client || n.client
	}
}

// addClient records a name imported from ./client.
func (r *programReach) addClient(name string, use *tsc.Use) {
	if (name == "callMCPTool" || name == "*") && use.Whole {
		r.unknown = true
	}
}

// addNamed records a name imported from a server's module.
func (r *programReach) addNamed(s *core.ToolServer, name string, use *tsc.Use, erased bool) {
	if name == "*" || name == "default" {
		r.addServer(s, use, erased)
		return
	}
	r.addMember(s, name, use, erased)
}

// addAll records a name imported from ./servers, such as a server or a member of ./client.
func (r *programReach) addAll(name string, use *tsc.Use, erased bool) {
	if name == "*" || name == "default" {
		if use.Whole {
			r.reachEverything()
		}
		for member, inner := range use.Members {
			r.addAll(member, inner, erased)
		}
		return
	}
	if s, ok := r.tools.FindServer(name); ok && s.TypeScript == name {
		r.addServer(s, use, erased)
	} else if slices.Contains(clientNames, name) {
		r.addClient(name, use)
	} else if !erased {
		r.missing = append(r.missing, absentName{nil, name, use.Start, use.End})
	}
}

// isBare reports whether the program uses no servers, skills or modules.
func (r *programReach) isBare() bool {
	return len(r.skills) == 0 && len(r.loose) == 0 && len(r.servers) == 0 && len(r.specifiers) == 0 && !r.unknown && !r.all && !r.index
}

func (r *programReach) reachEverything() {
	r.unknown, r.all = true, true
	for _, s := range r.tools.Servers {
		r.needServer(s).whole = true
	}
}

func (r *programReach) addServer(s *core.ToolServer, use *tsc.Use, erased bool) {
	r.needServer(s)
	if use.Whole {
		r.needServer(s).whole = true
	}
	for name, member := range use.Members {
		r.addMember(s, name, member, erased)
	}
	for _, name := range use.TypeNames {
		r.addType(s, name)
	}
}

func (r *programReach) addMember(s *core.ToolServer, name string, use *tsc.Use, erased bool) {
	for _, t := range s.Tools {
		if t.TypeScript == name {
			r.needServer(s).tools[t] = true
			return
		}
	}
	if t, ok := s.FindTool(name); ok && strings.EqualFold(t.TypeScript, name) && !erased && name != s.TypeScript {
		r.needServer(s).tools[t] = true
		r.needServer(s).noteSpelling(name, t)
		return
	}
	switch {
	case name == s.TypeScript:
		r.needServer(s).self = true
		r.addServer(s, use, erased)
		return
	case slices.Contains(clientNames, name):
		r.needServer(s).client = true
		r.addClient(name, use)
		return
	}
	used := use.Called || use.Whole || len(use.Members) > 0
	if !erased && used {
		r.missing = append(r.missing, absentName{s, name, use.Start, use.End})
		return
	}
	r.addType(s, name)
}

// addType records which tools a type may belong to, judged by the type's name. The names of a tool's types begin with
// the tool's name. If no tool fits, the type may belong to any tool of the server.
func (r *programReach) addType(s *core.ToolServer, name string) {
	found := false
	for _, t := range s.Tools {
		if strings.HasPrefix(name, upperFirst(t.TypeScript)) {
			r.needServer(s).tools[t], found = true, true
		}
	}
	if !found {
		r.needServer(s).whole = true
	}
}

func upperFirst(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

func (r *programReach) addCall(c tsc.Call) {
	if !r.isRawCall(c) {
		return
	}
	if !c.IsLiteral {
		r.unknown = true
		return
	}
	if t, ok := r.tools.FindTool(c.Literal); ok {
		r.called[t] = true
		return
	}
	r.missing = append(r.missing, absentName{nil, c.Literal, c.Start, c.End})
}

// isRawCall reports whether a call is a call of the function callMCPTool, which programs can use as a global or as a
// member of ./client, ./servers or a server's module.
func (r *programReach) isRawCall(c tsc.Call) bool {
	root, members, _ := strings.Cut(c.Name, ".")
	if c.Name != "callMCPTool" && !strings.HasSuffix(members, "callMCPTool") {
		return false
	}
	if c.Specifier != "" {
		m := resolveSpecifier(c.Specifier, r.tools)
		return m.kind == moduleClient || m.kind == moduleAll || m.kind == moduleServer && !hasTool(m.server, "callMCPTool")
	}
	s, isServer := r.tools.FindServer(root)
	return members == "" || root == "servers" || isServer && !hasTool(s, "callMCPTool")
}

// reachableTools returns all tools that the program can call, in the order of the toolset.
func (r *programReach) reachableTools() []*core.Tool {
	var found []*core.Tool
	for _, s := range r.tools.Servers {
		n := r.servers[s]
		for _, t := range s.Tools {
			if r.unknown || r.called[t] || n != nil && (n.whole || n.tools[t]) {
				found = append(found, t)
			}
		}
	}
	return found
}

// namedServers returns the servers that the program names, in the order of the toolset.
func (r *programReach) namedServers() []*core.ToolServer {
	return slices.DeleteFunc(slices.Clone(r.tools.Servers), func(s *core.ToolServer) bool { return r.servers[s] == nil })
}
