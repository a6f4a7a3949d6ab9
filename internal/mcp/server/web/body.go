package web

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"time"

	"retort/internal/mcp/server"
)

// readBody reads a request body within its size limit and makes it readable again for the next handler. If it returns
// false, it has answered the request.
func (l *Listener) readBody(w http.ResponseWriter, r *http.Request) (a server.MessageContent, ok bool) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		l.refuseRequest(w, r, http.StatusUnsupportedMediaType, "the Content-Type must be application/json")
		return a, false
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(l.Limits.Read))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, l.Limits.Body))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		l.refuseRequest(w, r, http.StatusRequestEntityTooLarge, "the request exceeds the setting http.maxBody")
		return a, false
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		l.refuseRequest(w, r, http.StatusRequestTimeout, "the request was not received in time")
		return a, false
	case err != nil:
		l.refuseRequest(w, r, http.StatusBadRequest, "the request arrived incomplete")
		return a, false
	}
	_ = control.SetReadDeadline(time.Time{})
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	a, refused := server.ExamineMessage(body)
	if refused != nil {
		l.Log.Info("refused", "status", http.StatusBadRequest, "why", refused.Error.Message, "from", r.RemoteAddr)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write(append(refused.ToJSON(), '\n'))
	}
	return a, refused == nil
}

// isSessionless reports whether a request belongs to a protocol version without sessions, according to its header or
// its body. If the header and the body contradict each other, the handler of the protocol refuses the request later.
func isSessionless(r *http.Request, a server.MessageContent) bool {
	return a.Modern || r.Header.Get(server.VersionHeader) >= server.Stateless
}
