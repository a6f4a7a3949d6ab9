package procgroup

import (
	"strings"
	"sync"
)

// maxHead is how many bytes a Head keeps.
const maxHead = 8 << 10

// Head keeps the first bytes that are written to it, of a guest's standard error: the message of
// a crash stands before its stack traces. The rest is taken and forgotten. It is safe for use by
// several goroutines.
type Head struct {
	mu   sync.Mutex
	text []byte
}

// Write never fails.
func (h *Head) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text = append(h.text, b[:min(len(b), maxHead-len(h.text))]...)
	return len(b), nil
}

// String is what was kept.
func (h *Head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.ToValidUTF8(string(h.text), "�")
}
