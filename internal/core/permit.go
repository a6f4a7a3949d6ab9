package core

import (
	"context"
	"errors"
	"time"
)

// GroupPrefix begins the names of the settings' entries for the members of a group, such as group:finance. The name
// of a principal never begins with it.
const GroupPrefix = "group:"

// Credential refers to the access token of a remote principal, in a form that can be stored. The zero Credential
// means the person at this machine.
type Credential struct {
	Token   string    `json:"token,omitempty"`  // id of one of Retort's own tokens
	Expires time.Time `json:"expires,omitzero"` // of a token of an authorization server, after which it does not count
}

// Permit says for how long the engine may work for a principal. The zero Permit never ends.
type Permit struct {
	Credential Credential
	// Check returns an error if the permit has ended, otherwise nil. It is called before each call is sent, so it
	// must be fast. If the function is nil, the permit never ends.
	Check func() *Error
}

// CheckValid returns an error if the permit has ended, otherwise nil.
func (p Permit) CheckValid() *Error {
	if p.Check == nil {
		return nil
	}
	return p.Check()
}

// ErrRevoked marks, for errors.Is, the error of work that was stopped because its Permit had ended.
var ErrRevoked = errors.New("the token that was used for this request is no longer valid")

// RevokedError returns the error for work that was stopped because its Permit had ended.
func RevokedError() *Error {
	return Errorf(KindPolicy, "run.permit", "%w", ErrRevoked).WithHint(
		"the audit log lists the calls that were sent before; use another token to continue",
	)
}

// WithPermit returns a context in which all work is done under the Permit p.
func WithPermit(ctx context.Context, p Permit) context.Context {
	return WithRequester(ctx, Requester{Permit: &p})
}

// PermitOf returns the context's Permit, or the zero Permit.
func PermitOf(ctx context.Context) Permit {
	if p := findRequester(ctx, func(r *Requester) bool { return r.Permit != nil }).Permit; p != nil {
		return *p
	}
	return Permit{}
}

// WithFinalCheck returns a context whose calls are sent only if check returns nil right before sending. The check is
// needed because a call may wait for its server to start, and earlier decisions may then be outdated.
func WithFinalCheck(ctx context.Context, check func() *Error) context.Context {
	return WithBounds(ctx, WorkBounds{FinalCheck: check})
}

// FinalCheck returns an error if a call of ctx must not be sent, otherwise nil. The caller must repeat it after every
// wait before sending.
func FinalCheck(ctx context.Context) *Error {
	if check := findBounds(ctx, func(b *WorkBounds) bool { return b.FinalCheck != nil }).FinalCheck; check != nil {
		return check()
	}
	return nil
}
