package client

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
)

const (
	maxPages = 1_000
	maxTools = 20_000
)

// serverSession represents one established connection to a server.
type serverSession struct {
	sdk    *mcp.ClientSession
	link   *serverLink
	era    protocolEra
	meta   json.RawMessage // _meta of every request, if the protocol version needs one
	client ClientFeatures
	self   *mcp.Implementation
	level  func() string // returns the lowest level of log messages that a client wants; "" if no client wants any
	pid    int
	listed *listedPins
	pinged bool // a goroutine is pinging the server (pingIfSilent); guarded by the mutex of the server

	listening    sync.Mutex
	sharedStream bool // one stream of notifications covers all subscribed resources
	// streams maps URIs of resources to functions that end their streams of notifications. The key "" stands for one
	// stream for all resources.
	streams map[string]context.CancelFunc

	mu      sync.Mutex
	users   int
	retired bool
}

// enterUse counts one more use of the session. It returns false if the session is retired, which means that no new
// use may begin.
func (s *serverSession) enterUse() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired {
		return false
	}
	s.users++
	return true
}

// isBusy reports whether the session is in use.
func (s *serverSession) isBusy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.users > 0
}

func (s *serverSession) leaveUse() {
	s.mu.Lock()
	s.users--
	last := s.retired && s.users == 0
	s.mu.Unlock()
	if last {
		s.link.failAll(errClosed())
	}
}

// retireWhenIdle ends the session when its last use has ended.
func (s *serverSession) retireWhenIdle() {
	s.mu.Lock()
	s.retired = true
	unused := s.users == 0
	s.mu.Unlock()
	if unused {
		s.link.failAll(errClosed())
	}
}

// close ends the session. It returns when its connections and processes are gone.
func (s *serverSession) close() {
	s.link.failAll(errClosed())
	_ = s.sdk.Close() // what is pending has ended with the link
	s.link.wire.close()
}

// callTool returns the result of a tool call exactly as received.
func (s *serverSession) callTool(ctx context.Context, x *pendingCall, tool string, args json.RawMessage) (json.RawMessage, error) {
	if len(args) == 0 {
		args = json.RawMessage(`{}`)
	}
	return s.askServer(ctx, x, methodCall, func(meta json.RawMessage) json.RawMessage { return callParams(meta, tool, args) })
}

// checkType refuses results whose resultType is unknown. A result without a type counts as complete.
func checkType(raw json.RawMessage) error {
	if !bytes.Contains(raw, []byte(`"resultType"`)) || bytes.Contains(raw, []byte(`"resultType":"complete"`)) {
		return nil // nearly always, without reading all of it
	}
	var result struct {
		Type *string `json:"resultType"`
	}
	if err := unmarshalExact(raw, &result); err != nil {
		return core.Errorf(core.KindToolError, "upstream.call", "the server's answer has a resultType that is not a string")
	}
	if t := result.Type; t != nil && *t != "complete" && *t != "input_required" {
		return core.Errorf(
			core.KindToolError, "upstream.call", "the server's answer has the unknown type %q",
			truncateText(*t, 60),
		)
	}
	return nil
}

// askServer makes a request for the client of ctx. If the server requires input, the client is asked and the request
// is repeated with the answers.
func (s *serverSession) askServer(
	ctx context.Context, x *pendingCall, method string, params func(meta json.RawMessage) json.RawMessage,
) (json.RawMessage, error) {
	x.ctx, x.peer = ctx, core.PeerOf(ctx)
	meta, done := s.metaOf(x)
	defer done()
	body := params(meta)
	for round := 0; ; round++ {
		result, err := s.makeRequest(ctx, x, method, body)
		if err != nil {
			return nil, err
		}
		if t := taskAnswered(result, s.era); t != nil && method == methodCall && s.era.protocol >= protocolModern {
			return s.awaitTask(ctx, x, t)
		}
		need, err := checkResult(result)
		if err != nil {
			s.link.dropCall(x)
			return nil, err
		}
		if need == nil {
			return result, nil
		}
		if round == maxRounds {
			return nil, core.Errorf(core.KindToolError, "upstream.call", "the server asked for input %d times without returning a result", round)
		}
		given, err := s.provideInput(ctx, x.peer, need)
		if err != nil {
			return nil, err
		}
		body = mergeObjects(params(meta), given)
		x.id = jsonrpc.ID{}
	}
}

// checkResult refuses invalid results. If a result says that the server needs input from the client first,
// checkResult returns this input as need.
func checkResult(raw json.RawMessage) (need *inputRequired, err error) {
	if first := bytes.TrimLeft(raw, " \t\r\n"); len(first) == 0 || first[0] != '{' {
		return nil, core.Errorf(core.KindToolError, "upstream.call", "the server's answer is not a tool result: %s", safePrefix(string(raw), 200))
	}
	if err := checkType(raw); err != nil {
		return nil, err
	}
	if !bytes.Contains(raw, []byte(`"input_required"`)) {
		return nil, nil
	}
	var result inputRequired
	if unmarshalExact(raw, &result) == nil && result.Type == "input_required" {
		return &result, nil
	}
	return nil, nil
}

// listPages collects the items of all pages of a list, exactly as received. It returns none if the server does not
// know the method.
func (s *serverSession) listPages(ctx context.Context, method, member string, limit int64) ([]json.RawMessage, error) {
	var all []json.RawMessage
	var size int64
	seen := map[string]bool{}
	for cursor := ""; ; {
		page, next, err := s.listPage(ctx, method, member, cursor)
		if err != nil {
			return nil, err
		}
		for _, item := range page {
			size += int64(len(item))
		}
		all = append(all, page...)
		if next == "" {
			return all, nil
		}
		if err := checkPages(seen, next, member, len(all), size, limit); err != nil {
			return nil, err
		}
		seen[next] = true
		cursor = next
	}
}

func checkPages(seen map[string]bool, next, member string, count int, size, limit int64) error {
	e := func(format string, args ...any) error {
		return core.Errorf(core.KindLimit, "upstream.list", format, args...).WithHint(
			"the server's list of %s does not end: report it to the developer of the server", member,
		)
	}
	switch {
	case seen[next]:
		return e("the server's list of %s is circular: the cursor %q came twice", member, truncateText(next, 60))
	case len(seen)+1 >= maxPages:
		return e("the server's list of %s has more than %d pages", member, maxPages)
	case count > maxTools:
		return e("the server lists more than %d %s", maxTools, member)
	case size > limit:
		return e("the server's list of %s exceeds the limit of %s", member, bytesText(limit))
	}
	return nil
}

func (s *serverSession) listPage(ctx context.Context, method, member, cursor string) (items []json.RawMessage, next string, err error) {
	core.ClaimOf(ctx).Release() // the page before has been read
	result, err := s.link.callMethod(ctx, &pendingCall{}, method, listParams(s.meta, cursor))
	if err != nil {
		if unknownMethod(err) && cursor == "" {
			return nil, "", nil
		}
		return nil, "", err
	}
	var page map[string]json.RawMessage
	err = unmarshalExact(result, &page)
	if err == nil && len(page[member]) > 0 {
		err = unmarshalExact(page[member], &items)
	}
	if err == nil && len(page["nextCursor"]) > 0 {
		err = unmarshalExact(page["nextCursor"], &next) // null is ""
	}
	if err != nil {
		return nil, "", core.Errorf(core.KindUpstreamGone, "upstream.list", "the server's list of %s cannot be read: %w", member, err)
	}
	return items, next, nil
}

// listingOf returns the information that the server has sent about itself, without its tools.
func (s *serverSession) listingOf() ToolListing {
	r := s.sdk.InitializeResult()
	l := ToolListing{Instructions: r.Instructions, Protocol: r.ProtocolVersion, Offers: offersOf(r.Capabilities)}
	if r.ServerInfo != nil {
		l.Name, l.Version = r.ServerInfo.Name, r.ServerInfo.Version
	}
	return l
}
