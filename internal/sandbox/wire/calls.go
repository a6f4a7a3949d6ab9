package wire

import (
	"context"
	"sync"

	"retort/internal/core"
)

// CallHost answers the calls of a program. Its errors are *core.Error.
type CallHost interface {
	Call(ctx context.Context, c core.ToolCall) (core.CallResult, error)
}

// maxIdleWorkers bounds the worker goroutines that wait for the next call. Reusing a worker is cheaper than starting
// a new one: the stack of a new goroutine must first grow, which costs more than the rest of a call.
const maxIdleWorkers = 8

// maxPending bounds the memory of waiting and running calls, in bytes. While they exceed it, the host does not read
// from the guest.
const maxPending = 128 << 20

type hostCall struct {
	id     uint32
	resume func() // called when the call has ended
	core.ToolCall
}

// callSize returns the approximate memory of a waiting call, in bytes.
func (c hostCall) callSize() int {
	const itself = 512
	return itself + len(c.Arguments)
}

// callQueue passes the calls of one program to its host. A limited number run concurrently, and the others wait in
// order.
type callQueue struct {
	ctx    context.Context // parent of the context of every call; when it ends, all calls are cancelled
	host   CallHost
	most   int // maximum number of calls that run concurrently
	answer func(id uint32, r core.CallResult, err error)

	mu      sync.Mutex
	room    sync.Cond // signalled when bytes shrinks, so that a blocked submitCall can continue
	waiting []hostCall
	running int
	bytes   int
	idle    int           // number of worker goroutines that have no call
	next    chan hostCall // carries calls to idle workers
	workers sync.WaitGroup
}

func newCalls(ctx context.Context, host CallHost, most int, answer func(uint32, core.CallResult, error)) *callQueue {
	c := &callQueue{ctx: ctx, host: host, most: most, answer: answer, next: make(chan hostCall, maxIdleWorkers)}
	c.room.L = &c.mu
	context.AfterFunc(ctx, c.room.Broadcast)
	return c
}

// submitCall starts a call or queues it. It blocks while the pending calls use too much memory.
func (c *callQueue) submitCall(next hostCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.bytes > 0 && c.bytes+next.callSize() > maxPending && c.ctx.Err() == nil {
		c.room.Wait()
	}
	c.bytes += next.callSize()
	if c.running >= c.most {
		c.waiting = append(c.waiting, next)
		return
	}
	c.running++
	if c.idle > 0 {
		c.idle--
		c.next <- next
		return
	}
	c.workers.Go(func() { c.runCalls(next) })
}

func (c *callQueue) runCalls(next hostCall) {
	for more := true; more; next, more = c.nextCall(next) {
		if c.ctx.Err() != nil {
			continue
		}
		result, err := c.host.Call(c.ctx, next.ToolCall)
		next.resume()
		c.answer(next.id, result, err)
	}
}

// nextCall records that a worker's call has ended and returns the worker's next call. It may wait for that call. It
// returns false if no call is left for the worker, which should then end.
func (c *callQueue) nextCall(ended hostCall) (next hostCall, more bool) {
	next, more, idle := c.finishCall(ended)
	if idle {
		next, more = <-c.next
	}
	return next, more
}

func (c *callQueue) finishCall(ended hostCall) (next hostCall, more, idle bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes -= ended.callSize()
	c.room.Broadcast()
	if len(c.waiting) > 0 {
		next = c.waiting[0]
		c.waiting = c.waiting[1:]
		return next, true, false
	}
	c.running--
	if c.idle == maxIdleWorkers {
		return hostCall{}, false, false
	}
	c.idle++
	return hostCall{}, false, true
}

// hasCalls reports whether any call is running or waiting.
func (c *callQueue) hasCalls() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running > 0
}

// waitIdle waits until no call is running. The context must have ended, and no call may be submitted any more.
func (c *callQueue) waitIdle() {
	close(c.next)
	c.workers.Wait()
}
