package catalog

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
	"unicode"

	"retort/internal/core"
)

// ToolLister lists a server's tools. Its errors are *core.Error.
type ToolLister interface {
	List(ctx context.Context, server string) (definitions []json.RawMessage, instructions string, err error)
}

// ConnectionLister is a ToolLister that knows the state of its connections.
type ConnectionLister interface {
	// Link returns how many connections to the server were made so far. up reports whether the newest of them is
	// still open.
	Link(server string) (count int, up bool)
}

// ConnectionProber is a ToolLister that can list a server over the same connection that a call would use.
type ConnectionProber interface {
	// Own reports whether the caller in ctx (core.Caller) has its own connection to a server, instead of one that
	// callers share.
	Own(ctx context.Context, server string) bool
	// Pin returns the pin (definition hash) of a tool as the server lists it over the connection that a call with
	// ctx would use, or "" if the server does not list the tool. It lists the server again if the last listing
	// began before since.
	Pin(ctx context.Context, server, tool string, since time.Time) (string, error)
	// ListOwn lists a server like ToolLister.List, but over the connection that a call with ctx would use.
	ListOwn(ctx context.Context, server string) (definitions []json.RawMessage, instructions string, err error)
}

// LiveOptions configures a LiveCatalog.
type LiveOptions struct {
	Servers []string
	Log     *slog.Logger // logs changed tools; nil: nothing is logged
	// Count returns the number of tokens of a text.
	Count func(text string) int
}

// LiveCatalog keeps a catalog current while servers run. It lists every server in the background: once at the start,
// again when the server reports changed tools, and again after a while if listing failed.
type LiveCatalog struct {
	catalog *Catalog
	lister  ToolLister
	options LiveOptions
	base    context.Context
	cancel  context.CancelFunc
	wait    sync.WaitGroup

	mu      sync.Mutex
	servers map[string]*watchedServer
	counted map[string]int // number of tokens, by pin
}

// watchedServer holds the state of one server whose tools are listed in the background.
type watchedServer struct {
	changed chan struct{} // holds one item when the server should be listed again
	first   chan struct{} // closed after the first listing or failure
	ended   chan struct{} // closed when listing has stopped
	cancel  context.CancelFunc

	mu     sync.Mutex
	err    *core.Error
	at     time.Time       // time of the last listing or failure
	link   int             // number of the connection that was used for it
	round  chan struct{}   // closed when the current listing ends or, between listings, the next one
	asked  bool            // a call waits for the next listing
	logged map[string]bool // pins of changed tools that were logged
}

// Time limits for listings of a server's tools. A listing that is younger than freshListing need not be repeated
// before a call. A connected server is listed again when its last listing is as old as relistInterval.
const (
	freshListing   = time.Minute     // age up to which a listing need not be repeated before a call
	relistInterval = 5 * time.Minute // between listings of a connected server

	// firstListTimeout bounds how long a call waits for the first listing over a new connection. It is long because
	// the server may connect slowly, and the call itself needs this connection, too. listTimeout bounds how long a
	// call waits for any other listing.
	firstListTimeout = time.Minute
	listTimeout      = 5 * time.Second
)

// Pauses between attempts to list a server that fails.
const (
	firstRetry = 2 * time.Second
	lastRetry  = 5 * time.Minute
)

// NewLive returns a LiveCatalog and starts to list the servers. The caller must close it.
func NewLive(c *Catalog, l ToolLister, o LiveOptions) *LiveCatalog {
	ctx, cancel := context.WithCancel(context.Background())
	live := &LiveCatalog{
		catalog: c, lister: l, options: o, base: ctx, cancel: cancel, servers: map[string]*watchedServer{},
		counted: map[string]int{},
	}
	for _, name := range o.Servers {
		live.Add(name)
	}
	return live
}

// Add starts to list a server, unless it is already being listed.
func (l *LiveCatalog) Add(name string) {
	ctx, cancel := context.WithCancel(l.base)
	w := &watchedServer{
		changed: make(chan struct{}, 1), first: make(chan struct{}), ended: make(chan struct{}), cancel: cancel,
		round: make(chan struct{}), logged: map[string]bool{},
	}
	l.mu.Lock()
	l.servers[name] = w
	l.mu.Unlock()
	l.wait.Go(func() {
		defer close(w.ended)
		l.keepListed(ctx, name, w)
	})
}

// DropServer stops listing a server and waits until its goroutines have ended.
func (l *LiveCatalog) DropServer(name string) {
	l.mu.Lock()
	w := l.servers[name]
	delete(l.servers, name)
	l.mu.Unlock()
	if w != nil {
		w.cancel()
		<-w.ended
	}
}

// findWatched returns the watched server with this name, or nil.
func (l *LiveCatalog) findWatched(name string) *watchedServer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.servers[name]
}

// allWatched returns the watched servers by name.
func (l *LiveCatalog) allWatched() map[string]*watchedServer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.servers)
}

// Close stops all listing and waits until it has ended.
func (l *LiveCatalog) Close() error {
	l.cancel()
	l.wait.Wait()
	return nil
}

// NotifyChanged reports that a server's tools may have changed. It does not block.
func (l *LiveCatalog) NotifyChanged(server string) {
	if w := l.findWatched(server); w != nil {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}

// keepListed lists the tools of one server and repeats that whenever they may have changed, until ctx is done.
func (l *LiveCatalog) keepListed(ctx context.Context, name string, w *watchedServer) {
	retry := firstRetry
	for first := true; ; first = false {
		err := l.listServer(ctx, name)
		link, _ := l.connectionState(name)
		w.finishListing(err, link)
		if first {
			close(w.first)
		}
		l.logChanges(name, w)
		again := relistInterval
		if err == nil {
			retry = firstRetry
		} else {
			again = retry + rand.N(retry/2)
			retry = min(2*retry, lastRetry)
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return
			case <-w.changed:
				waiting = false
			case <-time.After(again):
				_, up := l.connectionState(name)
				waiting = err == nil && !up // no call needs it now
			}
		}
	}
}

// connectionState returns the state of the connection to a server. If the lister does not know the state, the
// connection counts as up.
func (l *LiveCatalog) connectionState(name string) (count int, up bool) {
	if linker, ok := l.lister.(ConnectionLister); ok {
		return linker.Link(name)
	}
	return 0, true
}

// logChanges logs which tools of a server have changed. It logs each change only once.
func (l *LiveCatalog) logChanges(name string, w *watchedServer) {
	if l.options.Log == nil {
		return
	}
	tools := map[core.ChangePolicy][]string{}
	for _, c := range l.catalog.ListChanges() {
		if c.Server == name && !w.logged[c.Pin] {
			w.logged[c.Pin] = true
			tools[c.Policy] = append(tools[c.Policy], c.Tool)
		}
	}
	for policy, names := range tools {
		l.options.Log.Warn("tools differ from their trusted definitions", "server", name, "policy", policy, "tools", names)
	}
}

func (l *LiveCatalog) listServer(ctx context.Context, name string) error {
	definitions, instructions, err := l.lister.List(ctx, name)
	if err != nil {
		return err
	}
	_, err = l.catalog.ReplaceListing(name, definitions, instructions)
	return err
}

func (w *watchedServer) finishListing(err error, link int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err, w.at, w.link, w.asked = core.AsError(err), time.Now(), link, false
	close(w.round)
	w.round = make(chan struct{})
}

// refreshServer lists the tools of a server before a call, unless they were listed over the open connection within
// freshListing. Concurrent calls share one listing.
func (l *LiveCatalog) refreshServer(ctx context.Context, name string) {
	w := l.findWatched(name)
	if w == nil {
		return // it is static
	}
	link, up := l.connectionState(name)
	w.mu.Lock()
	same, round := up && link == w.link, w.round
	if same && time.Since(w.at) < freshListing {
		w.mu.Unlock()
		return
	}
	if !w.asked {
		w.asked = true
		l.NotifyChanged(name)
	}
	w.mu.Unlock()
	late := listTimeout
	if !same {
		late = firstListTimeout
	}
	timer := time.NewTimer(late)
	defer timer.Stop()
	select {
	case <-round:
	case <-w.ended:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// VetTool checks, before a call with ctx is sent, whether the tool's definition is still trusted. t is the tool as
// the execution knows it. If since is not zero, a person was asked about the call at that time, and the server is
// listed again unless it was listed after that. The result now is the tool as listed over the connection that the
// call will use, or nil if there is no definition to compare. If now.RequiresApproval is true, the call needs
// approval. warning is a text to add to the Outcome. If the tool is no longer listed, VetTool allows the call and
// leaves the decision to the server.
func (l *LiveCatalog) VetTool(ctx context.Context, t *core.Tool, since time.Time) (now *core.Tool, warning string, refused *core.Error) {
	l.refreshServer(ctx, t.Server)
	tools := l.catalog.Toolset()
	now, ok := tools.FindExact(t.Server, t.Name)
	if !ok {
		return t, "", tools.RefusedExact(t.Server, t.Name)
	}
	if s, ok := tools.FindServer(t.Server); l.findWatched(t.Server) == nil || ok && s.Name == t.Server && s.Static {
		return nil, "", nil
	}
	now, own, refused := l.probeTool(ctx, now, since)
	switch {
	case refused != nil:
		return t, "", refused
	case now.Change == nil || now.Change.Policy == core.ChangesAsk && (own || now.Change.Pin == t.Pin && t.Change != nil):
		return now, "", nil
	case now.Change.Policy == core.ChangesNote:
		return now, now.Change.WarningText(), nil
	case own:
		return t, "", now.Change.Error()
	}
	return t, "", core.Errorf(
		core.KindToolChanged, "catalog.trust",
		"the definition of %s.%s has changed since the program was checked; the call was not sent", t.Server, t.Name,
	).
		WithHint("run the program again: a person is then asked about the call").AtTool(t.Server, t.Name)
}

// probeTool lists the tool known over the connection that a call with ctx will use, and returns the tool as listed
// there. own is true if its definition there differs from the one in the catalog.
func (l *LiveCatalog) probeTool(ctx context.Context, known *core.Tool, since time.Time) (now *core.Tool, own bool, refused *core.Error) {
	p, ok := l.lister.(ConnectionProber)
	if !ok {
		return known, false, nil
	}
	asked := !since.IsZero()
	switch old := time.Now().Add(-freshListing); {
	case p.Own(ctx, known.Server) && since.Before(old):
		since = old
	case !asked:
		if _, up := l.connectionState(known.Server); !up {
			return known, false, nil // refresh has tried
		}
	}
	pin, err := p.Pin(ctx, known.Server, known.Name, since)
	switch {
	case err != nil && asked:
		return nil, false, core.AsError(err).AtTool(known.Server, known.Name)
	case err != nil || pin == "" || pin == known.Pin:
		return known, false, nil // a call that can't be listed for fails in the same way
	case !p.Own(ctx, known.Server):
		return l.relistTool(ctx, known)
	}
	now, err = l.listVariant(ctx, p, known)
	if err != nil {
		return nil, false, core.AsError(err).AtTool(known.Server, known.Name)
	}
	return now, now.Pin != known.Pin, nil
}

// relistTool lists the tools of a server over the connection that callers without a connection of their own share. It
// updates the catalog and returns the tool as the server lists it now.
func (l *LiveCatalog) relistTool(ctx context.Context, known *core.Tool) (now *core.Tool, own bool, refused *core.Error) {
	if err := l.listServer(ctx, known.Server); err != nil {
		return nil, false, core.AsError(err).AtTool(known.Server, known.Name)
	}
	tools := l.catalog.Toolset()
	now, ok := tools.FindExact(known.Server, known.Name)
	if !ok {
		if refused = tools.RefusedExact(known.Server, known.Name); refused != nil {
			return nil, false, refused
		}
		return known, false, nil
	}
	return now, false, nil
}

// listVariant lists the tools of a server over the connection that a call with ctx will use. It returns a variant
// of the tool known: the same tool with the definition that was listed there.
func (l *LiveCatalog) listVariant(ctx context.Context, p ConnectionProber, known *core.Tool) (*core.Tool, error) {
	definitions, _, err := p.ListOwn(ctx, known.Server)
	if err != nil {
		return nil, err
	}
	for _, definition := range definitions {
		if name, _ := IdentifyTool(definition); name == known.Name {
			return l.catalog.newVariant(known, definition)
		}
	}
	return known, nil
}

// ProblemOf returns the error of the last listing of a server, or nil.
func (l *LiveCatalog) ProblemOf(server string) *core.Error {
	w := l.findWatched(server)
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// FindDown finds the server that an unknown tool's name probably refers to, among the servers whose tools are not
// known. That is the server with whose name, in any spelling, the tool's name begins. why is the reason why the
// server's tools are not known. It is nil if no such server is found.
func (l *LiveCatalog) FindDown(name string) (server string, why *core.Error) {
	tools := l.catalog.Toolset()
	for known := range l.allWatched() {
		if s, ok := tools.FindServer(known); ok && s.Name == known || !hasServerPrefix(name, known) || len(known) < len(server) {
			continue
		}
		server, why = known, core.Errorf(core.KindUpstreamGone, "catalog.live", "it has not answered yet")
		if e := l.ProblemOf(known); e != nil {
			why = e
		}
	}
	return server, why
}

// hasServerPrefix reports whether a tool's name equals a server's name or begins with it, in any spelling.
func hasServerPrefix(name, server string) bool {
	rest := []rune(name)
	for _, r := range server {
		if r = unicode.ToLower(r); !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			continue
		}
		for len(rest) > 0 && !unicode.IsLetter(rest[0]) && !unicode.IsDigit(rest[0]) {
			rest = rest[1:]
		}
		if len(rest) == 0 || unicode.ToLower(rest[0]) != r {
			return false
		}
		rest = rest[1:]
	}
	return len(rest) == 0 || !unicode.IsLetter(rest[0]) && !unicode.IsDigit(rest[0])
}

// WaitForListing waits until each of the named servers has been listed once, or listing it has failed. Without names,
// it waits for all servers.
func (l *LiveCatalog) WaitForListing(ctx context.Context, servers ...string) {
	for name, w := range l.allWatched() {
		if len(servers) > 0 && !slices.Contains(servers, name) {
			continue
		}
		select {
		case <-w.first:
		case <-ctx.Done():
			return
		}
	}
}

// Toolset returns the current set of all tools.
func (l *LiveCatalog) Toolset() *core.Toolset { return l.catalog.Toolset() }

// PendingServers returns the names of the servers whose tools are not known yet, not even from an earlier run,
// sorted.
func (l *LiveCatalog) PendingServers() []string { return slices.Sorted(maps.Keys(l.unknownServers())) }

// WaitForPending waits until the tools of every server are known, but no longer than patience.
func (l *LiveCatalog) WaitForPending(ctx context.Context, patience time.Duration) {
	late := time.NewTimer(patience)
	defer late.Stop()
	for _, w := range l.unknownServers() {
		select {
		case <-w.first:
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// unknownServers returns the servers that have not been listed yet and whose tools are not known from an earlier run.
// Static definitions of a server do not count, because the server may list others.
func (l *LiveCatalog) unknownServers() map[string]*watchedServer {
	tools := l.catalog.Toolset()
	unknown := map[string]*watchedServer{}
	for name, w := range l.allWatched() {
		select {
		case <-w.first:
			continue
		default:
		}
		if s, ok := tools.FindServer(name); !ok || s.Name != name || s.Static {
			unknown[name] = w
		}
	}
	return unknown
}

// CountTokens returns how many tokens the definitions of all tools take in a client's context. It caches counts by
// pin (definition hash), also on disk.
func (l *LiveCatalog) CountTokens(tools *core.Toolset) int {
	total := 0
	for _, s := range tools.Servers {
		total += l.ServerTokens(s)
	}
	return total
}

// ServerTokens returns how many tokens the definitions of one server's tools take.
func (l *LiveCatalog) ServerTokens(s *core.ToolServer) int {
	total := 0
	for _, t := range s.Tools {
		total += l.toolTokens(t)
	}
	return total
}

func (l *LiveCatalog) toolTokens(t *core.Tool) int {
	l.mu.Lock()
	n, ok := l.counted[t.Pin]
	l.mu.Unlock()
	if ok {
		return n
	}
	if n, ok = l.catalog.TokenCount(t.Pin); !ok {
		n = l.options.Count(offeredText(t))
		l.catalog.SetTokenCount(t.Pin, n)
	}
	l.mu.Lock()
	l.counted[t.Pin] = n
	l.mu.Unlock()
	return n
}

// offeredText returns the text of a tool that clients pass to a model.
func offeredText(t *core.Tool) string {
	name, _ := json.Marshal(t.Name)
	description, _ := json.Marshal(t.Description)
	return `{"name":` + string(name) + `,"description":` + string(description) + `,"input_schema":` + string(t.InputSchema) + `}`
}
