package demo

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
)

// client implements an MCP client that sends JSON-RPC lines to a server. It is safe for concurrent calls.
type client struct {
	t      testing.TB
	rw     io.ReadWriteCloser
	mu     sync.Mutex
	next   int
	answer map[int]chan reply
	gone   chan struct{} // closed when the server's output ends
}

type reply struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int
		Message string
		Data    json.RawMessage
	} `json:"error"`
}

// outcome holds the decoded result of a tool call.
type outcome struct {
	Content []struct {
		Type, Text, Data, MimeType, URI, Name string
		Resource                              struct{ URI, MimeType, Text, Blob string }
	}
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool
	raw        string
}

func (o outcome) text() string {
	var all []string
	for _, c := range o.Content {
		all = append(all, c.Text)
	}
	return strings.Join(all, "\n")
}

func open(t testing.TB, name string) (*client, *DemoServer) {
	t.Helper()
	s, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return connect(t, s), s
}

func connect(t testing.TB, s *DemoServer) *client {
	t.Helper()
	rw, err := s.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, rw: rw, answer: map[int]chan reply{}, gone: make(chan struct{})}
	go c.listen()
	t.Cleanup(func() { rw.Close() })
	return c
}

func (c *client) listen() {
	defer close(c.gone)
	lines := bufio.NewReader(c.rw)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var r reply
		if err := json.Unmarshal(line, &r); err != nil {
			panic(fmt.Sprintf("%v: %.200s", err, line))
		}
		c.mu.Lock()
		c.answer[r.ID] <- r
		c.mu.Unlock()
	}
}

func (c *client) request(method string, params any) reply {
	c.t.Helper()
	c.mu.Lock()
	c.next++
	id, ch := c.next, make(chan reply, 1)
	c.answer[id] = ch
	c.mu.Unlock()
	line := encodeJSON(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if _, err := c.rw.Write(append(line, '\n')); err != nil {
		c.t.Error(err)
		return reply{}
	}
	select {
	case r := <-ch:
		return r
	case <-c.gone:
		c.t.Errorf("%s: the server has ended without an answer", method)
		return reply{}
	}
}

// call calls a tool with arguments given as JSON. A protocol error fails the test.
func (c *client) call(tool, args string) outcome {
	c.t.Helper()
	r := c.request("tools/call", map[string]any{"name": tool, "arguments": json.RawMessage(args)})
	if r.Error != nil {
		c.t.Errorf("%s(%.200s): %s", tool, args, r.Error.Message)
		return outcome{}
	}
	o := outcome{raw: string(r.Result)}
	if err := json.Unmarshal(r.Result, &o); err != nil {
		c.t.Errorf("%s: %v", tool, err)
	}
	return o
}

// mustCall calls a tool and decodes its structured content or, without it, its text as JSON. An error ends the
// test.
func mustCall[T any](c *client, tool, args string) (v T) {
	c.t.Helper()
	o := c.call(tool, args)
	data := []byte(o.Structured)
	if data == nil {
		data = []byte(o.text())
	}
	if err := json.Unmarshal(data, &v); err != nil || o.IsError {
		c.t.Fatalf("%s(%.200s): %v: %.300s", tool, args, err, o.text())
	}
	return v
}
