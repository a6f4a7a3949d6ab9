package core

import "context"

// Caller identifies the principal and session for which a call is made. The zero Caller is the engine itself or, if
// no principals are configured, the only user.
type Caller struct{ Principal, Session string }

type callerKey struct{}

// WithCaller returns a context in which every call is made for c.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the Caller that the context's calls are made for.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

type pinKey struct{}

// WithPin returns a context whose call is sent only if the server lists the tool with this pin on the same
// connection, or does not list it. The pin is a hash of the tool's definition. An empty pin allows any definition.
func WithPin(ctx context.Context, pin string) context.Context {
	return context.WithValue(ctx, pinKey{}, pin)
}

// PinOf returns the pin that a call's tool must have, or "" if any definition is allowed.
func PinOf(ctx context.Context) string {
	pin, _ := ctx.Value(pinKey{}).(string)
	return pin
}

type revisionKey struct{}

// WithRevision returns a context whose calls reach only servers configured at or before a revision of the settings. 0
// allows any server.
func WithRevision(ctx context.Context, revision uint64) context.Context {
	return context.WithValue(ctx, revisionKey{}, revision)
}

// RevisionOf returns the revision set by WithRevision, or 0.
func RevisionOf(ctx context.Context) uint64 {
	revision, _ := ctx.Value(revisionKey{}).(uint64)
	return revision
}
