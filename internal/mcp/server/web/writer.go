package web

import (
	"net/http"
	"sync/atomic"
	"time"

	"retort/internal/core"
)

// writer gives a client so long to accept each part of an answer, and tells once which
// headers the answer has.
type writer struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
	begins   func(http.Header)
	permit   core.Permit // as long as which anything is written
	begun    atomic.Bool // something was
}

func newWriter(w http.ResponseWriter, patience time.Duration) *writer {
	return &writer{ResponseWriter: w, control: http.NewResponseController(w), patience: patience}
}

// Unwrap lets http.ResponseController find the underlying writer.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(status int) {
	if !w.begin() {
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(p []byte) (int, error) {
	if !w.begin() {
		return 0, core.ErrRevoked
	}
	return w.ResponseWriter.Write(p)
}

func (w *writer) Flush() { _ = w.FlushError() }

func (w *writer) FlushError() error {
	if !w.begin() {
		return core.ErrRevoked
	}
	return w.control.Flush()
}

// begin reports whether the client may be told anything still.
func (w *writer) begin() bool {
	if w.permit.Refused() != nil {
		return false
	}
	w.begun.Store(true)
	_ = w.control.SetWriteDeadline(time.Now().Add(w.patience))
	if begins := w.begins; begins != nil {
		w.begins = nil
		begins(w.Header())
	}
	return true
}
