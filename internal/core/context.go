package core

import "context"

// Requester says for whom the work of a context is done and how the client that requested it can be reached. Where a
// field is nil, the value of the outer context applies, or the zero value if no outer context has one.
type Requester struct {
	Caller  *Caller       // for whom calls are made
	Permit  *Permit       // under which work is done
	Trace   *TraceContext // to which the work belongs
	Peer    *ClientPeer   // that servers can reach
	Channel *ApprovalChannel
	Browsed *func(address string) // see WithBrowser
}

// WorkBounds limits the work of a context: its time, its memory, and where its calls may be sent. Where a field is
// nil, the value of the outer context applies.
type WorkBounds struct {
	Pause      func() (resume func()) // see PauseClock
	Claim      *MemoryClaim
	Revision   *uint64       // see WithRevision
	Pin        *string       // see WithPin
	FinalCheck func() *Error // see WithFinalCheck
}

// WithRequester returns a context in which the fields of r that are not nil replace those of ctx.
func WithRequester(ctx context.Context, r Requester) context.Context {
	return &requesterContext{ctx, r}
}

// WithBounds returns a context in which the fields of b that are not nil replace those of ctx.
func WithBounds(ctx context.Context, b WorkBounds) context.Context { return &boundsContext{ctx, b} }

// requesterContext and boundsContext replace some fields of an outer context. The others are looked up in the outer
// context when they are read, because it may change what it returns: the context of a queued task, for instance,
// returns the Requester of the request that currently waits for the task.
type requesterContext struct {
	context.Context
	fields Requester
}

type boundsContext struct {
	context.Context
	fields WorkBounds
}

type (
	requesterKey struct{}
	boundsKey    struct{}
)

// Value implements context.Context.
func (c *requesterContext) Value(key any) any {
	if key == (requesterKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// Value implements context.Context.
func (c *boundsContext) Value(key any) any {
	if key == (boundsKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// findRequester returns the innermost Requester of ctx for which isSet returns true, or the zero Requester.
func findRequester(ctx context.Context, isSet func(*Requester) bool) (r Requester) {
	for {
		c, ok := ctx.Value(requesterKey{}).(*requesterContext)
		if !ok {
			return r
		}
		if isSet(&c.fields) {
			return c.fields
		}
		ctx = c.Context
	}
}

// findBounds returns the innermost WorkBounds of ctx for which isSet returns true, or the zero WorkBounds.
func findBounds(ctx context.Context, isSet func(*WorkBounds) bool) (b WorkBounds) {
	for {
		c, ok := ctx.Value(boundsKey{}).(*boundsContext)
		if !ok {
			return b
		}
		if isSet(&c.fields) {
			return c.fields
		}
		ctx = c.Context
	}
}
