package server

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
)

const (
	// maxSubscribed bounds the resources that the clients of a Server subscribe to.
	maxSubscribed = 1_000
	// goodbye bounds the time for unsubscribing at a server.
	goodbye = 10 * time.Second
)

// subscriptions holds the resources that clients subscribe to. The server of each resource is subscribed once, and
// unsubscribed when the last session unsubscribes or ends.
type subscriptions struct {
	asking sync.Mutex // held while a server is asked

	mu       sync.Mutex
	holders  map[resource]map[*mcp.ServerSession]bool
	sessions map[*mcp.ServerSession]bool // whose end is waited for
	news     map[resource]bool           // that clients are about to be told
}

type resource struct{ server, uri string }

// subscribe and unsubscribe are called by the SDK, which keeps the list of sessions to notify.
func (s *Server) subscribe(ctx context.Context, req *mcp.SubscribeRequest) error {
	if s.direct == nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no server is exposed"}
	}
	server, own, ok := s.direct.resource(ctx, req.Params.URI)
	if !ok {
		return mcp.ResourceNotFoundError(req.Params.URI)
	}
	d, r := s.direct, resource{server, own}
	d.subscribed.asking.Lock()
	defer d.subscribed.asking.Unlock()
	first, full := d.subscribed.state(r)
	if full {
		return failed(core.KindLimit, "this client hears of too many resources already")
	}
	if first {
		if err := d.passer.Subscribed(ctx, r.server, r.uri, true); err != nil {
			return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: core.AsError(err).Message}
		}
	}
	if d.subscribed.hold(r, req.Session) {
		go func() {
			_ = req.Session.Wait()
			d.forget(req.Session)
		}()
	}
	return nil
}

// unsubscribe never fails: the client is no longer notified, whatever the server answers.
func (s *Server) unsubscribe(ctx context.Context, req *mcp.UnsubscribeRequest) error {
	if s.direct == nil {
		return nil
	}
	d := s.direct
	for _, r := range d.subscribed.of(req.Session) {
		if r.uri == req.Params.URI || Resources.prefixed(thing{server: r.server, own: r.uri}) == req.Params.URI {
			d.release(context.WithoutCancel(ctx), r, req.Session)
		}
	}
	return nil
}

// release ends a session's subscription to a resource.
func (d *direct) release(ctx context.Context, r resource, session *mcp.ServerSession) {
	d.subscribed.asking.Lock()
	defer d.subscribed.asking.Unlock()
	if !d.subscribed.drop(r, session) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, goodbye)
	defer cancel()
	_ = d.passer.Subscribed(ctx, r.server, r.uri, false)
}

// forget ends the subscriptions of a session that has ended.
func (d *direct) forget(session *mcp.ServerSession) {
	for _, r := range d.subscribed.of(session) {
		d.release(context.Background(), r, session)
	}
	d.subscribed.mu.Lock()
	defer d.subscribed.mu.Unlock()
	delete(d.subscribed.sessions, session)
}

// state reports whether a resource has no subscriber yet, and whether there is no room for another resource.
func (s *subscriptions) state(r resource) (first, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = len(s.holders[r]) == 0
	return first, first && len(s.holders) >= maxSubscribed
}

// hold adds a session to the subscribers of a resource. It reports whether the end of the session is not watched yet.
func (s *subscriptions) hold(r resource, session *mcp.ServerSession) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holders == nil {
		s.holders, s.sessions = map[resource]map[*mcp.ServerSession]bool{}, map[*mcp.ServerSession]bool{}
	}
	if s.holders[r] == nil {
		s.holders[r] = map[*mcp.ServerSession]bool{}
	}
	s.holders[r][session] = true
	known := s.sessions[session]
	s.sessions[session] = true
	return !known
}

// drop reports whether it was the last that heard of the resource.
func (s *subscriptions) drop(r resource, session *mcp.ServerSession) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.holders[r][session] {
		return false
	}
	delete(s.holders[r], session)
	if len(s.holders[r]) > 0 {
		return false
	}
	delete(s.holders, r)
	return true
}

// of returns the resources that a session subscribes to.
func (s *subscriptions) of(session *mcp.ServerSession) (all []resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r, holders := range s.holders {
		if holders[session] {
			all = append(all, r)
		}
	}
	return all
}

// close ends all subscriptions without waiting for the servers.
func (d *direct) close() {
	d.stop()
	d.subscribed.mu.Lock()
	defer d.subscribed.mu.Unlock()
	for session := range d.subscribed.sessions {
		go d.forget(session)
	}
}

// announce reports whether clients must be notified of a resource: a session subscribes to it, and no notification is
// pending.
func (s *subscriptions) announce(r resource) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.holders[r]) == 0 || s.news[r] {
		return false
	}
	if s.news == nil {
		s.news = map[resource]bool{}
	}
	s.news[r] = true
	return true
}

func (s *subscriptions) announced(r resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.news, r)
}

// updated notifies the subscribers of a resource that it has changed.
func (d *direct) updated(server string, params json.RawMessage) {
	var p struct {
		URI string `json:"uri"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	r := resource{server, p.URI}
	if !d.subscribed.announce(r) {
		return
	}
	names := []string{p.URI, Resources.prefixed(thing{server: server, own: p.URI})}
	go func() { // it waits for clients
		d.subscribed.announced(r)
		for _, uri := range names {
			_ = d.server.mcp.ResourceUpdated(context.Background(), &mcp.ResourceUpdatedNotificationParams{URI: uri})
		}
	}()
}
