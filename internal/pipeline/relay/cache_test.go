package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"retort/internal/core"
	"retort/internal/policy"
)

// shelf implements AnswerStore in memory.
type shelf struct {
	mu   sync.Mutex
	kept map[string]json.RawMessage
}

func (s *shelf) Get(server, key string) (json.RawMessage, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.kept[server+"\x01"+key]
	return v, ok
}

func (s *shelf) Put(server, key string, value json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[server+"\x01"+key] = value
}

func (s *shelf) Forget(server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.kept {
		if strings.HasPrefix(key, server+"\x01") {
			delete(s.kept, key)
		}
	}
}

var yes = true

// box returns an ExecutionContext with one server, which has two tools that read and one that writes.
func box(t *testing.T) ExecutionContext {
	t.Helper()
	tool := func(name string, a core.ToolAnnotations) *core.Tool {
		return &core.Tool{Server: "box", Name: name, TypeScript: name, Python: name, InputSchema: json.RawMessage(`{"type":"object"}`), Pin: name, Annotations: a}
	}
	rules, err := policy.New(policy.Rules{AccessLimits: policy.AccessLimits{Level: policy.ExecuteFull}})
	if err != nil {
		t.Fatal(err)
	}
	return ExecutionContext{
		ID: "x", Policy: rules.ViewFor(""), Limits: core.DefaultLimits(), Files: drawer{}, Scope: "me",
		Tools: core.NewToolset([]*core.ToolServer{{Name: "box", TypeScript: "box", Python: "box", Tools: []*core.Tool{
			tool("get_item", core.ToolAnnotations{ReadOnly: &yes, Idempotent: &yes}), tool("list_items", core.ToolAnnotations{ReadOnly: &yes}), tool("put_item", core.ToolAnnotations{}),
		}}}),
	}
}

func TestCache(t *testing.T) {
	up := &recorder{answer: `{"content":[{"type":"text","text":"1"}]}`}
	relay := New(up, NewCache(&shelf{kept: map[string]json.RawMessage{}}, func(t *core.Tool) bool { return t.Name == "put_item" }))
	x := box(t)
	call := func(x ExecutionContext, tool, arguments string) *CallCounter {
		t.Helper()
		host, tally := relay.Open(x)
		if _, err := host.Call(t.Context(), core.ToolCall{Server: "box", Tool: tool, Arguments: json.RawMessage(arguments)}); err != nil {
			t.Fatal(err)
		}
		return tally
	}
	other, fresh, changed := x, x, box(t)
	other.Scope, fresh.NoCache = "you", true
	changed.Tools.Servers[0].Tools[0].Pin = "another"
	for i, c := range []struct {
		x         ExecutionContext
		tool      string
		arguments string
		hit       bool
	}{
		{x, "get_item", `{"a":1,"b":9007199254740993}`, false},
		{x, "get_item", `{ "b":9007199254740993, "a":1 }`, true},
		{x, "get_item", `{"a":1,"b":9007199254740992}`, false},
		{other, "get_item", `{"a":1,"b":9007199254740993}`, false},
		{fresh, "get_item", `{"a":1,"b":9007199254740993}`, false},
		{changed, "get_item", `{"a":1,"b":9007199254740993}`, false},
		{x, "list_items", `{}`, false}, {x, "list_items", `{}`, false}, // it does not say that it is idempotent
		{x, "get_item", `{"a":1,"b":9007199254740993}`, true},
		{x, "put_item", `{}`, false}, {x, "put_item", `{}`, false}, // it is listed, and may have effects
		{x, "get_item", `{"a":1,"b":9007199254740993}`, false}, // something was put since
	} {
		before := len(up.calls)
		tally := call(c.x, c.tool, c.arguments)
		total, _ := tally.CallCounts()
		if made := len(up.calls) - before; c.hit != (made == 0) || tally.CacheHits()+made != 1 || total != made {
			t.Errorf("%d %s %s: %d calls made, %d counted, %d answers from the cache", i, c.tool, c.arguments, made, total, tally.CacheHits())
		}
	}
}

// TestCacheKeepsNoErrorsAndNoFiles checks that errors, and results with files, are not cached.
func TestCacheKeepsNoErrorsAndNoFiles(t *testing.T) {
	for _, answer := range []string{`{"content":[{"type":"text","text":"no"}],"isError":true}`, `{"content":[{"type":"image","data":"UE5H","mimeType":"image/png"}]}`} {
		up := &recorder{answer: answer}
		relay := New(up, NewCache(&shelf{kept: map[string]json.RawMessage{}}, nil))
		for range 2 {
			host, _ := relay.Open(box(t))
			_, _ = host.Call(t.Context(), core.ToolCall{Server: "box", Tool: "get_item", Arguments: json.RawMessage(`{}`)})
		}
		if len(up.calls) != 2 {
			t.Errorf("%s: %d calls", answer, len(up.calls))
		}
	}
}

// gate implements an Upstream whose calls wait until the test sends the error that they return.
type gate struct {
	recorder
	open chan error
}

func (g *gate) Call(ctx context.Context, server, tool string, arguments json.RawMessage) (json.RawMessage, error) {
	answer, _ := g.recorder.Call(ctx, server, tool, arguments)
	select {
	case err := <-g.open:
		return answer, err
	case <-ctx.Done():
		return nil, core.Errorf(core.KindCancelled, "test", "cancelled")
	}
}

// TestCacheSingleFlight checks that equal calls at the same time become one call. If that call fails, another one is
// made for the callers that wait.
func TestCacheSingleFlight(t *testing.T) {
	up := &gate{recorder: recorder{answer: `{"content":[{"type":"text","text":"1"}]}`}, open: make(chan error)}
	relay := New(up, NewCache(&shelf{kept: map[string]json.RawMessage{}}, nil))
	host, tally := relay.Open(box(t))
	var all sync.WaitGroup
	results := make(chan string, 20)
	for range 20 {
		all.Go(func() {
			results <- outcome(host.Call(t.Context(), core.ToolCall{Server: "box", Tool: "get_item", Arguments: json.RawMessage(`{}`)}))
		})
	}
	up.open <- core.Errorf(core.KindUpstreamGone, "test", "it died")
	up.open <- nil
	all.Wait()
	close(results)
	counts := map[string]int{}
	for r := range results {
		counts[r]++
	}
	if fmt.Sprint(counts) != "map[1:19 error upstream_gone: it died:1]" || len(up.calls) != 2 || tally.CacheHits() != 18 {
		t.Errorf("%v, %d calls, %d from the cache", counts, len(up.calls), tally.CacheHits())
	}
}
