package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"retort/internal/mcp/headers"
)

func TestFrames(t *testing.T) {
	long := strings.Repeat("x", 100)
	for name, tt := range map[string]struct {
		in   string
		want []string
	}{
		"lines":           {"a\nb\r\n\n  \n c \n", []string{"a", "b", "c"}},
		"no last newline": {"a\nb", []string{"a", "b"}},
		"empty":           {"", nil},
		"over":            {"a\n" + long + "\nb\n", []string{"a", "!", "b"}},
		"over with id":    {`{"id":5,"x":"` + long + `"}` + "\nb\n", []string{"!5", "b"}},
		"id at the end":   {`{"x":"` + long + `","id":"q"}` + "\nb\n", []string{"!q", "b"}},
		"over, unended":   {"a\n" + long, []string{"a"}},
		"exactly":         {strings.Repeat("x", 64) + "\nb\n", []string{strings.Repeat("x", 64), "b"}},
	} {
		for _, chunk := range []int{1, 7, 1 << 20} {
			f := newFrames(context.Background(), &chunked{strings.NewReader(tt.in), chunk}, 65, memoryAccount{}, nil)
			var got []string
			for {
				line, err := f.nextLine()
				var over *tooLong
				if errors.As(err, &over) {
					id := ""
					if over.id.IsValid() {
						id = strings.Trim(strings.TrimSpace(string(must(json.Marshal(over.id.Raw())))), `"`)
					}
					got = append(got, "!"+id)
				} else if err != nil {
					break
				} else {
					got = append(got, string(line))
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s in chunks of %d: %q, want %q", name, chunk, got, tt.want)
			}
		}
	}
}

// chunked is an io.Reader that returns its data in small pieces: at most n bytes for each Read.
type chunked struct {
	r io.Reader
	n int
}

func (c *chunked) Read(p []byte) (int, error) { return c.r.Read(p[:min(len(p), c.n)]) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestIDFinder(t *testing.T) {
	for in, want := range map[string]any{
		`{"id":7}`: int64(7), `{"id":"a\"b"}`: `a"b`, `{"jsonrpc":"2.0","result":{"id":1,"x":[{"id":2}]},"id":3}`: int64(3),
		`{"x":"\"id\":9,","id" : 4 }`: int64(4), `{"result":"id","id":5`: nil, `{"id":{"id":1}}`: nil, `{"id":[1]}`: nil, `{"id":null}`: nil,
		`[{"id":1}]`: nil, ``: nil, `{"x":{"y":"}"},"id":6}`: int64(6), `{"id":1,"id":2}`: int64(2), `data: {"id":8}`: int64(8), `{"id":1e1}`: int64(10),
	} {
		for _, chunk := range []int{1, 3, 1000} {
			var f idFinder
			for rest := []byte(in); len(rest) > 0; {
				n := min(chunk, len(rest))
				f.scanBytes(rest[:n])
				rest = rest[n:]
			}
			if got := f.foundID().Raw(); got != want {
				t.Errorf("%s: %v, want %v", in, got, want)
			}
		}
	}
}

// FuzzIDFinder checks that idFinder finds the same id in a response as the SDK's decoder, in whatever pieces the
// response is read.
func FuzzIDFinder(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"a":[1,"}",{"id":2}]}}`), 3)
	f.Add([]byte(`{"id":"x","jsonrpc":"2.0","error":{"code":1,"message":"\\\""}}`), 1)
	f.Fuzz(func(t *testing.T, data []byte, chunk int) {
		var finder idFinder
		for rest := data; len(rest) > 0; {
			n := min(max(chunk, 1), len(rest))
			finder.scanBytes(rest[:n])
			rest = rest[n:]
		}
		if len(finder.token) > idWidth || len(finder.found) > idWidth || len(finder.key) > idWidth {
			t.Fatal("unbounded")
		}
		msg, err := jsonrpc.DecodeMessage(data)
		resp, ok := msg.(*jsonrpc.Response)
		if err != nil || !ok || bytes.Contains(data, []byte(`\u`)) || bytes.Count(data, []byte(`"id"`)) != 1 || len(string(must(json.Marshal(resp.ID.Raw())))) > idWidth/8 {
			return
		}
		if got := finder.foundID(); got != resp.ID {
			t.Errorf("%s: %v, want %v", data, got.Raw(), resp.ID.Raw())
		}
	})
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte("a\nbb\n\n"), 3)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		limit = min(max(limit, 1), 1<<16)
		in := newFrames(context.Background(), bytes.NewReader(data), int64(limit), memoryAccount{}, nil)
		for {
			line, err := in.nextLine()
			if len(line) > limit {
				t.Fatal("line over the limit")
			}
			var over *tooLong
			if err != nil && !errors.As(err, &over) {
				return
			}
		}
	})
}

func TestDecode(t *testing.T) {
	for in, want := range map[string]int{
		`{"jsonrpc":"2.0","id":1,"result":{}}`: 1, ` [{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","method":"x"}]`: 2,
		`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`: 1, `{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}`: 1,
		`{"jsonrpc":"2.0","result":{}}`: 0, `{"id":1,"result":{}}`: 0, `{"jsonrpc":"1.0","id":1,"result":{}}`: 0, `[]`: 0, `[1]`: 0, `42`: 0, ``: 0, `{"level":"info"}`: 0,
		`null`: 0, `{"jsonrpc":"2.0","id":true,"result":{}}`: 0, `{"jsonrpc":"2.0","id":{},"error":{"code":1}}`: 0,
		`{"jsonrpc":"2.0","id":[[]],"error":{"code":1,"message":"x"}}`: 0, `{"jsonrpc":"2.0","id":false,"error":{"code":1,"message":"x"}}`: 0,
		// Decoded to a value of type any, each of these would take an hour.
		`{"jsonrpc":"2.0","id":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + `,"error":{"code":1,"message":"x"}}`:                           0,
		`{"jsonrpc":"2.0","id":` + strings.Repeat(`{"a":`, 1<<20) + `1` + strings.Repeat("}", 1<<20) + `,"error":{"code":1,"message":"x"}}`:                 0,
		`{"jsonrpc":"2.0","id":` + strings.Repeat("[", 900) + strings.Repeat("1,", 8<<20) + "1" + strings.Repeat("]", 900) + `,"method":"x"}`:               0,
		`{"jsonrpc":"2.0","method":"x","params":{"_meta":` + strings.Repeat("[", 900) + strings.Repeat("1,", 8<<20) + "1" + strings.Repeat("]", 900) + `}}`: 1,
	} {
		msgs, ok := decodeMessages([]byte(in))
		if ok != (want > 0) || ok && len(msgs) != want {
			t.Errorf("%.200s: %v, %v", in, msgs, ok)
		}
	}
}

// FuzzDecodeMessage checks that decodeMessage accepts the same messages as the SDK's decoder and decodes them to the
// same values.
func FuzzDecodeMessage(f *testing.F) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"z":9007199254740993,"a":"\u00e9\""}}`, `{"id":"x","jsonrpc":"2.0","error":{"code":-1,"message":"m","data":[1]}}`,
		`{"jsonrpc":"2.0","id":1.5,"method":"m","params":[]}`, `{"jsonrpc":"2.0","method":""}`, `{"jsonrpc":"2.0","method":null,"id":1}`, `{"JSONRPC":"2.0","id":1}`,
		`{"jsonrpc":"2.0","id":1,"result":null,"error":null} and more`, `{"jsonrpc":"2.0","id":1,"id":2,"result":1,"result":2}`, `{"jsonrpc":"2.0","id":[],"result":1}`, `{"jsonrpc":"2.0","id":[],"id":1,"result":1}`, `{"jsonrpc":"2.0","id":1,"id":null,"method":"x"}`, `{"jsonrpc":"2.0","id":1,"id":{},"result":1}`,
		`{"jsonrpc":"2.0","id":1,"result":` + deep(999) + `}`, `{"jsonrpc":"2.0","id":1,"result":` + deep(1000) + `}`, `{"jsonrpc":"2.0","id":1,"result":"` + deep(1001) + `\"["}`,
		`{"jsonrpc":"2.0","id":1,"result":` + strings.Repeat("]", 500) + deep(1001) + `}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		want, err := jsonrpc.DecodeMessage(bytes.Clone(data))
		got, ok := decodeMessage(data)
		if ok != (err == nil) {
			t.Fatalf("%s: %v, the SDK says %v", data, ok, err)
		}
		if ok && !reflect.DeepEqual(want, got) {
			t.Errorf("%s: %+v, the SDK says %+v", data, got, want)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`[{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		msgs, ok := decodeMessages(data)
		for _, m := range msgs {
			if ok && m == nil {
				t.Fatal("nil message")
			}
		}
	})
}

func TestEvents(t *testing.T) {
	for name, tt := range map[string]struct {
		in   string
		want []string // expected event as name|id|data; "!" for an event over the size limit
	}{
		"plain":       {"data: a\n\ndata:b\n\n", []string{"message||a", "message||b"}},
		"lines":       {"data: a\ndata:  b\ndata\n\n", []string{"message||a\n b\n"}},
		"fields":      {"event: x\nid: 1\nretry: 5\n: comment\nother: y\nnocolon\ndata: a\n\n", []string{"x|1|a"}},
		"id persists": {"id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", []string{"message|1|a", "message|1|b", "message||c"}},
		"CR LF":       {"data: a\r\n\r\n", []string{"message||a"}},
		"BOM":         {"\xef\xbb\xbfdata: a\n\n", []string{"message||a"}},
		"no data":     {"event: x\nid: 1\n\ndata: a\n\n", []string{"message|1|a"}},
		"cut off":     {"data: a\n\ndata: b\n", []string{"message||a"}},
		"empty":       {"", nil},
		"over":        {"data: " + strings.Repeat("x", 100) + "\n\ndata: b\n\n", []string{"!", "message||b"}},
		"over in sum": {strings.Repeat("data: "+strings.Repeat("x", 30)+"\n", 5) + "\ndata: b\n\n", []string{"!", "message||b"}},
	} {
		e := newEvents(context.Background(), strings.NewReader(tt.in), 80, memoryAccount{}, nil)
		var got []string
		for {
			ev, err := e.nextEvent()
			var over *tooLong
			if errors.As(err, &over) {
				got = append(got, "!")
			} else if err != nil {
				break
			} else {
				got = append(got, ev.name+"|"+e.id+"|"+string(ev.data))
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	e := newEvents(context.Background(), strings.NewReader("retry: 1500\nretry: x\n\nretry: 99999999\ndata: a\n\n"), 80, memoryAccount{}, nil)
	if _, err := e.nextEvent(); err != nil || e.retry != longestRetry {
		t.Errorf("retry %s, %v", e.retry, err)
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: x\nid: 1\nretry: 5\n: c\ndata: a\n\n"), 10)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		limit = min(max(limit, 1), 1<<16)
		e := newEvents(context.Background(), bytes.NewReader(data), int64(limit), memoryAccount{}, nil)
		for {
			ev, err := e.nextEvent()
			if len(ev.data) > limit || len(e.id) > longestEventID || e.retry > longestRetry {
				t.Fatal("unbounded")
			}
			var over *tooLong
			if err != nil && !(errors.As(err, &over) && !over.endless) {
				return
			}
		}
	})
}

func TestTail(t *testing.T) {
	for in, want := range map[string][]string{
		"a\nb\n": {"a", "b"}, "a\n\n \nb": {"a", "b"}, "\x1b[1;31mred\x1b[0m\n": {"red"}, "\x1b]0;title\x07x\n": {"x"}, "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n": {"link"},
		"\x1b(Bx\r\n": {"x"}, "a\x00\x01\tb\n": {"a\tb"}, "\xffé\n": {"é"}, "\x1b[": nil, "\x1b]never ended\nnext\n": {"next"}, strings.Repeat("y", 2*tailWidth): {strings.Repeat("y", tailWidth)},
	} {
		for _, chunk := range []int{1, 1000} {
			var tl outputTail
			for rest := []byte(in); len(rest) > 0; {
				n := min(chunk, len(rest))
				tl.Write(rest[:n])
				rest = rest[n:]
			}
			if got := tl.lastLines(10); !slices.Equal(got, want) {
				t.Errorf("%q: %q, want %q", in, got, want)
			}
		}
	}
	var tl outputTail
	for range 5 * tailLines {
		tl.Write([]byte("line\n"))
	}
	tl.Write([]byte("last"))
	if got := tl.lastLines(1000); len(got) != tailLines+1 || got[tailLines] != "last" {
		t.Errorf("%d lines", len(got))
	}
}

func FuzzTail(f *testing.F) {
	f.Add([]byte("\x1b[31mx\x1b]0;\x07\xff\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var tl outputTail
		tl.Write(data)
		for _, line := range tl.lastLines(1000) {
			if len(line) > tailWidth || !utf8.ValidString(line) || strings.ContainsAny(line, "\x1b\n\r\x00\x07") {
				t.Errorf("%q", line)
			}
		}
	})
}

func TestBreakerDelays(t *testing.T) {
	now := time.Unix(1000, 0)
	b := newBreaker()
	var delays []time.Duration
	for range 12 {
		b.NoteFailure(now, 0.5)
		delays = append(delays, b.RetryAt.Sub(now))
		if b.IsOpen(now) != (b.Failures >= openAfter) || b.IsOpen(b.RetryAt) {
			t.Errorf("open after %d failures: %v", b.Failures, b.IsOpen(now))
		}
	}
	want := []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute,
		2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute}
	if !slices.Equal(delays, want) {
		t.Errorf("%v", delays)
	}
	for range 1000 {
		b.NoteFailure(now, 0.999)
	}
	if d := b.RetryAt.Sub(now); d > 2*longestGap {
		t.Errorf("delay %s", d)
	}
	b.NoteSuccess()
	if b.IsOpen(now) || b.Failures != 0 {
		t.Errorf("%+v", b)
	}
}

func TestChallenge(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "Bearer": "", `Bearer realm="x"`: "", `Bearer error="a", error_description="b c", scope="d"`: `error "a", error description "b c", scope "d"`,
		`Bearer resource_metadata="https://x/error=1", error=z`: `error "z"`, `Bearer error="unended`: `error "unended"`,
	} {
		if got := describeChallenge(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestBindings(t *testing.T) {
	var b headerBindings
	tools := []json.RawMessage{
		json.RawMessage(`{"name":"t","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"properties":{"c":{"type":"integer","x-mcp-header":"C"}}},"x-mcp-header":{"enum":[{"x-mcp-header":1}]}}}}`),
		json.RawMessage(`{"name":"u","inputSchema":{"properties":{"a":{}}}}`), json.RawMessage(`{"name":"v","inputSchema":"x-mcp-header"`),
	}
	kept := b.learnTools(tools, func(tool string, why error) { t.Errorf("%s is left out: %v", tool, why) })
	if len(kept) != len(tools) {
		t.Errorf("%d tools are kept", len(kept))
	}
	for args, want := range map[string]http.Header{
		`{"a":"x","b":{"c":5},"bad":"y"}`: {"Mcp-Param-A": {"x"}, "Mcp-Param-C": {"5"}}, `{"a":true,"b":null}`: {"Mcp-Param-A": {"true"}}, `{"a":null}`: {}, `{"a":[1],"b":{"c":1.5}}`: {},
		`{"a":9007199254740993,"b":{"c":-3.0}}`: {"Mcp-Param-C": {"-3"}}, `{"a":"ü\n"}`: {"Mcp-Param-A": {"=?base64?w7wK?="}}, `[]`: {}, ``: {},
	} {
		got := http.Header{}
		headers.SetHeaders(got, b.ofTool("t"), json.RawMessage(args))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", args, got, want)
		}
		headers.SetHeaders(got, b.ofTool("u"), json.RawMessage(args))
	}
}

// TestBindingsRefused checks that a tool with invalid header annotations is left out of a list, and other tools stay.
func TestBindingsRefused(t *testing.T) {
	for schema, want := range map[string]string{
		`{"properties":{"a":{"type":"string","x-mcp-header":""}}}`:                                           "not the name of a header",
		`{"properties":{"a":{"type":"string","x-mcp-header":"no token"}}}`:                                   "not the name of a header",
		`{"properties":{"a":{"type":"string","x-mcp-header":7}}}`:                                            "not the name of a header",
		`{"properties":{"a":{"type":"object","x-mcp-header":"A"}}}`:                                          "not a string, an integer or a boolean",
		`{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`:                                          "not a string, an integer or a boolean",
		`{"properties":{"a":{"x-mcp-header":"A"}}}`:                                                          "not a string, an integer or a boolean",
		`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`: "that another property already names",
		`{"type":"string","x-mcp-header":"A"}`:                                                               "a chain of properties",
		`{"properties":{"a":{"items":{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}}}}`:           "a chain of properties",
		`{"anyOf":[{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}]}`:                              "a chain of properties",
		`{"$defs":{"d":{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}}}`:                          "a chain of properties",
		strings.Repeat(`{"not":`, 70) + `{"type":"string","x-mcp-header":"A"}` + strings.Repeat(`}`, 70):     "nested more than",
	} {
		var b headerBindings
		var refused []string
		kept := b.learnTools([]json.RawMessage{json.RawMessage(`{"name":"bad","inputSchema":` + schema + `}`), json.RawMessage(`{"name":"good"}`)},
			func(tool string, why error) { refused = append(refused, tool+": "+why.Error()) })
		if len(kept) != 1 || len(refused) != 1 || !strings.HasPrefix(refused[0], "bad: ") || !strings.Contains(refused[0], want) {
			t.Errorf("%s: kept %s, refused %q, want %q", schema, kept, refused, want)
		}
	}
}

// TestResultTypes checks that checkType refuses results of unknown types and accepts results without a type.
func TestResultTypes(t *testing.T) {
	for raw, want := range map[string]string{
		`{"content":[]}`: "", `{"resultType":"complete","content":[]}`: "", `{"resultType" : "complete"}`: "", `{"resultType":null}`: "",
		`{"resultType":"input_required"}`: "", `{"structuredContent":{"resultType":"of our own"}}`: "",
		`{"resultType":"task","task":{}}`: `the unknown type "task"`, `{"resultType":""}`: `the unknown type ""`, `{"resultType":7}`: "not a string",
	} {
		err := checkType(json.RawMessage(raw))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
	}
}
