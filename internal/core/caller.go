package core

import "context"

// Caller is on whose behalf a call is made. The zero Caller is the engine itself, and
// whoever is alone with it.
type Caller struct{ Principal, Session string }

type callerKey struct{}

// WithCaller returns a context of which every call is made on behalf of c.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf is on whose behalf calls of a context are made.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

type pinKey struct{}

// WithPin returns a context whose call of a tool is sent only over a connection on which the
// server lists the tool with this pin, or does not list it. An empty pin allows any definition.
func WithPin(ctx context.Context, pin string) context.Context {
	return context.WithValue(ctx, pinKey{}, pin)
}

// PinOf returns the pin that the tool of a call must have; empty if any will do.
func PinOf(ctx context.Context) string {
	pin, _ := ctx.Value(pinKey{}).(string)
	return pin
}

type revisionKey struct{}

// WithRevision returns a context whose calls reach only servers that are configured as they were at a
// revision of the servers. 0 allows any.
func WithRevision(ctx context.Context, revision uint64) context.Context {
	return context.WithValue(ctx, revisionKey{}, revision)
}

// RevisionOf returns the revision of WithRevision, or 0.
func RevisionOf(ctx context.Context) uint64 {
	revision, _ := ctx.Value(revisionKey{}).(uint64)
	return revision
}
