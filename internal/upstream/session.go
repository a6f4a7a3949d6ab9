package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/run"
)

const (
	maxPages = 1_000
	maxTools = 20_000
)

// session is one established connection to a server.
type session struct {
	client *mcp.ClientSession
	link   *link
	era    era
	meta   json.RawMessage // goes with every request, if the era wants it
	pid    int

	mu      sync.Mutex
	users   int
	retired bool
}

// enter counts a use of the session; it fails if the session is retired.
func (s *session) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired {
		return false
	}
	s.users++
	return true
}

func (s *session) leave() {
	s.mu.Lock()
	s.users--
	last := s.retired && s.users == 0
	s.mu.Unlock()
	if last {
		s.link.fail(errClosed())
	}
}

// retire has the session end when its last user has left.
func (s *session) retire() {
	s.mu.Lock()
	s.retired = true
	unused := s.users == 0
	s.mu.Unlock()
	if unused {
		s.link.fail(errClosed())
	}
}

// close ends the session and returns when nothing is left of it.
func (s *session) close() {
	s.link.fail(errClosed())
	_ = s.client.Close() // what is pending has ended with the link
	s.link.wire.close()
}

// callTool returns the exact result of a call.
func (s *session) callTool(ctx context.Context, x *exchange, tool string, args json.RawMessage) (json.RawMessage, error) {
	if len(args) == 0 {
		args = json.RawMessage(`{}`)
	}
	result, err := s.link.call(ctx, x, methodCall, callParams(traced(s.meta, run.TraceOf(ctx)), tool, args))
	if err != nil {
		return nil, err
	}
	if err := checkResult(result); err != nil {
		s.link.drop(x)
		return nil, err
	}
	return result, nil
}

// checkResult refuses results that are none.
func checkResult(raw json.RawMessage) error {
	if first := bytes.TrimLeft(raw, " \t\r\n"); len(first) == 0 || first[0] != '{' {
		return run.Errorf(run.KindToolError, "upstream.call", "the server's answer is not a tool result: %s", beginning(string(raw), 200))
	}
	if err := checkType(raw); err != nil {
		return err
	}
	if !bytes.Contains(raw, []byte(`"input_required"`)) {
		return nil
	}
	var result struct {
		Type string `json:"resultType"`
	}
	if json.Unmarshal(raw, &result) == nil && result.Type == "input_required" {
		return run.Errorf(run.KindToolError, "upstream.call", "the tool asks for input from a person in the middle of the call, which is not offered here").
			WithHint("give everything the tool needs in its arguments, or use another tool")
	}
	return nil
}

// checkType refuses results of a type that nobody here knows: what they mean is
// unknown. One without a type is complete.
func checkType(raw json.RawMessage) error {
	if !bytes.Contains(raw, []byte(`"resultType"`)) || bytes.Contains(raw, []byte(`"resultType":"complete"`)) {
		return nil // nearly always, without reading all of it
	}
	var result struct {
		Type *string `json:"resultType"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return run.Errorf(run.KindToolError, "upstream.call", "the server's answer has a resultType that is no text")
	}
	if t := result.Type; t != nil && *t != "complete" && *t != "input_required" {
		return run.Errorf(run.KindToolError, "upstream.call", "the server's answer is of the type %q, which is not known here", cut(*t, 60))
	}
	return nil
}

// listTools collects the tools of all pages, exactly as they were sent.
func (s *session) listTools(ctx context.Context, limit int64) ([]json.RawMessage, error) {
	var tools []json.RawMessage
	var size int64
	seen := map[string]bool{}
	for cursor := ""; ; {
		page, next, err := s.listPage(ctx, cursor)
		if err != nil {
			return nil, err
		}
		for _, tool := range page {
			size += int64(len(tool))
		}
		tools = append(tools, page...)
		if next == "" {
			return tools, nil
		}
		if err := checkPages(seen, next, len(tools), size, limit); err != nil {
			return nil, err
		}
		seen[next] = true
		cursor = next
	}
}

func checkPages(seen map[string]bool, next string, tools int, size, limit int64) error {
	e := func(format string, args ...any) error {
		return run.Errorf(run.KindLimit, "upstream.list", format, args...).WithHint("the server lists its tools without end: report it to its maker")
	}
	switch {
	case seen[next]:
		return e("the server's list of tools runs in a circle: the cursor %q came twice", cut(next, 60))
	case len(seen)+1 >= maxPages:
		return e("the server's list of tools has more than %d pages", maxPages)
	case tools > maxTools:
		return e("the server lists more than %d tools", maxTools)
	case size > limit:
		return e("the server's list of tools is over the limit of %s", bytesText(limit))
	}
	return nil
}

func (s *session) listPage(ctx context.Context, cursor string) (tools []json.RawMessage, next string, err error) {
	result, err := s.link.call(ctx, &exchange{}, methodList, listParams(s.meta, cursor))
	if err != nil {
		var rpc *jsonrpc.Error
		if errors.As(err, &rpc) && rpc.Code == jsonrpc.CodeMethodNotFound && cursor == "" {
			return nil, "", nil // a server without tools
		}
		return nil, "", err
	}
	var page struct {
		Tools []json.RawMessage `json:"tools"`
		Next  *string           `json:"nextCursor"`
	}
	if err := json.Unmarshal(result, &page); err != nil {
		return nil, "", run.Errorf(run.KindUpstreamGone, "upstream.list", "the server's list of tools can't be read: %w", err)
	}
	if page.Next != nil {
		next = *page.Next
	}
	return page.Tools, next, nil
}

// listing is what the server said of itself, without tools.
func (s *session) listing() Listing {
	r := s.client.InitializeResult()
	l := Listing{Instructions: r.Instructions, Protocol: r.ProtocolVersion}
	if r.ServerInfo != nil {
		l.Name, l.Version = r.ServerInfo.Name, r.ServerInfo.Version
	}
	return l
}
