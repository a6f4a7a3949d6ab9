package core

import (
	"context"
	"errors"
	"time"
)

// Credential is with what somebody who is not at this machine has something done, as it can be
// kept. The zero Credential is whoever sits at the machine.
type Credential struct {
	Token   string    `json:"token,omitempty"`  // id of one of Retort's own tokens
	Expires time.Time `json:"expires,omitzero"` // of a token of an authorization server, after which it does not count
}

// Permit says for how long somebody may have something done. The zero Permit never ends.
type Permit struct {
	Credential Credential
	// Check returns why it has ended, or nil. It is asked before each call is sent, so it must be
	// cheap. Nil: it never ends.
	Check func() *Error
}

// Refused returns why the Permit has ended, or nil.
func (p Permit) Refused() *Error {
	if p.Check == nil {
		return nil
	}
	return p.Check()
}

// ErrRevoked is what errors.Is finds in the error of what ended because whoever asked for it may
// not have it done any more.
var ErrRevoked = errors.New("the token with which this was asked for does not count any more")

// Revoked returns the error of what a Permit has ended.
func Revoked() *Error {
	return Errorf(KindPolicy, "run.permit", "%w", ErrRevoked).WithHint("what had been sent before is in the audit log; another token is needed to go on")
}

type permitKey struct{}

// WithPermit returns a context of which everything is done under p.
func WithPermit(ctx context.Context, p Permit) context.Context {
	return context.WithValue(ctx, permitKey{}, p)
}

// PermitOf returns the Permit of a context, the zero one if there is none.
func PermitOf(ctx context.Context) Permit {
	p, _ := ctx.Value(permitKey{}).(Permit)
	return p
}

type finalCheckKey struct{}

// WithFinalCheck returns a context whose calls are made only if check returns nil right before they are
// sent. What was judged earlier may count no more, since a call can wait for its server to start.
func WithFinalCheck(ctx context.Context, check func() *Error) context.Context {
	return context.WithValue(ctx, finalCheckKey{}, check)
}

// FinalCheck returns why a call of ctx must not be sent, or nil. Whoever sends calls asks it after every wait.
func FinalCheck(ctx context.Context) *Error {
	if check, ok := ctx.Value(finalCheckKey{}).(func() *Error); ok {
		return check()
	}
	return nil
}
