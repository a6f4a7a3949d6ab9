package engine

import (
	"slices"

	"retort/internal/core"
	"retort/internal/mcp/client"
)

// Change describes how a tool's definition differs from the trusted one.
type Change = core.DefinitionChange

// Flag describes suspicious content in a tool's definition.
type Flag = core.DefinitionFlag

// ListChanges returns the tools whose definitions differ from the trusted ones. It returns those of one server,
// given by its configured name, or of all servers if server is empty.
func (e *Engine) ListChanges(server string) []*Change {
	return slices.DeleteFunc(e.tools.catalog.ListChanges(), func(c *Change) bool { return server != "" && c.Server != server })
}

// Trust marks changed tool definitions as trusted, after a person has looked at them. If a definition has changed
// again since then, it returns an error and trusts none of the definitions of the same server.
func (e *Engine) Trust(looked []*Change) error {
	servers := map[string]map[string]string{}
	for _, c := range looked {
		if servers[c.Server] == nil {
			servers[c.Server] = map[string]string{}
		}
		servers[c.Server][c.Tool] = c.Pin
	}
	for server, pins := range servers {
		if err := e.recordTrust(server, pins); err != nil {
			return err
		}
		if err := e.tools.catalog.TrustTools(server, pins); err != nil {
			return err
		}
	}
	return nil
}

// recordTrust records in the audit log that a person trusts these tool definitions. It is called before they are
// trusted.
func (e *Engine) recordTrust(server string, pins map[string]string) error {
	for tool, pin := range pins {
		if refused := e.data.recordEvent(
			core.AuditEvent{Kind: core.EventPin, Server: server, Tool: tool, Status: "trusted", Facts: map[string]any{"pin": pin}},
			true,
		); refused != nil {
			return refused
		}
	}
	return nil
}

// FlagsOf returns the suspicious content in a tool's definition. server is the configured name, and tool the name
// that the server lists.
func (e *Engine) FlagsOf(server, tool string) []Flag {
	if t, ok := e.tools.catalog.Toolset().WithHidden().FindExact(server, tool); ok {
		return t.Flags
	}
	return nil
}

// ResolveName resolves a name in any spelling to a server or a tool. It also finds tools that are hidden because they
// have changed. It returns the configured name of the server, and the name of the tool as the server lists it; tool
// is empty if the name is that of a server.
func (e *Engine) ResolveName(name string) (server, tool string, err error) {
	all := e.tools.catalog.Toolset().WithHidden()
	if s, ok := all.FindServer(name); ok {
		return s.Name, "", nil
	}
	if slices.Contains(e.tools.pool.ServerNames(), name) {
		return name, "", nil
	}
	if t, ok := all.FindTool(name); ok {
		return t.Server, t.Name, nil
	}
	return "", "", core.Errorf(
		core.KindToolNotFound, "retort.find", "there is no server or tool %q", name,
	).WithHint("run retort tools to see all servers and tools")
}

// FlaggedTool represents a tool whose definition has suspicious content.
type FlaggedTool struct {
	Tool string `json:"tool"`
	// Withheld is the place in the definition because of which models are not offered the tool. It is empty if
	// they are.
	Withheld string `json:"withheld,omitempty"`
	Flags    []Flag `json:"flags,omitempty"`
}

// ListFlagged returns the tools of a server that have flags or are withheld from models.
func (e *Engine) ListFlagged(server string) (list []FlaggedTool) {
	s, ok := e.tools.catalog.Toolset().WithHidden().FindServer(server)
	if !ok || s.Name != server {
		return nil
	}
	direct := slices.Contains(e.ExposedServers(), server)
	for _, t := range s.Tools {
		withheld := t.Withheld
		if direct && withheld == "" && !client.ForResources(t.Raw) && e.Offer(t) == nil {
			withheld = "its complete definition, which exceeds results.definitionTokens"
		}
		if len(t.Flags) > 0 || withheld != "" {
			list = append(list, FlaggedTool{t.Name, withheld, t.Flags})
		}
	}
	return list
}

// changedAndFlagged returns the names of a server's changed tools, of its flagged tools, and of those flagged
// tools that are withheld from models.
func (e *Engine) changedAndFlagged(server string) (changed, flagged, withheld []string) {
	for _, c := range e.ListChanges(server) {
		changed = append(changed, c.Tool)
	}
	for _, t := range e.ListFlagged(server) {
		flagged = append(flagged, t.Tool)
		if t.Withheld != "" {
			withheld = append(withheld, t.Tool)
		}
	}
	return changed, flagged, withheld
}
