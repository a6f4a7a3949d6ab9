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

// Lister lists a server's tools. Its errors are *core.Error.
type Lister interface {
	List(ctx context.Context, server string) (definitions []json.RawMessage, instructions string, err error)
}

// Linker extends Lister with the state of connections.
type Linker interface {
	// Link returns how many connections to the server were made so far. up reports whether the last of them is open.
	Link(server string) (count int, up bool)
}

// Prober extends Lister with a listing over the same connection that a call would use.
type Prober interface {
	// Own reports whether the core.Caller of ctx has a separate connection to a server.
	Own(ctx context.Context, server string) bool
	// Pin returns the pin of a tool as the server lists it over the connection that a call of the core.Caller of ctx
	// would use, or "" if it is not listed. The server is listed again if the last listing began before since.
	Pin(ctx context.Context, server, tool string, since time.Time) (string, error)
	// ListOwn lists like List, over that connection.
	ListOwn(ctx context.Context, server string) (definitions []json.RawMessage, instructions string, err error)
}

// LiveOptions configures a Live.
type LiveOptions struct {
	Servers []string
	Log     *slog.Logger // is called with changed tools; nil: nothing is called
	// Count returns the number of tokens of a text.
	Count func(text string) int
}

// Live keeps a catalog current from running servers. It lists every server in the background: once at the start,
// again when its tools change, and again after a while if listing failed.
type Live struct {
	catalog *Catalog
	lister  Lister
	options LiveOptions
	base    context.Context
	cancel  context.CancelFunc
	wait    sync.WaitGroup

	mu      sync.Mutex
	servers map[string]*watched
	counted map[string]int // tokens by pin
}

// watched holds the state of one server that is kept current.
type watched struct {
	changed chan struct{} // holds one item when the server should be listed again
	first   chan struct{} // closed after the first answer or failure
	ended   chan struct{} // closed when listing has stopped
	cancel  context.CancelFunc

	mu    sync.Mutex
	err   *core.Error
	at    time.Time       // when it was last listed, or that failed
	link  int             // the connection over which
	round chan struct{}   // closed when the listing under way or else the next one ends
	asked bool            // a call waits for the next
	told  map[string]bool // pins of changed tools that were logged
}

// Intervals after which a server that never reports changed tools is listed again.
const (
	fresh      = time.Minute     // a listing is good enough for a call
	background = 5 * time.Minute // between listings of a server that is connected

	// Bounds on how long a call waits for a listing: the first one over a connection, which the call needs anyway,
	// and any other.
	firstPatience = time.Minute
	patience      = 5 * time.Second
)

// Pauses between attempts to list a server that fails.
const (
	firstRetry = 2 * time.Second
	lastRetry  = 5 * time.Minute
)

// NewLive begins to list the servers. Call Close to stop it.
func NewLive(c *Catalog, l Lister, o LiveOptions) *Live {
	ctx, cancel := context.WithCancel(context.Background())
	live := &Live{catalog: c, lister: l, options: o, base: ctx, cancel: cancel, servers: map[string]*watched{}, counted: map[string]int{}}
	for _, name := range o.Servers {
		live.Add(name)
	}
	return live
}

// Add begins to list a server, unless it is already being listed.
func (l *Live) Add(name string) {
	ctx, cancel := context.WithCancel(l.base)
	w := &watched{
		changed: make(chan struct{}, 1), first: make(chan struct{}), ended: make(chan struct{}), cancel: cancel,
		round: make(chan struct{}), told: map[string]bool{},
	}
	l.mu.Lock()
	l.servers[name] = w
	l.mu.Unlock()
	l.wait.Go(func() {
		defer close(w.ended)
		l.keep(ctx, name, w)
	})
}

// Drop stops listing a server and waits until its goroutines have ended.
func (l *Live) Drop(name string) {
	l.mu.Lock()
	w := l.servers[name]
	delete(l.servers, name)
	l.mu.Unlock()
	if w != nil {
		w.cancel()
		<-w.ended
	}
}

// of returns the watched server with a name, or nil.
func (l *Live) of(name string) *watched {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.servers[name]
}

// all returns the watched servers by name.
func (l *Live) all() map[string]*watched {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.servers)
}

// Close stops all listing and waits until it has ended.
func (l *Live) Close() error {
	l.cancel()
	l.wait.Wait()
	return nil
}

// Changed reports that a server's tools may have changed. It does not block.
func (l *Live) Changed(server string) {
	if w := l.of(server); w != nil {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}

// keep lists one server as often as needed until ctx is done.
func (l *Live) keep(ctx context.Context, name string, w *watched) {
	retry := firstRetry
	for first := true; ; first = false {
		err := l.list(ctx, name)
		link, _ := l.link(name)
		w.listed(err, link)
		if first {
			close(w.first)
		}
		l.tell(name, w)
		again := background
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
				_, up := l.link(name)
				waiting = err == nil && !up // no call needs it now
			}
		}
	}
}

// link returns the state of the connection to a server. For a Lister without connections it is always up.
func (l *Live) link(name string) (count int, up bool) {
	if linker, ok := l.lister.(Linker); ok {
		return linker.Link(name)
	}
	return 0, true
}

// tell logs each change of a tool once.
func (l *Live) tell(name string, w *watched) {
	if l.options.Log == nil {
		return
	}
	tools := map[core.Changes][]string{}
	for _, c := range l.catalog.Changes() {
		if c.Server == name && !w.told[c.Pin] {
			w.told[c.Pin] = true
			tools[c.Policy] = append(tools[c.Policy], c.Tool)
		}
	}
	for policy, names := range tools {
		l.options.Log.Warn("tools are not as they were trusted", "server", name, "policy", policy, "tools", names)
	}
}

func (l *Live) list(ctx context.Context, name string) error {
	definitions, instructions, err := l.lister.List(ctx, name)
	if err != nil {
		return err
	}
	_, err = l.catalog.Replace(name, definitions, instructions)
	return err
}

func (w *watched) listed(err error, link int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err, w.at, w.link, w.asked = core.AsError(err), time.Now(), link, false
	close(w.round)
	w.round = make(chan struct{})
}

// refresh lists a server before a call, unless that was just done over the open connection. Concurrent calls share
// one listing.
func (l *Live) refresh(ctx context.Context, name string) {
	w := l.of(name)
	if w == nil {
		return // it is static
	}
	link, up := l.link(name)
	w.mu.Lock()
	same, round := up && link == w.link, w.round
	if same && time.Since(w.at) < fresh {
		w.mu.Unlock()
		return
	}
	if !w.asked {
		w.asked = true
		l.Changed(name)
	}
	w.mu.Unlock()
	late := patience
	if !same {
		late = firstPatience
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

// Vet checks, before a call is sent, whether the core.Caller of ctx may call the tool that an execution knows as t.
// The tool's definition must still be trusted. If since is not zero, a person was asked at that time, and the server
// is listed again unless that has happened since. now is the tool as listed over the connection that the call will
// use; it is nil if there is no definition to compare. If now.Asks, the call needs approval. warning is for readers
// of the Outcome. A call of a tool that is no longer listed is left to its server.
func (l *Live) Vet(ctx context.Context, t *core.Tool, since time.Time) (now *core.Tool, warning string, refused *core.Error) {
	l.refresh(ctx, t.Server)
	tools := l.catalog.Toolset()
	now, ok := tools.Exact(t.Server, t.Name)
	if !ok {
		return t, "", tools.RefusedExact(t.Server, t.Name)
	}
	if s, ok := tools.Server(t.Server); l.of(t.Server) == nil || ok && s.Name == t.Server && s.Static {
		return nil, "", nil
	}
	now, own, refused := l.probe(ctx, now, since)
	switch {
	case refused != nil:
		return t, "", refused
	case now.Change == nil || now.Change.Policy == core.ChangesAsk && (own || now.Change.Pin == t.Pin && t.Change != nil):
		return now, "", nil
	case now.Change.Policy == core.ChangesNote:
		return now, now.Change.Warning(), nil
	case own:
		return t, "", now.Change.Error()
	}
	return t, "", core.Errorf(core.KindToolChanged, "catalog.trust", "the definition of %s.%s has changed since the program was checked; the call was not sent", t.Server, t.Name).
		WithHint("run the program again: a person is then asked about the call").At(t.Server, t.Name)
}

// probe returns a known tool as listed over the connection that a call of ctx will use. own is true if its definition
// differs from the catalog's.
func (l *Live) probe(ctx context.Context, known *core.Tool, since time.Time) (now *core.Tool, own bool, refused *core.Error) {
	p, ok := l.lister.(Prober)
	if !ok {
		return known, false, nil
	}
	asked := !since.IsZero()
	switch old := time.Now().Add(-fresh); {
	case p.Own(ctx, known.Server) && since.Before(old):
		since = old
	case !asked:
		if _, up := l.link(known.Server); !up {
			return known, false, nil // refresh has tried
		}
	}
	pin, err := p.Pin(ctx, known.Server, known.Name, since)
	switch {
	case err != nil && asked:
		return nil, false, core.AsError(err).At(known.Server, known.Name)
	case err != nil || pin == "" || pin == known.Pin:
		return known, false, nil // a call that can't be listed for fails in the same way
	case !p.Own(ctx, known.Server):
		return l.relisted(ctx, known)
	}
	now, err = l.variant(ctx, p, known)
	if err != nil {
		return nil, false, core.AsError(err).At(known.Server, known.Name)
	}
	return now, now.Pin != known.Pin, nil
}

// relisted lists a server with a shared connection, updates the catalog, and returns the tool as listed.
func (l *Live) relisted(ctx context.Context, known *core.Tool) (now *core.Tool, own bool, refused *core.Error) {
	if err := l.list(ctx, known.Server); err != nil {
		return nil, false, core.AsError(err).At(known.Server, known.Name)
	}
	tools := l.catalog.Toolset()
	now, ok := tools.Exact(known.Server, known.Name)
	if !ok {
		if refused = tools.RefusedExact(known.Server, known.Name); refused != nil {
			return nil, false, refused
		}
		return known, false, nil
	}
	return now, false, nil
}

// variant returns known as the server lists it over the connection that a call of ctx will use.
func (l *Live) variant(ctx context.Context, p Prober, known *core.Tool) (*core.Tool, error) {
	definitions, _, err := p.ListOwn(ctx, known.Server)
	if err != nil {
		return nil, err
	}
	for _, definition := range definitions {
		if name, _ := Identify(definition); name == known.Name {
			return l.catalog.variant(known, definition)
		}
	}
	return known, nil
}

// Problem returns why the last listing of a server failed, or nil.
func (l *Live) Problem(server string) *core.Error {
	w := l.of(server)
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Down returns the server whose name begins the tool's name, in any spelling, and why none of its tools are known.
// why is nil if there is no such server.
func (l *Live) Down(name string) (server string, why *core.Error) {
	tools := l.catalog.Toolset()
	for known := range l.all() {
		if s, ok := tools.Server(known); ok && s.Name == known || !begins(name, known) || len(known) < len(server) {
			continue
		}
		server, why = known, core.Errorf(core.KindUpstreamGone, "catalog.live", "it has not answered yet")
		if e := l.Problem(known); e != nil {
			why = e
		}
	}
	return server, why
}

// begins reports whether a tool's name equals a server's name or begins with it, in any spelling.
func begins(name, server string) bool {
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

// Settle waits until the named servers, or all, have answered or failed once.
func (l *Live) Settle(ctx context.Context, servers ...string) {
	for name, w := range l.all() {
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
func (l *Live) Toolset() *core.Toolset { return l.catalog.Toolset() }

// Pending returns the sorted names of the servers of which nothing is known yet, not even from an earlier run.
func (l *Live) Pending() []string { return slices.Sorted(maps.Keys(l.unknown())) }

// Wait waits, at most for patience, until every server is known.
func (l *Live) Wait(ctx context.Context, patience time.Duration) {
	late := time.NewTimer(patience)
	defer late.Stop()
	for _, w := range l.unknown() {
		select {
		case <-w.first:
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// unknown returns the servers that have not answered yet and that the catalog does not know from an earlier run.
func (l *Live) unknown() map[string]*watched {
	tools := l.catalog.Toolset()
	unknown := map[string]*watched{}
	for name, w := range l.all() {
		select {
		case <-w.first:
			continue
		default:
		}
		if s, ok := tools.Server(name); !ok || s.Name != name {
			unknown[name] = w
		}
	}
	return unknown
}

// Tokens returns how many tokens the definitions of all tools take in a client's context. Counts are cached by pin,
// also on disk.
func (l *Live) Tokens(tools *core.Toolset) int {
	total := 0
	for _, s := range tools.Servers {
		total += l.ServerTokens(s)
	}
	return total
}

// ServerTokens returns how many tokens the definitions of one server's tools take.
func (l *Live) ServerTokens(s *core.Server) int {
	total := 0
	for _, t := range s.Tools {
		total += l.toolTokens(t)
	}
	return total
}

func (l *Live) toolTokens(t *core.Tool) int {
	l.mu.Lock()
	n, ok := l.counted[t.Pin]
	l.mu.Unlock()
	if ok {
		return n
	}
	if n, ok = l.catalog.TokenCount(t.Pin); !ok {
		n = l.options.Count(offered(t))
		l.catalog.SetTokenCount(t.Pin, n)
	}
	l.mu.Lock()
	l.counted[t.Pin] = n
	l.mu.Unlock()
	return n
}

// offered returns the text of a tool as clients pass it to a model.
func offered(t *core.Tool) string {
	name, _ := json.Marshal(t.Name)
	description, _ := json.Marshal(t.Description)
	return `{"name":` + string(name) + `,"description":` + string(description) + `,"input_schema":` + string(t.InputSchema) + `}`
}
