package python

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"retort/internal/core"
	"retort/internal/pipeline/bindings"
	"retort/internal/pipeline/check/source"
)

// refusalFinding holds a reason to refuse a program, with its position.
type refusalFinding struct {
	kind         core.Kind
	message      string
	hint         string
	server, tool string
	unknown      string // the name, if nothing binds it
	sourcePlace
}

func (p *pythonProgram) nameErrors() source.NameErrors {
	return source.NameErrors{
		Server:    func(s *core.ToolServer) string { return s.Python },
		Tool:      func(t *core.Tool) string { return t.Python },
		Signature: p.toolSignature,
	}
}

// toolSignature returns the signature of a tool in one line.
func (p *pythonProgram) toolSignature(t *core.Tool) string {
	return bindings.RenderStub(p.tools, t, core.Python, bindings.Signature)
}

// syntaxError returns the error for a text that is not a valid program.
func (p *pythonProgram) syntaxError() *core.Error {
	e := p.failed
	f := refusalFinding{kind: core.KindSyntax, message: e.Name + ": " + e.Message, sourcePlace: e.sourcePlace}
	if e.Name == "deep" {
		f.kind, f.message, f.hint = core.KindLimit, e.Message, "build nested values and long expressions in several statements"
	}
	lines := strings.Split(p.code, "\n")
	if e.Line <= len(lines) {
		if marker, _ := source.ParseFence(lines[e.Line-1]); marker != "" {
			f.hint = "send one program, without Markdown around it"
		}
	}
	if strings.Contains(e.Message, "outside async function") {
		f.hint = "make the function async"
	}
	return p.refuseFindings([]refusalFinding{f})
}

// judgeFacts returns all reasons to refuse the program, in source order.
func (p *pythonProgram) judgeFacts() []refusalFinding {
	found := p.findAbsent()
	found = append(found, p.findAbsentModules()...)
	found = append(found, p.findUnboundNames()...)
	for _, u := range p.facts.Uses {
		if t := p.toolOf(u); t != nil && u.Call != nil {
			found = append(found, p.checkCall(t, u.Call)...)
		}
	}
	for _, c := range p.pagedCalls() {
		found = append(found, p.checkCall(c.tool, c.call)...)
	}
	slices.SortStableFunc(found, func(a, b refusalFinding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return found
}

// findAbsent returns a finding for each server or tool that the program names but cannot use, because it does not
// exist or is hidden from the principal.
func (p *pythonProgram) findAbsent() []refusalFinding {
	var found []refusalFinding
	said := map[string]bool{}
	for _, a := range p.reach.missing {
		f := refusalFinding{kind: core.KindToolNotFound, sourcePlace: a.sourcePlace}
		if e := source.RefusalOf(p.tools, a.server, a.name); e != nil {
			f.kind, f.message, f.hint, f.server, f.tool = e.Kind, e.Message, e.Hint, e.Server, e.Tool
		} else if a.server != nil {
			f.server = a.server.Name
			f.message, f.hint = p.nameErrors().NoTool(a.server, a.name)
		} else {
			f.message, f.hint = p.nameErrors().NoServer(p.tools, a.name)
		}
		if !said[f.message] {
			said[f.message] = true
			found = append(found, f)
		}
	}
	return found
}

// findAbsentModules returns a finding for each import of something that does not exist.
func (p *pythonProgram) findAbsentModules() []refusalFinding {
	var found []refusalFinding
	for _, i := range p.facts.Imports {
		head, _, _ := strings.Cut(i.Module, ".")
		f := refusalFinding{kind: core.KindType, sourcePlace: i.sourcePlace}
		switch {
		case i.Guarded:
			continue
		case head == "skills":
			continue // see linker.uses
		case !i.Known:
			f.message, f.hint = fmt.Sprintf("there is no module %q", i.Module), p.moduleHint(head)
		case i.Lacks:
			f.message = fmt.Sprintf("the module %s does not have %q", i.Module, i.Name)
			if len(i.Near) > 0 {
				f.message += ". Did you mean " + source.OrList(i.Near) + "?"
			}
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}

func (p *pythonProgram) moduleHint(head string) string {
	if s, ok := p.tools.FindServer(head); ok {
		return "did you mean: from servers import " + s.Python + "?"
	}
	if hint := suggestInstead(head); hint != "" {
		return "only Python's standard library is available: " + hint
	}
	return "only Python's standard library and the servers are available: from servers import <server>"
}

// findUnboundNames returns a finding for each name that nothing defines. It returns none if the program may define or
// test names in ways that the checker cannot follow.
func (p *pythonProgram) findUnboundNames() []refusalFinding {
	if p.facts.Computes || p.facts.Star || p.facts.Asks {
		return nil
	}
	var found []refusalFinding
	for _, n := range p.facts.Names {
		if p.globalServer(n.Name) != nil || p.fromStar(n.Name) {
			continue
		}
		found = append(found, refusalFinding{
			kind: core.KindType, message: fmt.Sprintf("name '%s' is not defined", n.Name), hint: p.nameHint(n.Name),
			unknown: n.Name, sourcePlace: n.sourcePlace,
		})
	}
	return found
}

// fromStar reports whether a star import of the program may define a name.
func (p *pythonProgram) fromStar(name string) bool {
	for _, i := range p.facts.Imports {
		server, isServer := strings.CutPrefix(i.Module, "servers.")
		if i.Name != "*" {
			continue
		}
		if !isServer {
			return true
		}
		if s, ok := p.tools.FindServer(server); ok {
			if t, ok := s.FindTool(name); ok && t.Python == name {
				return true
			}
		}
	}
	return false
}

func (p *pythonProgram) nameHint(name string) string {
	var servers, tools []string
	for _, s := range p.tools.Servers {
		if s.Python == name {
			return fmt.Sprintf("%[1]s is a Python name here; import the server under another name: from servers import %[1]s as %[1]s_server", name)
		}
		servers = append(servers, s.Python)
		for _, t := range s.Tools {
			if t.Python == name {
				tools = append(tools, s.Python+"."+name)
			}
		}
	}
	if len(tools) > 0 {
		return "did you mean " + source.OrList(tools[:min(3, len(tools))]) + "?"
	}
	if near := core.NearestNames(name, servers, 2); len(near) > 0 {
		return "did you mean the server " + source.OrList(near) + "?"
	}
	return "names come from imports, assignments in the program, and the servers; find tools with search_tools"
}

// toolOf returns the tool that a chain of names refers to, or nil.
func (p *pythonProgram) toolOf(u nameChain) *core.Tool {
	path := u.Path
	if u.Free {
		if len(path) == 1 && p.globalServer(path[0]) == nil {
			return p.starTool(path[0])
		}
		if p.globalServer(path[0]) != nil {
			path = append([]string{"servers"}, path...)
		}
	}
	path = p.simplifyPath(path)
	if len(path) != 3 || path[0] != "servers" {
		return nil
	}
	s, ok := p.tools.FindServer(path[1])
	if !ok {
		return nil
	}
	if t, ok := s.FindTool(path[2]); ok && (t.Python == path[2] || !u.Free) {
		return t
	}
	return nil
}

// starTool returns the tool that a name refers to through a star import, such as from servers.github import *. It
// returns nil if the name refers to no such tool.
func (p *pythonProgram) starTool(name string) *core.Tool {
	for _, i := range p.facts.Imports {
		server, isServer := strings.CutPrefix(i.Module, "servers.")
		if i.Name != "*" || !isServer {
			continue
		}
		if s, ok := p.tools.FindServer(server); ok {
			if t, ok := s.FindTool(name); ok && t.Python == name {
				return t
			}
		}
	}
	return nil
}

// unknownNames returns the names in those findings that report an unbound name.
func unknownNames(found []refusalFinding) []string {
	var names []string
	for _, f := range found {
		if f.unknown != "" {
			names = append(names, f.unknown)
		}
	}
	return names
}

// refuseFindings returns the error for findings, or nil if the list is empty. The error describes the first finding in
// full and some others in one line each.
func (p *pythonProgram) refuseFindings(found []refusalFinding) *core.Error {
	if len(found) == 0 {
		return nil
	}
	const others = 4
	first := found[0]
	message := first.message
	for i, f := range found[1:] {
		if i == others {
			message += fmt.Sprintf("\nand %d more", len(found)-1-others)
			break
		}
		message += fmt.Sprintf("\nalso: line %d: %s", f.Line+p.lines, f.message)
	}
	e := &core.Error{
		Kind: first.kind, Op: "gate.python", Message: message, Hint: first.hint, Server: first.server, Tool: first.tool,
		Line: first.Line + p.lines, Column: first.Column + p.indent,
	}
	if names := unknownNames(found); len(names) > 0 {
		e.Err = &core.UnknownNames{Names: names}
	}
	e.Frame = source.CodeFrame(p.written, e.Line, e.Column, first.Width)
	return e
}

func literalText(literal json.RawMessage) string {
	var s string
	_ = json.Unmarshal(literal, &s) // only a string can name a tool
	return s
}
