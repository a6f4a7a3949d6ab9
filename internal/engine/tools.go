package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"retort/internal/base/memory"
	"retort/internal/base/reaper"
	"retort/internal/catalog"
	"retort/internal/core"
	"retort/internal/mcp/client"
	"retort/internal/privacy/redact"
	"retort/internal/tokens"
)

// toolAssembly holds the connections to the servers and the catalog of their tools.
type toolAssembly struct {
	closeStack
	memory  *memory.Budget // budget for results
	catalog *catalog.Catalog
	pool    *client.Pool
	live    *catalog.LiveCatalog
	events  *serverEvents // notifications of exposed servers
}

// newToolAssembly opens the catalog and the server pool, and starts listing the servers' tools.
func newToolAssembly(c *configuration, data *dataAssembly) (_ *toolAssembly, err error) {
	var opened closeStack
	defer opened.closeOnError(&err)
	budget := memory.New(cmp.Or(c.config.Settings.Memory, memory.AutoLimit()))
	opened.push(budget.Close)
	children := reaper.New(c.commands.reaper...)
	opened.push(func() error { children.Close(0); return nil })
	known, err := openCatalog(c, data.redactor)
	if err != nil {
		return nil, err
	}
	opened.push(known.Close)
	servers := c.activeConfig().servers
	if err := fillCatalog(known, c, servers); err != nil {
		return nil, err
	}
	events, changes := &serverEvents{}, &handoff[string]{}
	pool := client.New(servers, client.Options{
		Identify: c.identifyTool, ClientVersion: Version, Processes: children, OnChange: changes.send, OnNews: events.notify,
		Log: c.log, Memory: budget, ExitPatience: c.source.exitPatience,
		Spool: client.SpoolOptions{Dir: c.home.Spool(), Above: c.source.spoolAbove, Bytes: data.limits.Disk},
	})
	opened.push(pool.Close)
	live := catalog.NewLive(
		known, maskedLister{poolLister{pool}, c.secrets},
		catalog.LiveOptions{Servers: serverNames(servers), Log: c.log, Count: tokens.CountTokens},
	)
	opened.push(live.Close)
	changes.deliverTo(live.NotifyChanged)
	return &toolAssembly{opened, budget, known, pool, live, events}, nil
}

// openCatalog opens the catalog. It stores tool definitions in the configured data directory, if there is one.
func openCatalog(c *configuration, redactor *redact.Redactor) (*catalog.Catalog, error) {
	o := catalog.Options{Learn: c.config.Settings.Results.Learn.IsOn(), Key: c.UserDir().ApprovalsKey()}
	o.Changes = func(server string) core.ChangePolicy {
		return core.ChangePolicy(c.activeConfig().config.Settings.ChangesOf(server))
	}
	if c.config.Home != "" {
		o.Dir = c.DataDir().Catalog()
	}
	if redactor != nil {
		o.Sealed = redactor.SealedType
	}
	if o.Key == "" && o.Dir != "" {
		c.log.Warn("trusted tool definitions cannot be stored: this user has no home directory")
	}
	return catalog.Open(o)
}

// fillCatalog adds the categories of the configured servers and the static tool definitions to the catalog.
func fillCatalog(known *catalog.Catalog, c *configuration, servers []Server) error {
	for _, s := range c.config.Servers {
		known.SetCategory(s.Name, s.Category)
	}
	known.KeepServers(serverNames(servers))
	return known.LoadStatic(c.config.Settings.ToolDefinitions)
}

// ExportDefinitions returns files with the definitions of all tools and their learned result types, by path. The
// setting toolDefinitions can name a folder with these files.
func (e *Engine) ExportDefinitions() map[string][]byte {
	files := e.tools.catalog.ExportDefinitions()
	for name, text := range files {
		files[name] = e.secrets.Mask(text)
	}
	return files
}

// identifyTool returns the name in a tool definition, and a digest of the definition. Secrets are masked before the
// digest is computed.
func (c *configuration) identifyTool(definition json.RawMessage) (name, pin string) {
	return catalog.IdentifyTool(c.secrets.Mask(definition))
}

// hasTool reports whether a tool exists. Hidden tools and tools that no principal may call exist, too.
func (t *toolAssembly) hasTool(server, tool string) bool {
	_, ok := t.catalog.Toolset().WithHidden().FindExact(server, tool)
	return ok
}

// poolLister lists the tools of a server in the pool, for the catalog.
type poolLister struct{ pool *client.Pool }

func (l poolLister) Link(server string) (count int, up bool) { return l.pool.Connection(server) }

func (l poolLister) List(ctx context.Context, server string) ([]json.RawMessage, string, error) {
	listing, err := l.pool.List(ctx, server)
	return listing.Tools, listing.Instructions, err
}

func (l poolLister) Own(ctx context.Context, server string) bool {
	return l.pool.HasOwnInstance(ctx, server)
}

func (l poolLister) Pin(ctx context.Context, server, tool string, since time.Time) (string, error) {
	return l.pool.Pin(ctx, server, tool, since)
}

func (l poolLister) ListOwn(ctx context.Context, server string) ([]json.RawMessage, string, error) {
	listing, err := l.pool.ListOwn(ctx, server)
	return listing.Tools, listing.Instructions, err
}
