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
	// maxSubscribed bounds the resources that the clients of a Server can subscribe to.
	maxSubscribed = 1_000
	// unsubscribeTimeout bounds the time that an upstream server may take to end a subscription.
	unsubscribeTimeout = 10 * time.Second
)

// resourceSubscriptions stores the resources that clients have subscribed to. Each resource is subscribed once at its
// server, and unsubscribed when the last session unsubscribes or ends.
type resourceSubscriptions struct {
	asking sync.Mutex // held while an upstream server is asked to subscribe or unsubscribe

	mu       sync.Mutex
	holders  map[resourceKey]map[*mcp.ServerSession]bool
	sessions map[*mcp.ServerSession]bool // sessions that are being watched for their end
	news     map[resourceKey]bool        // changed resources whose notifications are about to be sent
}

type resourceKey struct{ server, uri string }

// subscribeResource subscribes a session to a resource. The SDK calls it and keeps the list of sessions to notify.
func (s *Server) subscribeResource(ctx context.Context, req *mcp.SubscribeRequest) error {
	if s.direct == nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no server is exposed"}
	}
	server, own, ok := s.direct.findResource(ctx, req.Params.URI)
	if !ok {
		return mcp.ResourceNotFoundError(req.Params.URI)
	}
	d, r := s.direct, resourceKey{server, own}
	d.subscribed.asking.Lock()
	defer d.subscribed.asking.Unlock()
	first, full := d.subscribed.subscriptionState(r)
	if full {
		return peerError(core.KindLimit, "this client is subscribed to too many resources already")
	}
	if first {
		if err := d.passer.SetSubscription(ctx, r.server, r.uri, true); err != nil {
			return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: core.AsError(err).Message}
		}
	}
	if d.subscribed.addSession(r, req.Session) {
		go func() {
			_ = req.Session.Wait()
			d.forgetSession(req.Session)
		}()
	}
	return nil
}

// unsubscribeResource ends a session's subscription. It never fails: the client is no longer notified, even if the
// upstream server returns an error.
func (s *Server) unsubscribeResource(ctx context.Context, req *mcp.UnsubscribeRequest) error {
	if s.direct == nil {
		return nil
	}
	d := s.direct
	for _, r := range d.subscribed.resourcesOf(req.Session) {
		if r.uri == req.Params.URI || Resources.prefixedName(exposedItem{server: r.server, own: r.uri}) == req.Params.URI {
			d.releaseResource(context.WithoutCancel(ctx), r, req.Session)
		}
	}
	return nil
}

// releaseResource ends a session's subscription to a resource.
func (d *exposedServers) releaseResource(ctx context.Context, r resourceKey, session *mcp.ServerSession) {
	d.subscribed.asking.Lock()
	defer d.subscribed.asking.Unlock()
	if !d.subscribed.dropSession(r, session) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, unsubscribeTimeout)
	defer cancel()
	_ = d.passer.SetSubscription(ctx, r.server, r.uri, false)
}

// forgetSession ends the subscriptions of a session that has ended.
func (d *exposedServers) forgetSession(session *mcp.ServerSession) {
	for _, r := range d.subscribed.resourcesOf(session) {
		d.releaseResource(context.Background(), r, session)
	}
	d.subscribed.mu.Lock()
	defer d.subscribed.mu.Unlock()
	delete(d.subscribed.sessions, session)
}

// subscriptionState reports whether a resource has no subscriber yet, and whether the maximum number of resources is
// reached.
func (s *resourceSubscriptions) subscriptionState(r resourceKey) (first, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = len(s.holders[r]) == 0
	return first, first && len(s.holders) >= maxSubscribed
}

// addSession adds a session to the subscribers of a resource. It returns true if the caller must start to watch for
// the end of the session.
func (s *resourceSubscriptions) addSession(r resourceKey, session *mcp.ServerSession) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holders == nil {
		s.holders, s.sessions = map[resourceKey]map[*mcp.ServerSession]bool{}, map[*mcp.ServerSession]bool{}
	}
	if s.holders[r] == nil {
		s.holders[r] = map[*mcp.ServerSession]bool{}
	}
	s.holders[r][session] = true
	known := s.sessions[session]
	s.sessions[session] = true
	return !known
}

// dropSession removes a session from the subscribers of a resource, and reports whether it was the last one.
func (s *resourceSubscriptions) dropSession(r resourceKey, session *mcp.ServerSession) bool {
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

// resourcesOf returns the resources that a session subscribes to.
func (s *resourceSubscriptions) resourcesOf(session *mcp.ServerSession) (all []resourceKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r, holders := range s.holders {
		if holders[session] {
			all = append(all, r)
		}
	}
	return all
}

// closeSubscriptions ends all subscriptions without waiting for the exposed servers.
func (d *exposedServers) closeSubscriptions() {
	d.stop()
	d.subscribed.mu.Lock()
	defer d.subscribed.mu.Unlock()
	for session := range d.subscribed.sessions {
		go d.forgetSession(session)
	}
}

// shouldAnnounce reports whether clients must be notified of a changed resource: a session subscribes to the
// resource, and no earlier notification about it is still waiting to be sent.
func (s *resourceSubscriptions) shouldAnnounce(r resourceKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.holders[r]) == 0 || s.news[r] {
		return false
	}
	if s.news == nil {
		s.news = map[resourceKey]bool{}
	}
	s.news[r] = true
	return true
}

func (s *resourceSubscriptions) noteAnnounced(r resourceKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.news, r)
}

// notifyUpdated notifies the subscribers of a resource that it has changed.
func (d *exposedServers) notifyUpdated(server string, params json.RawMessage) {
	var p struct {
		URI string `json:"uri"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	r := resourceKey{server, p.URI}
	if !d.subscribed.shouldAnnounce(r) {
		return
	}
	names := []string{p.URI, Resources.prefixedName(exposedItem{server: server, own: p.URI})}
	go func() { // it waits for clients
		d.subscribed.noteAnnounced(r)
		for _, uri := range names {
			_ = d.server.mcp.ResourceUpdated(context.Background(), &mcp.ResourceUpdatedNotificationParams{URI: uri})
		}
	}()
}
