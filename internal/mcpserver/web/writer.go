package web

import (
	"net/http"
	"time"
)

// writer gives a client so long to accept each part of an answer, and tells once which
// headers the answer has.
type writer struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
	begins   func(http.Header)
}

func newWriter(w http.ResponseWriter, patience time.Duration) *writer {
	return &writer{ResponseWriter: w, control: http.NewResponseController(w), patience: patience}
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(status int) {
	w.begin()
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(p []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(p)
}

func (w *writer) Flush() { _ = w.FlushError() }

func (w *writer) FlushError() error {
	w.begin()
	return w.control.Flush()
}

func (w *writer) begin() {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.patience))
	if begins := w.begins; begins != nil {
		w.begins = nil
		begins(w.Header())
	}
}
