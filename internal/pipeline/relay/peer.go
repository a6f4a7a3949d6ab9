package relay

import (
	"context"
	"encoding/json"

	"retort/internal/core"
)

// screenPeer returns a ClientPeer through which a server can send requests to the client, peer, during the call c.
// Personal data in the server's requests is hidden. The time for which a person is asked does not count as execution
// time.
func (x ExecutionContext) screenPeer(peer *core.ClientPeer, c core.ToolCall) *core.ClientPeer {
	screened := &core.ClientPeer{
		ID: peer.ID, Forms: peer.Forms, Pages: peer.Pages, Samples: peer.Samples,
		Progress: x.hideNotices(c, peer.Progress), Log: x.hideNotices(c, peer.Log),
	}
	if peer.Ask != nil {
		screened.Ask = func(inside context.Context, a core.ServerRequest) (json.RawMessage, *core.Error) {
			resume := core.PauseClock(inside)
			defer resume()
			a.Server, a.Tool = c.Server, c.Tool
			return x.askClient(inside, c, peer, a)
		}
	}
	return screened
}

// hideNotices returns a function that hides personal data in a server's notification and then passes the notification
// to the function tell. If hiding fails, the notification is dropped.
func (x ExecutionContext) hideNotices(c core.ToolCall, tell func(json.RawMessage)) func(json.RawMessage) {
	if tell == nil || x.Privacy == nil {
		return tell
	}
	return func(params json.RawMessage) {
		if shown, err := x.hideDocument(c, params); err == nil {
			tell(shown)
		}
	}
}

func (x ExecutionContext) hideDocument(c core.ToolCall, document json.RawMessage) (json.RawMessage, error) {
	if x.Privacy == nil {
		return document, nil
	}
	return HideAround(document, func(d []byte) ([]byte, error) { return x.Privacy.Incoming(c.Server, d) })
}

// askClient passes a server's question to the client and returns the client's answer. Tokens in the answer are
// replaced by the personal data that they stand for, but only if that data came from this server.
func (x ExecutionContext) askClient(
	ctx context.Context, c core.ToolCall, peer *core.ClientPeer, a core.ServerRequest,
) (_ json.RawMessage, refused *core.Error) {
	shown, err := x.hideDocument(c, a.Params) // a page's whole address is for the person alone
	if err != nil {
		return nil, unhiddenError("the question was withheld", err)
	}
	a.Params = shown
	came := func(json.RawMessage, *core.Error) {}
	if x.Recorder != nil {
		if came, refused = x.Recorder.RecordQuestion(a); refused != nil {
			return nil, refused
		}
	}
	answer, refused := peer.Ask(ctx, a)
	came(answer, refused)
	if refused != nil || x.Privacy == nil {
		return answer, refused
	}
	restored, crosses, refused := x.Privacy.Restore(c.Server, answer, nil)
	if refused == nil && crosses != "" {
		refused = core.Errorf(core.KindPolicy, "relay.ask", "the answer contains personal data that %s does not already have: %s", c.Server, crosses)
	}
	return restored, refused
}
