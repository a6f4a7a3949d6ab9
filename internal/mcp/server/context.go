package server

import "context"

// requestValues holds what the middleware of a request passes to the function that serves its tool. It is stored in
// the context, because the SDK passes nothing else from one to the other.
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

// withRound returns a context with s: the state that the client sends back when it repeats a request with the
// person's answers. roundOf returns it.
func withRound(ctx context.Context, s requestState) context.Context {
	v := requestValuesOf(ctx)
	v.round = &s
	return withRequestValues(ctx, v)
}

// withExactResult returns a context for a request to an exposed server. The server's result will be stored in the
// variable to.
func withExactResult(ctx context.Context, to *exactResult) context.Context {
	v := requestValuesOf(ctx)
	v.exact = to
	return withRequestValues(ctx, v)
}
