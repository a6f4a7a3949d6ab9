package client

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"retort/internal/core"
)

// listenPatience bounds how long connecting waits until the server opens its stream of notifications or acknowledges
// the subscription. Many servers send the response headers only with the first event.
const listenPatience = 250 * time.Millisecond

// listenForNotices opens the stream on which servers of older protocol versions send notifications and requests. A
// server may need an answer to such a request in the middle of a call, and servers do not store what they cannot
// send. Therefore the first call waits for the stream.
func (h *streamableWire) listenForNotices() {
	if !h.beginUse() {
		return
	}
	opened := make(chan struct{})
	open := sync.OnceFunc(func() { close(opened) })
	go func() {
		defer h.wg.Done()
		defer open()
		_ = h.reopenStream(h.link.ctx, func(ctx context.Context, last string) (*http.Response, *core.Error) {
			defer open()
			return h.getStream(ctx, last)
		})
	}()
	select {
	case <-opened:
	case <-time.After(listenPatience):
	}
}

// holdSubscription keeps a subscription of newer protocol versions open. The subscription is a call that is never
// answered and whose response is a stream of notifications. When the stream has finally ended, the reason becomes the
// answer of the call, unless the SDK made the call.
func (h *streamableWire) holdSubscription(ctx context.Context, m outgoingMessage) {
	err := h.reopenStream(ctx, func(ctx context.Context, _ string) (*http.Response, *core.Error) { return h.postMessage(ctx, m) })
	if m.call.answered == nil {
		h.link.endSubscription(m.call)
	} else if ctx.Err() == nil {
		h.link.deliverMessage(&jsonrpc.Response{ID: m.call.id, Error: err})
	}
}

// reopenStream reads the stream that the function open returns, and calls open again whenever the stream ends. It
// stops when ctx ends, when the server refuses the stream, or when attempts keep failing. It returns the reason.
func (h *streamableWire) reopenStream(
	ctx context.Context, open func(ctx context.Context, last string) (*http.Response, *core.Error),
) *core.Error {
	last, gone := "", core.Errorf(core.KindUpstreamGone, "upstream.http", "the server offers no stream for its own messages")
	for failures := 0; failures < maxReopens; failures++ {
		var retry time.Duration
		resp, err := open(ctx, last)
		var refused statusError
		if err != nil && errors.As(err, &refused) {
			return err
		}
		if err == nil {
			if resp.StatusCode != http.StatusOK || mediaType(resp) != "text/event-stream" {
				_ = resp.Body.Close()
				return gone
			}
			in := newEvents(ctx, resp.Body, h.limit, h.account, nil)
			in.id = last
			if h.readNews(in) > 0 {
				failures = 0
			}
			in.releaseMemory()
			_ = resp.Body.Close()
			last, retry = in.id, in.retry
		}
		if !sleepContext(ctx, reopenDelay(retry, failures)) {
			return gone
		}
	}
	return gone
}

// readNews delivers the messages of a notification stream until the stream ends, and returns the number of events
// that it has read. It ignores responses to calls, because they must not arrive on this stream.
func (h *streamableWire) readNews(in *eventReader) (count int) {
	for ; ; count++ {
		ev, err := in.nextEvent()
		if err != nil {
			return count
		}
		msgs, ok := decodeMessages(ev.data)
		if !ok {
			h.link.refuseText(ev.data)
		}
		for _, msg := range msgs {
			if req, ok := msg.(*jsonrpc.Request); ok {
				h.link.deliverMessage(req)
			}
		}
	}
}
