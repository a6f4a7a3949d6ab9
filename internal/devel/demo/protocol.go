package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

const (
	maxMessage    = 32 << 20 // bytes of one incoming line
	maxConcurrent = 256      // running calls of one connection
	toolsPerPage  = 8        // tools in one page of tools/list; so small that clients must read a second page
)

// The supported protocol versions, newest first. modernVersion is stateless; clients of legacyVersions begin with
// initialize.
var (
	modernVersion  = "2026-07-28"
	legacyVersions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
)

// Error codes of JSON-RPC. The last one is an error code of the stateless protocol version.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeNoMethod       = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeVersion        = -32022
)

type rpcRequest struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func newRPCError(code int, format string, args ...any) *rpcError {
	return &rpcError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// serverConn holds the state of one connection to a DemoServer.
type serverConn struct {
	server *DemoServer
	end    context.CancelCauseFunc
	slots  chan struct{}
	calls  sync.WaitGroup

	writing sync.Mutex
	out     io.Writer

	mu      sync.Mutex
	running map[string]context.CancelFunc // cancels running calls, by request ID
}

// Serve serves one client until in ends, ctx is done or writing to out fails. When in ends, it first answers the
// pending calls. When ctx ends, the goroutine that reads in continues until in ends.
func (s *DemoServer) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	c := &serverConn{server: s, end: end, out: out, slots: make(chan struct{}, maxConcurrent), running: map[string]context.CancelFunc{}}
	lines, ended := readLines(ctx, in)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case line := <-lines:
			c.acceptLine(ctx, line)
		case err := <-ended:
			return errors.Join(err, c.waitForCalls(ctx))
		}
	}
}

// readLines sends each non-empty line of in to the channel lines. When in ends, it sends the read error, or nil, to
// the channel ended. It also stops when ctx is done.
func readLines(ctx context.Context, in io.Reader) (lines <-chan []byte, ended <-chan error) {
	out, end := make(chan []byte), make(chan error, 1)
	go func() {
		scanner := bufio.NewScanner(in)
		scanner.Buffer(make([]byte, 0, 64<<10), maxMessage)
		for scanner.Scan() {
			line := bytes.TrimSpace(scanner.Bytes())
			if len(line) == 0 {
				continue
			}
			select {
			case out <- bytes.Clone(line):
			case <-ctx.Done():
				return
			}
		}
		end <- scanner.Err()
	}()
	return out, end
}

// waitForCalls waits for the pending calls.
func (c *serverConn) waitForCalls(ctx context.Context) error {
	done := make(chan struct{})
	go func() { c.calls.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// acceptLine starts answering one line: a message, or a batch as in protocol version 2025-03-26.
func (c *serverConn) acceptLine(ctx context.Context, line []byte) {
	if line[0] == '[' {
		c.startCall(ctx, "", func(ctx context.Context) []byte { return c.answerBatch(ctx, line) })
		return
	}
	var r rpcRequest
	if err := json.Unmarshal(line, &r); err != nil {
		c.writeLine(errorResponse(nil, newRPCError(codeParse, "parse error: %v", err)))
		return
	}
	switch {
	case r.Method == "": // an answer to a question that was never asked
	case r.ID == nil:
		c.handleNotification(r)
	default:
		c.startCall(ctx, string(r.ID), func(ctx context.Context) []byte { return c.answerRequest(ctx, r) })
	}
}

// startCall runs the function work in a goroutine of its own, and sends what work returns to the client unless the
// client has cancelled the call.
func (c *serverConn) startCall(ctx context.Context, id string, work func(context.Context) []byte) {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	c.mu.Lock()
	c.running[id] = cancel
	c.mu.Unlock()
	c.calls.Go(func() {
		defer func() { <-c.slots }()
		reply := work(ctx)
		c.mu.Lock()
		delete(c.running, id)
		c.mu.Unlock()
		if ctx.Err() == nil && reply != nil {
			c.writeLine(reply)
		}
		cancel()
	})
}

func (c *serverConn) handleNotification(r rpcRequest) {
	if r.Method != "notifications/cancelled" {
		return
	}
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	_ = json.Unmarshal(r.Params, &p) // a malformed notification has no answer
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel, ok := c.running[string(p.RequestID)]; ok {
		cancel()
	}
}

func (c *serverConn) answerBatch(ctx context.Context, line []byte) []byte {
	var items []rpcRequest
	if err := json.Unmarshal(line, &items); err != nil || len(items) == 0 {
		return errorResponse(nil, newRPCError(codeInvalidRequest, "a batch must be a non-empty array of messages"))
	}
	var replies [][]byte
	for _, r := range items {
		if r.ID == nil || r.Method == "" {
			c.handleNotification(r)
			continue
		}
		replies = append(replies, c.answerRequest(ctx, r))
	}
	if replies == nil {
		return nil
	}
	return slices.Concat([]byte("["), bytes.Join(replies, []byte(",")), []byte("]"))
}

func (c *serverConn) writeLine(message []byte) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if _, err := c.out.Write(append(message, '\n')); err != nil {
		c.end(err)
	}
}

func (c *serverConn) answerRequest(ctx context.Context, r rpcRequest) []byte {
	modern, refusal := isModern(r.Params)
	if refusal != nil {
		return errorResponse(r.ID, refusal)
	}
	result, refusal := c.server.handleRequest(ctx, r, modern)
	if refusal != nil {
		return errorResponse(r.ID, refusal)
	}
	if modern {
		result = c.server.addResultMeta(result)
	}
	return slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), r.ID, []byte(`,"result":`), result, []byte(`}`))
}

func errorResponse(id json.RawMessage, e *rpcError) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	return slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"error":`), encodeJSON(e), []byte(`}`))
}

// isModern reports whether a request uses the stateless protocol version. The _meta member of its params then names
// that version.
func isModern(params json.RawMessage) (bool, *rpcError) {
	var p struct {
		Meta struct {
			Version      string          `json:"io.modelcontextprotocol/protocolVersion"`
			Capabilities json.RawMessage `json:"io.modelcontextprotocol/clientCapabilities"`
		} `json:"_meta"`
	}
	if len(params) > 0 && json.Unmarshal(params, &p) != nil {
		return false, newRPCError(codeInvalidParams, "params must be an object")
	}
	switch version := p.Meta.Version; {
	case version < modernVersion:
		return false, nil
	case version > modernVersion:
		e := newRPCError(codeVersion, "unsupported protocol version")
		e.Data = map[string]any{"supported": allVersions(), "requested": version}
		return false, e
	case len(p.Meta.Capabilities) == 0 || p.Meta.Capabilities[0] != '{':
		return false, newRPCError(codeInvalidParams, "missing or invalid _meta field %q", "io.modelcontextprotocol/clientCapabilities")
	}
	return true, nil
}

func allVersions() []string { return append([]string{modernVersion}, legacyVersions...) }

// handleRequest answers one request. Every result is a non-empty JSON object, except that of ping.
func (s *DemoServer) handleRequest(ctx context.Context, r rpcRequest, modern bool) ([]byte, *rpcError) {
	switch {
	case r.Method == "tools/call":
		return s.callTool(ctx, r.Params)
	case r.Method == "tools/list":
		return s.listTools(r.Params, modern)
	case r.Method == "server/discover" && modern:
		return s.answerDiscover(), nil
	case r.Method == "initialize" && !modern:
		return s.answerInitialize(r.Params)
	case r.Method == "ping" && !modern:
		return []byte("{}"), nil
	}
	return nil, newRPCError(codeNoMethod, "method %q is not supported", r.Method)
}

type serverInfo struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Version string `json:"version"`
}

func (s *DemoServer) implementationInfo() serverInfo {
	return serverInfo{Name: "nordlys-" + s.name, Title: s.title, Version: "1.0.0"}
}

var capabilities = json.RawMessage(`{"tools":{}}`)

func (s *DemoServer) answerInitialize(params json.RawMessage) ([]byte, *rpcError) {
	var p struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if err := json.Unmarshal(params, &p); err != nil || p.ProtocolVersion == "" {
		return nil, newRPCError(codeInvalidParams, "initialize needs protocolVersion")
	}
	version := p.ProtocolVersion
	if !slices.Contains(legacyVersions, version) {
		version = legacyVersions[0]
	}
	return encodeJSON(struct {
		ProtocolVersion string          `json:"protocolVersion"`
		Capabilities    json.RawMessage `json:"capabilities"`
		ServerInfo      serverInfo      `json:"serverInfo"`
		Instructions    string          `json:"instructions"`
	}{version, capabilities, s.implementationInfo(), s.instructions}), nil
}

func (s *DemoServer) answerDiscover() []byte {
	return encodeJSON(struct {
		SupportedVersions []string        `json:"supportedVersions"`
		Capabilities      json.RawMessage `json:"capabilities"`
		Instructions      string          `json:"instructions"`
		TTL               int             `json:"ttlMs"`
		Scope             string          `json:"cacheScope"`
	}{allVersions(), capabilities, s.instructions, 300_000, "public"})
}

// addResultMeta adds the members that every result of the stateless protocol versions has.
func (s *DemoServer) addResultMeta(object []byte) []byte {
	return slices.Concat(
		[]byte(`{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":`),
		encodeJSON(s.implementationInfo()), []byte(`},`), object[1:],
	)
}

func (s *DemoServer) listTools(params json.RawMessage, modern bool) ([]byte, *rpcError) {
	var p struct {
		Cursor string `json:"cursor"`
	}
	if len(params) > 0 && json.Unmarshal(params, &p) != nil {
		return nil, newRPCError(codeInvalidParams, "cursor must be a string")
	}
	page, next, err := pageByToken(s.definitions, "tools", p.Cursor, toolsPerPage)
	if err != nil {
		return nil, newRPCError(codeInvalidParams, "invalid cursor")
	}
	var list struct {
		Tools []json.RawMessage `json:"tools"`
		Next  string            `json:"nextCursor,omitempty"`
		TTL   int               `json:"ttlMs,omitempty"`
		Scope string            `json:"cacheScope,omitempty"`
	}
	for _, d := range page {
		list.Tools = append(list.Tools, d.raw)
	}
	list.Next = next
	if modern {
		list.TTL, list.Scope = 300_000, "public"
	}
	return encodeJSON(list), nil
}

func (s *DemoServer) callTool(ctx context.Context, params json.RawMessage) ([]byte, *rpcError) {
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, newRPCError(codeInvalidParams, "tools/call needs name and arguments: %v", err)
	}
	i := slices.IndexFunc(s.definitions, func(d *toolDefinition) bool { return d.name == p.Name })
	if i < 0 {
		return nil, newRPCError(codeInvalidParams, "unknown tool %q", p.Name)
	}
	if ctx.Err() != nil {
		return nil, newRPCError(codeInternal, "cancelled")
	}
	return s.runToolCall(ctx, s.definitions[i], p.Arguments), nil
}
