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

// sse represents the wire of the HTTP transport of 2024-11-05: one stream of events from the server, whose first
// names the address to which messages are posted.
type sse struct {
	at     *endpoint
	post   *url.URL
	body   *http.Response
	in     *events
	limit  int64
	link   *link
	ctx    context.Context // ends with the wire
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

// startSSE opens the stream and waits for the address.
func startSSE(ctx context.Context, spec Server, a account, place *spool) (wire, *core.Error) {
	at, err := newEndpoint(spec)
	if err != nil {
		return nil, err
	}
	s := &sse{at: at, limit: spec.MaxMessage}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, s.cancel) // ctx is about connecting, the stream lives on
	if err := s.open(a, place); err != nil {
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

func (s *sse) open(a account, place *spool) *core.Error {
	resp, err := s.at.do(s.ctx, message{method: http.MethodGet, url: s.at.url, header: http.Header{"Accept": {"text/event-stream"}}})
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errStatus(resp)
	}
	if kind := mediaType(resp); kind != "text/event-stream" {
		_ = resp.Body.Close()
		return core.Errorf(core.KindUpstreamGone, "upstream.http", "the server answers with content of type %q, which is no stream of events", cut(kind, 100))
	}
	s.body, s.in = resp, newEvents(s.ctx, resp.Body, s.limit, a, place)
	ev, cause := s.in.next()
	if cause == nil && ev.name == "endpoint" {
		s.post, cause = s.at.url.Parse(string(ev.data))
	}
	switch {
	case cause != nil || s.post == nil:
		err = core.Errorf(core.KindUpstreamGone, "upstream.http", "the server's stream does not begin with an address to post to")
	case !sameOrigin(s.post, s.at.url):
		err = core.Errorf(core.KindUpstreamGone, "upstream.http", "the server wants messages posted to another origin, %s://%s, which is not done", s.post.Scheme, s.post.Host)
	default:
		return nil
	}
	_ = resp.Body.Close()
	return err
}

func (s *sse) start(l *link) {
	s.link = l
	s.wg.Go(s.receive)
}

func (s *sse) receive() {
	defer s.in.free()
	for {
		ev, err := s.in.next()
		var long *tooLong
		switch {
		case errors.As(err, &long) && !long.endless:
			s.link.lose(long.id, errTooLong(long.limit))
			continue
		case err != nil:
			s.link.fail(core.Errorf(core.KindUpstreamGone, opReceive, "the server ended the stream: %w", err))
			return
		case ev.name != "message":
			ev.drop()
			continue
		case ev.large != nil:
			if data, held := s.link.spooled(ev.large, s.limit); data != nil {
				s.take(data)
				free(held)
			}
			continue
		}
		s.take(ev.data)
	}
}

// take delivers the messages of one event.
func (s *sse) take(data []byte) {
	msgs, ok := decode(data)
	if !ok {
		s.link.refuse(data)
		return
	}
	for _, msg := range msgs {
		s.link.deliver(msg)
	}
}

// send posts a message. For a call it does not wait for the response to the POST, because the answer may come first,
// on the event stream.
func (s *sse) send(ctx context.Context, m outgoing) error {
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
		_ = s.request(ctx, m)
		return nil
	}
	go func() {
		defer s.wg.Done()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.link.ctx, cancel)()
		if err := s.request(ctx, m); err != nil && ctx.Err() == nil {
			s.link.deliver(&jsonrpc.Response{ID: m.call.id, Error: err})
		}
	}()
	return nil
}

func (s *sse) request(ctx context.Context, m outgoing) *core.Error {
	var sent func()
	if m.call != nil {
		sent = func() { m.call.sent.Store(true) }
	}
	header := http.Header{"Content-Type": {"application/json"}}
	resp, err := s.at.do(ctx, message{method: http.MethodPost, url: s.post, body: m.data, header: header, sent: sent})
	if err != nil {
		m.refused(err)
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

func (s *sse) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.link.fail(errClosed())
	s.cancel()
	_ = s.body.Body.Close()
	s.wg.Wait()
	s.at.close()
}

// refusesStreamable reports whether a server refused initialize in the way that, by the specification, may mean that
// it only supports the older transport.
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
