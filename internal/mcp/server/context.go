package server

import "context"

// requestValues holds what the middleware of a request passes to the function that handles the called tool. It is
// stored in the context, because the SDK passes nothing else from the middleware to that function.
type requestValues struct {
	round *requestState // state that the client has sent back with the request; nil if none
	exact *exactResult  // where to store the exact result of an exposed server; nil if it is not wanted
}

type requestKey struct{}

func requestValuesOf(ctx context.Context) requestValues {
	v, _ := ctx.Value(requestKey{}).(requestValues)
	return v
}

func withRequestValues(ctx context.Context, v requestValues) context.Context {
	return context.WithValue(ctx, requestKey{}, v)
}

// withRound returns a context that contains s, the state that the client has sent back with the person's answers when
// it repeated its request. roundOf reads the state from the context.
func withRound(ctx context.Context, s requestState) context.Context {
	v := requestValuesOf(ctx)
	v.round = &s
	return withRequestValues(ctx, v)
}

// withExactResult returns a context with a pointer to a variable. It is for requests to an exposed server, an
// upstream server that clients see directly: when the server has answered, its exact result will be stored in the
// variable.
func withExactResult(ctx context.Context, to *exactResult) context.Context {
	v := requestValuesOf(ctx)
	v.exact = to
	return withRequestValues(ctx, v)
}
