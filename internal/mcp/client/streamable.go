package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"retort/internal/core"
)

const (
	headerSession   = "Mcp-Session-Id"
	headerProtocol  = "Mcp-Protocol-Version"
	headerLastEvent = "Last-Event-Id"

	noticeTimeout  = 10 * time.Second // timeout for a message that nobody waits for, such as a cancellation
	goodbyeTimeout = time.Second      // timeout for the request that ends a session
	longestSession = 1 << 10
	maxResumes     = 5 // maximum number of attempts in a row, without an event, to resume a broken stream
	maxReopens     = 8 // maximum number of such attempts for the stream of the server's own notifications
)

// streamableWire represents a wire over Streamable HTTP: each message is one POST request, and the response has the
// answer to a call.
type streamableWire struct {
	at       *httpEndpoint
	limit    int64
	bindings *headerBindings
	account  memoryAccount
	spool    *spoolDir

	link *serverLink
	wg   sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	session  string // session id that the server has given; empty if none
	gone     bool   // the server has said that it no longer knows the session
	protocol string // protocol version negotiated with initialize; empty before that
}

func startHTTP(spec ServerSpec, b *headerBindings, a memoryAccount, place *spoolDir) (messageWire, *core.Error) {
	at, err := newEndpoint(spec)
	if err != nil {
		return nil, err
	}
	return &streamableWire{at: at, limit: spec.MaxMessage, bindings: b, account: a, spool: place}, nil
}

func (h *streamableWire) start(l *serverLink) { h.link = l }

// sendMessage starts the HTTP request of a call in the background. For other messages it waits for the response and
// ignores failures.
func (h *streamableWire) sendMessage(ctx context.Context, m outgoingMessage) error {
	if !h.beginUse() {
		return errClosed()
	}
	if m.call != nil {
		go func() {
			defer h.wg.Done()
			h.sendCall(ctx, m)
		}()
		return nil
	}
	defer h.wg.Done()
	ctx, cancel := context.WithTimeout(ctx, noticeTimeout)
	defer cancel()
	defer context.AfterFunc(h.link.ctx, cancel)()
	if resp, err := h.postMessage(ctx, m); err == nil {
		_ = resp.Body.Close()
	}
	if req, ok := m.msg.(*jsonrpc.Request); ok && req.Method == methodInitialized {
		h.listenForNotices()
	}
	return nil
}

// beginUse records that a goroutine uses the wire, so that closing waits for it. It returns false if the wire is
// closed.
func (h *streamableWire) beginUse() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.wg.Add(1)
	return true
}

func (h *streamableWire) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.link.failAll(errClosed())
	h.endSession()
	h.wg.Wait()
	h.at.close()
}

// endSession ends the HTTP session at the server, unless the server no longer knows it.
func (h *streamableWire) endSession() {
	header := h.requestHeader(nil)
	h.mu.Lock()
	known := h.session != "" && !h.gone
	h.mu.Unlock()
	if !known {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), goodbyeTimeout)
	defer cancel()
	if resp, err := h.at.sendOnce(ctx, httpMessage{method: http.MethodDelete, url: h.at.url, header: header}); err == nil {
		_ = resp.Body.Close()
	}
}

// sendCall makes the HTTP request of a call. It delivers an answer in any case; after a failure the answer is an
// error.
func (h *streamableWire) sendCall(ctx context.Context, m outgoingMessage) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.link.ctx, cancel)()
	if m.call.method == methodListen {
		h.holdSubscription(ctx, m)
		return
	}
	resp, err := h.postMessage(ctx, m)
	if err == nil {
		err = h.receiveResponse(ctx, m, resp)
	}
	if err != nil && ctx.Err() == nil {
		h.link.deliverMessage(&jsonrpc.Response{ID: m.call.id, Error: err})
	}
}

// postMessage sends a message in a POST request and returns the response if it is successful.
func (h *streamableWire) postMessage(ctx context.Context, m outgoingMessage) (*http.Response, *core.Error) {
	header := h.requestHeader(m.msg)
	header.Set("Content-Type", "application/json")
	header.Set("Accept", "application/json, text/event-stream")
	var sent func()
	if m.call != nil {
		sent = func() { m.call.sent.Store(true) }
	}
	resp, err := h.at.sendAuthorized(ctx, httpMessage{method: http.MethodPost, url: h.at.url, body: m.data, header: header, sent: sent})
	if err != nil {
		m.noteRefused(err)
		return nil, err
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	return nil, h.readRefusal(m, resp, header)
}

// readRefusal reads the reason why the server refused a message from the response.
func (h *streamableWire) readRefusal(m outgoingMessage, resp *http.Response, header http.Header) *core.Error {
	if m.call != nil && resp.StatusCode < 500 {
		m.call.sent.Store(false) // seen, and not executed
	}
	if resp.StatusCode == http.StatusNotFound && header.Get(headerSession) != "" {
		_ = resp.Body.Close()
		h.sessionGone()
		return core.Errorf(core.KindUpstreamGone, "upstream.http", "the server has ended the session: %w", errSessionGone)
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	resp.Body.Close()
	if msgs, ok := decodeMessages(body); ok && len(msgs) == 1 {
		if r, ok := msgs[0].(*jsonrpc.Response); ok && r.Error != nil {
			return errRefused(resp, r.Error)
		}
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return errStatus(resp)
}

func (h *streamableWire) sessionGone() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone = true
}

// errRefused returns the JSON-RPC error in the body of a response with an HTTP error status.
func errRefused(resp *http.Response, cause error) *core.Error {
	var rpc *jsonrpc.Error
	if !errors.As(cause, &rpc) {
		return errStatus(resp)
	}
	e := explainRPC("upstream.http", rpc)
	e.Err = errors.Join(rpc, statusError(resp.StatusCode))
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		e.Kind = core.KindUpstreamGone
		return errAuthorization(resp, e)
	}
	return e
}

// receiveResponse handles the HTTP response to a call.
func (h *streamableWire) receiveResponse(ctx context.Context, m outgoingMessage, resp *http.Response) *core.Error {
	if m.call.method == methodInitialize {
		h.keepSession(resp)
	}
	switch kind := mediaType(resp); kind {
	case "application/json":
		return h.receiveJSON(ctx, m, resp)
	case "text/event-stream":
		return h.receiveStream(ctx, m, resp)
	default:
		_ = resp.Body.Close()
		return core.Errorf(core.KindUpstreamGone, "upstream.http", "the server answered a call with HTTP %d and content of type %q, which is not an MCP message",
			resp.StatusCode, truncateText(kind, 100)).WithHint("check that the url is the address of the server's MCP endpoint")
	}
}

func (h *streamableWire) receiveJSON(ctx context.Context, m outgoingMessage, resp *http.Response) *core.Error {
	defer resp.Body.Close()
	count := messageMemory{memoryAccount: h.account}
	defer func() { count.releaseBytes() }()
	body, large, err := h.readBody(ctx, resp.Body, &count)
	switch {
	case large != nil:
		if large.broken != nil {
			return large.brokenOff(core.Errorf(core.KindUpstreamGone, "upstream.http", "%w", large.broken))
		}
		body, held, err := h.takeLarge(ctx, m, large)
		if body == nil {
			return err
		}
		defer releaseHeld(held)
		if msgs, ok := decodeMessages(body); ok && h.deliverMessages(m, msgs) {
			return nil
		}
		return core.Errorf(core.KindUpstreamGone, "upstream.http", "the server's answer does not belong to this call")
	case errors.As(err, new(*tooLong)):
		return errTooLong(h.limit)
	case err != nil:
		return core.Errorf(core.KindUpstreamGone, "upstream.http", "the server's answer broke off after %d bytes: %w", len(body), err)
	}
	msgs, ok := decodeMessages(body)
	if !ok {
		return core.Errorf(core.KindUpstreamGone, "upstream.http", "the server's answer is not an MCP message: %s", safePrefix(string(body), 200))
	}
	if !h.deliverMessages(m, msgs) {
		return core.Errorf(core.KindUpstreamGone, "upstream.http", "the server's answer does not belong to this call")
	}
	return nil
}

// readBody reads a body into memory, or stores it on disk if it is too large.
func (h *streamableWire) readBody(ctx context.Context, r io.Reader, count *messageMemory) (body []byte, large *spooledMessage, err error) {
	body = make([]byte, 0, 512)
	for {
		if len(body) == cap(body) {
			if !count.reserveBytes(2 * int64(cap(body))) {
				break
			}
			body = slices.Grow(body, cap(body))
		}
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case h.spool.fitsSpool(int64(len(body))) || int64(len(body)) > h.limit:
			return h.spoolBody(ctx, body, r, count)
		case err == io.EOF:
			return body, nil, nil
		case err != nil:
			return body, nil, err
		}
	}
	return h.spoolBody(ctx, body, r, count)
}

// spoolBody stores the body of a response on disk. head is the part of the body that was already read.
func (h *streamableWire) spoolBody(ctx context.Context, head []byte, r io.Reader, count *messageMemory) ([]byte, *spooledMessage, error) {
	if h.spool == nil {
		return nil, nil, &tooLong{limit: h.limit}
	}
	rest := bodyParts(r)
	return nil, h.spool.readMessage(ctx, h.account, head, func() ([]byte, error) {
		count.releaseBytes() // head is on disk
		return rest()
	}, h.limit), nil
}

// bodyParts returns a function that reads the next piece of a response body each time it is called.
func bodyParts(body io.Reader) func() ([]byte, error) {
	buf := make([]byte, 64<<10)
	var end error
	return func() ([]byte, error) {
		if end != nil {
			return nil, end
		}
		var n int
		n, end = body.Read(buf)
		return buf[:n], nil
	}
}

// takeLarge handles a message that was stored on disk because of its size. If the message is small enough for memory,
// takeLarge loads it and returns its content as again. Then the caller must handle this content like any other
// message, and afterwards release held, the memory that was reserved for it. err is the reason why the call has no
// answer.
func (h *streamableWire) takeLarge(
	ctx context.Context, m outgoingMessage, large *spooledMessage,
) (again []byte, held core.HeldMemory, err *core.Error) {
	if large.full != nil {
		return nil, nil, large.sizeError(h.limit)
	}
	if id := large.messageID(); id == m.call.id && (h.link.settleSpooled(id, large) || h.link.parkAnswer(id, large, h.limit)) {
		return nil, nil, nil
	}
	defer large.Close()
	if large.isReadable() {
		if data, held := h.link.rereadMessage(ctx, large, h.limit); data != nil {
			return data, held, nil
		}
	}
	return nil, nil, large.sizeError(h.limit)
}

// deliverMessages passes messages of the server to the link, and reports whether the answer to the call m was among
// them.
func (h *streamableWire) deliverMessages(m outgoingMessage, msgs []jsonrpc.Message) bool {
	answered := false
	for _, msg := range msgs {
		if r, ok := msg.(*jsonrpc.Response); ok && (r.ID == m.call.id || !r.ID.IsValid() && r.Error != nil) {
			r.ID = m.call.id
			answered = true
			h.noteNegotiated(m, r)
		}
		h.link.deliverOn(m.call, msg)
	}
	return answered
}

// receiveStream reads the event stream that answers a call. If the stream breaks and the server numbers its events,
// it requests the events that are missing.
func (h *streamableWire) receiveStream(ctx context.Context, m outgoingMessage, resp *http.Response) *core.Error {
	last, idle := "", 0
	for {
		in := newEvents(ctx, resp.Body, h.limit, h.account, h.spool)
		in.id = last
		answered, err := h.readAnswer(ctx, m, in)
		in.releaseMemory()
		finishBody(resp.Body, answered)
		switch {
		case answered || ctx.Err() != nil:
			return nil
		case isTooLong(err):
			return errTooLong(h.limit)
		case in.id == "":
			return core.Errorf(core.KindUpstreamGone, "upstream.http", "the server ended the stream without an answer: %w", err)
		case in.id == last:
			idle++
		default:
			last, idle = in.id, 0
		}
		var failed *core.Error
		if resp, failed = h.resumeStream(ctx, last, in.retry, idle); failed != nil {
			return failed
		}
	}
}

func (h *streamableWire) readAnswer(ctx context.Context, m outgoingMessage, in *eventReader) (bool, error) {
	for {
		ev, err := in.nextEvent()
		if err != nil {
			return false, err
		}
		var held core.HeldMemory
		if ev.large != nil {
			var failed *core.Error
			if ev.data, held, failed = h.takeLarge(ctx, m, ev.large); failed != nil {
				h.link.deliverMessage(&jsonrpc.Response{ID: m.call.id, Error: failed})
			}
			if ev.data == nil {
				return true, nil
			}
		}
		answered := ev.name == "message" && h.takeEvent(m, ev.data)
		if releaseHeld(held); answered {
			return true, nil
		}
	}
}

// takeEvent delivers the messages in an event of a stream, and reports whether the answer to the call m was among
// them.
func (h *streamableWire) takeEvent(m outgoingMessage, data []byte) bool {
	msgs, ok := decodeMessages(data)
	if !ok {
		id := h.link.refuseText(data)
		return id.IsValid() && id == m.call.id
	}
	return h.deliverMessages(m, msgs)
}

// resumeStream requests the events of a broken stream that follow the event with the id last.
func (h *streamableWire) resumeStream(ctx context.Context, last string, retry time.Duration, idle int) (*http.Response, *core.Error) {
	var failed *core.Error
	for try := idle; try <= maxResumes; try++ {
		if !sleepContext(ctx, reopenDelay(retry, try)) {
			return nil, errClosed()
		}
		resp, err := h.getStream(ctx, last)
		switch {
		case err != nil:
			failed = err
		case resp.StatusCode == http.StatusOK && mediaType(resp) == "text/event-stream":
			return resp, nil
		default:
			return nil, errStatus(resp)
		}
	}
	if failed == nil {
		failed = core.Errorf(core.KindUpstreamGone, "upstream.http", "the server repeatedly breaks off the stream")
	}
	return nil, failed
}

func reopenDelay(retry time.Duration, try int) time.Duration {
	if retry > 0 {
		return retry
	}
	delay := min(firstDelay<<min(try, 20), longestRetry)
	return delay/2 + time.Duration(randomJitter()*float64(delay))
}

func (h *streamableWire) getStream(ctx context.Context, last string) (*http.Response, *core.Error) {
	header := h.requestHeader(nil)
	header.Set("Accept", "text/event-stream")
	if last != "" {
		header.Set(headerLastEvent, last)
	}
	return h.at.sendOnce(ctx, httpMessage{method: http.MethodGet, url: h.at.url, header: header})
}

// finishBody closes a response body. After a call was answered, it first reads the rest of the body for at most 100
// ms, so that the connection can be reused.
func finishBody(body io.ReadCloser, answered bool) {
	if answered {
		timer := time.AfterFunc(100*time.Millisecond, func() { _ = body.Close() })
		defer timer.Stop()
		_, _ = io.CopyN(io.Discard, body, 16<<10)
	}
	_ = body.Close()
}

func isTooLong(err error) bool {
	var long *tooLong
	return errors.As(err, &long)
}

// keepSession stores the session id from the response to initialize.
func (h *streamableWire) keepSession(resp *http.Response) {
	id := resp.Header.Get(headerSession)
	if len(id) > longestSession {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.session = id
}

// noteNegotiated stores the protocol version from the answer to initialize.
func (h *streamableWire) noteNegotiated(m outgoingMessage, r *jsonrpc.Response) {
	if m.call.method != methodInitialize || r.Error != nil {
		return
	}
	var result struct {
		Protocol string `json:"protocolVersion"`
	}
	_ = unmarshalExact(r.Result, &result)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.protocol = result.Protocol
}
