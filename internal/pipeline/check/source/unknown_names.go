package source

import (
	"fmt"
	"strings"

	"retort/internal/core"
)

// NameErrors creates error messages and hints about unknown tools and servers. Its fields are functions that return
// names and signatures in the spelling of the program's language.
type NameErrors struct {
	Server    func(*core.ToolServer) string
	Tool      func(*core.Tool) string
	Signature func(*core.Tool) string // its call in one line
}

// RefusalOf returns the reason why a tool is hidden from the principal. It returns nil if no hidden tool has this
// name. s is the tool's server, or nil if name includes the server's name.
func RefusalOf(tools *core.Toolset, s *core.ToolServer, name string) *core.Error {
	if s != nil {
		name = s.Name + "." + name
	}
	return tools.RefusalOf(name)
}

// NoTool returns the message and hint for a tool name that server s does not have.
func (w NameErrors) NoTool(s *core.ToolServer, name string) (message, hint string) {
	message = fmt.Sprintf("%s has no tool %q", w.Server(s), name)
	names := make([]string, len(s.Tools))
	for i, t := range s.Tools {
		names[i] = w.Tool(t)
	}
	if t, ok := s.FindTool(name); ok {
		return message + ". Did you mean " + w.Tool(t) + "?", w.Signature(t)
	}
	near := core.NearestNames(name, names, 3)
	switch {
	case len(near) == 1:
		t, _ := s.FindTool(near[0])
		return message + ". Did you mean " + near[0] + "?", w.Signature(t)
	case len(near) > 1:
		return message + ". Did you mean " + OrList(near) + "?", ""
	case len(names) <= 12:
		return message, w.Server(s) + " has " + strings.Join(names, ", ")
	}
	return message, fmt.Sprintf("use search_tools with server %q to find its tools", s.Name)
}

// NoServer returns the message and hint for an unknown name, which may be that of a server or the full name of a
// tool.
func (w NameErrors) NoServer(tools *core.Toolset, name string) (message, hint string) {
	if strings.Contains(name, "__") || strings.Contains(name, ".") {
		return w.noQualified(tools, name)
	}
	message = fmt.Sprintf("there is no server %q", name)
	var names []string
	for _, s := range tools.Servers {
		names = append(names, w.Server(s))
	}
	if near := core.NearestNames(name, names, 3); len(near) > 0 {
		return message + ". Did you mean " + OrList(near) + "?", ""
	}
	if len(names) == 0 {
		return message, "no server is configured"
	}
	return message, "there are " + strings.Join(names[:min(20, len(names))], ", ")
}

// noQualified returns the message and hint for an unknown full tool name, such as github.nope.
func (w NameErrors) noQualified(tools *core.Toolset, name string) (message, hint string) {
	e := tools.NotFound(name)
	var names []string
	for _, s := range tools.Servers {
		for _, t := range s.Tools {
			names = append(names, w.Server(s)+"."+w.Tool(t))
		}
	}
	if near := core.NearestNames(name, names, 3); len(near) > 0 {
		return e.Message, "did you mean " + strings.Join(near, ", ") + "?"
	}
	return e.Message, e.Hint
}

// OrList joins a list in the form "a, b or c".
func OrList(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
