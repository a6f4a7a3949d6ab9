package catalog

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"retort/internal/core"
	"retort/internal/pipeline/bindings"
)

// Toolset returns the current servers and tools. It is fast unless something has changed.
func (c *Catalog) Toolset() *core.Toolset {
	if ts := c.current.Load(); ts != nil && !c.hasNewTrust() && !c.learner.hasNews() {
		return ts
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reloadTrust()
	c.adoptLearned()
	if ts := c.current.Load(); ts != nil {
		return ts
	}
	began := time.Now()
	ts := c.buildToolset()
	c.learner.noteRebuild(time.Since(began))
	c.current.Store(ts)
	return ts
}

// invalidateToolset marks the current toolset as outdated. The caller must hold c.mu.
func (c *Catalog) invalidateToolset() { c.current.Store(nil) }

func (c *Catalog) buildToolset() *core.Toolset {
	visible := c.visibleSources()
	names := slices.Sorted(maps.Keys(visible))
	identifiers := bindings.AssignServer(names)
	servers := make([]*core.ToolServer, len(names))
	for i, name := range names {
		servers[i] = c.buildServer(name, visible[name])
		servers[i].TypeScript, servers[i].Python = identifiers[name].TypeScript, identifiers[name].Python
	}
	c.watchTrustFiles(servers)
	return core.NewToolset(servers).WithoutRefused(func(t *core.Tool) *core.Error {
		switch {
		case t.Withheld != "":
			return core.Errorf(
				core.KindPolicy, "catalog",
				"the tool is withheld, because its definition contains hidden text or instructions to the model at %s", t.Withheld,
			).
				WithHint("a person can review it: retort tools %s", t.Server)
		case t.Change != nil && t.Change.Policy == core.ChangesBlock:
			return t.Change.Error()
		}
		return nil
	})
}

// visibleSources returns the servers whose tools are in the toolset. The tools of a listed server replace the static
// definitions of a server with the same name.
func (c *Catalog) visibleSources() map[string]*serverSource {
	visible := maps.Clone(c.static)
	for name, s := range c.servers {
		if c.kept == nil || c.kept[name] {
			visible[name] = s
		}
	}
	return visible
}

func (c *Catalog) buildServer(name string, s *serverSource) *core.ToolServer {
	if s.categorized == nil {
		s.categorizeTools(name, c.categories[name])
		c.sealTools(name, s.categorized)
		c.learner.markTools(name, s.categorized)
		if !s.static {
			c.judgeTools(name, s.categorized)
		}
	}
	return &core.ToolServer{
		Name: name, Instructions: s.shown, Flags: s.flags, Category: s.category, Cached: s.cached, Static: s.static, Tools: s.categorized,
	}
}

// sealTools sets the field core.Tool.Sealed of each tool of a server. The field holds a function that says which
// properties of the tool's answers are hidden from programs.
func (c *Catalog) sealTools(server string, tools []*core.Tool) {
	if c.sealed == nil {
		return
	}
	property := func(name string) string { return c.sealed(server, name) }
	for _, t := range tools {
		t.Sealed = property
	}
}

// categorizeTools sets the category of the server and of each tool. The settings decide; if they name no category, a
// tool that was loaded from a file has the category of the file's folder. Otherwise the category is derived from
// names.
func (s *serverSource) categorizeTools(server, configured string) {
	derived, each := classifyTools(server, s.tools)
	s.category = derived
	s.categorized = make([]*core.Tool, len(s.tools))
	for i, t := range s.tools {
		tool := *t
		tool.Category = cmp.Or(configured, t.Category, each[i])
		s.categorized[i] = &tool
		if i == 0 && s.static {
			s.category = tool.Category
		}
	}
	s.category = cmp.Or(configured, s.category)
}

// assignIdentifiers gives the tools of one server the names by which programs call them.
func assignIdentifiers(tools []*core.Tool) []*core.Tool {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	identifiers := bindings.AssignTools(names)
	for _, t := range tools {
		t.TypeScript, t.Python = identifiers[t.Name].TypeScript, identifiers[t.Name].Python
	}
	return tools
}
