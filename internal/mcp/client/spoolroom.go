package client

import (
	"context"
	"slices"
	"sync"
	"time"

	"retort/internal/base/memory"
)

const (
	// spoolStall bounds how long a message waits for disk space without any progress: no other message is completed or
	// frees space, and the first message in the queue does not take more of the reserve. This bound is reached only if
	// a server stops sending in the middle of a message.
	spoolStall = 30 * time.Second
	// reserveStep is the number of bytes that a message takes from the reserve at a time.
	reserveStep = 1 << 20
)

// spoolRoom divides the disk space for large messages. If several messages arrive at the same time, each could take part
// of the space and wait for more, so that none could ever be completed. Therefore, messages may grow side by side only
// while at least half of the space is free. When less is free, they wait in a queue, and only the first message in the
// queue grows. Only this message may use the reserve, which is the last quarter of the space. Once it is complete and
// has been read, its space is freed for the next message. A message that is not larger than the reserve can always be
// completed in this way. A larger one can fail if the others hold too much of the space.
type spoolRoom struct {
	total   int64              // bytes of shared and reserve together
	shared  *memory.MemoryPool // space for all messages
	reserve *memory.MemoryPool // space for the first message of the queue

	mu       sync.Mutex
	arriving int           // number of incomplete messages that do not wait for space
	complete int           // number of complete messages, which will free their space
	queue    []*spoolHold  // messages that have waited for space, in order; each stays until it frees its space
	changed  chan struct{} // closed and replaced by a new channel whenever a waiting message should try again
	progress int           // number of times that a message was completed, freed its space or grew from the reserve
}

// newSpoolRoom returns a spoolRoom of total bytes. first is the number of bytes that each message takes at its start.
func newSpoolRoom(total, first int64) *spoolRoom {
	reserved := total / 4
	return &spoolRoom{
		total: total, shared: memory.NewPool(total-reserved, max(total/4, first)), reserve: memory.NewPool(reserved, reserved),
		changed: make(chan struct{}),
	}
}

// UsedBytes returns the number of bytes that all messages hold.
func (r *spoolRoom) UsedBytes() int64 { return r.shared.UsedBytes() + r.reserve.UsedBytes() }

// spoolHold is the disk space of one message. A nil spoolHold holds nothing.
type spoolHold struct {
	room            *spoolRoom
	server          string
	shared, reserve *memory.MemoryHold
	bytes           int64 // number of bytes held

	state  holdState // guarded by room.mu
	queued bool      // the message is in room.queue; guarded by room.mu
}

// holdState says what a message does with its disk space.
type holdState int

const (
	holdArriving holdState = iota // the message is incomplete and does not wait
	holdWaiting                   // the message is incomplete and waits for space
	holdComplete                  // the message is complete
	holdFreed                     // the space is free again
)

// takeFirst waits for n bytes of space for the beginning of a message from server, and takes them. If ctx ends first, it
// returns the cause of ctx (context.Cause). If there is no progress for spoolStall, it returns errSpoolFull.
func (r *spoolRoom) takeFirst(ctx context.Context, server string, n int64) (*spoolHold, error) {
	n = min(n, r.total-r.total/4)
	held, ok := r.shared.TryTake(server, n)
	if !ok {
		wait, cancel := context.WithCancelCause(ctx)
		go r.cancelStalled(wait, cancel)
		var err error
		held, err = r.shared.TakeBytes(wait, server, n)
		cancel(nil)
		if err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.arriving++
	return &spoolHold{room: r, server: server, shared: held, bytes: n}, nil
}

// cancelStalled calls cancel with errSpoolFull when there was no progress for spoolStall. It returns when ctx ends.
func (r *spoolRoom) cancelStalled(ctx context.Context, cancel context.CancelCauseFunc) {
	stalled := time.NewTimer(spoolStall)
	defer stalled.Stop()
	for {
		changed, before := r.watchRoom()
		select {
		case <-changed:
			r.resetAfterProgress(stalled, before)
		case <-stalled.C:
			cancel(errSpoolFull)
		case <-ctx.Done():
			return
		}
	}
}

// watchRoom returns a channel that is closed at the next change, and the progress so far.
func (r *spoolRoom) watchRoom() (changed <-chan struct{}, progress int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed, r.progress
}

// resetAfterProgress sets the timer to spoolStall again if there was progress since before.
func (r *spoolRoom) resetAfterProgress(stalled *time.Timer, before int) {
	if _, now := r.watchRoom(); now != before {
		stalled.Reset(spoolStall)
	}
}

// growTo waits until the message may use n bytes in total, and then returns true. It returns false if ctx ends, if the
// message could never fit, if there is no other message that could free space, or if there is no progress for
// spoolStall.
func (h *spoolHold) growTo(ctx context.Context, n int64) bool {
	switch {
	case h == nil || n > h.room.total:
		return false
	case h.tryGrowTo(n):
		return true
	}
	h.joinQueue()
	stalled := time.NewTimer(spoolStall)
	defer stalled.Stop()
	for {
		changed, before := h.room.watchRoom()
		mayWait := h.mayWait()
		if h.tryGrowTo(n) {
			h.leaveWait()
			return true
		}
		if !mayWait {
			return false
		}
		select {
		case <-changed:
			h.room.resetAfterProgress(stalled, before)
		case <-stalled.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// tryGrowTo takes space until the message holds n bytes. The first message of the queue takes what there is, and keeps
// it even if it is not enough. tryGrowTo reports whether the message now holds n bytes.
func (h *spoolHold) tryGrowTo(n int64) bool {
	if n <= h.bytes {
		return true
	}
	r := h.room
	r.mu.Lock()
	defer r.mu.Unlock()
	first := len(r.queue) > 0 && r.queue[0] == h
	if !first && r.shared.UsedBytes()+n-h.bytes > r.total/2 {
		return false
	}
	h.bytes += h.shared.ExtendUpTo(n - h.bytes)
	if first && n > h.bytes {
		h.growFromReserve(n - h.bytes)
	}
	return n <= h.bytes
}

// growFromReserve takes up to n bytes from the reserve, rounded up to reserveStep. The caller must hold room.mu.
func (h *spoolHold) growFromReserve(n int64) {
	if h.reserve == nil {
		h.reserve, _ = h.room.reserve.TryTake(h.server, 0)
	}
	if more := h.reserve.ExtendUpTo(max(n, reserveStep)); more > 0 {
		h.bytes += more
		h.room.progress++
		h.room.wakeWaiting()
	}
}

// joinQueue appends the message to the queue, unless it is in the queue already.
func (h *spoolHold) joinQueue() {
	r := h.room
	r.mu.Lock()
	defer r.mu.Unlock()
	h.setState(holdWaiting)
	if !h.queued {
		h.queued, r.queue = true, append(r.queue, h)
	}
}

// leaveWait records that the message has got space and arrives again. It keeps its place in the queue.
func (h *spoolHold) leaveWait() {
	h.room.mu.Lock()
	defer h.room.mu.Unlock()
	h.setState(holdArriving)
}

// mayWait reports whether it makes sense to wait for space. It does not if all incomplete messages wait, and this one is
// the first of them.
func (h *spoolHold) mayWait() bool {
	r := h.room
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.queue[0] != h || r.complete > 0 || r.arriving > 0
}

// finish records that the message is complete, and frees the space that it does not need.
func (h *spoolHold) finish(size int64) {
	if surplus := h.bytes - size; surplus > 0 { // the reserve is freed first
		h.bytes = size
		reserved := h.reserve.Amount()
		h.reserve.Shrink(reserved - surplus)
		h.shared.Shrink(h.shared.Amount() - max(0, surplus-reserved))
	}
	h.room.mu.Lock()
	defer h.room.mu.Unlock()
	h.setState(holdComplete)
}

// Free frees the space. It is idempotent.
func (h *spoolHold) Free() {
	if h == nil {
		return
	}
	h.reserve.Free()
	h.shared.Free()
	h.room.mu.Lock()
	defer h.room.mu.Unlock()
	h.setState(holdFreed)
}

// setState changes the state of the message, and wakes waiting messages. The caller must hold room.mu.
func (h *spoolHold) setState(to holdState) {
	r := h.room
	count := func(state holdState, n int) {
		switch state {
		case holdArriving:
			r.arriving += n
		case holdComplete:
			r.complete += n
		}
	}
	if h.state == holdFreed || h.state == to {
		return
	}
	count(h.state, -1)
	count(to, 1)
	h.state = to
	if to == holdComplete || to == holdFreed {
		r.progress++
	}
	if to == holdFreed && h.queued {
		r.queue = slices.DeleteFunc(r.queue, func(o *spoolHold) bool { return o == h })
	}
	r.wakeWaiting()
}

// wakeWaiting makes the waiting messages try again. The caller must hold mu.
func (r *spoolRoom) wakeWaiting() {
	close(r.changed)
	r.changed = make(chan struct{})
}
