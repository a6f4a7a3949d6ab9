package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/policy"
	"retort/internal/sandbox"
)

// lister implements an upstream that returns pages, one after the other.
type lister struct {
	recorder
	pages []string
}

func (l *lister) Call(ctx context.Context, server, tool string, arguments json.RawMessage) (json.RawMessage, error) {
	_, _ = l.recorder.Call(ctx, server, tool, arguments)
	page := l.pages[min(len(l.calls), len(l.pages))-1]
	return json.RawMessage(`{"structuredContent":` + page + `}`), nil
}

// listing returns an ExecutionContext with a tool that has the parameters cursor and mail.
func listing(t *testing.T) ExecutionContext {
	t.Helper()
	rules, err := policy.New(policy.Rules{AccessLimits: policy.AccessLimits{Level: policy.ExecuteFull}})
	if err != nil {
		t.Fatal(err)
	}
	tool := &core.Tool{
		Server: "box", Name: "list_items", TypeScript: "listItems", Python: "list_items", Pin: "list_items", Annotations: core.ToolAnnotations{ReadOnly: &yes},
		InputSchema: json.RawMessage(`{"type":"object","properties":{"cursor":{"type":"string"},"mail":{"type":"string"}},"additionalProperties":false}`),
	}
	return ExecutionContext{
		ID: "x", Policy: rules.ViewFor(""), Limits: core.DefaultLimits(), Files: drawer{},
		Tools: core.NewToolset([]*core.ToolServer{{Name: "box", TypeScript: "box", Python: "box", Tools: []*core.Tool{tool}}}),
	}
}

func askPage(t *testing.T, host sandbox.ToolHost, arguments string, list int) string {
	t.Helper()
	return outcome(host.Call(t.Context(), core.ToolCall{
		Tool: "page", Arguments: json.RawMessage(fmt.Sprintf(`{"server":"box","tool":"list_items","arguments":%s,"list":%d}`, arguments, list)),
	}))
}

// TestPages checks that each page is an ordinary call of the tool, and that a page can be read once.
func TestPages(t *testing.T) {
	up := &lister{pages: []string{`{"items":[{"n":9007199254740993}],"next_cursor":"b"}`, `{"items":[{"n":2}],"next_cursor":null}`}}
	host, tally := New(up, nil).Open(listing(t))
	for i, c := range []struct {
		list int
		want string
	}{
		{0, `{"items":[{"n":9007199254740993}],"list":1}`},
		{1, `{"items":[{"n":2}]}`},
		{1, "error limit: the list of box.list_items can no longer be continued"},
		{7, "error limit: the list of box.list_items can no longer be continued"},
	} {
		if got := askPage(t, host, `{}`, c.list); !strings.HasPrefix(got, c.want) {
			t.Errorf("%d is %s, want %s", i, got, c.want)
		}
	}
	total, _ := tally.CallCounts()
	if got := strings.Join(up.calls, "; "); got != `box list_items {}; box list_items {"cursor":"b"}` || total != 2 {
		t.Errorf("%s, %d counted", got, total)
	}
}

// TestPagesAreBounded checks that the limit on calls ends a list without an end, and that later guards judge each page.
func TestPagesAreBounded(t *testing.T) {
	up := &lister{}
	for i := range 20 {
		up.pages = append(up.pages, fmt.Sprintf(`{"items":[%d],"next_cursor":"c%d"}`, i, i))
	}
	x := listing(t)
	x.Limits.ToolCalls = 5
	host, _ := New(up, nil).Open(x)
	got, pages := askPage(t, host, `{}`, 0), 1
	for ; strings.Contains(got, `"list"`) && pages < 20; pages++ {
		got = askPage(t, host, `{}`, 1)
	}
	if !strings.HasPrefix(got, "error limit: ") || pages != 6 || len(up.calls) != 5 {
		t.Errorf("page %d, %d calls: %s", pages, len(up.calls), got)
	}
	if got := askPage(t, host, `{"wrong":1}`, 0); !strings.HasPrefix(got, "error ") || len(up.calls) != 5 {
		t.Errorf("%d calls: %s", len(up.calls), got)
	}
}

// TestPagesRefuse checks requests for pages that no guest of Retort makes, and answers that have no pages.
func TestPagesRefuse(t *testing.T) {
	for arguments, want := range map[string]string{
		`[]`: "error invalid_arguments: pages: ",
		`{}`: "error invalid_arguments: pages takes a tool of a server",
		`{"server":"box","tool":"list_items","arguments":[1]}`: "error invalid_arguments: pages takes a tool of a server",
		`{"server":"box","tool":"other"}`:                      "error tool_not_found: ",
		`{"server":"box","tool":"list_items"}`:                 "error tool_error: pages cannot read box.listItems: its answer has no list of items",
	} {
		up := &lister{pages: []string{`{"name":"x"}`}}
		host, _ := New(up, nil).Open(listing(t))
		if got := outcome(host.Call(t.Context(), core.ToolCall{Tool: "page", Arguments: json.RawMessage(arguments)})); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %s, want %s", arguments, got, want)
		}
	}
}

// TestPagesOfFiles checks that a page that was saved as a file is an error, whose kind says that the program must read
// the file.
func TestPagesOfFiles(t *testing.T) {
	up := &recorder{answer: `{"content":[{"type":"image","data":"UE5H","mimeType":"image/png"},{"type":"text","text":"1"}]}`}
	host, _ := New(up, nil).Open(listing(t))
	if got := askPage(t, host, `{}`, 0); !strings.HasPrefix(got, "error tool_error: a page of box.list_items was saved as a file") {
		t.Error(got)
	}
}

// TestPagesKeepTokens checks that a cursor with a token for personal data goes through the program as a token and to
// the server as the value.
func TestPagesKeepTokens(t *testing.T) {
	up := &lister{pages: []string{`{"items":[1],"next_cursor":"after ada@x.io"}`, `{"items":[2]}`}}
	x := listing(t)
	x.Privacy = swap{"ada@x.io", "[EMAIL_1]"}
	host, _ := New(up, nil).Open(x)
	got := askPage(t, host, `{"mail":"[EMAIL_1]"}`, 0) + askPage(t, host, `{"mail":"[EMAIL_1]"}`, 1)
	if got != `{"items":[1],"list":1}{"items":[2]}` || up.calls[1] != `box list_items {"mail":"ada@x.io","cursor":"after ada@x.io"}` {
		t.Errorf("%s by %s", got, up.calls)
	}
}

// TestOpenLists checks that lists which nobody continues take up a bounded amount of memory.
func TestOpenLists(t *testing.T) {
	up := &lister{pages: []string{`{"items":[1],"next_cursor":"b"}`}}
	x := listing(t)
	x.Limits.ToolCalls = 2 * maxOpenLists
	host, _ := New(up, nil).Open(x)
	for range maxOpenLists + 1 {
		if got := askPage(t, host, `{}`, 0); !strings.Contains(got, `"list"`) {
			t.Fatal(got)
		}
	}
	first, second := askPage(t, host, `{}`, 1), askPage(t, host, `{}`, 2)
	if !strings.HasPrefix(first, "error limit: ") || !strings.Contains(second, "same items on page 2") {
		t.Errorf("%s; %s", first, second)
	}
}

// swap implements a PrivacyFilter that knows one value and its token.
type swap struct{ value, token string }

func (s swap) Incoming(_ string, document []byte) ([]byte, error) {
	return []byte(strings.ReplaceAll(string(document), s.value, s.token)), nil
}

func (s swap) Restore(_ string, arguments, _ json.RawMessage) (json.RawMessage, string, *core.Error) {
	return json.RawMessage(strings.ReplaceAll(string(arguments), s.token, s.value)), "", nil
}
