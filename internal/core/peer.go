package core

import (
	"context"
	"encoding/json"
	"strings"
)

// ClientPeer lets a server send requests to the client for which it is called. A nil field means that the client does
// not support the feature. Params are MCP params exactly as the server sent them.
type ClientPeer struct {
	ID       string // calls with the same one are made for the same client
	Progress func(params json.RawMessage)
	Log      func(params json.RawMessage)
	// Forms and Pages report whether the client can show a person forms to fill in, and web addresses to open.
	Forms, Pages bool
	Samples      bool // whether the client has said that it takes questions for its model
	// Ask sends an elicitation/create or sampling/createMessage request to the client and returns its result. It may
	// wait for a person.
	Ask func(ctx context.Context, a ServerRequest) (json.RawMessage, *Error)
}

// ServerRequest represents a request that a server sends to the client during a call.
type ServerRequest struct {
	Server, Tool string // of the call
	Method       string
	Params       json.RawMessage
	// Page holds the full address that a person is asked to open, or "". Params contains only the address's origin,
	// because the rest may grant access.
	Page string
	// Done is closed when the server reports that the person has finished with the page. It may be nil.
	Done <-chan struct{}
}

// MCP methods that servers send to clients.
const (
	MethodElicit = "elicitation/create"
	MethodSample = "sampling/createMessage"
)

// MissingCapability reports a capability that a server needs and the client has not declared. The request had no effect.
type MissingCapability struct {
	Elicitation *struct{} `json:"elicitation,omitempty"`
	Sampling    *struct{} `json:"sampling,omitempty"`
}

func (m *MissingCapability) Error() string {
	var names []string
	if m.Elicitation != nil {
		names = append(names, "elicitation")
	}
	if m.Sampling != nil {
		names = append(names, "sampling")
	}
	return "the client does not support " + strings.Join(names, " and ")
}

// WithPeer returns a context whose calls can reach the client p. If p is nil, they reach no client.
func WithPeer(ctx context.Context, p *ClientPeer) context.Context {
	if p == nil {
		p = &ClientPeer{}
	}
	return WithRequester(ctx, Requester{Peer: p})
}

// PeerOf returns the ClientPeer of the context. If the context has no ClientPeer, it returns one that supports nothing.
func PeerOf(ctx context.Context) *ClientPeer {
	if p := findRequester(ctx, func(r *Requester) bool { return r.Peer != nil }).Peer; p != nil {
		return p
	}
	return &ClientPeer{}
}
