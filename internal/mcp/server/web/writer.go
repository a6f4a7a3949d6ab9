package web

import (
	"net/http"
	"sync/atomic"
	"time"

	"retort/internal/core"
)

// permittedWriter writes an answer to a client. It bounds how long the client may take to accept each piece of the
// answer, and stops when the client's permission ends.
type permittedWriter struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
	begins   func(http.Header)
	permit   core.Permit // permission of the client; nothing is written after it has ended
	begun    atomic.Bool // something was written already
}

func newWriter(w http.ResponseWriter, patience time.Duration) *permittedWriter {
	return &permittedWriter{ResponseWriter: w, control: http.NewResponseController(w), patience: patience}
}

// Unwrap lets http.ResponseController find the underlying writer.
func (w *permittedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *permittedWriter) WriteHeader(status int) {
	if !w.mayWrite() {
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *permittedWriter) Write(p []byte) (int, error) {
	if !w.mayWrite() {
		return 0, core.ErrRevoked
	}
	return w.ResponseWriter.Write(p)
}

func (w *permittedWriter) Flush() { _ = w.FlushError() }

func (w *permittedWriter) FlushError() error {
	if !w.mayWrite() {
		return core.ErrRevoked
	}
	return w.control.Flush()
}

// mayWrite reports whether the client is still permitted to receive data, and extends the write deadline.
func (w *permittedWriter) mayWrite() bool {
	if w.permit.CheckValid() != nil {
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
