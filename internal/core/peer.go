package core

import (
	"context"
	"encoding/json"
	"strings"
)

// Peer is the client at the other end of an execution, as far as the servers that it calls
// may reach it. What is nil is not offered. Params are those of MCP, as the server sent them.
type Peer struct {
	ID       string // calls with the same one are made for the same client
	Progress func(params json.RawMessage)
	Log      func(params json.RawMessage)
	// Forms and Pages say what a person there can be shown: forms to fill in, and addresses
	// to open.
	Forms, Pages bool
	Samples      bool // whether the client has said that it takes questions for its model
	// Ask brings an elicitation/create or a sampling/createMessage to the client, and gives
	// its result. It waits for a person.
	Ask func(ctx context.Context, a Asked) (json.RawMessage, *Error)
}

// Asked is what a server asks the client in the midst of a call.
type Asked struct {
	Server, Tool string // of the call
	Method       string
	Params       json.RawMessage
	// Page is the whole address that a person is asked to open, where it is that. Params have
	// only its origin: the rest may let in whoever knows it.
	Page string
	// Done is closed when the server says that the person is done with the page; may be nil.
	Done <-chan struct{}
}

// Methods of MCP with which servers ask clients.
const (
	MethodElicit = "elicitation/create"
	MethodSample = "sampling/createMessage"
)

// Missing is the cause of an error: what a server would need of the client, which the client
// has not said that it offers. The request had no effect.
type Missing struct {
	Elicitation *struct{} `json:"elicitation,omitempty"`
	Sampling    *struct{} `json:"sampling,omitempty"`
}

func (m *Missing) Error() string {
	var names []string
	if m.Elicitation != nil {
		names = append(names, "elicitation")
	}
	if m.Sampling != nil {
		names = append(names, "sampling")
	}
	return "the client does not offer " + strings.Join(names, " and ")
}

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
