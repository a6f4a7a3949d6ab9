package run

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
