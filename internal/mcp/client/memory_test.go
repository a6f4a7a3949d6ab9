//go:build unix

package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"retort/internal/base/memory"
	"retort/internal/core"
	"retort/internal/devel/testenv"
)

// answering returns an HTTP server whose answers to calls are about n bytes long. Each answer contains the arguments
// of its call.
func answering(n int, events bool) http.HandlerFunc {
	return largeAnswers(events, func(arguments string) string {
		return `{"content":[{"type":"text","text":"` + strings.Repeat("x", n) + `"}],"structuredContent":` + arguments + `}`
	})
}

// largeAnswers returns an HTTP server whose answer to a call is computed by the function result from the call's
// arguments. The answer has the form of JSON or, if events is set, of an event stream.
func largeAnswers(events bool, result func(arguments string) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Arguments json.RawMessage }
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		answer := result(string(m.Params.Arguments))
		if m.Method == "initialize" {
			answer = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`
		}
		switch {
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case m.Method != "initialize" && m.Method != "tools/call":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
		case events:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", m.ID, answer)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, answer)
		}
	}
}

// fetchAll calls a tool many times concurrently and passes each answer to check.
func fetchAll(t *testing.T, p *Pool, calls int, check func(i int, result []byte, claim *core.MemoryClaim)) {
	t.Helper()
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			ctx, claim := core.WithClaim(testenv.Context(t), fmt.Sprint("execution ", i))
			defer claim.Free()
			result, large, err := p.Fetch(ctx, "s", "get", []byte(fmt.Sprintf(`{"n":%d}`, i)))
			if err != nil || large != nil {
				t.Errorf("call %d: %v, %v", i, err, large)
				return
			}
			check(i, result, claim)
		})
	}
	all.Wait()
}

// TestAnswersBeyondTheBudgetWait checks that answers wait on disk while there is no room for them in memory. No
// answer may be lost or changed, and only as many answers as fit may be in memory at the same time.
func TestAnswersBeyondTheBudgetWait(t *testing.T) {
	const n, calls = 1 << 20, 24
	for name, events := range map[string]bool{"json": false, "events": true} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(answering(n, events))
			defer srv.Close()
			budget := memory.New(1) // the least there is
			defer budget.Close()
			p := newPool(t, Options{Memory: budget, Spool: SpoolOptions{Dir: t.TempDir(), Bytes: 128 << 20}}, ServerSpec{Name: "s", URL: srv.URL})
			var mu sync.Mutex
			var held, most int64
			fetchAll(t, p, calls, func(i int, result []byte, claim *core.MemoryClaim) {
				mu.Lock()
				held += int64(len(result))
				most = max(most, held)
				mu.Unlock()
				if !bytes.HasSuffix(result, []byte(fmt.Sprintf(`"structuredContent":{"n":%d}}`, i))) || len(result) < n {
					t.Errorf("call %d is answered with %d bytes that end with %s", i, len(result), result[max(0, len(result)-40):])
				}
				mu.Lock()
				held -= int64(len(result))
				mu.Unlock()
				claim.FinishTransformation(0)
			})
			if most > calls*n/2 {
				t.Errorf("%d bytes of answers in memory at once", most)
			}
			if fresh, room := budget.FreshPool().UsedBytes(), p.servers["s"].main.connect.spool.room.UsedBytes(); fresh != 0 || room != 0 {
				t.Errorf("left: %d bytes in memory, %d on disk", fresh, room)
			}
		})
	}
}

// TestWaitingForMemoryEndsWithTheCall checks that a call whose answer waits for memory ends with its context, with an
// error that says so, and that nothing stays on disk.
func TestWaitingForMemoryEndsWithTheCall(t *testing.T) {
	srv := httptest.NewServer(answering(1<<20, false))
	defer srv.Close()
	budget := memory.New(1)
	defer budget.Close()
	p := newPool(t, Options{Memory: budget, Spool: SpoolOptions{Dir: t.TempDir(), Bytes: 128 << 20}}, ServerSpec{Name: "s", URL: srv.URL})
	ctx, hog := core.WithClaim(t.Context(), "hog")
	if err := budget.AdmitAnswer(ctx, hog, "another server", 1<<40); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, _, err := p.Fetch(ctx, "s", "get", []byte(`{}`))
		ended <- err
	}()
	testenv.WaitUntil(t, "the answer waits", budget.HasWaiters)
	cancel()
	err := testenv.Receive(t, ended, "the end of the call")
	if !errors.Is(err, context.Canceled) || core.AsError(err).Kind != core.KindLimit || errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("error %v", err)
	}
	hog.Free()
	if fresh, room := budget.FreshPool().UsedBytes(), p.servers["s"].main.connect.spool.room.UsedBytes(); fresh != 0 || room != 0 || budget.HasWaiters() {
		t.Errorf("left: %d bytes in memory, %d on disk", fresh, room)
	}
}

// TestSmallAnswersDoNotWait checks that small answers of a server arrive while another server uses all memory.
func TestSmallAnswersDoNotWait(t *testing.T) {
	srv := httptest.NewServer(answering(memory.Small/2, false))
	defer srv.Close()
	budget := memory.New(1)
	defer budget.Close()
	p := newPool(t, Options{Memory: budget, Spool: SpoolOptions{Dir: t.TempDir(), Bytes: 1 << 20}}, ServerSpec{Name: "s", URL: srv.URL})
	ctx, hog := core.WithClaim(t.Context(), "hog")
	defer hog.Free()
	if err := budget.AdmitAnswer(ctx, hog, "another server", 1<<40); err != nil {
		t.Fatal(err)
	}
	budget.FreshPool().ForceTake("another server", 1<<40)
	fetchAll(t, p, 8, func(int, []byte, *core.MemoryClaim) {})
}
