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

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

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
	a, refused := look(body)
	if refused != nil {
		l.Log.Info("refused", "status", http.StatusBadRequest, "why", refused.Error.Message, "from", r.RemoteAddr)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write(append(refused.Text(), '\n'))
	}
	return a, refused == nil
}

// look reads as much of a body as decides where it goes. What it takes for no message is
// none for anybody: keys count as they are spelled, and the last of equal ones.
func look(body []byte) (a asked, refused *mcpserver.Refusal) {
	messages, refused := mcpserver.SplitBatch(body)
	if refused != nil {
		return a, refused
	}
	for _, text := range messages {
		m, refused := mcpserver.ParseMessage(text)
		if refused != nil {
			return a, refused
		}
		a.messages++
		if r, ok := m.(*jsonrpc.Request); ok {
			a.add(r)
		}
	}
	return a, nil
}

// add counts a request.
func (a *asked) add(r *jsonrpc.Request) {
	var params, meta map[string]json.RawMessage
	_ = json.Unmarshal(r.Params, &params) // what is no object says nothing
	_ = json.Unmarshal(params["_meta"], &meta)
	if r.Method == "tools/call" {
		a.calls++
	}
	a.begins = a.begins || r.Method == "initialize"
	if _, ok := meta[versionKey]; ok {
		a.modern = true
	}
}

// modern reports whether a request is of the era without sessions: by its header, or by
// its body, which must then agree with the header.
func modern(r *http.Request, a asked) bool {
	return a.modern || r.Header.Get(mcpserver.VersionHeader) >= mcpserver.Stateless
}
