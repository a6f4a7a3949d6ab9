//go:build unix

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
)

// TestOddMessagesOfServer checks that a server can send any messages during a call and the next call is still
// answered. It tests stdio and HTTP.
func TestOddMessagesOfServer(t *testing.T) {
	for _, kind := range []struct{ modern, http bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		t.Run(fmt.Sprintf("modern %v, http %v", kind.modern, kind.http), func(t *testing.T) {
			t.Parallel()
			for _, m := range testenv.OddMessages("RUNNING", "NEXT", "1", "1") {
				b := &oddServer{modern: kind.modern, odd: m.Text}
				s := ServerSpec{Name: "s", Dial: b.dial, Client: ClientFeatures{Elicit: true, Sample: true, Roots: []string{"file:///srv"}}, CallTimeout: 2 * testenv.Patience, ConnectTimeout: 2 * testenv.Patience, probe: 2 * testenv.Patience}
				end := func() {}
				if kind.http {
					ts := httptest.NewServer(b)
					s.Dial, s.URL, end = nil, ts.URL, ts.Close
				}
				p := New([]ServerSpec{s}, Options{})
				callTwice(t, p, m.Name)
				_ = p.Close()
				end()
			}
		})
	}
}

// callTwice makes two calls and checks that the second one is answered. The first one may end in any way.
func callTwice(t *testing.T, p *Pool, name string) {
	t.Helper()
	peer := &core.ClientPeer{ID: "c", Forms: true, Samples: true, Log: func(json.RawMessage) {}, Progress: func(json.RawMessage) {}, Ask: func(context.Context, core.ServerRequest) (json.RawMessage, *core.Error) {
		return json.RawMessage(`{"action":"decline"}`), nil
	}}
	type ending struct {
		answer json.RawMessage
		err    error
	}
	ended := make(chan ending, 1)
	for i := range 2 {
		go func() {
			answer, err := p.Call(core.WithPeer(t.Context(), peer), "s", "t", nil)
			ended <- ending{answer, err}
		}()
		if got := testenv.Receive(t, ended, "the end of a call after "+name); i == 1 && (got.err != nil || !strings.Contains(string(got.answer), "well")) {
			t.Errorf("%s: the second call: %.300s, %v", name, got.answer, got.err)
		}
	}
}
