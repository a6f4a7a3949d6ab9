package core

import (
	"context"
	"testing"
)

// lent is a context that takes its values from another context. A test can exchange that other context.
type lent struct {
	context.Context
	from *context.Context
}

func (l lent) Value(key any) any { return (*l.from).Value(key) }

func TestLayersReplaceSingleFields(t *testing.T) {
	ctx := WithRequester(t.Context(), Requester{Caller: &Caller{Principal: "anna"}, Peer: &ClientPeer{ID: "a"}})
	inner := WithRevision(WithPeer(WithCaller(ctx, Caller{}), nil), 3)
	if c, p := CallerOf(ctx), PeerOf(ctx); c.Principal != "anna" || p.ID != "a" || RevisionOf(ctx) != 0 {
		t.Error(c, p)
	}
	if c, p := CallerOf(inner), PeerOf(inner); c.Principal != "" || p.ID != "" || RevisionOf(inner) != 3 {
		t.Error("the zero Caller, and no client, did not replace those outside:", c, p)
	}
	if got := RevisionOf(WithRevision(inner, 0)); got != 0 {
		t.Error(got)
	}
	asks := func(context.Context, Approval) (ApprovalAnswer, bool) { return ApprovalAnswer{}, true }
	if with := WithChannel(inner, asks); ChannelOf(with) == nil || ChannelOf(WithChannel(with, nil)) != nil || HasBrowser(with) {
		t.Error("a nil channel did not replace the one outside")
	}
}

// TestLayersFollowTheOuterContext checks that fields which a context does not set are those of its outer context,
// even after the values of the outer context have changed.
func TestLayersFollowTheOuterContext(t *testing.T) {
	first, second := WithPeer(t.Context(), &ClientPeer{ID: "first"}), WithBrowser(t.Context(), nil)
	now := first
	ctx := WithPermit(lent{t.Context(), &now}, Permit{Credential: Credential{Token: "t"}})
	if PeerOf(ctx).ID != "first" || HasBrowser(ctx) {
		t.Error(PeerOf(ctx).ID, HasBrowser(ctx))
	}
	now = second
	if PeerOf(ctx).ID != "" || !HasBrowser(ctx) || PermitOf(ctx).Credential.Token != "t" {
		t.Error(PeerOf(ctx).ID, HasBrowser(ctx), PermitOf(ctx))
	}
}

type budget struct{ asked *MemoryClaim }

func (b *budget) Receive(_ context.Context, c *MemoryClaim, _ int64) error { b.asked = c; return nil }
func (b *budget) Report(context.Context, *MemoryClaim, int64) error        { return context.Canceled }

func TestClaimsShareTheBudget(t *testing.T) {
	b := &budget{}
	ctx, execution := WithBudget(t.Context(), "x", b)
	inner, call := WithClaim(ctx, "call")
	if ClaimOf(inner) != call || ClaimOf(ctx) != execution {
		t.Error("another claim")
	}
	if err := call.AdmitResult(ctx, 1); err != nil || b.asked != call {
		t.Error(err, b.asked)
	}
	if err := execution.AdmitReport(ctx, 1); err == nil {
		t.Error("the budget was not asked")
	}
	if err := ClaimOf(t.Context()).AdmitResult(ctx, 1); err != nil {
		t.Error(err)
	}
}
