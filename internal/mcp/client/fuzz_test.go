//go:build unix

package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
)

// oddServer is a server that sends odd messages, such as invalid ones, before it answers the first tool call.
type oddServer struct {
	modern bool
	odd    string
	once   sync.Once
}

// answer returns the lines with which the server answers one line of its client, or "" if it does not answer.
func (b *oddServer) answer(line []byte) string {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if json.Unmarshal(line, &m) != nil || m.ID == nil || m.Method == "" {
		return ""
	}
	text := `{"jsonrpc":"2.0","id":` + string(m.ID) + `,`
	switch {
	case m.Method == "server/discover" && b.modern:
		return text + `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"babbler","version":"1"},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"babbler","version":"1"}}}}`
	case m.Method == "initialize" && !b.modern:
		return text + `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"babbler","version":"1"}}}`
	case m.Method == "tools/list":
		return text + `"result":{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object"}}]}}`
	case m.Method == "tools/call":
		odd := ""
		b.once.Do(func() { odd = b.oddFor(m.ID) + "\n" })
		return odd + text + `"result":{"resultType":"complete","content":[{"type":"text","text":"well"}]}}`
	}
	return text + `"error":{"code":-32601,"message":"no such method"}}`
}

// oddFor returns the odd text that the server sends. It contains the id of the call in progress and the id of the
// call after that.
func (b *oddServer) oddFor(id json.RawMessage) string {
	var n int
	_ = json.Unmarshal(id, &n)
	return strings.NewReplacer("RUNNING", string(id), "NEXT", fmt.Sprint(n+1)).Replace(b.odd)
}

// dial connects to the server over a pipe.
func (b *oddServer) dial(context.Context) (io.ReadWriteCloser, error) {
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		in := bufio.NewReader(theirs)
		say := make(chan string, 1000)
		defer close(say)
		go func() { // what the client says is read meanwhile
			for text := range say {
				_, _ = io.WriteString(theirs, text+"\n")
			}
		}()
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				return
			}
			if text := b.answer(line); text != "" {
				say <- text
			}
		}
	}()
	return ours, nil
}

// ServeHTTP answers requests with JSON, or with an event stream if there are several messages.
func (b *oddServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	text := b.answer(body)
	lines := strings.Split(text, "\n")
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case text == "":
		w.WriteHeader(http.StatusAccepted)
	case len(lines) == 1:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text)
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		for _, line := range lines {
			fmt.Fprintf(w, "data: %s\n\n", line)
		}
	}
}

// FuzzServerMessages checks that a call ends whatever messages the server sends during it, and that the next call
// gets the server's answer. It covers pipes and HTTP, and protocol versions with and without a handshake.
func FuzzServerMessages(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, `null`, `7`, `[{}]`, `{"jsonrpc":"2.0","id":1,"result":7}`, `{"jsonrpc":"2.0","id":3,"error":"x"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}`,
		`{"jsonrpc":"2.0","id":"q","method":"ping"}`, `{"jsonrpc":"2.0","id":{},"method":"roots/list"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`,
	} {
		for kind := range uint8(4) {
			f.Add(kind, []byte(nil), []byte(seed))
		}
	}
	for i := range byte(60) {
		f.Add(i, []byte{i, 3 * i, 7 * i, 11 * i, i, i + 1, i + 2, i + 3, 13 * i, 17 * i}, []byte(nil))
	}
	f.Fuzz(func(t *testing.T, kind uint8, choices, raw []byte) {
		if len(raw) > 1<<16 || len(choices) > 200 {
			t.Skip("more than is needed")
		}
		b := &oddServer{modern: kind&1 != 0, odd: testenv.MakeMessages(choices) + "\n" + string(raw)}
		s := ServerSpec{Name: "s", Dial: b.dial, Client: ClientFeatures{Elicit: true, Sample: true, Roots: []string{"file:///srv"}}, CallTimeout: 2 * testenv.Patience, ConnectTimeout: 2 * testenv.Patience, probe: 2 * testenv.Patience}
		if kind&2 != 0 {
			ts := httptest.NewServer(b)
			defer ts.Close()
			s.Dial, s.URL = nil, ts.URL
		}
		p := New([]ServerSpec{s}, Options{})
		defer p.Close()
		peer := &core.ClientPeer{ID: "c", Forms: true, Samples: true, Log: func(json.RawMessage) {}, Progress: func(json.RawMessage) {}, Ask: func(context.Context, core.ServerRequest) (json.RawMessage, *core.Error) {
			return json.RawMessage(`{"action":"decline"}`), nil
		}}
		ended := make(chan error, 1)
		go func() {
			_, err := p.Call(core.WithPeer(t.Context(), peer), "s", "t", nil)
			ended <- err
		}()
		_ = testenv.Receive(t, ended, "the end of the first call") // whatever it is
		var answer json.RawMessage
		go func() {
			var err error
			answer, err = p.Call(t.Context(), "s", "t", nil)
			ended <- err
		}()
		if err := testenv.Receive(t, ended, "the end of the second call"); err != nil || !strings.Contains(string(answer), "well") {
			t.Fatalf("the second call: %s, %v", answer, err)
		}
	})
}
