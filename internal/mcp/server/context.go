package server

import "context"

// requestValues holds what the middleware of a request passes to the function that handles the called tool. It is
// stored in the context, because the SDK passes nothing else from the middleware to that function.
type requestValues struct {
	round *requestState // that the client has sent back with the request, or nil
	exact *exactResult  // takes the result of an exposed server, or nil
}

type requestKey struct{}

func requestValuesOf(ctx context.Context) requestValues {
	v, _ := ctx.Value(requestKey{}).(requestValues)
	return v
}

func withRequestValues(ctx context.Context, v requestValues) context.Context {
	return context.WithValue(ctx, requestKey{}, v)
}

// withRound stores s in a context and returns the new context. s is the state that the client has sent back with the
// person's answers when it repeated its request. roundOf reads it from the context.
func withRound(ctx context.Context, s requestState) context.Context {
	v := requestValuesOf(ctx)
	v.round = &s
	return withRequestValues(ctx, v)
}

// withExactResult stores a pointer in the context of a request to an exposed server. The server's result will be
// stored in the variable to which this pointer leads.
func withExactResult(ctx context.Context, to *exactResult) context.Context {
	v := requestValuesOf(ctx)
	v.exact = to
	return withRequestValues(ctx, v)
}
