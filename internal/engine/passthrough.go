package engine

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

// passing forwards notifications of exposed servers to the listening clients.
type passing struct {
	mu        sync.Mutex
	listeners map[int]listener
	next      int
}

type listener struct {
	principal string
	hear      func(server, method string, params json.RawMessage)
}

// tell passes a notification of a server instance on to its listeners. If the instance belongs to a principal, only
// that principal's listeners receive it.
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

// clientOf returns the client features that the settings let a server use: elicitation, sampling and roots.
func clientOf(s config.PassThrough) client.ClientFeatures {
	return client.ClientFeatures{Elicit: s.Elicitation != config.Deny, Sample: s.Sampling == config.Allow, Roots: s.Roots}
}

// Exposed returns the names of the servers that clients see directly, sorted.
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

// Offer returns the definition of an exposed server's tool as a client sees it: as received, without suspicious
// content. It returns nil for tools that Retort adds to a server.
func (e *Engine) Offer(t *core.Tool) json.RawMessage {
	if client.ForResources(t.Raw) {
		return nil
	}
	return catalog.OfferedDefinition(t, e.fits)
}

// fits reports whether a definition is within the token limit. It counts tokens only if the definition has more bytes
// than that, because a token has at least one byte.
func (e *Engine) fits(definition string) bool {
	most := e.config.Settings.Results.DefinitionTokens
	if len(definition) <= most {
		return true
	}
	_, ok := tokens.FitsLimit(definition, most)
	return ok
}

// Awaited waits until all exposed servers have been listed or have failed, but no longer than patience.
func (e *Engine) Awaited(ctx context.Context, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	exposed := e.Exposed()
	pending := slices.DeleteFunc(e.Pending(), func(name string) bool { return !slices.Contains(exposed, name) })
	if len(pending) > 0 {
		e.Settle(ctx, pending...)
	}
}

// Pass sends one request of a client to a server; see server.PassthroughEngine.
func (e *Engine) Pass(ctx context.Context, r Request, what core.PassthroughRequest) Outcome {
	return e.logged("passed", e.pipeline.PassThrough(ctx, r, what))
}

// Listed returns the items that the exposed servers list for a method. Each is as received, without secrets and
// personal values. It leaves out servers that fail or for which the policy refuses the method.
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
				e.log.Warn("a listing failed", "server", name, "method", kind.Method, "error", core.AsError(err).Message)
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

// cleanListed cleans listed items for models, as tool definitions are cleaned. It leaves out an item whose name
// models must not see.
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
			"a listing contains suspicious text", "server", server, "method", kind.Method, "items", flagged,
			"first", first.Where, "reason", first.Reason,
		)
	}
	return items
}

// listPatience limits the time that Listed waits for the servers.
const listPatience = 20 * time.Second

// Subscribed subscribes to changes of a server's resource or, if wanted is false, ends the subscription.
func (e *Engine) Subscribed(ctx context.Context, srv, uri string, wanted bool) error {
	if !e.pipeline.IsPassable(srv, server.Resources.Tool) {
		return core.Errorf(core.KindPolicy, "retort.subscribe", "the policy does not allow read_resource of %s", srv)
	}
	return e.pool.SubscribeResource(core.WithCaller(ctx, core.Caller{Principal: e.pipeline.Policy.Principal()}), srv, uri, wanted)
}

// Watch calls f for each change notification of an exposed server, with the method and params of the MCP
// notification, until stop is called.
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

// WantLog sets the lowest level of the servers' log messages that a client receives.
func (e *Engine) WantLog(level string) { e.pool.SetLogLevel(level) }
