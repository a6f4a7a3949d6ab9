package retort

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"retort/internal/catalog"
	"retort/internal/catalog/sanitize"
	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/mcp/client"
	"retort/internal/mcp/server"
	"retort/internal/tokens"
)

// passing are who is told when something changes that clients see as it is.
type passing struct {
	mu        sync.Mutex
	listeners map[int]listener
	next      int
}

type listener struct {
	principal string
	hear      func(server, method string, params json.RawMessage)
}

// tell tells of a notification that came to the instance of a server that owner has; to nobody
// else if it is somebody's.
func (p *passing) tell(server string, owner core.Caller, method string, params json.RawMessage) {
	p.mu.Lock()
	var all []listener
	for _, l := range p.listeners {
		if owner == (core.Caller{}) || owner.Principal == l.principal {
			all = append(all, l)
		}
	}
	p.mu.Unlock()
	for _, l := range all {
		l.hear(server, method, params)
	}
}

func (p *passing) add(l listener) (stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listeners == nil {
		p.listeners = map[int]listener{}
	}
	id := p.next
	p.next++
	p.listeners[id] = l
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.listeners, id)
	}
}

// clientOf is what a server may have from clients, as the settings say.
func clientOf(s config.Passing) client.Client {
	return client.Client{Elicit: s.Elicitation != config.Deny, Sample: s.Sampling == config.Allow, Roots: s.Roots}
}

// Exposed names the servers that clients see as they are, sorted.
func (e *Engine) Exposed() (names []string) {
	now := e.now()
	for _, s := range now.servers {
		if now.config.Settings.Servers[s.Name].Expose == config.ExposeDirect {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Offer is the definition of a tool as a client sees it whose server is exposed: as it was
// received but for what does not belong there. Tools that Retort adds to a server have none.
func (e *Engine) Offer(t *core.Tool) json.RawMessage {
	if client.ForResources(t.Raw) {
		return nil
	}
	return catalog.OfferedDefinition(t, e.fits)
}

// fits reports whether the definition of a tool may be shown whole. No text has more tokens than bytes.
func (e *Engine) fits(definition string) bool {
	most := e.config.Settings.Results.DefinitionTokens
	if len(definition) <= most {
		return true
	}
	_, ok := tokens.Fits(definition, most)
	return ok
}

// Awaited waits until the exposed servers have said what they have, at most for patience.
func (e *Engine) Awaited(ctx context.Context, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	exposed := e.Exposed()
	pending := slices.DeleteFunc(e.Pending(), func(name string) bool { return !slices.Contains(exposed, name) })
	if len(pending) > 0 {
		e.Settle(ctx, pending...)
	}
}

// Pass makes one request of a client to a server, as server.Passthrough says.
func (e *Engine) Pass(ctx context.Context, r Request, what core.PassthroughRequest) Outcome {
	return e.logged("passed", e.pipeline.PassThrough(ctx, r, what))
}

// Listed is what the exposed servers list by a method, each as it was received but for
// secrets and what is personal. Servers that fail, or of which the policy refuses it, are left out.
func (e *Engine) Listed(ctx context.Context, kind server.Kind) []server.ListedItem {
	ctx, cancel := context.WithTimeout(core.WithCaller(ctx, core.Caller{Principal: e.pipeline.Policy.Principal()}), listPatience)
	defer cancel()
	exposed := e.Exposed()
	found := make([][]json.RawMessage, len(exposed))
	var wg sync.WaitGroup
	for i, name := range exposed {
		if !e.pipeline.IsPassable(name, kind.Tool) {
			continue
		}
		wg.Go(func() {
			items, err := e.pool.ListOf(ctx, name, kind.Method, kind.Member)
			if err != nil {
				e.log.Warn("could not be listed", "server", name, "method", kind.Method, "error", core.AsError(err).Message)
				return
			}
			found[i] = e.pipeline.CleanListed(name, e.cleanListed(name, kind, items))
		})
	}
	wg.Wait()
	var all []server.ListedItem
	for i, items := range found {
		for _, item := range items {
			all = append(all, server.ListedItem{Server: exposed[i], Item: item})
		}
	}
	return all
}

// cleanListed are things of a server as a model may see them, like the definitions of its tools. One that
// is used by a name that no model may see is left out.
func (e *Engine) cleanListed(server string, kind server.Kind, items []json.RawMessage) []json.RawMessage {
	scanner, flagged := sanitize.New(), 0
	var first core.DefinitionFlag
	for i, item := range items {
		shown, flags := catalog.CleanListed(item, kind.Key, scanner)
		if items[i] = shown; len(flags) > 0 {
			if flagged++; flagged == 1 {
				first = flags[0]
			}
		}
	}
	items = slices.DeleteFunc(items, func(item json.RawMessage) bool { return item == nil })
	if flagged > 0 {
		e.log.Warn(
			"texts of a list do not belong there", "server", server, "method", kind.Method, "items", flagged,
			"first", first.Where, "reason", first.Reason,
		)
	}
	return items
}

// listPatience is how long listing waits for servers.
const listPatience = 20 * time.Second

// Subscribed asks a server to tell when a resource changes, or not to tell any more.
func (e *Engine) Subscribed(ctx context.Context, srv, uri string, wanted bool) error {
	if !e.pipeline.IsPassable(srv, server.Resources.Tool) {
		return core.Errorf(core.KindPolicy, "retort.subscribe", "the policy refuses read_resource of %s", srv)
	}
	return e.pool.Subscribe(core.WithCaller(ctx, core.Caller{Principal: e.pipeline.Policy.Principal()}), srv, uri, wanted)
}

// Watch tells of what exposed servers have otherwise than before: by the method of MCP's
// notification, with its params.
func (e *Engine) Watch(f func(server, method string, params json.RawMessage)) (stop func()) {
	exposed := e.Exposed()
	only := func(server, method string, params json.RawMessage) {
		if slices.Contains(exposed, server) {
			f(server, method, params)
		}
	}
	news := e.passing.add(listener{e.pipeline.Policy.Principal(), only})
	tools := e.catalog.OnChange(func(*core.Toolset) { f("", server.ToolsChanged, nil) })
	return func() { news(); tools() }
}

// WantLog says from which level on a client wants the log lines of servers.
func (e *Engine) WantLog(level string) { e.pool.SetLogLevel(level) }
