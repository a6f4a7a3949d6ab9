package retort

import (
	"slices"

	"retort/internal/core"
	"retort/internal/mcp/client"
)

// Change is how a tool's definition differs from the one that was trusted.
type Change = core.DefinitionChange

// Flag is something in a definition that does not belong there.
type Flag = core.DefinitionFlag

// Changes are the tools of a server, or of all, that are not as they were trusted.
// The server is named as it is configured.
func (e *Engine) Changes(server string) []*Change {
	return slices.DeleteFunc(e.catalog.ListChanges(), func(c *Change) bool { return server != "" && c.Server != server })
}

// Trust trusts the definitions of these changes, which a person has looked at. One
// that is another by now is an error, and then nothing of its server is trusted.
func (e *Engine) Trust(looked []*Change) error {
	servers := map[string]map[string]string{}
	for _, c := range looked {
		if servers[c.Server] == nil {
			servers[c.Server] = map[string]string{}
		}
		servers[c.Server][c.Tool] = c.Pin
	}
	for server, pins := range servers {
		if err := e.trusted(server, pins); err != nil {
			return err
		}
		if err := e.catalog.TrustTools(server, pins); err != nil {
			return err
		}
	}
	return nil
}

// trusted records that a person trusts definitions, before they count.
func (e *Engine) trusted(server string, pins map[string]string) error {
	if e.audit == nil {
		return nil
	}
	for tool, pin := range pins {
		if refused := e.audit.Record(
			core.AuditEvent{Kind: core.EventPin, Server: server, Tool: tool, Status: "trusted", Facts: map[string]any{"pin": pin}},
			true,
		); refused != nil {
			return refused
		}
	}
	return nil
}

// Flags are what does not belong into the definition of a tool, by the raw names of
// its server and of its own.
func (e *Engine) Flags(server, tool string) []Flag {
	if t, ok := e.catalog.Toolset().WithHidden().FindExact(server, tool); ok {
		return t.Flags
	}
	return nil
}

// Find finds what a name in any spelling means: a server, or a tool, also one that is
// hidden since it has changed. The names are the raw ones; of a server tool is empty.
func (e *Engine) Find(name string) (server, tool string, err error) {
	all := e.catalog.Toolset().WithHidden()
	if s, ok := all.FindServer(name); ok {
		return s.Name, "", nil
	}
	if slices.Contains(e.pool.Names(), name) {
		return name, "", nil
	}
	if t, ok := all.FindTool(name); ok {
		return t.Server, t.Name, nil
	}
	return "", "", core.Errorf(
		core.KindToolNotFound, "retort.find", "there is no server or tool %q", name,
	).WithHint("retort tools lists what is there")
}

// FlaggedTool is a tool with something in its definition that does not belong there.
type FlaggedTool struct {
	Tool     string `json:"tool"`
	Withheld string `json:"withheld,omitempty"` // where the definition says for what no model is offered the tool
	Flags    []Flag `json:"flags,omitempty"`
}

// Flagged are the tools of a server with flags, whether models are offered them or not.
func (e *Engine) Flagged(server string) (list []FlaggedTool) {
	s, ok := e.catalog.Toolset().WithHidden().FindServer(server)
	if !ok || s.Name != server {
		return nil
	}
	direct := slices.Contains(e.Exposed(), server)
	for _, t := range s.Tools {
		withheld := t.Withheld
		if direct && withheld == "" && !client.ForResources(t.Raw) && e.Offer(t) == nil {
			withheld = "the whole, which has more than results.definitionTokens"
		}
		if len(t.Flags) > 0 || withheld != "" {
			list = append(list, FlaggedTool{t.Name, withheld, t.Flags})
		}
	}
	return list
}

// marked names the tools of a server that have changed, those with flags, and of these the ones that
// no model is offered.
func (e *Engine) marked(server string) (changed, flagged, withheld []string) {
	for _, c := range e.Changes(server) {
		changed = append(changed, c.Tool)
	}
	for _, t := range e.Flagged(server) {
		flagged = append(flagged, t.Tool)
		if t.Withheld != "" {
			withheld = append(withheld, t.Tool)
		}
	}
	return changed, flagged, withheld
}
