package client

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
)

//lint:file-ignore SA1019 roots, sampling and logging are passed on between those who have them; only 2026-07-28 gives them up

// ClientFeatures lists what a server may request from the client that makes the calls, such as answers to forms.
type ClientFeatures struct {
	Elicit bool     // the server may ask a person (elicitation)
	Sample bool     // the server may use the client's model (sampling)
	Roots  []string // URIs that the server gets as roots; if empty, roots are not supported
}

func (c ClientFeatures) toCapabilities() *mcp.ClientCapabilities {
	caps := &mcp.ClientCapabilities{}
	if c.Elicit {
		caps.Elicitation = &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}
	}
	if c.Sample {
		caps.Sampling = &mcp.SamplingCapabilities{}
	}
	if len(c.Roots) > 0 {
		caps.RootsV2 = &mcp.RootCapabilities{}
	}
	return caps
}

// offeredTo returns the client capabilities that each request to a server declares since protocol version 2026-07-28.
// They contain a feature only if the settings allow it for the server (c) and the client that makes the request has it
// (peer).
func (c ClientFeatures) offeredTo(peer *core.ClientPeer) map[string]any {
	caps := map[string]any{"extensions": map[string]any{tasksExtension: struct{}{}}}
	if c.Elicit && peer.Ask != nil && (peer.Forms || peer.Pages) {
		modes := map[string]any{}
		if peer.Forms {
			modes["form"] = struct{}{}
		}
		if peer.Pages {
			modes["url"] = struct{}{}
		}
		caps["elicitation"] = modes
	}
	if c.Sample && peer.Ask != nil && peer.Samples {
		caps["sampling"] = struct{}{}
	}
	if len(c.Roots) > 0 {
		caps["roots"] = struct{}{}
	}
	return caps
}

// maxAsks bounds how many requests of a server wait for a person at the same time.
const maxAsks = 8

// errUnanswered returns the JSON-RPC error with which the client refuses a server's request that it cannot answer.
func errUnanswered(code int64, message string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: code, Message: message}
}

// answerServerRequest answers a request of the server that only the client can answer. The client is that of the call
// x, on whose stream the request arrived. If the stream belongs to no call, x is nil. Then all pending calls must
// belong to the same client, because otherwise it is unknown which client the request is for.
func (l *serverLink) answerServerRequest(req *jsonrpc.Request, x *pendingCall) {
	if x == nil {
		x = l.soleCaller()
	}
	if x == nil {
		l.replyToServer(
			req, nil,
			errUnanswered(
				jsonrpc.CodeInvalidRequest,
				"Retort can't determine who this question is for: no call is under way, or calls of several clients are",
			),
		)
		return
	}
	select {
	case l.asking <- struct{}{}:
	default:
		l.replyToServer(req, nil, errUnanswered(jsonrpc.CodeInternalError, "there are too many requests at once"))
		return
	}
	go func() {
		defer func() { <-l.asking }()
		ctx, cancel := context.WithCancel(x.ctx)
		defer cancel()
		defer context.AfterFunc(l.ctx, cancel)()
		l.noteServerRequest(req.ID, cancel)
		defer l.noteServerRequest(req.ID, nil)
		result, err := l.client.answerRequest(ctx, l, req.Method, req.Params, x.peer)
		if err != nil {
			l.noteUnopened(x, err)
			l.replyToServer(req, nil, errUnanswered(codeOf(err), err.Message))
			return
		}
		l.replyToServer(req, result, nil)
	}()
}

func codeOf(e *core.Error) int64 {
	switch e.Kind {
	case core.KindInvalidArguments:
		return jsonrpc.CodeInvalidParams
	case core.KindToolNotFound:
		return jsonrpc.CodeMethodNotFound
	}
	return jsonrpc.CodeInternalError
}

// answerRequest returns the client's answer to one request of the server, in any version of the protocol.
func (c ClientFeatures) answerRequest(
	ctx context.Context, l *serverLink, method string, params json.RawMessage, peer *core.ClientPeer,
) (json.RawMessage, *core.Error) {
	if method == core.MethodElicit && !isForm(params) {
		return c.showPage(ctx, l, params, peer)
	}
	allowed := map[string]bool{core.MethodElicit: c.Elicit, core.MethodSample: c.Sample, methodRoots: len(c.Roots) > 0}
	switch {
	case !allowed[method]:
		return nil, core.Errorf(core.KindToolNotFound, "upstream.ask", "%s is not offered to this server", truncateText(method, 100))
	case method == methodRoots:
		return c.listRoots(), nil
	}
	e := core.Errorf(core.KindPolicy, "upstream.ask", "nobody can be asked: the client of this call does not support %s", method)
	if peer != nil && peer.Ask != nil {
		var result json.RawMessage
		if result, e = peer.Ask(ctx, core.ServerRequest{Method: method, Params: params}); e == nil {
			return result, nil
		}
	}
	if lacks := missingCapability(method, peer); lacks != nil {
		e.Err = lacks // it was asked all the same: that is in the record
	}
	return nil, e
}

// missingCapability returns the capability that a server's request needs and the client does not have, or nil.
func missingCapability(method string, peer *core.ClientPeer) *core.MissingCapability {
	switch {
	case method == core.MethodElicit && (peer == nil || !peer.Forms && !peer.Pages):
		return &core.MissingCapability{Elicitation: &struct{}{}}
	case method == core.MethodSample && (peer == nil || !peer.Samples):
		return &core.MissingCapability{Sampling: &struct{}{}}
	}
	return nil
}

// lackingCapability returns the client capability that a server of protocol version 2026-07-28 reports as missing, if
// the settings allow the server to use it.
func (c ClientFeatures) lackingCapability(failed error) *core.MissingCapability {
	var rpc *jsonrpc.Error
	var data struct {
		Required core.MissingCapability `json:"requiredCapabilities"`
	}
	if !errors.As(failed, &rpc) || rpc.Code != codeMissing || unmarshalExact(rpc.Data, &data) != nil {
		return nil
	}
	needs := &data.Required
	if !c.Elicit {
		needs.Elicitation = nil
	}
	if !c.Sample {
		needs.Sampling = nil
	}
	if *needs == (core.MissingCapability{}) {
		return nil
	}
	return needs
}

func isForm(params json.RawMessage) bool {
	var p struct {
		Mode string `json:"mode"`
		URL  string `json:"url"`
	}
	return unmarshalExact(params, &p) == nil && (p.Mode == "" || p.Mode == "form") && p.URL == ""
}

func (c ClientFeatures) listRoots() json.RawMessage {
	list := make([]map[string]string, len(c.Roots))
	for i, uri := range c.Roots {
		list[i] = map[string]string{"uri": uri}
	}
	text, _ := json.Marshal(map[string]any{"roots": list}) // strings always marshal
	return text
}

// noteServerRequest records that a request of the server is being answered; calling the function cancel stops that. A
// nil cancel means that the request was answered and removes the record.
func (l *serverLink) noteServerRequest(id jsonrpc.ID, cancel context.CancelFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cancel == nil {
		delete(l.asks, id)
	} else {
		l.asks[id] = cancel
	}
}

// cancelServerRequest handles the server's cancellation of one of its own requests.
func (l *serverLink) cancelServerRequest(params json.RawMessage) {
	var p struct {
		ID messageID `json:"requestId"`
	}
	if unmarshalExact(params, &p) != nil {
		return
	}
	l.mu.Lock()
	cancel := l.asks[p.ID.ID]
	l.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// soleCaller returns any one of the pending calls if all of them are made for the same client. Otherwise it returns
// nil.
func (l *serverLink) soleCaller() (sole *pendingCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.pending {
		switch {
		case x.peer == nil:
		case sole != nil && (sole.peer.ID != x.peer.ID || x.peer.ID == ""):
			return nil
		default:
			sole = x
		}
	}
	return sole
}

// replyToServer answers a request of the server. If the server does not read and many answers wait, further answers
// are dropped.
func (l *serverLink) replyToServer(req *jsonrpc.Request, result json.RawMessage, failed error) {
	resp := &jsonrpc.Response{ID: req.ID, Result: result, Error: failed}
	data, err := jsonrpc.EncodeMessage(resp)
	if err != nil {
		return
	}
	select {
	case l.answering <- struct{}{}:
	default:
		return
	}
	go func() {
		defer func() { <-l.answering }()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = l.wire.sendMessage(ctx, outgoingMessage{msg: resp, data: data})
	}()
}

// handleNotification handles a notification from the server. x is the call on whose stream it arrived, or nil if
// unknown.
func (l *serverLink) handleNotification(req *jsonrpc.Request, x *pendingCall) {
	switch req.Method {
	case methodAcknowledged:
		l.noteAcknowledged(req.Params)
	case methodListChanged:
		l.outdated.Store(true)
		l.changed()
	case methodCancelled:
		l.cancelServerRequest(req.Params)
	case methodElicited:
		l.noteCompletion(req.Params)
	case methodProgress:
		l.reportProgress(req.Params)
	case methodMessage:
		if x == nil || x.peer == nil {
			x = l.soleCaller()
		}
		if x != nil && x.peer.Log != nil {
			x.peer.Log(req.Params)
		}
	case methodResourceUpdated, methodResourcesChanged, methodPromptsChanged:
		if l.news != nil {
			l.news(req.Method, req.Params)
		}
	}
}

// reportProgress forwards a progress notification to the client of the call.
func (l *serverLink) reportProgress(params json.RawMessage) {
	var p struct {
		Token messageID `json:"progressToken"`
	}
	if unmarshalExact(params, &p) != nil {
		return
	}
	token, _ := p.Token.Raw().(string)
	l.mu.Lock()
	x := l.tokens[token]
	l.mu.Unlock()
	if x != nil && x.peer.Progress != nil {
		x.peer.Progress(params)
	}
}
