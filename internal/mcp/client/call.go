package client

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
)

//lint:file-ignore SA1019 roots, sampling and logging are passed on between those who have them; only 2026-07-28 gives them up

// cancelTimeout bounds the time in which a server must accept the message that cancels a call.
const cancelTimeout = 5 * time.Second

// callMethod makes one call without the SDK and returns its result exactly as received. x tracks the call. If ctx
// ends first, the call is cancelled at the server.
func (l *serverLink) callMethod(ctx context.Context, x *pendingCall, method string, params json.RawMessage) (_ json.RawMessage, err error) {
	x.method, x.answered = method, make(chan struct{})
	l.registerCall(x)
	defer func() {
		if err != nil {
			l.dropCall(x)
		}
		l.forgetCall(x)
	}()
	req := &jsonrpc.Request{ID: x.id, Method: method, Params: params}
	if err := l.wire.sendMessage(ctx, outgoingMessage{msg: req, data: encodeCall(req), call: x}); err != nil {
		return nil, err
	}
	select {
	case <-x.answered:
	case <-ctx.Done():
		go l.cancelExchange(x, ctx.Err())
		return nil, ctx.Err()
	case <-l.ctx.Done():
		select {
		case <-x.answered:
		default:
			return nil, l.cause
		}
	}
	if err := l.admitAnswer(ctx, x); err != nil {
		return nil, err
	}
	return x.result, x.err
}

// cancelExchange tells the server that the result of the call x is no longer needed.
func (l *serverLink) cancelExchange(x *pendingCall, reason error) {
	ctx, stop := context.WithTimeout(context.Background(), cancelTimeout)
	defer stop()
	params, err := json.Marshal(mcp.CancelledParams{Reason: reason.Error(), RequestID: x.id.Raw()})
	if err != nil {
		return
	}
	msg := &jsonrpc.Request{Method: methodCancelled, Params: params}
	if data, err := jsonrpc.EncodeMessage(msg); err == nil {
		_ = l.wire.sendMessage(ctx, outgoingMessage{msg: msg, data: data})
	}
}

// encodeCall encodes a call like jsonrpc.EncodeMessage. The call must have an id, and its params must be valid JSON
// on one line.
func encodeCall(req *jsonrpc.Request) []byte {
	id, _ := req.ID.Raw().(int64)
	b := make([]byte, 0, len(req.Params)+len(req.Method)+80) // with room for the newline
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, `,"method":"`...)
	b = append(b, req.Method...)
	b = append(b, `","params":`...)
	b = append(b, req.Params...)
	return append(b, '}')
}

// callParams returns the params of tools/call. args and meta must be valid JSON; meta may be empty.
func callParams(meta json.RawMessage, tool string, args json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	b.Grow(len(meta) + len(tool) + len(args) + 40)
	b.WriteByte('{')
	if len(meta) > 0 {
		b.WriteString(`"_meta":`)
		b.Write(meta)
		b.WriteByte(',')
	}
	b.WriteString(`"name":`)
	b.Write(quoteJSON(tool))
	b.WriteString(`,"arguments":`)
	_ = json.Compact(&b, args) // a newline would end the message
	b.WriteByte('}')
	return b.Bytes()
}

// withTrace adds the trace context of the call to meta, which is a JSON object or empty.
func withTrace(meta json.RawMessage, t core.TraceContext) json.RawMessage {
	if t.Parent == "" {
		return meta
	}
	b := append([]byte(`{"traceparent":`), quoteJSON(t.Parent)...)
	if t.State != "" {
		b = append(append(b, `,"tracestate":`...), quoteJSON(t.State)...)
	}
	if len(meta) == 0 {
		return append(b, '}')
	}
	return append(append(b, ','), meta[1:]...)
}

// quoteJSON returns s as a JSON string.
func quoteJSON(s string) []byte {
	text, _ := json.Marshal(s) // strings always marshal
	return text
}

// listParams returns the params of tools/list.
func listParams(meta json.RawMessage, cursor string) json.RawMessage {
	params, _ := json.Marshal(struct { // which always marshals
		Meta   json.RawMessage `json:"_meta,omitempty"`
		Cursor string          `json:"cursor,omitempty"`
	}{meta, cursor})
	return params
}

// requestMeta returns the _meta that every request has since protocol version 2026-07-28, or nil for older versions.
// level is the lowest level of log messages that the client wants; "" means none.
func requestMeta(client *mcp.Implementation, protocol string, offered map[string]any, level string) json.RawMessage {
	if protocol < protocolModern {
		return nil
	}
	if offered == nil {
		offered = map[string]any{}
	}
	m := mcp.Meta{mcp.MetaKeyProtocolVersion: protocol, mcp.MetaKeyClientInfo: client, mcp.MetaKeyClientCapabilities: offered}
	if level != "" {
		m[mcp.MetaKeyLogLevel] = level
	}
	meta, _ := json.Marshal(m) // strings always marshal
	return meta
}
