package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// codeEnding is the error code for a request that arrives while the server shuts down.
const codeEnding = -32000

// noBatches is the first protocol version without batches.
const noBatches = "2025-06-18"

// lineTransport is the transport for a client that writes one message per line. The SDK's own transport would end,
// with all running requests, at the first line that is JSON but not a message. A lineTransport answers such lines as
// JSON-RPC 2.0 requires, and ends only when the stream ends.
type lineTransport struct{ conn *lineConn }

func newLineTransport(in io.ReadCloser, out io.WriteCloser) *lineTransport {
	return &lineTransport{&lineConn{
		in: in, out: out, lines: make(chan readLine), closed: make(chan struct{}), drained: make(chan struct{}), calls: map[jsonrpc.ID]*inCall{},
	}}
}

// Connect starts to read the client's lines and returns the connection.
func (t *lineTransport) Connect(context.Context) (mcp.Connection, error) {
	go t.conn.readLines()
	return t.conn, nil
}

// readLine is one line of input. If the line is too long, whole is false and there is no text. If err is set, the
// input has ended.
type readLine struct {
	text  []byte
	whole bool
	err   error
}

// lineConn is the connection of a lineTransport.
type lineConn struct {
	in     io.ReadCloser
	out    io.WriteCloser
	lines  chan readLine
	queue  []jsonrpc.Message // messages that were read and not yet returned by Read
	begun  bool              // initialize has arrived, so requests need not declare their protocol version
	once   sync.Once
	closed chan struct{}

	drained chan struct{} // closed when the connection is draining and all requests are answered

	mu      sync.Mutex // guards the fields below, and writing
	calls   map[jsonrpc.ID]*inCall
	version string // protocol version that initialize has negotiated
	drains  bool
}

// inCall represents a request of the client that is not answered yet.
type inCall struct {
	initialize, cancelled bool
	lasts                 bool          // the request is a subscription, which is answered only when its stream ends
	batch                 *batchAnswers // batch that contained the request; nil if it came alone
}

// batchAnswers collects the answers to the requests of a batch.
type batchAnswers struct {
	open    int // number of requests in the batch that are not answered yet
	answers []json.RawMessage
}

// SessionID returns "": the stream is the session.
func (c *lineConn) SessionID() string { return "" }

// Close ends the connection and closes both streams.
func (c *lineConn) Close() (err error) {
	c.once.Do(func() {
		close(c.closed)
		err = errors.Join(c.in.Close(), c.out.Close())
	})
	return err
}

// readLines passes lines to Read, so that Close can end a blocked Read. It runs until the input ends; some inputs,
// such as a terminal, may block even after they are closed.
func (c *lineConn) readLines() {
	in := bufio.NewReaderSize(c.in, 64<<10)
	for {
		text, whole, err := nextLine(in)
		if len(text) > 0 || !whole {
			if !c.handLine(readLine{text: text, whole: whole}) {
				return
			}
		}
		if err != nil {
			c.handLine(readLine{err: err})
			return
		}
	}
}

// handLine passes a line to Read. It returns false if the connection is closed.
func (c *lineConn) handLine(l readLine) bool {
	select {
	case c.lines <- l:
		return true
	case <-c.closed:
		return false
	}
}

// nextLine reads the next line that is not empty, without its line end. If the line is too long, it is skipped and
// whole is false.
func nextLine(in *bufio.Reader) (text []byte, whole bool, err error) {
	whole = true
	for {
		part, err := in.ReadSlice('\n')
		if whole = whole && len(text)+len(part) <= maxLine; whole {
			text = append(text, part...)
		} else {
			text = nil
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		text = bytes.TrimSpace(text)
		if len(text) > 0 || !whole || err != nil {
			return text, whole, err
		}
	}
}

// drainRequests refuses new requests and ends the connection when the pending requests are answered or the duration
// patience is over. The SDK's own connection would wait for pending requests without sending their answers.
func (c *lineConn) drainRequests(patience time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drains = true
	c.closeIfDrained()
	time.AfterFunc(patience, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.finishDraining()
	})
}

// closeIfDrained ends a draining connection if no request is pending. The caller must hold mu.
func (c *lineConn) closeIfDrained() {
	for _, call := range c.calls {
		if !call.lasts {
			return
		}
	}
	if c.drains {
		c.finishDraining()
	}
}

// finishDraining makes Read return the end of the stream. The caller must hold mu.
func (c *lineConn) finishDraining() {
	select {
	case <-c.drained:
	default:
		close(c.drained)
	}
}

// Read returns the client's next message for the SDK's server.
func (c *lineConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for len(c.queue) == 0 {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.closed:
			return nil, io.EOF
		case <-c.drained:
			return nil, io.EOF
		case l := <-c.lines:
			if l.err != nil {
				return nil, l.err
			}
			if err := c.receiveLine(l); err != nil {
				return nil, err
			}
		}
	}
	next := c.queue[0]
	c.queue = c.queue[1:]
	return next, nil
}

// receiveLine puts the messages of a line into the queue, or answers them if they are refused. It returns an error
// only if an answer cannot be written.
func (c *lineConn) receiveLine(l readLine) error {
	if !l.whole {
		return c.writeMessage(newRefusal(nil, jsonrpc.CodeInvalidRequest, "a message is larger than %d MB", maxLine>>20).ToJSON())
	}
	if !isBatch(l.text) {
		if refused := c.queueMessage(l.text, nil); refused != nil {
			return c.writeMessage(refused.ToJSON())
		}
		return nil
	}
	messages, refused := SplitBatch(l.text)
	if refused == nil && !c.hasBatches() {
		refused = newRefusal(nil, jsonrpc.CodeInvalidRequest, "batches are allowed only in protocol versions before %s, and only after initialize", noBatches)
	}
	if refused != nil {
		return c.writeMessage(refused.ToJSON())
	}
	return c.receiveBatch(messages)
}

func (c *lineConn) hasBatches() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version != "" && c.version < noBatches
}

// receiveBatch puts the messages of a batch into the queue. The batch is answered when its last request is answered;
// a batch without requests is not answered.
func (c *lineConn) receiveBatch(messages []json.RawMessage) error {
	b := &batchAnswers{open: 1} // until all are taken
	for _, text := range messages {
		if refused := c.queueMessage(text, b); refused != nil {
			b.answers = append(b.answers, refused.ToJSON())
		}
	}
	return c.finishBatch(b, nil)
}

// queueMessage puts a message into the queue, or returns a refusal. It ignores malformed responses and cancellations
// of requests that are not pending.
func (c *lineConn) queueMessage(text []byte, b *batchAnswers) *MessageRefusal {
	msg, refused := ParseMessage(liftTask(text))
	if refused != nil || msg == nil {
		return refused
	}
	if r, ok := msg.(*jsonrpc.Request); ok {
		switch {
		case r.IsCall():
			if refused := c.beginRequest(r, b); refused != nil {
				return refused
			}
		case r.Method == "notifications/cancelled" && !c.cancelRequest(r.Params):
			return nil
		}
	}
	c.queue = append(c.queue, msg)
	return nil
}

// beginRequest puts a request into the queue and tracks it, or returns a refusal.
func (c *lineConn) beginRequest(r *jsonrpc.Request, b *batchAnswers) *MessageRefusal {
	id, _ := json.Marshal(r.ID.Raw()) // a string or an integer
	if err := c.checkVersion(r); err != nil {
		return &MessageRefusal{ID: id, Error: err}
	}
	if r.Method == "initialize" && b != nil {
		return newRefusal(id, jsonrpc.CodeInvalidRequest, "initialize cannot be part of a batch")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drains {
		return newRefusal(id, codeEnding, "the server is ending; nothing ran")
	}
	if c.calls[r.ID] != nil { // an answer with this id would be taken for that of the other request
		return newRefusal(nil, jsonrpc.CodeInvalidRequest, "another request with the id %s has no answer yet", clippedTo(string(id), 100))
	}
	c.calls[r.ID] = &inCall{initialize: r.Method == "initialize", lasts: r.Method == "subscriptions/listen", batch: b}
	if b != nil {
		b.open++
	}
	return nil
}

// checkVersion checks a request against its protocol version. In newer versions, every request declares its version
// and the client's capabilities. In older versions, requests follow initialize.
func (c *lineConn) checkVersion(r *jsonrpc.Request) *jsonrpc.Error {
	var params, meta map[string]json.RawMessage
	_ = json.Unmarshal(r.Params, &params) // what is no object declares nothing
	_ = json.Unmarshal(params["_meta"], &meta)
	raw, declared := meta[mcp.MetaKeyProtocolVersion]
	switch {
	case declared:
		return c.checkDeclared(raw)
	case r.Method == "initialize":
		c.begun = true
	case !c.begun && r.Method != "ping":
		return invalidParams("_meta lacks %q; clients of protocol versions before %s must begin with initialize", mcp.MetaKeyProtocolVersion, multiRoundTrip)
	}
	return nil
}

// checkDeclared checks the protocol version that a request declares. It refuses unknown versions. It also refuses
// versions with a handshake if the client has not sent initialize.
func (c *lineConn) checkDeclared(raw json.RawMessage) *jsonrpc.Error {
	var version string
	if json.Unmarshal(raw, &version) != nil {
		return invalidParams("_meta has a %q that is not a string", mcp.MetaKeyProtocolVersion)
	}
	supported := mcp.SupportedProtocolVersions()
	known := slices.Contains(supported, version)
	switch {
	case known && (version >= multiRoundTrip || c.begun):
		return nil
	case known:
		return invalidParams("version %s requires initialize first", version)
	}
	data, _ := json.Marshal(mcp.UnsupportedProtocolVersionData{Supported: supported, Requested: version})
	return &jsonrpc.Error{Code: mcp.CodeUnsupportedProtocolVersion, Message: "Unsupported protocol version", Data: data}
}

func invalidParams(format string, args ...any) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

// cancelRequest records that the client has cancelled a request, and reports whether the server must be notified. It
// ignores unknown and already answered or cancelled requests, and initialize, which cannot be cancelled.
func (c *lineConn) cancelRequest(params json.RawMessage) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(params, &members) != nil {
		return false
	}
	id, err := parseID(members["requestId"])
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.calls[id]
	if call == nil || call.cancelled || call.initialize {
		return false
	}
	call.cancelled = true
	return true
}

// Write sends a message to the client. It drops answers to cancelled requests.
func (c *lineConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r, answers := msg.(*jsonrpc.Response)
	if !answers {
		text, err := jsonrpc.EncodeMessage(msg)
		if err != nil {
			return fmt.Errorf("a message cannot be encoded: %w", err)
		}
		return c.writeMessage(text)
	}
	text, err := jsonrpc.EncodeMessage(r)
	if err != nil { // the client waits for an answer
		text, err = jsonrpc.EncodeMessage(&jsonrpc.Response{
			ID:    r.ID,
			Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the answer cannot be encoded: " + err.Error()},
		})
	}
	if err != nil {
		return err
	}
	return c.sendAnswer(r, text)
}

// sendAnswer sends the answer to a request, or adds it to the answer of its batch.
func (c *lineConn) sendAnswer(r *jsonrpc.Response, text []byte) error {
	c.mu.Lock()
	call := c.calls[r.ID]
	delete(c.calls, r.ID)
	c.closeIfDrained()
	if call != nil && call.initialize {
		var chosen struct {
			Version string `json:"protocolVersion"`
		}
		_ = json.Unmarshal(r.Result, &chosen) // an error chooses none
		c.version = chosen.Version
	}
	c.mu.Unlock()
	switch {
	case call == nil:
		return c.writeMessage(text)
	case call.cancelled:
		text = nil
	}
	switch {
	case call.batch != nil:
		return c.finishBatch(call.batch, text)
	case text == nil:
		return nil
	}
	return c.writeMessage(text)
}

// finishBatch records that a request of a batch is finished, with text as its answer or nil if it gets none. When all
// requests of the batch are finished, finishBatch sends their answers together.
func (c *lineConn) finishBatch(b *batchAnswers, text []byte) error {
	c.mu.Lock()
	if b.open--; text != nil {
		b.answers = append(b.answers, text)
	}
	whole := b.open == 0 && len(b.answers) > 0
	c.mu.Unlock()
	if !whole {
		return nil
	}
	all, err := json.Marshal(b.answers)
	if err != nil {
		return err
	}
	return c.writeMessage(all)
}

// writeMessage writes a message as one line.
func (c *lineConn) writeMessage(text []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.out.Write(append(text, '\n'))
	return err
}
