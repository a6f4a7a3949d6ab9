package catalog

import (
	"encoding/json"
	"slices"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
)

// watchedFile represents the last seen version of a server's file with trusted definitions. Another process writes
// this file when a person trusts a changed tool in that process.
type watchedFile struct {
	server string
	file   seal.FileStamp
}

// mergeListing records newly listed tools of a server in the server's trusted definitions. It adds tools that were
// unknown, and notes which known tools have another definition now. The caller must hold c.writing.
func (c *Catalog) mergeListing(server string, tools []*core.Tool) {
	c.mu.Lock()
	known := c.trusts[server]
	c.mu.Unlock()
	known = c.book.currentTrust(server, known)
	next := known
	if known.cloneTrust().noteListing(tools, time.Now()) {
		var err error
		next, err = c.book.updateTrust(server, known, func(t *serverTrust) bool { return t.noteListing(tools, time.Now()) })
		if err != nil {
			c.addProblem(CatalogProblem{Server: server, Message: "the trusted definitions of its tools are not kept for the next start: " + err.Error()})
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trusts[server] = next
}

// judgeTools marks those tools of a server that differ from the trusted definitions. The caller must hold c.mu and
// must not have shared the tools yet.
func (c *Catalog) judgeTools(server string, tools []*core.Tool) {
	t := c.trusts[server]
	if t == nil || t.unknown == "" && t.records == nil {
		return // nothing was trusted yet; the first listing will be
	}
	for _, tool := range tools {
		if _, known := t.records[tool.Name]; t.unknown == "" && !known && len(t.records) < maxRecords {
			continue // stored before anything was trusted
		}
		if tool.Change = t.findChange(tool, c.changes(server)); tool.Change != nil {
			t.hideUntrusted(tool, c.scanner())
		}
	}
}

// newVariant returns a copy of the tool known with another definition, which the server lists over only one of its
// connections. The copy is marked as changed unless that definition is trusted.
func (c *Catalog) newVariant(known *core.Tool, definition json.RawMessage) (*core.Tool, error) {
	t, _, err := readDefinition(known.Server, definition, c.scanner())
	if err != nil {
		return nil, core.Errorf(core.KindToolChanged, "catalog.trust", "the definition of the tool has changed and cannot be read: %w", err)
	}
	t.TypeScript, t.Python, t.Category, t.Sealed = known.TypeScript, known.Python, known.Category, known.Sealed
	c.mu.Lock()
	defer c.mu.Unlock()
	c.judgeTools(known.Server, []*core.Tool{t})
	return t, nil
}

// watchTrustFiles watches the trust files of servers that have changed tools. The caller must hold mu.
func (c *Catalog) watchTrustFiles(servers []*core.ToolServer) {
	var list []watchedFile
	for _, s := range servers {
		if slices.ContainsFunc(s.Tools, func(t *core.Tool) bool { return t.Change != nil }) {
			list = append(list, watchedFile{s.Name, c.trusts[s.Name].file})
		}
	}
	c.watched.Store(&list)
}

// hasNewTrust reports whether a file with trusted definitions was written that watchTrustFiles has chosen. A tool
// may then be trusted again.
func (c *Catalog) hasNewTrust() bool {
	list := c.watched.Load()
	return list != nil && c.book.isPersistent() &&
		slices.ContainsFunc(*list, func(w watchedFile) bool { return !w.file.IsSame(seal.StampOf(c.book.filePath(w.server))) })
}

// reloadTrust reads trusted definitions that other processes have written. The caller must hold mu.
func (c *Catalog) reloadTrust() {
	list := c.watched.Load()
	if list == nil || !c.book.isPersistent() {
		return
	}
	for _, w := range *list {
		if t := c.book.currentTrust(w.server, c.trusts[w.server]); t != c.trusts[w.server] {
			c.trusts[w.server] = t
			if s, ok := c.servers[w.server]; ok {
				s.categorized = nil
			}
			c.invalidateToolset()
		}
	}
}

// ListChanges returns the tools that differ from their trusted definition, sorted by server and name.
func (c *Catalog) ListChanges() []*core.DefinitionChange {
	var list []*core.DefinitionChange
	for _, s := range c.Toolset().WithHidden().Servers {
		for _, t := range s.Tools {
			if t.Change != nil {
				list = append(list, t.Change)
			}
		}
	}
	return list
}

// TrustTools makes the current definitions of a server's tools the trusted ones. pins maps the tools that a person
// has reviewed to the hashes of their definitions at that time. If one has changed since, TrustTools returns an error
// and changes nothing. If the trusted definitions cannot be read, pins must name all tools of the server.
func (c *Catalog) TrustTools(server string, pins map[string]string) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	s, known := c.servers[server], c.trusts[server]
	c.mu.Unlock()
	if s == nil {
		return core.Errorf(core.KindInvalidArguments, "catalog.trust", "the tools of %s are not known", server)
	}
	known = c.book.currentTrust(server, known)
	chosen, err := chooseTools(server, s.tools, pins, known.unknown != "")
	if err != nil {
		return err
	}
	next, failed := c.book.updateTrust(server, known, func(t *serverTrust) bool {
		if t.unknown != "" {
			t.unknown, t.records = "", map[string]trustRecord{}
		}
		for _, tool := range chosen {
			t.records[tool.Name] = recordOf(tool, time.Now())
		}
		return true
	})
	if failed != nil {
		return core.Errorf(core.KindInternal, "catalog.trust", "the trusted definitions of %s could not be saved: %w", server, failed)
	}
	c.mu.Lock()
	c.trusts[server] = next
	s.categorized = nil
	c.invalidateToolset()
	c.mu.Unlock()
	c.notifyChange()
	return nil
}

// chooseTools returns the tools whose pins (definition hashes) are given. It returns an error if one of these
// tools has another pin now or is no longer listed. If all is set, pins must name every tool.
func chooseTools(server string, tools []*core.Tool, pins map[string]string, all bool) (chosen []*core.Tool, err error) {
	for _, t := range tools {
		switch pin, named := pins[t.Name]; {
		case !named && all:
			return nil, core.Errorf(
				core.KindInvalidArguments, "catalog.trust",
				"the trusted definitions of %s are unknown, so you can only trust all its tools together", server,
			).
				WithHint("retort tools --trust %s", server)
		case !named:
		case pin != t.Pin:
			return nil, core.Errorf(
				core.KindInvalidArguments, "catalog.trust", "%s.%s has changed again since it was shown", server, t.Name,
			).WithHint("review it again")
		default:
			chosen = append(chosen, t)
		}
	}
	if len(chosen) < len(pins) {
		return nil, core.Errorf(
			core.KindInvalidArguments, "catalog.trust", "%s no longer has all of these tools", server,
		).WithHint("review it again")
	}
	return chosen, nil
}
