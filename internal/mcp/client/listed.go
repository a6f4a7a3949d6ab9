package client

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"retort/internal/core"
)

// listedPins stores the pins (hashes of the definitions) of the tools that a server has listed in one session. It is
// safe for concurrent use.
type listedPins struct {
	turn chan struct{} // has room for one item, which is there while a call lists the tools; other calls wait

	mu   sync.Mutex
	pins map[string]string // pins by tool name
	at   time.Time         // time at which the listing began; zero before the first listing
}

func newListed() *listedPins { return &listedPins{turn: make(chan struct{}, 1)} }

// setListing stores the pins (definition hashes) of the tools in a listing. The argument at is the time at which the
// listing began. A listing that began before the stored one is ignored. If two definitions have the same name, the
// first counts, as in the catalogue.
func (l *listedPins) setListing(tools []json.RawMessage, at time.Time, identify func(json.RawMessage) (name, pin string)) {
	pins := make(map[string]string, len(tools))
	for _, raw := range tools {
		name, pin := identify(raw)
		if _, twice := pins[name]; name != "" && !twice {
			pins[name] = pin
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !at.Before(l.at) {
		l.pins, l.at = pins, at
	}
}

// pinOf returns the pin (definition hash) of a tool, or "" if the tool is not listed. current is false if the stored
// listing began before the time that the argument since gives.
func (l *listedPins) pinOf(tool string, since time.Time) (pin string, current bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pins[tool], !l.at.IsZero() && !l.at.Before(since)
}

// listOver lists all tools over the session sess.
func (s *serverConn) listOver(ctx context.Context, sess *serverSession) (ToolListing, error) {
	began, l := time.Now(), sess.listingOf()
	sess.link.outdated.Store(false)
	tools, err := sess.listPages(ctx, methodList, "tools", s.spec.MaxMessage)
	if err != nil {
		sess.link.outdated.Store(true)
		return ToolListing{}, err
	}
	s.connect.tasks.learnTools(tools)
	if sess.era.transport == transportHTTP && sess.era.protocol >= protocolModern {
		tools = s.connect.bindings.learnTools(tools, func(tool string, why error) {
			s.log.Warn("tool omitted", "tool", truncateText(tool, 100), "why", why)
		})
	}
	l.Tools = tools
	l = s.withResources(l)
	if s.identify != nil {
		sess.listed.setListing(l.Tools, began, s.identify)
	}
	return l, nil
}

// pinOver returns the pin (definition hash) of a tool as the server lists it over the session sess, or "" if the tool
// is not listed. It lists the tools first if the last listing began before the time since, or if the server has
// announced a change of its tools after it.
func (s *serverConn) pinOver(ctx context.Context, sess *serverSession, tool string, since time.Time) (string, error) {
	if pin, current := sess.pinOf(tool, since); current {
		return pin, nil
	}
	select {
	case sess.listed.turn <- struct{}{}:
		defer func() { <-sess.listed.turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	case <-sess.link.ctx.Done():
		return "", sess.link.cause
	}
	if pin, current := sess.pinOf(tool, since); current {
		return pin, nil
	}
	if _, err := s.listOver(ctx, sess); err != nil {
		return "", err
	}
	pin, _ := sess.pinOf(tool, since) // a later change is for the next call
	return pin, nil
}

// pinOf returns the pin (definition hash) of a tool in the last listing. current is false if the server has announced
// a change of its tools since the listing.
func (s *serverSession) pinOf(tool string, since time.Time) (pin string, current bool) {
	pin, current = s.listed.pinOf(tool, since)
	return pin, current && !s.link.outdated.Load()
}

// checkPin refuses a call if the server lists the tool with another definition than the caller of ctx expects. If the
// tool is not listed, the call is sent and the server decides.
func (s *serverConn) checkPin(ctx context.Context, sess *serverSession, tool string) error {
	want := core.PinOf(ctx)
	if want == "" || s.identify == nil {
		return nil
	}
	pin, err := s.pinOver(ctx, sess, tool, time.Time{})
	if err != nil || pin == "" || pin == want {
		return err
	}
	s.changes.restartTimer() // so that the catalog learns it, too
	return core.Errorf(
		core.KindToolChanged, "upstream.call",
		"the server has changed the definition of the tool since it was checked; the call was not sent",
	).
		WithHint("read the definition again before you run the rest of the program; its earlier calls were already sent")
}

// Pin returns the pin (definition hash) of a tool as a server lists it to the core.Caller of ctx, over the connection
// that a call would use. It returns "" if the tool is not listed. If the last listing began before the time that the
// argument since gives, the tools are listed again.
func (p *Pool) Pin(ctx context.Context, server, tool string, since time.Time) (pin string, _ error) {
	s, done, err := p.takeInstance(ctx, server)
	if err != nil {
		return "", err.AtTool(server, tool)
	}
	defer done()
	err = s.runOnSession(ctx, "upstream.list", func(ctx context.Context, sess *serverSession, _ *pendingCall) (err error) {
		pin, err = s.pinOver(ctx, sess, tool, since)
		return err
	})
	if err != nil {
		return "", err.AtTool(server, tool)
	}
	return pin, nil
}

// ListOwn lists the tools of a server over the connection that calls of the core.Caller of ctx use.
func (p *Pool) ListOwn(ctx context.Context, server string) (ToolListing, error) {
	s, done, err := p.takeInstance(ctx, server)
	if err != nil {
		return ToolListing{}, err.AtTool(server, "")
	}
	defer done()
	l, err := s.listTools(ctx)
	if err != nil {
		return ToolListing{}, err.AtTool(server, "")
	}
	return l, nil
}

// HasOwnInstance reports whether the core.Caller of ctx uses an instance of the server other than the main one, which
// lists the tools for all callers.
func (p *Pool) HasOwnInstance(ctx context.Context, server string) bool {
	n, err := p.findInstances(server)
	return err == nil && n.ownerOf(core.CallerOf(ctx)) != (core.Caller{})
}
