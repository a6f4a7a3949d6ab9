package relay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"retort/internal/core"
)

// RawRequester is an Upstream that can also send MCP requests other than tool calls. It returns results exactly as
// received.
type RawRequester interface {
	Request(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error)
}

// callExact makes a call for an execution whose field Exact is set. It returns the server's MCP result with personal
// data hidden.
func (r *Relay) callExact(ctx context.Context, x ExecutionContext, c core.ToolCall) (core.CallResult, error) {
	answer, err := r.sendRequest(ctx, x, c)
	if err != nil {
		return core.CallResult{}, core.AsError(err).AtTool(c.Server, c.Tool)
	}
	if x.Privacy == nil {
		return core.CallResult{Value: answer}, nil
	}
	hidden, err := HideAround(answer, func(document []byte) ([]byte, error) { return x.Privacy.Incoming(c.Server, document) })
	if err != nil {
		return core.CallResult{}, unhiddenError("the answer was withheld", err)
	}
	return core.CallResult{Value: hidden}, nil
}

func (r *Relay) sendRequest(ctx context.Context, x ExecutionContext, c core.ToolCall) (json.RawMessage, error) {
	if x.Method == "" {
		return r.upstream.Call(ctx, c.Server, c.Tool, c.Arguments)
	}
	u, ok := r.upstream.(RawRequester)
	if !ok {
		return nil, core.Errorf(core.KindInternal, "relay.exact", "%s cannot be sent", x.Method)
	}
	return u.Request(ctx, c.Server, x.Method, c.Arguments)
}

// HideAround applies hide to the JSON and the texts of an MCP result or of a request's params. It does not change
// base64 strings that contain binary data, such as images: they hold no readable personal data, and a change would
// corrupt them.
func HideAround(document json.RawMessage, hide func([]byte) ([]byte, error)) (json.RawMessage, error) {
	spans := findBinary(document)
	for i, s := range spans {
		if s.data == nil {
			continue
		}
		hidden, as, err := hideBytes(s.mimeType, s.data, hide)
		if err != nil {
			return nil, err
		}
		spans[i].data = hidden
		if as != nil { // use the original encoding again, because the MIME type may name it
			if again, err := as.NewEncoder().Bytes(hidden); err == nil {
				spans[i].data = again
			}
		}
	}
	shown, err := hide(fillSpans(document, spans, func(byteSpan) []byte { return nil }))
	if err != nil {
		return nil, err
	}
	again := findBinary(shown)
	if len(again) != len(spans) {
		return nil, core.Errorf(core.KindInternal, "relay.exact", "the text around the bytes of the answer is personal")
	}
	for i := range again {
		again[i].data = spans[i].data
	}
	return fillSpans(shown, again, func(s byteSpan) []byte { return []byte(base64.StdEncoding.EncodeToString(s.data)) }), nil
}

// byteSpan locates a string with base64 data in a JSON document.
type byteSpan struct {
	from, to int    // within the quotes
	data     []byte // nil: it is no base64, or empty
	mimeType string // MIME type of the data, or ""
}

// fillSpans returns a copy of the document in which each base64 string has new content. The function in the argument
// with returns the new content of a string. Strings whose decoded data is nil stay unchanged.
func fillSpans(document []byte, spans []byteSpan, with func(byteSpan) []byte) []byte {
	var out bytes.Buffer
	at := 0
	for _, s := range spans {
		if s.data != nil {
			out.Write(document[at:s.from])
			out.Write(with(s))
			at = s.to
		}
	}
	out.Write(document[at:])
	return out.Bytes()
}

// binaryPaths lists where results of tools/call, resources/read and prompts/get, and the sampling requests of
// servers, contain base64 data. * stands for any index.
var binaryPaths = []string{
	"content.*.data", "content.*.resource.blob", "contents.*.blob", "content.data", "content.resource.blob",
	"messages.*.content.data", "messages.*.content.resource.blob", "messages.*.content.*.data", "messages.*.content.*.resource.blob",
}

// longestPath is the maximum number of steps in one of binaryPaths.
const longestPath = 6

// findBinary returns the base64 strings at binaryPaths, in the order of the document.
func findBinary(document []byte) []byteSpan {
	if !bytes.Contains(document, []byte(`"data"`)) && !bytes.Contains(document, []byte(`"blob"`)) {
		return nil
	}
	w := spanWalker{document: document, dec: json.NewDecoder(bytes.NewReader(document))}
	w.dec.UseNumber()
	w.walkValue(nil)
	return w.found
}

type spanWalker struct {
	document []byte
	dec      *json.Decoder
	found    []byteSpan
	last     string // the last string value that was read
}

// walkValue reads one JSON value, with all values in it, and collects the base64 strings. way is the path of the value
// in the document. It skips values deeper than longestPath, so that deeply nested documents do not need much stack. It
// returns false at the end of the document or at a syntax error.
func (w *spanWalker) walkValue(way []string) bool {
	token, err := w.dec.Token()
	if err != nil {
		return false
	}
	switch t := token.(type) {
	case string:
		w.last = t
		if slices.Contains(binaryPaths, strings.Join(way, ".")) {
			w.found = append(w.found, w.lastSpan(t))
		}
	case json.Delim:
		if len(way) >= longestPath {
			return w.skipRest()
		}
		first, mimeType := len(w.found), ""
		for w.dec.More() {
			step := "*"
			if t == '{' {
				key, err := w.dec.Token()
				if err != nil {
					return false
				}
				step, _ = key.(string)
			}
			if w.last = ""; !w.walkValue(append(way, step)) {
				return false
			}
			if step == "mimeType" {
				mimeType = w.last
			}
		}
		for i := first; i < len(w.found); i++ {
			w.found[i].mimeType = cmp.Or(w.found[i].mimeType, mimeType)
		}
		_, err = w.dec.Token()
		return err == nil
	}
	return true
}

// skipRest reads up to the end of the object or array whose beginning was just read. It returns false at a syntax
// error.
func (w *spanWalker) skipRest() bool {
	for depth := 1; depth > 0; {
		token, err := w.dec.Token()
		if err != nil {
			return false
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	return true
}

// lastSpan returns the position and the decoded data of the string that was just read.
func (w *spanWalker) lastSpan(value string) byteSpan {
	s := byteSpan{to: int(w.dec.InputOffset()) - 1}
	s.from = bytes.LastIndexByte(w.document[:s.to], '"') + 1
	data, err := base64.StdEncoding.DecodeString(value)
	if err != nil || len(data) == 0 || string(w.document[s.from:s.to]) != value {
		return s // with an escape in it, it is looked at as a text
	}
	s.data = data
	return s
}
