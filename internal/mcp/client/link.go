package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/base/memory"
	"retort/internal/core"
)

// methodDiscover and the following constants name the MCP methods and notifications that a link handles specially.
const (
	methodDiscover    = "server/discover"
	methodInitialize  = "initialize"
	methodCall        = "tools/call"
	methodList        = "tools/list"
	methodListen      = "subscriptions/listen"
	methodPing        = "ping"
	methodCancelled   = "notifications/cancelled"
	methodInitialized = "notifications/initialized"
	methodListChanged = "notifications/tools/list_changed"
	methodProgress    = "notifications/progress"
	methodMessage     = "notifications/message"
	methodRoots       = "roots/list"
	methodLevel       = "logging/setLevel"
	methodElicited    = "notifications/elicitation/complete"

	methodAcknowledged     = "notifications/subscriptions/acknowledged"
	methodResourceUpdated  = "notifications/resources/updated"
	methodResourcesChanged = "notifications/resources/list_changed"
	methodPromptsChanged   = "notifications/prompts/list_changed"
)

// messageWire represents the transport below a serverLink. It sends messages to a server, and passes received
// messages to the link's method deliverMessage. When nothing more can arrive, it calls the link's method failAll.
type messageWire interface {
	// start starts receiving. It is called once, before the other methods.
	start(l *serverLink)
	// sendMessage sends one message. If only the sending of this call fails, the failure is delivered as the answer
	// to the call, and sendMessage returns nil. An error means that the wire is broken, or that ctx ended before any
	// part of the message was sent.
	sendMessage(ctx context.Context, m outgoingMessage) error
	// close ends the wire. It returns when its connections and processes are gone.
	close()
}

// outgoingMessage represents a message to be sent to the server.
type outgoingMessage struct {
	msg  jsonrpc.Message
	data []byte       // the encoded msg, without a newline
	call *pendingCall // the pending call that msg makes; nil if msg is not a call
}

// noteRefused records that the server refused a message because of its credentials, so that the message had no
// effect.
func (m outgoingMessage) noteRefused(err *core.Error) {
	if m.call != nil && errors.Is(err, errUnauthorized) {
		m.call.sent.Store(false)
	}
}

// pendingCall represents a call to a server and, after it has arrived, the answer.
type pendingCall struct {
	id     jsonrpc.ID
	method string
	sent   atomic.Bool // the request was sent, so that the server may have seen it

	// answered is closed when the answer is stored in the fields result and err. It is nil for calls that the SDK
	// makes.
	answered chan struct{}
	result   json.RawMessage // result of the call, exactly as received
	err      error

	// ctx is the context of a request that is made for a client, such as a tool call.
	ctx  context.Context
	peer *core.ClientPeer
	// page is the reason why a page was not opened that the server wanted to be opened. It is nil if there was no such
	// page.
	page *core.Error

	agreed chan []string // receives the resources of which the server reports changes, if the call is a subscription

	spools           bool // the caller accepts an answer that is on disk instead of in memory
	spooled          *core.SpooledAnswer
	parked           *spooledMessage    // answer that stays on disk until there is memory for it
	unadmittedMemory *memory.MemoryHold // memory reserved for the answer until the answer is admitted
}

// serverLink is the connection to a server. The SDK uses it only to connect. Afterwards the link lists and calls
// tools itself, because the SDK would decode the results: that costs more than the rest of a call, rounds long
// integers and loses the order of keys. The link also answers the server's requests. While the SDK connects, the link
// gives up waiting if the server does not answer server/discover, the request that finds out the newest protocol
// version.
type serverLink struct {
	wire    messageWire
	rubbish *strayOutput
	changed func() // called when the server sends tools/list_changed
	probe   time.Duration
	account memoryAccount

	client ClientFeatures // features of the client that the server may use
	// news is called for notifications about resources and prompts. It may be nil.
	news func(method string, params json.RawMessage)

	received atomic.Int64 // grows with the bytes or messages that the server sends
	outdated atomic.Bool  // the server has announced a change of its tools since it was last listed

	incoming chan jsonrpc.Message
	// answering holds an item for each answer to a server's request that is being sent. Its capacity bounds their
	// number.
	answering chan struct{}
	// asking holds an item for each request of the server that waits for a person. Its capacity bounds their number.
	asking chan struct{}

	mu       sync.Mutex
	pending  map[jsonrpc.ID]*pendingCall
	tokens   map[string]*pendingCall // maps progress tokens to the calls that they belong to
	followed int64                   // number of progress tokens made so far
	asks     map[jsonrpc.ID]context.CancelFunc
	// pages maps ids of elicitations to channels that are closed when the person has finished with the page.
	pages    map[string]chan struct{}
	last     int64       // highest request id so far; the SDK makes no calls after it has connected
	probing  jsonrpc.ID  // id of the request server/discover while it waits for an answer
	answered bool        // the server has answered a request
	tasks    bool        // the server's tools can be called as tasks of protocol version 2025-11-25
	modern   bool        // the server has answered server/discover, but after its timeout
	cause    *core.Error // reason why the link is down; nil while it works

	subscribed changeSubscription // subscription to changes of the server's lists

	ctx  context.Context // context of the link; it ends when the link goes down
	down context.CancelFunc
}

func newLink(w messageWire, r *strayOutput, probe time.Duration, changed func()) *serverLink {
	ctx, down := context.WithCancel(context.Background())
	return &serverLink{
		wire: w, rubbish: r, changed: changed, probe: probe,
		incoming: make(chan jsonrpc.Message), answering: make(chan struct{}, 16),
		pending: map[jsonrpc.ID]*pendingCall{}, ctx: ctx, down: down, asking: make(chan struct{}, maxAsks),
		tokens: map[string]*pendingCall{}, asks: map[jsonrpc.ID]context.CancelFunc{},
		pages: map[string]chan struct{}{},
	}
}

// Connect implements mcp.Transport.
func (l *serverLink) Connect(context.Context) (mcp.Connection, error) {
	l.wire.start(l)
	return l, nil
}

// SessionID returns "", because the wire manages sessions.
func (l *serverLink) SessionID() string { return "" }

// Write sends a message of the SDK.
func (l *serverLink) Write(ctx context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	m := outgoingMessage{msg: msg, data: data}
	if req, ok := msg.(*jsonrpc.Request); ok && req.IsCall() {
		m.call = &pendingCall{id: req.ID, method: req.Method}
		l.registerCall(m.call)
		if req.Method == methodListen {
			l.noteSubscription(m.call)
		}
	}
	if err := l.wire.sendMessage(ctx, m); err != nil {
		if m.call != nil {
			l.forgetCall(m.call)
			l.endSubscription(m.call)
		}
		return err
	}
	return nil
}

// registerCall adds a pending call. It assigns an id if the call has none.
func (l *serverLink) registerCall(x *pendingCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if id, ok := x.id.Raw().(int64); ok {
		l.last = max(l.last, id)
	} else {
		l.last++
		x.id, _ = jsonrpc.MakeID(float64(l.last))
	}
	l.pending[x.id] = x
	if x.method == methodDiscover {
		l.probing = x.id
		time.AfterFunc(l.probe, func() { l.giveUp(x) })
	}
}

// dropCall removes a call and releases its answer if no caller has read it.
func (l *serverLink) dropCall(x *pendingCall) {
	l.forgetCall(x)
	if x.spooled != nil {
		_ = x.spooled.Close()
		x.spooled = nil
	}
	if x.parked != nil {
		_ = x.parked.Close()
		x.parked = nil
	}
	x.unadmittedMemory.Free()
}

// forgetCall removes a call whose caller no longer waits.
func (l *serverLink) forgetCall(x *pendingCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pending, x.id)
}

// errUnprobed is the answer that the link gives the SDK if the server has not answered server/discover in time. That
// request probes whether the server speaks a protocol version without a handshake.
var errUnprobed = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the server does not answer " + methodDiscover}

// giveUp answers the request server/discover on behalf of a server that has not answered it in time, so that the SDK
// continues with initialize.
func (l *serverLink) giveUp(x *pendingCall) {
	l.mu.Lock()
	_, waiting := l.pending[x.id]
	l.mu.Unlock()
	if waiting {
		l.deliverMessage(&jsonrpc.Response{ID: x.id, Error: errUnprobed})
	}
}

// Read returns the next answer for the SDK.
func (l *serverLink) Read(context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-l.incoming:
		return msg, nil
	case <-l.ctx.Done():
		return nil, l.cause
	}
}

// acceptMessage handles a message and reports whether the SDK must get it. x is the call on whose stream the message
// arrived, or nil if unknown.
func (l *serverLink) acceptMessage(msg jsonrpc.Message, x *pendingCall) bool {
	l.received.Add(1)
	switch m := msg.(type) {
	case *jsonrpc.Response:
		return l.completeCall(m)
	case *jsonrpc.Request:
		if m.IsCall() {
			l.answerServer(m, x)
		} else {
			l.handleNotification(m, x)
		}
	}
	return false
}

// completeCall finds the call that the message m answers and completes it. It returns true if the SDK made that call,
// because the SDK must then get m. An error without an id, which some servers send for a request that they cannot
// handle, answers the only pending call.
func (l *serverLink) completeCall(m *jsonrpc.Response) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !m.ID.IsValid() {
		m.ID = l.solePendingID()
	}
	x, ok := l.pending[m.ID]
	if meant, wrong := l.misspelledID(m.ID); !ok && wrong {
		x, ok = l.pending[meant], true
		m = &jsonrpc.Response{ID: meant, Error: errGarbled("its id is a string and not the number of the call")}
	}
	if !ok {
		if m.ID.IsValid() && m.ID == l.probing {
			l.modern = l.modern || m.Error == nil
		} else {
			l.rubbish.noteStray()
		}
		return false
	}
	delete(l.pending, m.ID)
	l.answered = l.answered || m.Error != error(errUnprobed)
	if x.answered == nil {
		if x == l.subscribed.request {
			l.subscribed.markKnown()
		}
		l.tasks = l.tasks || x.method == methodInitialize && offersTasks(m.Result)
		boundHandshake(x.method, m)
		return true
	}
	x.result, x.err, x.unadmittedMemory = m.Result, m.Error, l.account.holdAnswer(m)
	close(x.answered)
	return false
}

// maxHandshake is the maximum size in bytes of the results that the SDK decodes, such as that of initialize. The SDK
// reads nested values again at each level, so a large and deeply nested result would take minutes of processor time.
const maxHandshake = 512 << 10

// boundHandshake replaces the server's answer to a request of the SDK by an error, if the answer is larger than
// maxHandshake.
func boundHandshake(method string, m *jsonrpc.Response) {
	if n := len(m.Result); n > maxHandshake {
		m.Result, m.Error = nil, errGarbled(fmt.Sprintf("the result of %s is too large: %d bytes; the limit is %d", method, n, maxHandshake))
	}
}

// answerServer responds to a request of the server.
func (l *serverLink) answerServer(req *jsonrpc.Request, x *pendingCall) {
	switch req.Method {
	case methodPing:
		l.replyToServer(req, json.RawMessage(`{}`), nil)
	case core.MethodElicit, core.MethodSample:
		l.answerServerRequest(req, x)
	default:
		result, err := l.client.answerRequest(l.ctx, l, req.Method, nil, nil)
		if err != nil {
			l.replyToServer(req, nil, errUnanswered(jsonrpc.CodeMethodNotFound, "method not found: "+truncateText(req.Method, 100)))
			return
		}
		l.replyToServer(req, result, nil)
	}
}

// deliverMessage handles a message from the wire. It blocks until the message has been handled or the link is down,
// which slows down servers that send too fast.
func (l *serverLink) deliverMessage(msg jsonrpc.Message) { l.deliverOn(nil, msg) }

// deliverOn handles a message that arrived on the stream of the call x, or of no particular call if x is nil.
func (l *serverLink) deliverOn(x *pendingCall, msg jsonrpc.Message) {
	if !l.acceptMessage(msg, x) {
		return
	}
	select {
	case l.incoming <- msg:
	case <-l.ctx.Done():
	}
}

// failAll takes the link down: all pending calls fail with cause. If it is called more than once, the first cause
// counts.
func (l *serverLink) failAll(cause *core.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil {
		l.cause = cause
		l.down()
	}
}

// hasTasks reports whether the server can run tool calls as tasks of protocol version 2025-11-25.
func (l *serverLink) hasTasks() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tasks
}

func (l *serverLink) isDown() bool { return l.ctx.Err() != nil }

// Close takes the link down. The SDK calls it. The creator of the wire closes the wire.
func (l *serverLink) Close() error {
	l.failAll(core.Errorf(core.KindUpstreamGone, "upstream", "the connection was closed"))
	return nil
}

// solePendingID returns the id of the only pending call, or an invalid id if there is not exactly one. The caller
// must hold mu.
func (l *serverLink) solePendingID() jsonrpc.ID {
	var id jsonrpc.ID
	for _, x := range l.pending {
		if x.method == methodListen {
			continue // never answered
		}
		if id.IsValid() {
			return jsonrpc.ID{}
		}
		id = x.id
	}
	return id
}

// failLost fails a call whose answer could not be read. The argument id is the id of the answer. If it is not known,
// the answer can only belong to the one pending call. If there is no pending call or more than one, failLost takes
// the link down, because otherwise a caller could wait for an answer that never comes.
func (l *serverLink) failLost(id jsonrpc.ID, cause *core.Error) {
	if !id.IsValid() {
		l.mu.Lock()
		id = l.solePendingID()
		l.mu.Unlock()
	}
	if !id.IsValid() {
		l.failAll(cause)
		return
	}
	l.deliverMessage(&jsonrpc.Response{ID: id, Error: cause})
}

// safePrefix returns about the first n bytes of a server's message. It cuts between words, because a part of an
// address, for example, would not be recognised as personal data.
func safePrefix(s string, n int) string {
	if len(s) <= n {
		return s
	}
	whole := s[:strings.LastIndexAny(s[:n], " \t\r\n\",;<>{}[]")+1]
	return strings.TrimRight(whole, " \t\r\n\"+-().0123456789") + "…"
}

// truncateText cuts s to at most n bytes, between two characters.
func truncateText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}
