package wire

import (
	"context"
	"sync"

	"retort/internal/core"
)

// Host answers the calls of a program; its errors are *core.Error.
type Host interface {
	Call(ctx context.Context, c core.Call) (core.Result, error)
}

// maxIdle bounds the workers that stay for the next call. A worker that has made a call has a grown stack, and
// growing another would cost more than everything else here.
const maxIdle = 8

// maxPending bounds the memory of the calls that wait or are in progress. While they exceed it, the guest is not
// read.
const maxPending = 128 << 20

type call struct {
	id     uint32
	resume func() // is called when the call has ended
	core.Call
}

// size returns the approximate memory of a waiting call, in bytes.
func (c call) size() int {
	const itself = 512
	return itself + len(c.Arguments)
}

// calls passes the calls of one program to its host. A bounded number run concurrently; the others wait in order.
type calls struct {
	ctx    context.Context // ends every call
	host   Host
	most   int // concurrent calls
	answer func(id uint32, r core.Result, err error)

	mu      sync.Mutex
	room    sync.Cond // signalled when bytes shrinks
	waiting []call
	running int
	bytes   int
	idle    int       // workers without a call
	next    chan call // for idle workers
	workers sync.WaitGroup
}

func newCalls(ctx context.Context, host Host, most int, answer func(uint32, core.Result, error)) *calls {
	c := &calls{ctx: ctx, host: host, most: most, answer: answer, next: make(chan call, maxIdle)}
	c.room.L = &c.mu
	context.AfterFunc(ctx, c.room.Broadcast)
	return c
}

// submit adds a call. It blocks while too many are pending.
func (c *calls) submit(next call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.bytes > 0 && c.bytes+next.size() > maxPending && c.ctx.Err() == nil {
		c.room.Wait()
	}
	c.bytes += next.size()
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
	c.workers.Go(func() { c.work(next) })
}

func (c *calls) work(next call) {
	for more := true; more; next, more = c.after(next) {
		if c.ctx.Err() != nil {
			continue
		}
		result, err := c.host.Call(c.ctx, next.Call)
		next.resume()
		c.answer(next.id, result, err)
	}
}

// after accounts for a call that has ended and returns the next one for its worker, waiting for it if necessary. more
// is false if the worker should end.
func (c *calls) after(ended call) (next call, more bool) {
	next, more, idle := c.finish(ended)
	if idle {
		next, more = <-c.next
	}
	return next, more
}

func (c *calls) finish(ended call) (next call, more, idle bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes -= ended.size()
	c.room.Broadcast()
	if len(c.waiting) > 0 {
		next = c.waiting[0]
		c.waiting = c.waiting[1:]
		return next, true, false
	}
	c.running--
	if c.idle == maxIdle {
		return call{}, false, false
	}
	c.idle++
	return call{}, false, true
}

// some reports whether a call is in progress or waits.
func (c *calls) some() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running > 0
}

// wait returns when no call is in progress. The context must have ended, and no call may be submitted any more.
func (c *calls) wait() {
	close(c.next)
	c.workers.Wait()
}
