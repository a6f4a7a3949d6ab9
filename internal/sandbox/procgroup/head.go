package procgroup

import (
	"strings"
	"sync"
)

// maxHead bounds the number of bytes that a StderrHead keeps.
const maxHead = 8 << 10

// StderrHead implements an io.Writer that keeps the first bytes of a guest's standard error and discards the rest.
// The first bytes matter most, because the message of a crash precedes its stack traces. It is safe for concurrent
// use.
type StderrHead struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer. It never returns an error.
func (h *StderrHead) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text = append(h.text, b[:min(len(b), maxHead-len(h.text))]...)
	return len(b), nil
}

// String returns the bytes that the StderrHead has kept.
func (h *StderrHead) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.ToValidUTF8(string(h.text), "�")
}
