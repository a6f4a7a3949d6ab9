package pipeline

import (
	"context"
	"sync"

	"retort/internal/core"
	"retort/internal/sandbox"
)

// programHalt ends a running program when a person denies what it needs, or nobody answers. The program cannot catch
// this: if it could, a loop around a refused call would skip that call without anybody noticing. The zero value is
// ready for use. It is safe for concurrent use.
type programHalt struct {
	mu     sync.Mutex
	stop   func()      // ends the program; nil while no program runs
	reason *core.Error // why the program ends; nil while it may go on
	sent   int         // calls with effects that have no answer yet
	ending bool        // stop was called
}

// begin notes that a program runs, which stop ends.
func (h *programHalt) begin(stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stop = stop
}

// why returns the refusal because of which the program ends, or nil.
func (h *programHalt) why() *core.Error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reason
}

// isRunning reports whether a program runs.
func (h *programHalt) isRunning() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stop != nil
}

// refuse ends the running program because a person refused something that it needs. The program ends as soon as
// servers have answered the calls with effects that were already sent, so that it is known what these did. refuse does
// not wait for that.
func (h *programHalt) refuse(refused *core.Error) {
	h.mu.Lock()
	if h.reason == nil {
		h.reason = refused
	}
	h.endIfIdle()
	h.mu.Unlock()
}

// endIfIdle ends the program if it must end and all calls with effects are answered. The caller must hold mu.
func (h *programHalt) endIfIdle() {
	if h.reason != nil && h.sent == 0 && !h.ending {
		h.ending = true
		h.stop()
	}
}

// admitCall admits a call that is about to be sent. It returns an error if the program must end; the call must then not
// be sent. Otherwise release must be called when the call has ended.
func (h *programHalt) admitCall(effect core.EffectKind) (release func(), refused *core.Error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.reason != nil:
		return nil, h.reason
	case effect == core.EffectRead:
		return func() {}, nil // the program may end before its answer
	}
	h.sent++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.sent--
		h.endIfIdle()
	}, nil
}

// waitIfEnding returns nil if the program may go on. If the program must end, it waits until ctx, the context of one of
// the program's calls, ends, and returns an error. So the program cannot react.
func (h *programHalt) waitIfEnding(ctx context.Context) *core.Error {
	refused := h.why()
	if refused == nil {
		return nil
	}
	<-ctx.Done()
	return core.Errorf(core.KindCancelled, "pipeline.halt", "the program has ended: %s", refused.Message)
}

// guardHost wraps the host of a program. Once the program must end, its calls wait for that end.
func (h *programHalt) guardHost(next sandbox.ToolHost) sandbox.ToolHost {
	return sandbox.HostFunc(func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
		if ended := h.waitIfEnding(ctx); ended != nil {
			return core.CallResult{}, ended
		}
		return next.Call(ctx, c)
	})
}
