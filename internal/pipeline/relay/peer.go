package relay

import (
	"context"
	"encoding/json"

	"retort/internal/core"
)

// reaching returns a context in which a server reaches the execution's client. Personal data in its requests is
// hidden. Time spent waiting for a person is not charged.
func (x Execution) reaching(ctx context.Context, c core.Call) context.Context {
	peer := core.PeerOf(ctx)
	screened := &core.Peer{ID: peer.ID, Forms: peer.Forms, Pages: peer.Pages, Samples: peer.Samples, Progress: x.telling(c, peer.Progress), Log: x.telling(c, peer.Log)}
	if peer.Ask != nil {
		screened.Ask = func(inside context.Context, a core.Asked) (json.RawMessage, *core.Error) {
			resume := core.Pause(inside)
			defer resume()
			a.Server, a.Tool = c.Server, c.Tool
			return x.ask(inside, c, peer, a)
		}
	}
	return core.WithPeer(ctx, screened)
}

// telling wraps tell for notifications. A text that cannot be hidden is dropped.
func (x Execution) telling(c core.Call, tell func(json.RawMessage)) func(json.RawMessage) {
	if tell == nil || x.Privacy == nil {
		return tell
	}
	return func(params json.RawMessage) {
		if shown, err := x.shown(c, params); err == nil {
			tell(shown)
		}
	}
}

func (x Execution) shown(c core.Call, document json.RawMessage) (json.RawMessage, error) {
	if x.Privacy == nil {
		return document, nil
	}
	return Around(document, func(d []byte) ([]byte, error) { return x.Privacy.Incoming(c.Server, d) })
}

// ask passes a server's question to the client. Tokens in the answer are replaced by values if the values came from
// that server.
func (x Execution) ask(ctx context.Context, c core.Call, peer *core.Peer, a core.Asked) (_ json.RawMessage, refused *core.Error) {
	shown, err := x.shown(c, a.Params) // a page's whole address is for the person alone
	if err != nil {
		return nil, unhidden("the question was held back", err)
	}
	a.Params = shown
	came := func(json.RawMessage, *core.Error) {}
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
		refused = core.Errorf(core.KindPolicy, "relay.ask", "the answer has personal data that %s does not have: %s", c.Server, crosses)
	}
	return restored, refused
}
