package core

import "context"

// Caller names the principal and the session for which a call is made. The zero Caller is the engine itself or, if no
// principals are configured, the only user.
type Caller struct{ Principal, Session string }

// WithCaller returns a context in which every call is made for c.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return WithRequester(ctx, Requester{Caller: &c})
}

// CallerOf returns the Caller that the context's calls are made for.
func CallerOf(ctx context.Context) Caller {
	if c := findRequester(ctx, func(r *Requester) bool { return r.Caller != nil }).Caller; c != nil {
		return *c
	}
	return Caller{}
}

// WithPin returns a context that restricts calls to one definition of the tool. pin is a hash of that definition. If
// the server lists another definition on the connection that the call uses, the call is refused. An empty pin allows
// any definition.
func WithPin(ctx context.Context, pin string) context.Context {
	return WithBounds(ctx, WorkBounds{Pin: &pin})
}

// PinOf returns the pin that a call's tool must have, or "" if any definition is allowed.
func PinOf(ctx context.Context) string {
	if pin := findBounds(ctx, func(b *WorkBounds) bool { return b.Pin != nil }).Pin; pin != nil {
		return *pin
	}
	return ""
}

// WithRevision returns a context that restricts calls to servers that were configured at or before the given revision
// of the settings. 0 allows any server.
func WithRevision(ctx context.Context, revision uint64) context.Context {
	return WithBounds(ctx, WorkBounds{Revision: &revision})
}

// RevisionOf returns the revision set by WithRevision, or 0.
func RevisionOf(ctx context.Context) uint64 {
	if revision := findBounds(ctx, func(b *WorkBounds) bool { return b.Revision != nil }).Revision; revision != nil {
		return *revision
	}
	return 0
}
