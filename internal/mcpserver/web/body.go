package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"time"

	"retort/internal/mcpserver"
)

// versionKey is where a message of the newer era says its version.
const versionKey = "io.modelcontextprotocol/protocolVersion"

// asked is what a request holds, as far as it must be known here.
type asked struct {
	messages int
	calls    int  // of tools
	begins   bool // a session
	modern   bool // by its body
}

// read takes in a body, within its bounds, and puts it back for who answers. It answers
// itself if it reports false.
func (l *Listener) read(w http.ResponseWriter, r *http.Request) (a asked, ok bool) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		l.refuse(w, r, http.StatusUnsupportedMediaType, "the Content-Type must be application/json")
		return a, false
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(l.Limits.Read))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, l.Limits.Body))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		l.refuse(w, r, http.StatusRequestEntityTooLarge, "the request is larger than http.maxBody")
		return a, false
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		l.refuse(w, r, http.StatusRequestTimeout, "the request took too long to arrive")
		return a, false
	case err != nil:
		l.refuse(w, r, http.StatusBadRequest, "the request did not arrive whole")
		return a, false
	}
	_ = control.SetReadDeadline(time.Time{})
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	a, ok = look(body)
	if !ok {
		l.refuse(w, r, http.StatusBadRequest, "the request is no JSON-RPC message")
	}
	return a, ok
}

// look reads as much of a body as decides where it goes. What it takes for no message is
// none for anybody: keys count as they are spelled, and the last of equal ones.
func look(body []byte) (a asked, ok bool) {
	messages := []json.RawMessage{body}
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		if json.Unmarshal(body, &messages) != nil || len(messages) == 0 || len(messages) > maxBatch {
			return a, false
		}
	}
	for _, m := range messages {
		var message, params, meta map[string]json.RawMessage
		if json.Unmarshal(m, &message) != nil || message == nil {
			return a, false
		}
		_ = json.Unmarshal(message["params"], &params) // what is no object says nothing
		_ = json.Unmarshal(params["_meta"], &meta)
		var method string
		_ = json.Unmarshal(message["method"], &method)
		a.messages++
		if method == "tools/call" {
			a.calls++
		}
		a.begins = a.begins || method == "initialize"
		if _, ok := meta[versionKey]; ok {
			a.modern = true
		}
	}
	return a, true
}

// modern reports whether a request is of the era without sessions: by its header, or by
// its body, which must then agree with the header.
func modern(r *http.Request, a asked) bool {
	return a.modern || r.Header.Get(mcpserver.VersionHeader) >= mcpserver.Stateless
}
