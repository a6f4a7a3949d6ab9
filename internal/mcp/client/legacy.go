package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"retort/internal/core"
)

// sseWire is the connection to a server over the HTTP transport of protocol version 2024-11-05. The server sends a
// stream of events. The first event names the address to which messages are posted.
type sseWire struct {
	at     *httpEndpoint
	post   *url.URL
	body   *http.Response
	in     *eventReader
	limit  int64
	link   *serverLink
	ctx    context.Context // context of the connection; it ends when the connection is closed
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

// startSSE opens the event stream and waits for the address to post to.
func startSSE(ctx context.Context, spec ServerSpec, a memoryAccount, place *spoolDir) (messageWire, *core.Error) {
	at, err := newEndpoint(spec)
	if err != nil {
		return nil, err
	}
	s := &sseWire{at: at, limit: spec.MaxMessage}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, s.cancel) // ctx is about connecting, the stream lives on
	if err := s.openStream(a, place); err != nil {
		s.cancel()
		at.close()
		return nil, err
	}
	if !stop() {
		_ = s.body.Body.Close()
		return nil, errClosed()
	}
	return s, nil
}

func (s *sseWire) openStream(a memoryAccount, place *spoolDir) *core.Error {
	resp, err := s.at.sendAuthorized(s.ctx, httpMessage{
		method: http.MethodGet, url: s.at.url, header: http.Header{"Accept": {"text/event-stream"}},
	})
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errStatus(resp)
	}
	if kind := mediaType(resp); kind != "text/event-stream" {
		_ = resp.Body.Close()
		return core.Errorf(
			core.KindUpstreamGone, "upstream.http",
			"the server answers with content of type %q, which is not an event stream", truncateText(kind, 100),
		)
	}
	s.body, s.in = resp, newEvents(s.ctx, resp.Body, s.limit, a, place)
	ev, cause := s.in.nextEvent()
	if cause == nil && ev.name == "endpoint" {
		s.post, cause = s.at.url.Parse(string(ev.data))
	}
	switch {
	case cause != nil || s.post == nil:
		err = core.Errorf(core.KindUpstreamGone, "upstream.http", "the server's stream does not begin with the address for requests")
	case !sameOrigin(s.post, s.at.url):
		err = core.Errorf(
			core.KindUpstreamGone, "upstream.http",
			"the server wants messages posted to another origin, %s://%s, which is not allowed", s.post.Scheme, s.post.Host,
		)
	default:
		return nil
	}
	_ = resp.Body.Close()
	return err
}

func (s *sseWire) start(l *serverLink) {
	s.link = l
	s.wg.Go(s.receiveEvents)
}

func (s *sseWire) receiveEvents() {
	defer s.in.releaseMemory()
	for {
		ev, err := s.in.nextEvent()
		var long *tooLong
		switch {
		case errors.As(err, &long) && !long.endless:
			s.link.failLost(long.id, errTooLong(long.limit))
			continue
		case err != nil:
			s.link.failAll(core.Errorf(core.KindUpstreamGone, opReceive, "the server ended the stream: %w", err))
			return
		case ev.name != "message":
			ev.dropSpooled()
			continue
		case ev.large != nil:
			if data, held := s.link.handleSpooled(ev.large, s.limit); data != nil {
				s.deliverEvent(data)
				releaseHeld(held)
			}
			continue
		}
		s.deliverEvent(ev.data)
	}
}

// deliverEvent delivers the messages in one event.
func (s *sseWire) deliverEvent(data []byte) {
	msgs, ok := decodeMessages(data)
	if !ok {
		s.link.refuseText(data)
		return
	}
	for _, msg := range msgs {
		s.link.deliverMessage(msg)
	}
}

// sendMessage posts a message. For a call it does not wait for the response to the POST, because the answer may arrive
// first, on the event stream.
func (s *sseWire) sendMessage(ctx context.Context, m outgoingMessage) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errClosed()
	}
	s.wg.Add(1)
	s.mu.Unlock()
	if m.call == nil {
		defer s.wg.Done()
		ctx, cancel := context.WithTimeout(ctx, noticeTimeout)
		defer cancel()
		defer context.AfterFunc(s.link.ctx, cancel)()
		_ = s.postMessage(ctx, m)
		return nil
	}
	go func() {
		defer s.wg.Done()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.link.ctx, cancel)()
		if err := s.postMessage(ctx, m); err != nil && ctx.Err() == nil {
			s.link.deliverMessage(&jsonrpc.Response{ID: m.call.id, Error: err})
		}
	}()
	return nil
}

func (s *sseWire) postMessage(ctx context.Context, m outgoingMessage) *core.Error {
	var sent func()
	if m.call != nil {
		sent = func() { m.call.sent.Store(true) }
	}
	header := http.Header{"Content-Type": {"application/json"}}
	resp, err := s.at.sendAuthorized(ctx, httpMessage{method: http.MethodPost, url: s.post, body: m.data, header: header, sent: sent})
	if err != nil {
		m.noteRefused(err)
		return err
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		_ = resp.Body.Close()
		return nil
	}
	if m.call != nil && resp.StatusCode < 500 {
		m.call.sent.Store(false) // seen, and not executed
	}
	if resp.StatusCode == http.StatusNotFound {
		_ = resp.Body.Close()
		return core.Errorf(core.KindUpstreamGone, "upstream.http", "the server has ended the session: %w", errSessionGone)
	}
	return errStatus(resp)
}

func (s *sseWire) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.link.failAll(errClosed())
	s.cancel()
	_ = s.body.Body.Close()
	s.wg.Wait()
	s.at.close()
}

// refusesStreamable reports whether the server's refusal of initialize may mean that it supports only the older HTTP
// transport, according to the specification.
func refusesStreamable(cause error) bool {
	var status statusError
	if !errors.As(cause, &status) {
		return false
	}
	switch int(status) {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		return true
	}
	return false
}
