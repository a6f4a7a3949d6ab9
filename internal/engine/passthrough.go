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

// serverEvents forwards notifications of exposed servers, which clients see directly, to the clients that listen.
type serverEvents struct {
	mu        sync.Mutex
	listeners map[int]eventListener
	next      int
}

// eventListener receives the notifications of servers on behalf of one principal.
type eventListener struct {
	principal string
	receive   func(server, method string, params json.RawMessage)
}

// notify passes a notification of a server instance on to the listeners. If the instance belongs to one principal,
// only the listeners of that principal receive it.
func (s *serverEvents) notify(server string, owner core.Caller, method string, params json.RawMessage) {
	s.mu.Lock()
	var all []eventListener
	for _, l := range s.listeners {
		if owner == (core.Caller{}) || owner.Principal == l.principal {
			all = append(all, l)
		}
	}
	s.mu.Unlock()
	for _, l := range all {
		l.receive(server, method, params)
	}
}

func (s *serverEvents) addListener(l eventListener) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listeners == nil {
		s.listeners = map[int]eventListener{}
	}
	id := s.next
	s.next++
	s.listeners[id] = l
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.listeners, id)
	}
}

// clientFeatures returns the features of the client that the settings let a server use: elicitation, sampling and
// roots.
func clientFeatures(s config.PassThrough) client.ClientFeatures {
	return client.ClientFeatures{Elicit: s.Elicitation != config.Deny, Sample: s.Sampling == config.Allow, Roots: s.Roots}
}

// ExposedServers returns the names of the servers that clients see directly, sorted.
func (e *Engine) ExposedServers() (names []string) {
	now := e.activeConfig()
	for _, s := range now.servers {
		if now.config.Settings.Servers[s.Name].Expose == config.ExposeDirect {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Offer returns the definition of a tool that clients see directly: as the server sent it, but without suspicious
// content. It returns nil for the tools that Retort itself adds to a server, and for a tool of whose definition
// nothing may be shown.
func (e *Engine) Offer(t *core.Tool) json.RawMessage {
	if client.ForResources(t.Raw) {
		return nil
	}
	return catalog.OfferedDefinition(t, e.fitsTokenLimit)
}

// fitsTokenLimit reports whether a definition is within the token limit. A token has at least one byte, so it
// counts tokens only if the definition has more bytes than the limit allows tokens.
func (e *Engine) fitsTokenLimit(definition string) bool {
	most := e.config.Settings.Results.DefinitionTokens
	if len(definition) <= most {
		return true
	}
	_, ok := tokens.FitsLimit(definition, most)
	return ok
}

// WaitForExposed waits until every exposed server, which clients see directly, has listed its tools or failed, or
// until the time patience is over.
func (e *Engine) WaitForExposed(ctx context.Context, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	exposed := e.ExposedServers()
	pending := slices.DeleteFunc(e.PendingServers(), func(name string) bool { return !slices.Contains(exposed, name) })
	if len(pending) > 0 {
		e.WaitForServers(ctx, pending...)
	}
}

// PassThrough sends one request of a client to a server; see server.PassthroughEngine.
func (e *Engine) PassThrough(ctx context.Context, r Request, what core.PassthroughRequest) Outcome {
	return e.logOutcome("passed", e.pipeline.PassThrough(ctx, r, what))
}

// ListExposed returns the resources, resource templates or prompts, depending on kind, of the exposed servers,
// which clients see directly. Each item is as the server sent it, except that secrets and personal values are
// removed. ListExposed omits servers that fail or for which the policy refuses the method.
func (e *Engine) ListExposed(ctx context.Context, kind server.Kind) []server.ListedItem {
	ctx, cancel := context.WithTimeout(core.WithCaller(ctx, core.Caller{Principal: e.pipeline.Policy.Principal()}), listTimeout)
	defer cancel()
	exposed := e.ExposedServers()
	found := make([][]json.RawMessage, len(exposed))
	var wg sync.WaitGroup
	for i, name := range exposed {
		if !e.pipeline.IsPassable(name, kind.Tool) {
			continue
		}
		wg.Go(func() {
			items, err := e.tools.pool.ListOf(ctx, name, kind.Method, kind.Member)
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

// cleanListed removes suspicious text from the resources, resource templates or prompts that a server lists, as it
// is removed from tool definitions. It omits an item whose name contains suspicious text.
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

// listTimeout limits the time that ListExposed waits for the servers.
const listTimeout = 20 * time.Second

// SetSubscription subscribes to changes of a server's resource or, if wanted is false, ends the subscription.
func (e *Engine) SetSubscription(ctx context.Context, srv, uri string, wanted bool) error {
	if !e.pipeline.IsPassable(srv, server.Resources.Tool) {
		return core.Errorf(core.KindPolicy, "retort.subscribe", "the policy does not allow read_resource of %s", srv)
	}
	return e.tools.pool.SubscribeResource(core.WithCaller(ctx, core.Caller{Principal: e.pipeline.Policy.Principal()}), srv, uri, wanted)
}

// WatchChanges calls f with the method and params of each change notification that an exposed server sends, until
// stop is called.
func (e *Engine) WatchChanges(f func(server, method string, params json.RawMessage)) (stop func()) {
	exposed := e.ExposedServers()
	only := func(server, method string, params json.RawMessage) {
		if slices.Contains(exposed, server) {
			f(server, method, params)
		}
	}
	stopEvents := e.tools.events.addListener(eventListener{e.pipeline.Policy.Principal(), only})
	stopTools := e.tools.catalog.OnChange(func(*core.Toolset) { f("", server.ToolsChanged, nil) })
	return func() { stopEvents(); stopTools() }
}

// SetLogLevel sets the lowest level of the servers' log messages that a client receives.
func (e *Engine) SetLogLevel(level string) { e.tools.pool.SetLogLevel(level) }
