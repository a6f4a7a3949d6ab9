//go:build unix

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"retort/internal/core"
)

// identifyText implements Options.Identify for tests. It returns the name in a definition and, as the pin, the whole
// text of the definition instead of a hash.
func identifyText(definition json.RawMessage) (name, pin string) {
	var d struct{ Name string }
	_ = json.Unmarshal(definition, &d)
	return d.Name, string(definition)
}

// versions returns a dial function for servers whose tool "t" has a version number in its description. The number
// grows with each connection. If notice is set, it also grows with each call, and the server then announces that its
// tools have changed.
func versions(called *atomic.Int64, notice bool) func(context.Context) (io.ReadWriteCloser, error) {
	var version atomic.Int64
	return func(ctx context.Context) (io.ReadWriteCloser, error) {
		version.Add(1)
		return dialScripted(func(s *scripted) {
			s.on["tools/list"] = func(s *scripted, r request) bool {
				s.reply(r, `{"tools":[%s]}`, versionOf(version.Load()))
				return true
			}
			s.on["tools/call"] = func(s *scripted, r request) bool {
				called.Add(1)
				if r.Params.Name == "exit" {
					_ = s.out.(io.Closer).Close()
					return true
				}
				if notice {
					version.Add(1)
					s.line(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				}
				return false
			}
		})(ctx)
	}
}

func versionOf(n int64) string { return fmt.Sprintf(`{"name":"t","description":"%d"}`, n) }

// TestCallNeedsItsPinOnEveryConnection checks a call that requires a pin (definition hash). The call is not sent over
// a new connection on which the server lists the tool with another definition.
func TestCallNeedsItsPinOnEveryConnection(t *testing.T) {
	for _, isolation := range []Isolation{IsolationShared, IsolationSession} {
		t.Run(string(isolation), func(t *testing.T) {
			var called atomic.Int64
			p := newPool(t, Options{Identify: identifyText}, ServerSpec{Name: "s", Dial: versions(&called, false), Isolation: isolation})
			ctx := core.WithCaller(t.Context(), core.Caller{Session: "a"})
			pinned := core.WithPin(ctx, versionOf(1))
			if pin, err := p.Pin(ctx, "s", "t", time.Time{}); err != nil || pin != versionOf(1) {
				t.Fatalf("%q, %v", pin, err)
			}
			if _, err := p.Call(pinned, "s", "t", nil); err != nil {
				t.Fatal(err)
			}
			if _, err := p.Call(ctx, "s", "exit", nil); err == nil {
				t.Fatal("it did not end")
			}
			_, err := p.Call(pinned, "s", "t", nil)
			wantError(t, err, core.KindToolChanged, "was not sent")
			if called.Load() != 2 {
				t.Errorf("%d calls were sent", called.Load())
			}
			if _, err := p.Call(core.WithPin(ctx, versionOf(2)), "s", "t", nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNoticeOutdatesTheListing checks that the tools are listed again before the next call after the server has
// announced that they changed.
func TestNoticeOutdatesTheListing(t *testing.T) {
	var called atomic.Int64
	p := newPool(t, Options{Identify: identifyText}, ServerSpec{Name: "s", Dial: versions(&called, true)})
	pinned := core.WithPin(t.Context(), versionOf(1))
	if _, err := p.Call(pinned, "s", "t", nil); err != nil {
		t.Fatal(err)
	}
	_, err := p.Call(pinned, "s", "t", nil)
	wantError(t, err, core.KindToolChanged)
	if called.Load() != 1 {
		t.Errorf("%d calls were sent", called.Load())
	}
}
