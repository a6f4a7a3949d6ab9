package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/devel/testenv"
)

// TestOddMessagesOfClient checks that the server, other requests and a running program continue whatever a client
// writes.
func TestOddMessagesOfClient(t *testing.T) {
	for _, era := range []string{"2024-11-05", "2025-03-26", "2025-11-25", multiRoundTrip} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			c := speak(t, era)
			defer c.close()
			c.write(c.request("77", "execute_code", `{"code":"wait"}`))
			testenv.Receive(t, c.began, "the program")
			messages := testenv.OddMessages("77", `"sync-2"`, `"sync-1"`, "1")
			if len(messages) < 80 {
				t.Fatalf("only %d messages", len(messages))
			}
			c.sync()
			for _, m := range messages {
				c.asked = 1
				c.write(strings.TrimRight(m.Text, "\n"))
				for _, answer := range c.sync() {
					if strings.Contains(answer, "Retort failed while") || strings.Contains(answer, `"id":77,"result"`) {
						t.Errorf("%s: %.300s", m.Name, answer)
					}
				}
				if t.Failed() {
					t.Fatalf("after %s", m.Name)
				}
			}
			c.write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}`)
			testenv.WaitUntil(t, "the program can be cancelled, so that its id is free", func() bool {
				c.write(c.request("77", "get_execution_stats", "{}"))
				return strings.Contains(strings.Join(append(c.sync(), c.sync()...), "\n"), `"id":77,`)
			})
		})
	}
}

// TestUnencodableAnswers checks that ensureEncodable replaces errors and results that cannot be encoded as JSON
// before the SDK encodes them.
func TestUnencodableAnswers(t *testing.T) {
	answer := func(result mcp.Result, err error) (mcp.Result, error) {
		return ensureEncodable(func(context.Context, string, mcp.Request) (mcp.Result, error) { return result, err })(t.Context(), "x", nil)
	}
	for _, uri := range []string{"\x00", "\a", "\x7f", "\xff", "\U000e0041", "plain"} {
		_, err := answer(nil, fmt.Errorf("wrapped: %w", mcp.ResourceNotFoundError(uri)))
		var failure *jsonrpc.Error
		if !errors.As(err, &failure) || failure.Code != jsonrpc.CodeInvalidParams || len(failure.Data) > 0 && !json.Valid(failure.Data) {
			t.Errorf("%q: %v", uri, err)
		}
	}
	if _, err := answer(&exactResult{raw: json.RawMessage("{\"a\":\"\x00\"}")}, nil); err == nil {
		t.Error("a result that is not JSON is sent")
	}
	if result, err := answer(&exactResult{raw: json.RawMessage(`{}`)}, nil); err != nil || result == nil {
		t.Error(result, err)
	}
}
