package run

import (
	"context"
	"encoding/json"
)

// Peer is the client at the other end of an execution, as far as the servers that it calls
// may reach it. What is nil is not offered. Params are those of MCP, as the server sent them.
type Peer struct {
	ID       string // calls with the same one are made for the same client
	Progress func(params json.RawMessage)
	Log      func(params json.RawMessage)
	// Ask brings an elicitation/create or a sampling/createMessage to the client, and gives
	// its result. It waits for a person.
	Ask func(ctx context.Context, a Asked) (json.RawMessage, *Error)
}

// Asked is what a server asks the client in the midst of a call.
type Asked struct {
	Server, Tool string // of the call
	Method       string
	Params       json.RawMessage
}

// Methods of MCP with which servers ask clients.
const (
	MethodElicit = "elicitation/create"
	MethodSample = "sampling/createMessage"
)

type peerKey struct{}

// WithPeer returns a context whose calls are made for p.
func WithPeer(ctx context.Context, p *Peer) context.Context {
	return context.WithValue(ctx, peerKey{}, p)
}

// PeerOf is the peer of a context; one that offers nothing if there is none.
func PeerOf(ctx context.Context) *Peer {
	if p, ok := ctx.Value(peerKey{}).(*Peer); ok && p != nil {
		return p
	}
	return &Peer{}
}
