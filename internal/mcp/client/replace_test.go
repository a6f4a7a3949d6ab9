//go:build unix

package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
)

var removed = map[string]*core.Error{"s": core.Errorf(core.KindUpstreamGone, "test", "it was removed").WithHint("look again")}

// hangingServer returns a server that never answers calls. For each call that arrives, it sends the tool's name to the
// channel called.
func hangingServer(called chan<- string) ServerSpec {
	return ServerSpec{Name: "s", Dial: dialScripted(func(s *scripted) {
		s.on["tools/call"] = func(_ *scripted, r request) bool { called <- r.Params.Name; return true }
	})}
}

// TestDropAndPut checks that dropping a server fails its pending call and later ones with the given reason. When the
// server has been put in again, calls with an older revision are still refused.
func TestDropAndPut(t *testing.T) {
	for name, isolation := range map[string]Isolation{"shared": IsolationShared, "by principal": IsolationPrincipal} {
		t.Run(name, func(t *testing.T) {
			called := make(chan string, 1)
			spec := hangingServer(called)
			spec.Isolation = isolation
			p := newPool(t, Options{}, spec)
			before := p.Revision()
			ctx := core.WithCaller(core.WithRevision(t.Context(), before), core.Caller{Principal: "anna"})
			failed := make(chan error, 1)
			go func() {
				_, err := p.Call(ctx, "s", "t", nil)
				failed <- err
			}()
			testenv.Receive(t, called, "the call")
			ended := p.DropServers(removed)
			if err := testenv.Receive(t, failed, "the end of the call"); !errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("the call was sent, and its error is %v", err)
			} else {
				wantError(t, err, core.KindUpstreamGone, "it was removed", "look again")
			}
			_, err := p.Call(ctx, "s", "t", nil)
			wantError(t, err, core.KindUpstreamGone, "it was removed")
			ended()
			if names := p.ServerNames(); len(names) > 0 {
				t.Errorf("left: %v", names)
			}
			p.PutServer(ServerSpec{Name: "s", Dial: dialSDK(t, sdkServer()), Isolation: isolation})
			_, err = p.Call(ctx, "s", "echo", nil)
			wantError(t, err, core.KindToolChanged, `the entry of the server "s" was added or changed`)
			if _, err := p.Call(core.WithRevision(ctx, p.Revision()), "s", "echo", nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDropWhileItStarts checks that a call that waits for a server to start fails immediately when the server is
// dropped.
func TestDropWhileItStarts(t *testing.T) {
	dialing := make(chan struct{}, 1)
	p := newPool(t, Options{}, ServerSpec{Name: "s", Dial: func(ctx context.Context) (io.ReadWriteCloser, error) {
		dialing <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	failed := make(chan error, 1)
	go func() {
		_, err := p.Call(t.Context(), "s", "t", nil)
		failed <- err
	}()
	testenv.Receive(t, dialing, "the start")
	p.DropServers(removed)()
	wantError(t, testenv.Receive(t, failed, "the end of the call"), core.KindUpstreamGone, "it was removed")
}

// TestFinalCheck checks that a call is not sent if the function that its context contains as the final check returns
// an error. That function runs after the server has started.
func TestFinalCheck(t *testing.T) {
	sent := false
	p := newPool(t, Options{}, ServerSpec{Name: "s", Dial: dialScripted(func(s *scripted) {
		s.on["tools/call"] = func(s *scripted, r request) bool { sent = true; s.reply(r, `{"content":[]}`); return true }
	})})
	ctx := core.WithFinalCheck(t.Context(), func() *core.Error { return core.Errorf(core.KindPolicy, "test", "not any more") })
	_, err := p.Call(ctx, "s", "t", json.RawMessage(`{}`))
	if e := wantError(t, err, core.KindPolicy, "not any more"); sent || errors.Is(e, ErrOutcomeUnknown) {
		t.Errorf("sent: %v, %v", sent, e)
	}
	if _, err := p.Request(ctx, "s", "prompts/get", nil); core.AsError(err).Kind != core.KindPolicy {
		t.Error(err)
	}
}
