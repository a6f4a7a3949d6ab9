package client

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"retort/internal/core"
)

// maxRounds and maxNeeds bound the questions of a server. It may answer one request with questions maxRounds times,
// and ask at most maxNeeds questions each time.
const (
	maxRounds = 8
	maxNeeds  = 8
)

// inputRequired is the result of a server of protocol version 2026-07-28 that needs input from the client first.
type inputRequired struct {
	Type     string                `json:"resultType"`
	Requests map[string]serverAsks `json:"inputRequests"`
	State    json.RawMessage       `json:"requestState"`
}

// serverAsks represents one question of a server: a request in which it asks the client for something.
type serverAsks struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// provideInput has the client answer the server's questions. It returns the members to add to the repeated request.
func (s *serverSession) provideInput(ctx context.Context, peer *core.ClientPeer, need *inputRequired) (json.RawMessage, error) {
	if len(need.Requests) > maxNeeds {
		return nil, core.Errorf(
			core.KindToolError, "upstream.call", "the server asks for %d inputs at once; at most %d are allowed", len(need.Requests),
			maxNeeds,
		)
	}
	core.ClaimOf(ctx).Release() // a person may be waited for
	given := map[string]json.RawMessage{}
	for _, key := range slices.Sorted(maps.Keys(need.Requests)) {
		r := need.Requests[key]
		answer, err := s.client.answerRequest(ctx, s.link, r.Method, r.Params, peer)
		if err != nil && errors.Is(err, core.ErrPage) {
			return nil, err
		}
		if err != nil {
			e := core.Errorf(
				core.KindToolError, "upstream.call", "the server asked for input during the call (%s): %s",
				truncateText(r.Method, 100), err.Message,
			)
			e.Err = err.Err
			return nil, e.WithHint("put everything that the tool needs into its arguments, or use another tool")
		}
		given[key] = answer
	}
	return json.Marshal(struct {
		Responses map[string]json.RawMessage `json:"inputResponses,omitempty"`
		State     json.RawMessage            `json:"requestState,omitempty"`
	}{given, need.State})
}

// mergeObjects returns a JSON object with the members of params followed by those of more. If more is not empty,
// params must not be empty either, because a comma is written between the two.
func mergeObjects(params, more json.RawMessage) json.RawMessage {
	if len(more) <= len(`{}`) {
		return params
	}
	joined := append(slices.Clone(params[:len(params)-1]), ',')
	return append(joined, more[1:]...)
}

// metaOf returns the _meta of the request x, which may depend on the client that the request is made for. done must
// be called when the request has been answered.
func (s *serverSession) metaOf(x *pendingCall) (meta json.RawMessage, done func()) {
	meta = s.meta
	if s.era.protocol >= protocolModern {
		level := ""
		if x.peer.Log != nil {
			level = s.level()
		}
		meta = requestMeta(s.self, s.era.protocol, s.client.offeredTo(x.peer), level)
	}
	meta = withTrace(meta, core.TraceOf(x.ctx))
	if x.peer.Progress == nil {
		return meta, func() {}
	}
	token := s.link.followProgress(x)
	meta = mergeObjects(json.RawMessage(`{"progressToken":`+string(quoteJSON(token))+`}`), orEmpty(meta))
	return meta, func() { s.link.unfollowProgress(token) }
}

func orEmpty(meta json.RawMessage) json.RawMessage {
	if len(meta) == 0 {
		return json.RawMessage(`{}`)
	}
	return meta
}
