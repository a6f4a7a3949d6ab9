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

// Client describes what a server may have from the client whose calls are made.
type Client struct {
	Elicit bool     // it may ask a person
	Sample bool     // it may use the client's model
	Roots  []string // URIs that it is told; none: it is told of no roots
}

func (c Client) capabilities() *mcp.ClientCapabilities {
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

// offered returns the same for a request that is made for peer, as 2026-07-28 has it.
func (c Client) offered(peer *core.Peer) map[string]any {
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

// maxAsks bounds the requests of a server that wait for a person at once.
const maxAsks = 8

// errUnanswered returns the error for a server whose request cannot be answered.
func errUnanswered(code int64, message string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: code, Message: message}
}

// ask answers a request of the server that needs the client. The client is that of the call on whose stream the
// request came. Without such a stream all pending calls must belong to the same client.
func (l *link) ask(req *jsonrpc.Request, x *exchange) {
	if x == nil {
		x = l.sources()
	}
	if x == nil {
		l.reply(req, nil, errUnanswered(jsonrpc.CodeInvalidRequest, "it can't be told for whom this is asked: no call is under way, or those of several clients are"))
		return
	}
	select {
	case l.asking <- struct{}{}:
	default:
		l.reply(req, nil, errUnanswered(jsonrpc.CodeInternalError, "too much is asked at once"))
		return
	}
	go func() {
		defer func() { <-l.asking }()
		ctx, cancel := context.WithCancel(x.ctx)
		defer cancel()
		defer context.AfterFunc(l.ctx, cancel)()
		l.asked(req.ID, cancel)
		defer l.asked(req.ID, nil)
		result, err := l.client.answer(ctx, l, req.Method, req.Params, x.peer)
		if err != nil {
			l.unopened(x, err)
			l.reply(req, nil, errUnanswered(codeOf(err), err.Message))
			return
		}
		l.reply(req, result, nil)
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

// answer returns the result of one request of the server, of either era.
func (c Client) answer(ctx context.Context, l *link, method string, params json.RawMessage, peer *core.Peer) (json.RawMessage, *core.Error) {
	if method == core.MethodElicit && !isForm(params) {
		return c.show(ctx, l, params, peer)
	}
	allowed := map[string]bool{core.MethodElicit: c.Elicit, core.MethodSample: c.Sample, methodRoots: len(c.Roots) > 0}
	switch {
	case !allowed[method]:
		return nil, core.Errorf(core.KindToolNotFound, "upstream.ask", "%s is not offered to this server", cut(method, 100))
	case method == methodRoots:
		return c.roots(), nil
	}
	e := core.Errorf(core.KindPolicy, "upstream.ask", "nobody can be asked: the client that this call is made for does not offer %s", method)
	if peer != nil && peer.Ask != nil {
		var result json.RawMessage
		if result, e = peer.Ask(ctx, core.Asked{Method: method, Params: params}); e == nil {
			return result, nil
		}
	}
	if lacks := missing(method, peer); lacks != nil {
		e.Err = lacks // it was asked all the same: that is in the record
	}
	return nil, e
}

// missing returns what a client does not offer that a request of a server needs; nil if it offers it.
func missing(method string, peer *core.Peer) *core.Missing {
	switch {
	case method == core.MethodElicit && (peer == nil || !peer.Forms && !peer.Pages):
		return &core.Missing{Elicitation: &struct{}{}}
	case method == core.MethodSample && (peer == nil || !peer.Samples):
		return &core.Missing{Sampling: &struct{}{}}
	}
	return nil
}

// lacking returns what a server of 2026-07-28 says that it needs of the client, of what it may have.
func (c Client) lacking(failed error) *core.Missing {
	var rpc *jsonrpc.Error
	var data struct {
		Required core.Missing `json:"requiredCapabilities"`
	}
	if !errors.As(failed, &rpc) || rpc.Code != codeMissing || unmarshal(rpc.Data, &data) != nil {
		return nil
	}
	needs := &data.Required
	if !c.Elicit {
		needs.Elicitation = nil
	}
	if !c.Sample {
		needs.Sampling = nil
	}
	if *needs == (core.Missing{}) {
		return nil
	}
	return needs
}

func isForm(params json.RawMessage) bool {
	var p struct {
		Mode string `json:"mode"`
		URL  string `json:"url"`
	}
	return unmarshal(params, &p) == nil && (p.Mode == "" || p.Mode == "form") && p.URL == ""
}

func (c Client) roots() json.RawMessage {
	list := make([]map[string]string, len(c.Roots))
	for i, uri := range c.Roots {
		list[i] = map[string]string{"uri": uri}
	}
	text, _ := json.Marshal(map[string]any{"roots": list}) // strings always marshal
	return text
}

// asked notes how a request of the server is cancelled; nil that it is answered.
func (l *link) asked(id jsonrpc.ID, cancel context.CancelFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cancel == nil {
		delete(l.asks, id)
	} else {
		l.asks[id] = cancel
	}
}

// taken handles a cancellation of one of the server's own requests.
func (l *link) taken(params json.RawMessage) {
	var p struct {
		ID any `json:"requestId"`
	}
	if unmarshal(params, &p) != nil {
		return
	}
	id, err := jsonrpc.MakeID(p.ID)
	l.mu.Lock()
	cancel := l.asks[id]
	l.mu.Unlock()
	if err == nil && cancel != nil {
		cancel()
	}
}

// sources returns a call under way if all are made for the same client, nil otherwise.
func (l *link) sources() (sole *exchange) {
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

// reply answers a request of the server. While many answers wait for a server that does not
// read, further ones are dropped.
func (l *link) reply(req *jsonrpc.Request, result json.RawMessage, failed error) {
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
		_ = l.wire.send(ctx, outgoing{msg: resp, data: data})
	}()
}

// heard takes in a notification; x is the call on whose stream it came, if that is known.
func (l *link) heard(req *jsonrpc.Request, x *exchange) {
	switch req.Method {
	case methodAcknowledged:
		l.acknowledged(req.Params)
	case methodListChanged:
		l.outdated.Store(true)
		l.changed()
	case methodCancelled:
		l.taken(req.Params)
	case methodElicited:
		l.completed(req.Params)
	case methodProgress:
		l.progressed(req.Params)
	case methodMessage:
		if x == nil || x.peer == nil {
			x = l.sources()
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

// progressed forwards a progress notification to the client of the call.
func (l *link) progressed(params json.RawMessage) {
	var p struct {
		Token any `json:"progressToken"`
	}
	if unmarshal(params, &p) != nil {
		return
	}
	token, _ := p.Token.(string)
	l.mu.Lock()
	x := l.tokens[token]
	l.mu.Unlock()
	if x != nil && x.peer.Progress != nil {
		x.peer.Progress(params)
	}
}
