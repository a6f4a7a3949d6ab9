package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"retort/internal/core"
	"retort/internal/devel/testenv"
)

// quickEngine is an engine whose programs end immediately, except the program "wait", which waits for the end of its
// context.
type quickEngine struct {
	*engine
	began chan struct{}
}

func (b quickEngine) Execute(ctx context.Context, r core.ExecutionRequest) core.Outcome {
	if r.Code == "wait" {
		b.began <- struct{}{}
		<-ctx.Done()
		return core.Outcome{ExecutionID: "x1", Status: core.StatusCancelled}
	}
	return core.Outcome{ExecutionID: "x1", Status: core.StatusOK, Result: json.RawMessage(`1`)}
}

func (b quickEngine) Decide(string, string, core.ApprovalAnswer) error { return nil }

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// lineClient is a client that writes arbitrary lines to a server's input stream.
type lineClient struct {
	t     testing.TB
	era   string
	began chan struct{}
	in    *io.PipeWriter
	lines chan string
	done  chan error
	asked int
}

// speak starts a server and connects a client that writes arbitrary lines to it. The argument era
// is the protocol version that the client uses.
func speak(t testing.TB, era string) *lineClient {
	t.Helper()
	began := make(chan struct{}, 1)
	s, err := New(quickEngine{newEngine(), began}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	c := &lineClient{t: t, era: era, began: began, in: toServer, lines: make(chan string, 10_000), done: make(chan error, 1)}
	go func() {
		c.done <- s.ServeLines(context.Background(), fromClient, toClient)
		_ = toClient.Close()
		s.Close()
	}()
	go func() {
		defer close(c.lines)
		answers := bufio.NewScanner(fromServer)
		answers.Buffer(nil, 32<<20)
		for answers.Scan() {
			c.lines <- answers.Text()
		}
	}()
	if era != multiRoundTrip {
		c.write(strings.Replace(hello, "2025-11-25", era, 1))
		testenv.Receive(t, c.lines, "the answer to initialize")
	}
	return c
}

func (c *lineClient) write(text string) {
	if _, err := io.WriteString(c.in, strings.TrimSuffix(text, "\n")+"\n"); err != nil {
		c.t.Errorf("the server does not read any more: %v", err)
	}
}

// request returns a tools/call message in the form of the client's protocol version.
func (c *lineClient) request(id, tool, arguments string) string {
	meta := `"_meta":{}`
	if c.era == multiRoundTrip {
		meta = modernMeta
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s,%s}}`, id, tool, arguments, meta)
}

// sync makes a request that always succeeds and waits for its answer. It returns the lines that the server has sent
// before this answer.
func (c *lineClient) sync() (before []string) {
	c.t.Helper()
	c.asked++
	id := fmt.Sprintf(`"sync-%d"`, c.asked)
	c.write(c.request(id, "get_execution_stats", "{}"))
	for {
		text := testenv.Receive(c.t, c.lines, "an answer")
		switch {
		case text == "":
			c.t.Fatalf("the server has ended; before that it said %q", before)
		case !json.Valid([]byte(text)):
			c.t.Fatalf("not JSON: %q", text)
		case strings.Contains(text, `"id":`+id) && strings.Contains(text, `"result":`):
			return before
		}
		before = append(before, text)
	}
}

// close ends the input stream and checks that the server then stops without an error.
func (c *lineClient) close() {
	c.t.Helper()
	_ = c.in.Close()
	if err := testenv.Receive(c.t, c.done, "the end of Serve"); err != nil {
		c.t.Errorf("Serve: %v", err)
	}
}

// oddLines maps each line of a client to a text that the server's answer must contain. An empty text means that the
// server must not answer.
var oddLines = map[string]string{
	`{}`: `"id":null,"error":{"code":-32600,`, `[]`: `-32600`, `7`: `-32600`, `null`: `-32600`, `"x"`: `-32600`, `true`: `-32600`, `[[]]`: `-32600`, `[1,2]`: `-32600`,
	`nonsense`: `-32700`, `{"jsonrpc":"2.0"`: `-32700`, `{} {}`: `-32700`, "\ufeff{}": `-32700`, "{}\x00": `-32700`,
	`{"jsonrpc":"2.0","id":7}`:                                                       `"id":null,"error":{"code":-32600,`,
	`{"id":7,"method":"ping"}`:                                                       `"id":7,"error":{"code":-32600,`,
	`{"jsonrpc":"1.0","id":7,"method":"ping"}`:                                       `"id":7,"error":{"code":-32600,`,
	`{"jsonrpc":2.0,"id":"a","method":"ping"}`:                                       `"id":"a","error":{"code":-32600,`,
	`{"jsonrpc":null,"id":7,"method":"ping"}`:                                        `-32600`,
	`{"jsonrpc":"2.0","id":true,"method":"ping"}`:                                    `"id":null,"error":{"code":-32600,`,
	`{"jsonrpc":"2.0","id":{},"method":"ping"}`:                                      `-32600`,
	`{"jsonrpc":"2.0","id":[1],"method":"ping"}`:                                     `-32600`,
	`{"jsonrpc":"2.0","id":null,"method":"ping"}`:                                    `-32600`,
	`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`:                                     `-32600`,
	`{"jsonrpc":"2.0","id":1e999,"method":"ping"}`:                                   `-32600`,
	`{"jsonrpc":"2.0","id":9007199254740993123,"method":"ping"}`:                     `-32600`,
	`{"jsonrpc":"2.0","id":7,"method":7}`:                                            `"id":7,"error":{"code":-32600,`,
	`{"jsonrpc":"2.0","id":7,"method":null}`:                                         `-32600`,
	`{"jsonrpc":"2.0","id":7,"method":["ping"]}`:                                     `-32600`,
	`{"jsonrpc":"2.0","id":70,"method":"","params":{` + modernMeta + `}}`:            `-32601`,
	`{"jsonrpc":"2.0","id":7,"method":"tools/list","params":7}`:                      `-3260`,
	`[{"jsonrpc":"2.0","id":7,"method":"ping"}]`:                                     `-32600`,
	`{"JSONRPC":"2.0","ID":7,"METHOD":"ping"}`:                                       `-32600`,
	`{"jsonrpc":"2.0","method":"ping","id":{"x":` + strings.Repeat("[", 20_000):      `-32700`,
	`{"jsonrpc":"2.0","method":7}`:                                                   `-32600`,
	`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}`:             ``,
	`{"jsonrpc":"2.0","id":"nobody","result":7}`:                                     ``,
	`{"jsonrpc":"2.0","id":1,"error":"no"}`:                                          ``,
	`{"jsonrpc":"2.0","id":[],"result":{}}`:                                          ``,
	`{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":7}}`:                      ``,
	`{"jsonrpc":"2.0","result":{}}`:                                                  ``,
	`{"jsonrpc":"2.0","method":"notifications/cancelled"}`:                           ``,
	`{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}`:               ``,
	`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`: ``,
	`{"jsonrpc":"2.0","method":"notifications/progress","params":"x"}`:               ``,
	`{"jsonrpc":"2.0","method":"notifications/nobody","params":{"a":` + strings.Repeat(`[`, 1500) + strings.Repeat(`]`, 1500) + `}}`: ``,
}

// TestOddLines checks that lines that are not valid messages are answered with an error as JSON-RPC requires, or
// ignored, and that the connection continues.
func TestOddLines(t *testing.T) {
	for _, era := range []string{"2025-11-25", multiRoundTrip} {
		t.Run(era, func(t *testing.T) {
			c := speak(t, era)
			defer c.close()
			for line, want := range oddLines {
				if strings.Contains(line, "tools/list") && era != multiRoundTrip {
					line = strings.Replace(line, "7}", `"x"}`, 1)
				}
				c.write(line)
				got := strings.Join(c.sync(), "\n")
				if want != "" { // some answers are made meanwhile
					testenv.WaitUntil(t, "there is an answer to "+line[:min(len(line), 200)], func() bool {
						got += strings.Join(c.sync(), "\n")
						return got != ""
					})
				}
				if !strings.Contains(got, want) || (got == "") != (want == "") {
					t.Errorf("%.200s: %q, want %q", line, got, want)
				}
			}
		})
	}
}

// TestOddCancellations checks that a cancellation ends only the request that it names, and that it is ignored if that
// request has not arrived yet or was already answered.
func TestOddCancellations(t *testing.T) {
	for _, era := range []string{"2025-11-25", multiRoundTrip} {
		t.Run(era, func(t *testing.T) {
			c := speak(t, era)
			defer c.close()
			cancel := func(id string) {
				c.write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
			}
			for _, id := range []string{`8`, `"8"`, `8.0`, `null`, `true`, `[8]`, `{}`, `1.5`, `1e999`, `""`} {
				cancel(id)
			}
			c.write(c.request("8", "execute_code", `{"code":"at once"}`))
			got := c.sync()
			testenv.WaitUntil(t, "the request has its answer", func() bool {
				got = append(got, c.sync()...)
				return strings.Contains(strings.Join(got, "\n"), `"id":8,`)
			})
			if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, `"id":8,`) && strings.Contains(s, `"status":"ok"`) }) {
				t.Errorf("a request that was cancelled before it came is not answered: %q", got)
			}
			cancel("8") // it was answered
			// Another id, since a client may not use one twice; the SDK forgets one a moment after its answer.
			c.write(c.request("9", "execute_code", `{"code":"wait"}`))
			testenv.Receive(t, c.began, "the program")
			cancel(`"9"`) // a text is another id than a number
			c.write(c.request("9", "execute_code", `{"code":"at once"}`))
			if got := strings.Join(c.sync(), "\n"); !strings.Contains(got, `"id":null`) || !strings.Contains(got, "another request with the id 9 has no answer yet") {
				t.Errorf("an id that is in use: %s", got)
			}
			cancel("9")
			cancel("9")
			testenv.WaitUntil(t, "the id can be used again", func() bool {
				c.write(c.request("9", "get_execution_stats", "{}"))
				return slices.ContainsFunc(append(c.sync(), c.sync()...), func(s string) bool { return strings.Contains(s, `"id":9,`) })
			})
		})
	}
}

// TestCancelInitialize checks that cancelRequest cancels a pending request, but neither initialize nor an unknown
// request.
func TestCancelInitialize(t *testing.T) {
	c := &lineConn{calls: nil}
	c.calls = map[jsonrpc.ID]*inCall{idOf(t, "1"): {initialize: true}, idOf(t, "2"): {}}
	for id, want := range map[string]bool{"1": false, "2": true, "3": false} {
		if got := c.cancelRequest(json.RawMessage(`{"requestId":` + id + `}`)); got != want {
			t.Errorf("request %s: cancelled %v, want %v", id, got, want)
		}
	}
}

func idOf(t *testing.T, raw string) jsonrpc.ID {
	t.Helper()
	id, err := parseID(json.RawMessage(raw))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestBatch checks that in protocol versions before 2025-06-18 a batch of requests gets one batch of answers, and
// that a batch that is too long is refused.
func TestBatch(t *testing.T) {
	c := speak(t, "2025-03-26")
	defer c.close()
	c.write(`[{"jsonrpc":"2.0","method":"notifications/a"},{"jsonrpc":"2.0","method":"notifications/b"}]`)
	c.write("[" + c.request("5", "get_execution_stats", "{}") + `,7,{"jsonrpc":"2.0","method":"notifications/a"},` + c.request("6", "get_execution_stats", "{}") + "," + c.request("6", "get_execution_stats", "{}") + `,` +
		`{"jsonrpc":"2.0","id":9,"method":"initialize","params":{}}]`)
	got := c.sync()
	testenv.WaitUntil(t, "the batch has its answer", func() bool { got = append(got, c.sync()...); return len(got) > 0 })
	var answers []struct {
		ID     any
		Result any
		Error  *struct{ Code int }
	}
	if len(got) != 1 || json.Unmarshal([]byte(got[0]), &answers) != nil || len(answers) != 5 {
		t.Fatalf("%q", got)
	}
	ok := map[any]bool{}
	for _, a := range answers {
		if a.Error != nil && a.Error.Code != -32600 || (a.Error == nil) == (a.Result == nil) {
			t.Errorf("%+v", a)
		}
		if a.Error == nil {
			ok[a.ID] = true
		}
	}
	if len(ok) != 2 || !ok[5.0] || !ok[6.0] {
		t.Errorf("%q", got)
	}
	c.write("[" + strings.Repeat(`{"jsonrpc":"2.0","method":"x"},`, MaxBatch) + `{"jsonrpc":"2.0","method":"x"}]`)
	if got := strings.Join(c.sync(), "\n"); !strings.Contains(got, "-32600") {
		t.Errorf("too many: %s", got)
	}
}

// FuzzClientLines checks that the server still answers the next request after a client has written arbitrary lines.
// First it writes messages that MakeMessages generates from choices, and then the text raw unchanged.
func FuzzClientLines(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, `null`, `7`, `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `{"jsonrpc":"2.0","id":true,"method":7}`, "{}\n[]\r\n\x00",
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"sync-1"}}`, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"task":{},"_meta":null,"name":"execute_code"}}`,
	} {
		f.Add(uint8(0), []byte{1, 2, 3, 4, 5, 6, 7, 8}, []byte(seed))
		f.Add(uint8(1), []byte{8, 7, 6, 5, 4, 3, 2, 1}, []byte(seed))
	}
	for i := range byte(60) {
		f.Add(i, []byte{i, 3 * i, 7 * i, 11 * i, i, i + 1, i + 2, i + 3, 13 * i, 17 * i, 1, 2, 3}, []byte(nil))
	}
	f.Fuzz(func(t *testing.T, era uint8, choices, raw []byte) {
		if len(raw) > 1<<16 || len(choices) > 1000 {
			t.Skip("more than is needed")
		}
		eras := []string{"2025-11-25", multiRoundTrip, "2025-03-26"}
		c := speak(t, eras[int(era)%len(eras)])
		for line := range strings.Lines(testenv.MakeMessages(choices) + "\n" + string(raw) + "\n") {
			c.write(line)
		}
		if strings.Contains(string(raw), "sync") && strings.Contains(string(raw), `"id"`) {
			t.Skip("the id of the next request is in use")
		}
		c.sync()
		c.close()
	})
}

// TestDrain checks that a server whose context has ended refuses new requests, waits for pending ones, and cancels a
// program that does not end within drainTimeout.
func TestDrain(t *testing.T) {
	for name, cancelled := range map[string]bool{"ends": false, "does not end": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEngine()
				s, err := New(e, Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				ctx, end := context.WithCancel(t.Context())
				fromClient, toServer := io.Pipe()
				fromServer, toClient := io.Pipe()
				done := make(chan error, 1)
				go func() { done <- s.ServeLines(ctx, fromClient, toClient); _ = toClient.Close() }()
				answers := bufio.NewReader(fromServer)
				said := make(chan string, 1)
				go func() {
					text, _ := io.ReadAll(answers)
					said <- string(text)
				}()
				c := &lineClient{t: t, era: multiRoundTrip, in: toServer}
				c.write(c.request("8", "execute_code", `{"code":"wait"}`))
				synctest.Wait()
				began := time.Now()
				end()
				synctest.Wait()
				c.write(c.request("9", "execute_code", `{"code":"too late"}`))
				if !cancelled {
					c.write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}`)
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
				want := time.Duration(0)
				if cancelled {
					want = drainTimeout
				}
				if took := time.Since(began); took != want {
					t.Errorf("it took %s, want %s", took, want)
				}
				if text := <-said; !strings.Contains(text, "the server is ending") || strings.Contains(text, `"status":"ok"`) {
					t.Errorf("said %q", text)
				}
				if !isDone(e.cancelled) {
					t.Error("the program continues")
				}
			})
		})
	}
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
