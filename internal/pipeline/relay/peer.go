package relay

import (
	"context"
	"encoding/json"

	"retort/internal/run"
)

// reaching is a context in which a server reaches the client of the execution, without what
// is personal in what it says. Waiting for a person is not charged.
func (x Execution) reaching(ctx context.Context, c run.Call) context.Context {
	peer := run.PeerOf(ctx)
	screened := &run.Peer{ID: peer.ID, Forms: peer.Forms, Pages: peer.Pages, Samples: peer.Samples, Progress: x.telling(c, peer.Progress), Log: x.telling(c, peer.Log)}
	if peer.Ask != nil {
		screened.Ask = func(inside context.Context, a run.Asked) (json.RawMessage, *run.Error) {
			resume := run.Pause(inside)
			defer resume()
			a.Server, a.Tool = c.Server, c.Tool
			return x.ask(inside, c, peer, a)
		}
	}
	return run.WithPeer(ctx, screened)
}

// telling is tell for texts that nobody answers; what can't be hidden is not told.
func (x Execution) telling(c run.Call, tell func(json.RawMessage)) func(json.RawMessage) {
	if tell == nil || x.Privacy == nil {
		return tell
	}
	return func(params json.RawMessage) {
		if shown, err := x.shown(c, params); err == nil {
			tell(shown)
		}
	}
}

func (x Execution) shown(c run.Call, document json.RawMessage) (json.RawMessage, error) {
	if x.Privacy == nil {
		return document, nil
	}
	return Around(document, func(d []byte) ([]byte, error) { return x.Privacy.Incoming(c.Server, d) })
}

// ask brings what a server asks to the client. Tokens in the answer become values again, if
// they are values of that server.
func (x Execution) ask(ctx context.Context, c run.Call, peer *run.Peer, a run.Asked) (_ json.RawMessage, refused *run.Error) {
	shown, err := x.shown(c, a.Params) // a page's whole address is for the person alone
	if err != nil {
		return nil, unhidden("the question was held back", err)
	}
	a.Params = shown
	came := func(json.RawMessage, *run.Error) {}
	if x.Asked != nil {
		if came, refused = x.Asked(a); refused != nil {
			return nil, refused
		}
	}
	answer, refused := peer.Ask(ctx, a)
	came(answer, refused)
	if refused != nil || x.Privacy == nil {
		return answer, refused
	}
	restored, crosses, refused := x.Privacy.Restore(c.Server, answer)
	if refused == nil && crosses != "" {
		refused = run.Errorf(run.KindPolicy, "relay.ask", "the answer has personal data that %s does not have: %s", c.Server, crosses)
	}
	return restored, refused
}
