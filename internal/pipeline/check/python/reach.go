package python

import (
	"slices"
	"strings"

	"retort/internal/core"
)

// programReach lists the tools that a program can call. It also lists the servers and tools that the program names
// but that do not exist.
type programReach struct {
	servers map[*core.ToolServer]*serverNeeds
	called  map[*core.Tool]bool // named in call_mcp_tool
	unknown bool                // it may call any tool
	missing []absentName
}

// serverNeeds lists the tools of one server that a program names.
type serverNeeds struct {
	tools map[*core.Tool]bool
	whole bool // any of its tools may be meant
}

// absentName describes a server or tool that a program names but that does not exist.
type absentName struct {
	server *core.ToolServer // nil if it is the server that does not exist
	name   string
	sourcePlace
}

func newReach() *programReach {
	return &programReach{servers: map[*core.ToolServer]*serverNeeds{}, called: map[*core.Tool]bool{}}
}

func (r *programReach) needServer(s *core.ToolServer) *serverNeeds {
	n := r.servers[s]
	if n == nil {
		n = &serverNeeds{tools: map[*core.Tool]bool{}}
		r.servers[s] = n
	}
	return n
}

// findReach determines which tools a program can call and which modules it can import.
func (p *pythonProgram) findReach() *programReach {
	r := newReach()
	r.unknown = p.facts.Computes
	for _, i := range p.facts.Imports {
		p.addImport(r, i)
	}
	for _, u := range p.facts.Uses {
		p.addUse(r, u)
	}
	return r
}

// addImport records which names an import binds, and to what. These names count as used only when the program uses
// them.
func (p *pythonProgram) addImport(r *programReach, i importedModule) {
	parts := strings.Split(i.Module, ".")
	if parts[0] != "servers" {
		return
	}
	if i.Name != "" && i.Name != "*" {
		parts = p.simplifyPath(append(parts, i.Name))
	}
	if parts[0] == "client" {
		return
	}
	if len(parts) == 1 {
		if i.Name == "*" {
			r.unknown = true
		}
		return
	}
	if parts[1] == "client" {
		return
	}
	s, ok := p.tools.FindServer(parts[1])
	if !ok {
		r.missing = append(r.missing, absentName{nil, parts[1], i.sourcePlace})
		return
	}
	n := r.needServer(s)
	switch {
	case i.Name == "*":
		n.whole = true
	case len(parts) > 2:
		p.addTool(r, s, parts[2], i.sourcePlace, true)
	}
}

// helperNames lists the helper functions and classes that every server's Python module has besides the tools. A tool
// with the same name takes precedence. The code in the sandbox that creates the modules has the same list.
var helperNames = []string{"ToolError", "call_mcp_tool", "callMCPTool", "search_tools", "searchTools", "pages", "approve", "sleep"}

// simplifyPath shortens a dotted path: servers.crm.crm.x becomes servers.crm.x, and servers.ToolError becomes
// client.ToolError.
func (p *pythonProgram) simplifyPath(path []string) []string {
	if len(path) < 2 || path[0] != "servers" {
		return path
	}
	s, isServer := p.tools.FindServer(path[1])
	switch {
	case !isServer && slices.Contains(helperNames, path[1]):
		return append([]string{"client"}, path[1:]...)
	case !isServer || len(path) < 3 || slices.ContainsFunc(s.Tools, func(t *core.Tool) bool { return t.Python == path[2] }):
		return path
	case path[2] == s.Python:
		return p.simplifyPath(append([]string{"servers", path[1]}, path[3:]...))
	case slices.Contains(helperNames, path[2]):
		return append([]string{"client"}, path[2:]...)
	}
	return path
}

// addTool records the tool of server s with this Python name as used. If raw is set, the tool's original name is
// accepted, too. If the server has no such tool, addTool records the name as missing.
func (p *pythonProgram) addTool(r *programReach, s *core.ToolServer, name string, at sourcePlace, raw bool) {
	for _, t := range s.Tools {
		if t.Python == name || raw && t.Name == name {
			r.needServer(s).tools[t] = true
			return
		}
	}
	if !strings.HasPrefix(name, "__") {
		r.missing = append(r.missing, absentName{s, name, at})
	}
}

// addUse records which server or tool a chain of names refers to.
func (p *pythonProgram) addUse(r *programReach, u nameChain) {
	path := u.Path
	if u.Free {
		if s := p.globalServer(path[0]); s != nil {
			path = append([]string{"servers"}, path...)
		} else if path[0] == "pages" && len(path) > 1 { // a server of this name may not have listed its tools yet
			r.missing = append(r.missing, absentName{nil, path[0], u.sourcePlace})
			return
		} else if path[0] != "servers" {
			p.addOwn(r, u, path[0])
			return
		}
	}
	path = p.simplifyPath(path)
	switch {
	case path[0] == "client":
		p.addOwn(r, u, path[len(path)-1])
	case len(path) == 1:
		r.unknown = true // all servers, as a value
	case path[1] == "client":
		p.addOwn(r, u, path[len(path)-1])
	default:
		p.addMember(r, u, path)
	}
}

// addMember records a use of servers.x or servers.x.tool.
func (p *pythonProgram) addMember(r *programReach, u nameChain, path []string) {
	s, ok := p.tools.FindServer(path[1])
	switch {
	case strings.HasPrefix(path[1], "__"):
	case !ok && p.importsAbsent(path[1]):
	case !ok:
		r.missing = append(r.missing, absentName{nil, path[1], u.sourcePlace})
	case len(path) == 2:
		r.needServer(s).whole = true
	default:
		p.addTool(r, s, path[2], u.sourcePlace, false)
	}
}

// importsAbsent reports whether the program imports a server that does not exist. The import gets a finding of its
// own, so that uses of the server need none.
func (p *pythonProgram) importsAbsent(server string) bool {
	for _, i := range p.facts.Imports {
		if i.Module == "servers."+server || i.Module == "servers" && i.Name == server {
			return true
		}
	}
	return false
}

// addOwn records which tool a program calls by call_mcp_tool, a function of Retort's own package client. If the name
// of the tool is not a literal, the program may call any tool.
func (p *pythonProgram) addOwn(r *programReach, u nameChain, name string) {
	if name != "call_mcp_tool" && name != "callMCPTool" {
		return
	}
	if u.Call == nil || len(u.Call.Args) == 0 || u.Call.Star || u.Call.Args[0].Kind != "str" || u.Call.Args[0].JSON == nil {
		r.unknown = true
		return
	}
	raw := literalText(u.Call.Args[0].JSON)
	if t, ok := p.tools.FindTool(raw); ok {
		r.called[t] = true
		return
	}
	r.missing = append(r.missing, absentName{nil, raw, u.Call.Args[0].sourcePlace})
}

// globalServer returns the server that an unbound name refers to.
func (p *pythonProgram) globalServer(name string) *core.ToolServer {
	if s, ok := p.tools.FindServer(name); ok && s.Python == name && p.checker.globalName(s) != "" {
		return s
	}
	return nil
}

// reachableTools returns all tools that the program can call, in the order of the toolset.
func (r *programReach) reachableTools(tools *core.Toolset) []*core.Tool {
	var found []*core.Tool
	for _, s := range tools.Servers {
		n := r.servers[s]
		for _, t := range s.Tools {
			if r.unknown || r.called[t] || n != nil && (n.whole || n.tools[t]) {
				found = append(found, t)
			}
		}
	}
	return found
}
