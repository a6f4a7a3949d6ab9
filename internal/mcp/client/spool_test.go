//go:build unix

package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"retort/internal/core"
)

// readEnvelope returns an envelopeReader that has read all of data, in pieces of n bytes.
func readEnvelope(data []byte, n, keep int) *envelopeReader {
	e := &envelopeReader{limit: 1 << 20, keep: keep}
	for part := range slices.Chunk(data, n) {
		e.writeBytes(part)
	}
	return e
}

// completeResult returns the result of a message that was read with an envelopeReader, with the omitted parts put back
// into the outline. data is the whole message.
func completeResult(e *envelopeReader, data []byte) any {
	var message struct {
		Result map[string]any `json:"result"`
	}
	_ = json.Unmarshal(e.skeleton, &message)
	for _, p := range e.parts {
		raw := data[p.Offset : p.Offset+p.Bytes]
		if p.Index < 0 {
			var v any
			_ = json.Unmarshal(raw, &v)
			message.Result[p.Member] = v
			continue
		}
		var text string
		_ = json.Unmarshal([]byte(`"`+string(raw)+`"`), &text)
		in := message.Result["content"].([]any)[p.Index].(map[string]any)
		if r, ok := in["resource"].(map[string]any); ok && in[p.Member] == nil {
			in = r
		}
		in[p.Member] = text
	}
	return any(message.Result)
}

var messages = []string{
	`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"hello \"x\" there, this is long"},{"type":"image","data":"AAAAAAAAAAAAAAAAAAAA","mimeType":"a/b"}],"structuredContent":{"a":[1,2,{"text":"inner"}],"result":{"content":[3]}},"isError":false}}`,
	`{"result":{"structuredContent":"a string that is long","content":[]},"id":"x","jsonrpc":"2.0"}`,
	`{"id":1,"result":{"content":[{"type":"resource","resource":{"uri":"a:b","blob":"QUFBQUFBQUFBQUFBQUFBQUFBQUE=","mimeType":"x/y"}},{"type":"resource","resource":{"uri":"a:b","text":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}}]}}`,
	`{"result":{"content":[{"text":"aaaaaaaaaaaaaaaaaaaaaaaaaa"},{"annotations":{"text":"bbbbbbbbbbbbbbbbbbbbbbbbbbbb"},"text":[["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]]}]}}`,
	`{"result":{"structuredContent":[[[[[[[[[[1,2,3,4,5,6,7,8,9]]]]]]]]]],"_meta":{"content":[{"text":"aaaaaaaaaaaaaaaaaaaaaa"}]}}}`,
	`[{"result":{"structuredContent":[1,2,3,4,5,6,7,8,9]}}]`,
	`{"result":{"structuredContent":[1,2,3,4,5,6,7,8,9], "structuredContent":1}}`,
	`{"result":`, `{"result":{"structuredContent":[1,2,3,4,5,6,}}`, `{"result":[{"text":"aaaaaaaaaaaaaaaaaaaaaaaaa"}]}`, `{"result":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}`,
}

// TestSkeletonStaysSmall checks that the outline (skeleton) of a message never holds a large part of the message in
// memory, even if the whole message is read in one piece.
func TestSkeletonStaysSmall(t *testing.T) {
	data := []byte(`{"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", 4<<20) + `"}]}}`)
	e := readEnvelope(data, len(data), 1<<10)
	if e.checkEnd() != nil || len(e.parts) != 1 || cap(e.skeleton) > 4<<10 {
		t.Errorf("%v, %d parts, room for %d bytes", e.err, len(e.parts), cap(e.skeleton))
	}
}

// FuzzEnvelope checks that envelopeReader accepts the same messages as encoding/json, whatever the size of the pieces
// in which a message is read. The outline of a message and the parts that were left out of it must together make up
// the message's result.
func FuzzEnvelope(f *testing.F) {
	for _, m := range messages {
		f.Add(m, 12)
	}
	f.Fuzz(func(t *testing.T, message string, keep int) {
		data := []byte(message)
		keep = max(10, keep%100)
		var last *envelopeReader
		for _, n := range []int{1, 3, len(data) + 1} {
			e := readEnvelope(data, n, keep)
			err := e.checkEnd()
			if err == errTwice || strings.Count(message, "[")+strings.Count(message, "{") > 500 {
				return
			}
			if (err == nil) != json.Valid(data) {
				t.Fatalf("%s: %v", message, err)
			}
			if last != nil && err == nil && (!bytes.Equal(last.skeleton, e.skeleton) || !slices.Equal(last.parts, e.parts)) {
				t.Fatalf("%s: %s %v, and %s %v", message, last.skeleton, last.parts, e.skeleton, e.parts)
			}
			last = e
		}
		if last == nil || last.checkEnd() != nil || len(last.parts) == 0 {
			return
		}
		var want struct {
			Result map[string]any `json:"result"`
		}
		if !json.Valid(last.skeleton) {
			t.Fatalf("%s: skeleton %s", message, last.skeleton)
		}
		if json.Unmarshal(data, &want) != nil || strings.Contains(message, `\u`) || strings.Count(strings.ToLower(message), `"resource"`) > 1 || !plainKeys(data) {
			return
		}
		got, _ := json.Marshal(completeResult(last, data))
		if wanted, _ := json.Marshal(want.Result); !bytes.Equal(got, wanted) {
			t.Fatalf("%s\ngot  %s\nwant %s\nof %s %v", message, got, wanted, last.skeleton, last.parts)
		}
	})
}

// plainKeys reports whether the names of the members that contain large parts of a result occur at most once,
// ignoring case. The comparison with encoding/json is limited to these messages, because decoders disagree about
// repeated names.
func plainKeys(data []byte) bool {
	low := bytes.ToLower(data)
	for _, name := range []string{"result", "content", "structuredcontent"} {
		if bytes.Count(low, []byte(`"`+name+`"`)) > 1 {
			return false
		}
	}
	return bytes.Contains(data, []byte(`"result"`))
}

func TestEnvelopeParts(t *testing.T) {
	e := readEnvelope([]byte(messages[0]), 1, 12)
	if err := e.checkEnd(); err != nil {
		t.Fatal(err)
	}
	want := `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":""},{"type":"image","data":"","mimeType":"a/b"}],"structuredContent":null,"isError":false}}`
	if string(e.skeleton) != want {
		t.Errorf("%s", e.skeleton)
	}
	var parts []string
	for _, p := range e.parts {
		parts = append(parts, fmt.Sprintf("%d %s %s", p.Index, p.Member, messages[0][p.Offset:p.Offset+p.Bytes]))
	}
	if got := strings.Join(parts, "\n"); got != "0 text hello \\\"x\\\" there, this is long\n1 data AAAAAAAAAAAAAAAAAAAA\n-1 structuredContent {\"a\":[1,2,{\"text\":\"inner\"}],\"result\":{\"content\":[3]}}" {
		t.Errorf("%s", got)
	}
	if e := readEnvelope([]byte(messages[6]), 1, 3); e.checkEnd() != errTwice {
		t.Errorf("twice: %v", e.checkEnd())
	}
}

// largeHTTP returns an HTTP server whose answers to calls have more than 64 KB. The argument how says which form an
// answer has, and whether it is cut off.
func largeHTTP(how string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &m)
		answer := func(result string) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result) }
		rows := strings.Repeat(`{"a":"b"},`, 40_000)
		text := answer(`{"content":[],"structuredContent":[` + rows + `1]}`)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case m.Method == "initialize":
			io.WriteString(w, answer(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`))
		case m.Method != "tools/call":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
		case how == "json":
			io.WriteString(w, text)
		case how == "broken":
			w.Header().Set("Content-Length", fmt.Sprint(len(text)))
			io.WriteString(w, text[:len(text)/2])
		case how == "text":
			io.WriteString(w, strings.Repeat(text, 2))
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, ": hello\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\nevent: message\ndata: %s\n\n", text[:len(text)-map[string]int{"events cut": 9}[how]])
		}
	}
}

func TestLargeOverHTTP(t *testing.T) {
	for how, want := range map[string]string{"json": "", "events": "", "broken": "broke off after", "text": "cannot be read", "events cut": "cannot be read"} {
		t.Run(how, func(t *testing.T) {
			srv := httptest.NewServer(largeHTTP(how))
			defer srv.Close()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "1.message"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			p := newPool(t, Options{Spool: SpoolOptions{Dir: dir, Above: 10_000, Bytes: 1 << 20}}, ServerSpec{Name: "s", URL: srv.URL})
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Error("what a killed engine left is still there")
			}
			result, large, err := p.Fetch(t.Context(), "s", "get", nil)
			if want != "" {
				var e *core.Error
				if e = core.AsError(err); e == nil || !strings.Contains(e.Message, want) {
					t.Errorf("%v, want %s", err, want)
				}
			} else if err != nil || large == nil {
				t.Fatalf("%v %.100s", err, result)
			} else {
				data, err := io.ReadAll(large.OpenPart(large.Parts[0]))
				if err != nil || !json.Valid(data) || len(data) != 400_003 {
					t.Errorf("%v, %d bytes", err, len(data))
				}
				_ = large.Close()
				if raw, err := p.Call(t.Context(), "s", "get", nil); err != nil || len(raw) < 400_000 {
					t.Errorf("who can't take it: %v %d bytes", err, len(raw))
				}
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 || p.servers["s"].main.connect.spool.room.UsedBytes() != 0 {
				t.Errorf("left: %v, %d bytes in use", left, p.servers["s"].main.connect.spool.room.UsedBytes())
			}
		})
	}
}

// endMessage is the reader of a message that is complete with its head.
func endMessage() ([]byte, error) { return nil, io.EOF }

// TestSpoolFull checks that two answers without disk space get different errors: one that is larger than the whole
// folder for large messages, and one for which other answers leave no room.
func TestSpoolFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpool(SpoolOptions{Dir: t.TempDir(), Above: 1 << 20, Bytes: 4 << 20})
		other, err := s.room.takeFirst(t.Context(), "other", 2<<20)
		if err != nil {
			t.Fatal(err)
		}
		for size, want := range map[int]string{3 << 20: "use up the shared limit of 4 MB", 5 << 20: "exceeds the limit of 4 MB"} {
			m := s.readMessage(t.Context(), memoryAccount{server: "s"}, bytes.Repeat([]byte(" "), size), endMessage, 1<<20)
			if got := m.sizeError(1 << 20).Error(); !strings.Contains(got, want) {
				t.Errorf("%d bytes: %s", size, got)
			}
		}
		other.Free()
		if m := s.readMessage(t.Context(), memoryAccount{server: "s"}, bytes.Repeat([]byte(" "), 3<<20), endMessage, 1<<20); m.full != nil {
			t.Errorf("with room again: %v", m.full)
		} else if err := m.Close(); err != nil || s.room.UsedBytes() != 0 {
			t.Error(err, s.room.UsedBytes())
		}
	})
}

// readPieces returns a reader of n pieces of a message. Each piece has size bytes, and none is returned before the
// channel begin is closed.
func readPieces(begin <-chan struct{}, n, size int) func() ([]byte, error) {
	return func() ([]byte, error) {
		<-begin
		if n--; n < 0 {
			return nil, io.EOF
		}
		return bytes.Repeat([]byte(" "), size), nil
	}
}

// TestSpoolSharesRoom checks that messages that arrive at the same time all become complete, although their beginnings
// take up all the space that they share. Of messages that need nearly all of it, all but the last fail.
func TestSpoolSharesRoom(t *testing.T) {
	for name, c := range map[string]struct{ messages, pieces, failed int }{
		"slightly larger than the first reservation": {messages: 64, pieces: 5},
		"half of the space":                          {messages: 6, pieces: 32},
		"more than half of the space":                {messages: 2, pieces: 36},
		"nearly all of the space":                    {messages: 3, pieces: 63, failed: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const first = 1 << 20
				s := newSpool(SpoolOptions{Dir: t.TempDir(), Above: first, Bytes: 16 * first})
				begin, failed := make(chan struct{}), make(chan *spooledMessage, c.messages)
				for i := range c.messages {
					go func() {
						a := memoryAccount{server: fmt.Sprint("s", i%8)}
						m := s.readMessage(t.Context(), a, nil, readPieces(begin, c.pieces, first/4), first)
						if m.full != nil {
							failed <- m
						}
						_ = m.Close()
					}()
				}
				synctest.Wait()
				began := time.Now()
				close(begin)
				synctest.Wait()
				if len(failed) != c.failed || s.room.UsedBytes() != 0 || len(s.room.queue) != 0 || time.Since(began) != 0 {
					t.Errorf("%d of %d failed, want %d; %d bytes in use after %v", len(failed), c.messages, c.failed, s.room.UsedBytes(), time.Since(began))
				}
			})
		})
	}
}

// TestSpoolStall checks that a message whose server stops sending does not make others wait forever, neither at their
// beginning nor later.
func TestSpoolStall(t *testing.T) {
	for name, size := range map[string]int{"no space for the beginning": 4 << 20, "no space to grow": 15 << 18} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSpool(SpoolOptions{Dir: t.TempDir(), Above: 1 << 18, Bytes: 4 << 20})
				ctx, cancel := context.WithCancel(t.Context())
				stopped := func() ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }
				go func() {
					m := s.readMessage(ctx, memoryAccount{server: "stopped"}, bytes.Repeat([]byte(" "), size), stopped, 1<<20)
					_ = m.Close()
				}()
				synctest.Wait()
				began := time.Now()
				m := s.readMessage(t.Context(), memoryAccount{server: "s"}, bytes.Repeat([]byte(" "), 2<<20), endMessage, 1<<20)
				if took := time.Since(began); took != spoolStall || !errors.Is(m.full, errSpoolFull) {
					t.Errorf("after %v: %v", took, m.full)
				}
				_ = m.Close()
				cancel()
				synctest.Wait()
				if used := s.room.UsedBytes(); used != 0 {
					t.Errorf("%d bytes in use", used)
				}
			})
		})
	}
}

// TestSpoolWaits checks that an answer without disk space waits until another answer frees its space, and fails when
// its call ends first.
func TestSpoolWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpool(SpoolOptions{Dir: t.TempDir(), Above: 1 << 20, Bytes: 4 << 20})
		first := s.readMessage(t.Context(), memoryAccount{server: "first"}, bytes.Repeat([]byte(" "), 3<<20), endMessage, 1<<20)
		var second *spooledMessage
		go func() {
			second = s.readMessage(t.Context(), memoryAccount{server: "second"}, bytes.Repeat([]byte(" "), 2<<20), endMessage, 1<<20)
		}()
		synctest.Wait()
		if first.full != nil || second != nil {
			t.Fatalf("it did not wait: %v, %v", first.full, second)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if second == nil || second.full != nil {
			t.Fatalf("with room again: %+v", second)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var third *spooledMessage
		go func() {
			third = s.readMessage(ctx, memoryAccount{server: "third"}, bytes.Repeat([]byte(" "), 3<<20), endMessage, 1<<20)
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if third == nil || third.full == nil || s.room.UsedBytes() != second.size {
			t.Errorf("after its call has ended: %+v", third)
		}
		if err := second.Close(); err != nil || s.room.UsedBytes() != 0 {
			t.Error(err, s.room.UsedBytes())
		}
	})
}
