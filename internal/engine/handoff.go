package engine

import "sync"

// handoff passes values to a receiver that is created after their sender. It keeps the values that are sent before
// deliverTo names the receiver. The zero value is ready to use.
type handoff[T any] struct {
	mu      sync.Mutex
	held    []T
	receive func(T) // nil until deliverTo is called
}

// send passes a value to the receiver. If there is no receiver yet, it keeps the value for deliverTo.
func (h *handoff[T]) send(v T) {
	h.mu.Lock()
	receive := h.receive
	if receive == nil {
		h.held = append(h.held, v)
	}
	h.mu.Unlock()
	if receive != nil {
		receive(v)
	}
}

// deliverTo sets the receiver and passes it the values that were kept. It must be called once.
func (h *handoff[T]) deliverTo(receive func(T)) {
	h.mu.Lock()
	held := h.held
	h.held, h.receive = nil, receive
	h.mu.Unlock()
	for _, v := range held {
		receive(v)
	}
}
