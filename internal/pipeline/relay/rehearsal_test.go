package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"retort/internal/core"
	"retort/internal/policy"
)

// counting implements an upstream that numbers its answers.
type counting struct{ calls int }

func (c *counting) Call(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
	c.calls++
	return json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":"%d"}]}`, c.calls)), nil
}

// rehearse returns two functions that call a tool of box: one in a rehearsal and one in the real run after it. Both
// return the value that a program gets.
func rehearse(t *testing.T, upstream Upstream) (rehearsed, real func(tool, arguments string) string) {
	t.Helper()
	h, relay := NewRehearsal(), New(upstream, nil)
	run := func(x ExecutionContext) func(string, string) string {
		x.Rehearsal = h
		host, _ := relay.Open(x)
		return func(tool, arguments string) string {
			t.Helper()
			result, err := host.Call(t.Context(), core.ToolCall{Server: "box", Tool: tool, Arguments: json.RawMessage(arguments)})
			if err != nil {
				t.Fatal(err)
			}
			return string(result.Value)
		}
	}
	first := box(t)
	first.Rehearse = func(*core.Tool, core.ToolCall, policy.AccessDecision) *core.Error { return nil }
	rehearsed = run(first)
	second := run(box(t))
	return rehearsed, func(tool, arguments string) string {
		h.BeginRealRun()
		return second(tool, arguments)
	}
}

// TestRehearsedAnswers checks that the real run gets the answers of the rehearsal, each once and in their order.
func TestRehearsedAnswers(t *testing.T) {
	upstream := &counting{}
	rehearsed, real := rehearse(t, upstream)
	for _, want := range []string{"1", "2"} {
		if got := rehearsed("list_items", `{"a":1,"b":2}`); got != want {
			t.Errorf("the rehearsal got %s, want %s: it reuses nothing", got, want)
		}
	}
	rehearsed("list_items", `{"a":2}`)
	for _, want := range []string{"1", "2", "4"} {
		if got := real("list_items", `{"b":2,"a":1}`); got != want {
			t.Errorf("the real run got %s, want %s", got, want)
		}
	}
	if upstream.calls != 4 {
		t.Errorf("%d calls were sent, want 4", upstream.calls)
	}
}

// TestRehearsedEffects checks that no answers are kept or reused after the first call with effects, and that the
// rehearsal does not send that call.
func TestRehearsedEffects(t *testing.T) {
	upstream := &counting{}
	rehearsed, real := rehearse(t, upstream)
	rehearsed("list_items", `{"a":1}`)
	rehearsed("list_items", `{"a":2}`)
	rehearsed("put_item", `{}`)
	if upstream.calls != 2 {
		t.Fatal("the rehearsal sent a call with effects")
	}
	rehearsed("list_items", `{"a":3}`)
	if got := real("list_items", `{"a":1}`); got != "1" {
		t.Errorf("got %s, want the answer of the rehearsal, 1", got)
	}
	if got := real("list_items", `{"a":3}`); got != "4" {
		t.Errorf("got %s: an answer was kept that may depend on a call that was not made", got)
	}
	real("put_item", `{}`)
	if got := real("list_items", `{"a":2}`); got != "6" {
		t.Errorf("got %s: an answer was reused after a call that may have changed it", got)
	}
}

// TestRehearsedAnswersExpire checks that answers are not reused after maxAnswerAge, as when a person needed long to
// decide.
func TestRehearsedAnswersExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rehearsed, real := rehearse(t, &counting{})
		rehearsed("list_items", `{"a":1}`)
		rehearsed("list_items", `{"a":2}`)
		time.Sleep(maxAnswerAge)
		if got := real("list_items", `{"a":1}`); got != "1" {
			t.Errorf("got %s, want 1", got)
		}
		time.Sleep(time.Nanosecond)
		if got := real("list_items", `{"a":2}`); got != "3" {
			t.Errorf("got %s, an answer that is too old", got)
		}
	})
}

// TestUnknownArguments checks that a rehearsal sends no call whose arguments depend on the result of a call that it did
// not make.
func TestUnknownArguments(t *testing.T) {
	upstream := &counting{}
	h := NewRehearsal()
	x := box(t)
	x.Rehearsal = h
	put, _ := x.Tools.FindExact("box", "put_item")
	put.OutputSchema = json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"id":{"type":"integer"}}}`)
	x.Rehearse = func(*core.Tool, core.ToolCall, policy.AccessDecision) *core.Error { return nil }
	host, _ := New(upstream, nil).Open(x)
	call := func(tool string, arguments any) json.RawMessage {
		raw, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		result, err := host.Call(t.Context(), core.ToolCall{Server: "box", Tool: tool, Arguments: raw})
		if err != nil {
			t.Fatal(err)
		}
		return result.Value
	}
	var made struct {
		Name string
		ID   json.RawMessage
	}
	if err := json.Unmarshal(call("put_item", map[string]any{}), &made); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range []any{map[string]any{"name": "of " + made.Name}, map[string]any{"id": made.ID}} {
		call("list_items", arguments)
	}
	if upstream.calls != 0 {
		t.Errorf("%d calls with placeholders in their arguments were sent", upstream.calls)
	}
}

// TestRehearsalAndCache checks that neither placeholders nor answers of a rehearsal are stored in the shared cache, and
// that a call that only reads is sent although its arguments contain the word undefined.
func TestRehearsalAndCache(t *testing.T) {
	upstream := &counting{}
	answers := &shelf{kept: map[string]json.RawMessage{}}
	relay, h := New(upstream, NewCache(answers, nil)), NewRehearsal()
	x := box(t)
	x.Rehearsal = h
	call := func(x ExecutionContext, arguments string) string {
		host, _ := relay.Open(x)
		result, err := host.Call(t.Context(), core.ToolCall{Server: "box", Tool: "get_item", Arguments: json.RawMessage(arguments)})
		if err != nil {
			t.Fatal(err)
		}
		return string(result.Value)
	}
	first := x
	first.Rehearse = func(*core.Tool, core.ToolCall, policy.AccessDecision) *core.Error { return nil }
	placeholder := h.placeholderFor(&core.Tool{})
	call(first, `{"id":`+string(placeholder)+`}`)
	if upstream.calls != 0 || len(answers.kept) != 0 {
		t.Errorf("a call with a placeholder: %d calls were sent, and %d answers are cached", upstream.calls, len(answers.kept))
	}
	if got := call(first, `{"q":"undefined is not a function"}`); got != "1" {
		t.Errorf("got %s, want the server's answer", got)
	}
	clear(answers.kept)
	h.BeginRealRun()
	if got := call(x, `{"q":"undefined is not a function"}`); got != "1" || len(answers.kept) != 0 {
		t.Errorf("got %s, want the answer of the rehearsal; %d answers are cached", got, len(answers.kept))
	}
}

// TestRehearsedAnswersAreNotFresh checks that a call which accepts no earlier answer is sent in the real run, too.
func TestRehearsedAnswersAreNotFresh(t *testing.T) {
	upstream := &counting{}
	relay, h := New(upstream, nil), NewRehearsal()
	for _, real := range []bool{false, true} {
		x := box(t)
		x.Rehearsal = h
		if real {
			h.BeginRealRun()
		}
		host, _ := relay.Open(x)
		if _, err := host.Call(t.Context(), core.ToolCall{Tool: "call", Arguments: json.RawMessage(`{"name":"box.list_items","arguments":{},"no_cache":true}`)}); err != nil {
			t.Fatal(err)
		}
	}
	if upstream.calls != 2 {
		t.Errorf("%d calls were sent, want 2", upstream.calls)
	}
}
