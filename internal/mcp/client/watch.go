package client

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
)

// maxWatched bounds the resources of one server to which clients can subscribe.
const maxWatched = 1_000

// watchedResources counts the subscribers of each resource of a server. The counts outlive sessions: each new session
// subscribes again.
type watchedResources struct {
	changing sync.Mutex // held while the server is subscribed to or unsubscribed from

	mu   sync.Mutex
	uris map[string]int
}

func (w *watchedResources) allURIs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.uris))
}

func (w *watchedResources) countOf(uri string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.uris[uri]
}

// addWatcher changes the number of subscribers of uri by n, which is 1 or -1.
func (w *watchedResources) addWatcher(uri string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.uris == nil {
		w.uris = map[string]int{}
	}
	if w.uris[uri] += n; w.uris[uri] <= 0 {
		delete(w.uris, uri)
	}
}

// SubscribeResource subscribes to a resource, or ends a subscription. Changes are reported to Options.OnNews.
// Subscriptions are counted: the server is unsubscribed when the last one ends. If each principal has its own instance
// of the server, the caller's instance is used and does not end while it has subscriptions. If each session has its
// own instance, nothing is subscribed, because it would be unknown which session a change concerns.
func (p *Pool) SubscribeResource(ctx context.Context, server, uri string, wanted bool) error {
	n, err := p.findInstances(server)
	if err != nil {
		return err.AtTool(server, "")
	}
	if n.keep == IsolationSession {
		return core.Errorf(core.KindPolicy, "upstream.subscribe", "the sessions of the server are isolated, so changes are not announced").
			WithHint("with servers.%s.isolation: principal, the sessions of a principal share the server", server).AtTool(server, "")
	}
	s, done, err := n.takeInstance(ctx)
	if err != nil {
		return err.AtTool(server, "")
	}
	changed, err := s.subscribeResource(ctx, uri, wanted)
	if !wanted || !changed {
		done()
	}
	if !wanted && changed {
		done() // as the one who subscribed did not
	}
	if err != nil {
		return err.AtTool(server, "")
	}
	return nil
}

// subscribeResource adds or removes a subscriber. It reports whether the set of subscribed resources changed, even if
// the server returned an error.
func (s *serverConn) subscribeResource(ctx context.Context, uri string, wanted bool) (changed bool, _ *core.Error) {
	w := &s.watched
	w.changing.Lock()
	defer w.changing.Unlock()
	n := w.countOf(uri)
	switch {
	case wanted && n > 0:
		w.addWatcher(uri, 1)
		return true, nil
	case wanted && len(w.allURIs()) >= maxWatched:
		return false, core.Errorf(core.KindLimit, "upstream.subscribe", "clients are subscribed to %d resources of the server already", maxWatched)
	case !wanted && n != 1:
		if n > 1 {
			w.addWatcher(uri, -1)
		}
		return n > 1, nil
	case !wanted:
		w.addWatcher(uri, -1) // whatever the server says
		if !s.hasSession() {
			return true, nil
		}
	}
	err := s.runOnSession(ctx, "upstream.subscribe", func(ctx context.Context, sess *serverSession, x *pendingCall) error {
		return sess.watchResource(ctx, x, uri, wanted, w.allURIs())
	})
	if err == nil && wanted {
		w.addWatcher(uri, 1)
	}
	return !wanted || err == nil, err
}

// hasSession reports whether there is a session with the server. Without a session, there is nothing at the server to
// unsubscribe from.
func (s *serverConn) hasSession() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session != nil
}

// rewatchAll subscribes to all watched resources over a new session.
func (s *serverConn) rewatchAll(sess *serverSession) {
	if len(s.watched.allURIs()) == 0 {
		return
	}
	s.watched.changing.Lock()
	defer s.watched.changing.Unlock()
	ctx, cancel := context.WithTimeout(sess.link.ctx, s.spec.CallTimeout)
	defer cancel()
	uris := s.watched.allURIs()
	err := error(nil)
	if sess.era.protocol >= protocolModern {
		err = sess.listenForResources(ctx, uris)
	} else {
		for _, uri := range uris {
			if err = sess.watchResource(ctx, &pendingCall{}, uri, true, nil); err != nil {
				break
			}
		}
	}
	if err != nil && sess.link.ctx.Err() == nil {
		s.log.Warn("the server does not notify of resources any more", "error", core.AsError(err).Message)
	}
}

// maxRevivals bounds how many times in a row a server is restarted only because clients are subscribed to its
// resources.
const maxRevivals = 5

// reviveServer restarts a server that has ended while clients are subscribed to its resources.
func (s *serverConn) reviveServer() {
	for try := range maxRevivals {
		if len(s.watched.allURIs()) == 0 || !sleepContext(s.base, time.Second<<try) {
			return
		}
		if sess, err := s.acquireSession(s.base); err == nil {
			sess.leaveUse()
			return
		}
	}
}

// watchResource subscribes to the resource uri or, if wanted is false, ends the subscription to it. all lists the
// other resources to which the session stays subscribed.
func (s *serverSession) watchResource(ctx context.Context, x *pendingCall, uri string, wanted bool, all []string) error {
	if s.era.protocol >= protocolModern {
		if wanted {
			all = append(all, uri)
		}
		return s.listenForResources(ctx, all)
	}
	method := "resources/unsubscribe"
	if wanted {
		method = "resources/subscribe"
	}
	_, err := s.link.callMethod(ctx, x, method, json.RawMessage(`{"uri":`+string(quoteJSON(uri))+`}`))
	return err
}

// listenForResources subscribes to exactly these resources at a server of protocol version 2026-07-28, and returns
// when the server has acknowledged them. Over HTTP, one stream for all resources replaces the previous stream,
// because each stream costs a connection. Over a pipe, each resource has its own stream: servers there tie
// subscriptions to the session, so that the end of an old stream could end the subscriptions of a new one.
func (s *serverSession) listenForResources(ctx context.Context, uris []string) error {
	s.listening.Lock()
	defer s.listening.Unlock()
	if s.sharedStream {
		before := s.streams[""]
		delete(s.streams, "")
		if len(uris) > 0 {
			if err := s.openNewsStream(ctx, "", uris); err != nil {
				s.streams[""] = before
				return err
			}
		}
		if before != nil {
			before()
		}
		return nil
	}
	for uri, stop := range s.streams {
		if !slices.Contains(uris, uri) {
			stop()
			delete(s.streams, uri)
		}
	}
	for _, uri := range uris {
		if s.streams[uri] == nil {
			if err := s.openNewsStream(ctx, uri, []string{uri}); err != nil {
				return err
			}
		}
	}
	return nil
}

// openNewsStream opens a stream of notifications about changed resources, and stores the function that ends the
// stream. The caller must have locked the mutex s.listening.
func (s *serverSession) openNewsStream(ctx context.Context, name string, uris []string) error {
	params, err := json.Marshal(map[string]any{"_meta": s.meta, "notifications": map[string]any{"resourceSubscriptions": uris}})
	if err != nil {
		return err
	}
	own, stop := context.WithCancel(s.link.ctx)
	x := &pendingCall{agreed: make(chan []string, 1)}
	ended := make(chan error, 1)
	go func() {
		_, err := s.link.callMethod(own, x, methodListen, params)
		ended <- err
	}()
	if err := awaitAgreement(ctx, uris, x.agreed, ended); err != nil {
		stop()
		return err
	}
	s.streams[name] = stop
	return nil
}

// awaitAgreement waits until the server has acknowledged a subscription. It returns an error if the server ends the
// subscription, or acknowledges it without one of the requested resources.
func awaitAgreement(ctx context.Context, uris []string, agreed <-chan []string, ended <-chan error) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-ended:
		if err == nil {
			err = core.Errorf(core.KindToolError, "upstream.subscribe", "the server ended the subscription immediately")
		}
		return err
	case told := <-agreed:
		for _, uri := range uris {
			if !slices.Contains(told, uri) {
				return core.Errorf(core.KindToolError, "upstream.subscribe", "the server does not notify of changes of %s", truncateText(uri, 200))
			}
		}
		return nil
	}
}

// noteAcknowledged handles the server's acknowledgement of a subscription.
func (l *serverLink) noteAcknowledged(params json.RawMessage) {
	var p struct {
		Meta          map[string]json.RawMessage `json:"_meta"`
		Notifications struct {
			Resources []string `json:"resourceSubscriptions"`
		} `json:"notifications"`
	}
	if unmarshalExact(params, &p) != nil {
		return
	}
	var id messageID
	if unmarshalExact(p.Meta[mcp.MetaKeySubscriptionID], &id) != nil {
		return
	}
	l.mu.Lock()
	x := l.pending[id.ID]
	l.mu.Unlock()
	if x == nil {
		return
	}
	l.beginSubscription(x)
	if x.agreed == nil {
		return
	}
	select {
	case x.agreed <- p.Notifications.Resources:
	default: // it was said before
	}
}
