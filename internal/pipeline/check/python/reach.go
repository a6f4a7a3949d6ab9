package python

import (
	"slices"
	"strings"

	"retort/internal/core"
)

// reach lists what a program can reach, as far as its text shows.
type reach struct {
	servers map[*core.Server]*needs
	called  map[*core.Tool]bool // named in call_mcp_tool
	unknown bool                // it may call any tool
	missing []absence
}

// needs lists the tools of one server that a program names.
type needs struct {
	tools map[*core.Tool]bool
	whole bool // any of its tools may be meant
}

// absence describes a server or tool that does not exist.
type absence struct {
	server *core.Server // nil if it is the server that does not exist
	name   string
	place
}

func newReach() *reach {
	return &reach{servers: map[*core.Server]*needs{}, called: map[*core.Tool]bool{}}
}

func (r *reach) need(s *core.Server) *needs {
	n := r.servers[s]
	if n == nil {
		n = &needs{tools: map[*core.Tool]bool{}}
		r.servers[s] = n
	}
	return n
}

// reached determines what a program can reach.
func (p *program) reached() *reach {
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

// addImport notes what an import binds. Imported names count as uses only when they are used.
func (p *program) addImport(r *reach, i module) {
	parts := strings.Split(i.Module, ".")
	if parts[0] != "servers" {
		return
	}
	if i.Name != "" && i.Name != "*" {
		parts = p.plain(append(parts, i.Name))
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
	s, ok := p.tools.Server(parts[1])
	if !ok {
		r.missing = append(r.missing, absence{nil, parts[1], i.place})
		return
	}
	n := r.need(s)
	switch {
	case i.Name == "*":
		n.whole = true
	case len(parts) > 2:
		p.addTool(r, s, parts[2], i.place, true)
	}
}

// helpers lists the members of every server module that are not tools, unless a tool has the same name. The guest has
// the same list.
var helpers = []string{"ToolError", "call_mcp_tool", "callMCPTool", "search_tools", "searchTools", "sleep"}

// plain simplifies a path: servers.crm.crm.x becomes servers.crm.x, and servers.ToolError becomes client.ToolError.
func (p *program) plain(path []string) []string {
	if len(path) < 2 || path[0] != "servers" {
		return path
	}
	s, isServer := p.tools.Server(path[1])
	switch {
	case !isServer && slices.Contains(helpers, path[1]):
		return append([]string{"client"}, path[1:]...)
	case !isServer || len(path) < 3 || slices.ContainsFunc(s.Tools, func(t *core.Tool) bool { return t.Python == path[2] }):
		return path
	case path[2] == s.Python:
		return p.plain(append([]string{"servers", path[1]}, path[3:]...))
	case slices.Contains(helpers, path[2]):
		return append([]string{"client"}, path[2:]...)
	}
	return path
}

// addTool notes a tool by its name in Python. A tool that exists only under another name counts as missing, unless
// modules may have raw names.
func (p *program) addTool(r *reach, s *core.Server, name string, at place, raw bool) {
	for _, t := range s.Tools {
		if t.Python == name || raw && t.Name == name {
			r.need(s).tools[t] = true
			return
		}
	}
	if !strings.HasPrefix(name, "__") {
		r.missing = append(r.missing, absence{s, name, at})
	}
}

// addUse notes a chain of names.
func (p *program) addUse(r *reach, u use) {
	path := u.Path
	if u.Free {
		if s := p.globalServer(path[0]); s != nil {
			path = append([]string{"servers"}, path...)
		} else if path[0] != "servers" {
			p.addOwn(r, u, path[0])
			return
		}
	}
	path = p.plain(path)
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

// addMember notes servers.x and servers.x.tool.
func (p *program) addMember(r *reach, u use, path []string) {
	s, ok := p.tools.Server(path[1])
	switch {
	case strings.HasPrefix(path[1], "__"):
	case !ok && p.imported(path[1]):
	case !ok:
		r.missing = append(r.missing, absence{nil, path[1], u.place})
	case len(path) == 2:
		r.need(s).whole = true
	default:
		p.addTool(r, s, path[2], u.place, false)
	}
}

// imported reports whether an import names a server that does not exist. Such an import has its own finding.
func (p *program) imported(server string) bool {
	for _, i := range p.facts.Imports {
		if i.Module == "servers."+server || i.Module == "servers" && i.Name == server {
			return true
		}
	}
	return false
}

// addOwn notes a use of call_mcp_tool.
func (p *program) addOwn(r *reach, u use, name string) {
	if name != "call_mcp_tool" && name != "callMCPTool" {
		return
	}
	if u.Call == nil || len(u.Call.Args) == 0 || u.Call.Star || u.Call.Args[0].Kind != "str" || u.Call.Args[0].JSON == nil {
		r.unknown = true
		return
	}
	raw := text(u.Call.Args[0].JSON)
	if t, ok := p.tools.Tool(raw); ok {
		r.called[t] = true
		return
	}
	r.missing = append(r.missing, absence{nil, raw, u.Call.Args[0].place})
}

// globalServer returns the server that an unbound name refers to.
func (p *program) globalServer(name string) *core.Server {
	if s, ok := p.tools.Server(name); ok && s.Python == name && p.checker.global(s) != "" {
		return s
	}
	return nil
}

// list returns every tool that the program can reach, in the order of the toolset.
func (r *reach) list(tools *core.Toolset) []*core.Tool {
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
