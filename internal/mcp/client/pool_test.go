//go:build unix

package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
)

// TestExactBytes checks that the pool passes on definitions, arguments and results without changing a byte.
func TestExactBytes(t *testing.T) {
	p := newPool(t, Options{ClientVersion: "1"}, ServerSpec{Name: "good", Dial: dialSDK(t, sdkServer())})
	l, err := p.List(t.Context(), "good")
	if err != nil {
		t.Fatal(err)
	}
	if l.Protocol != "2026-07-28" || l.Name != "good" || l.Version != "1.2.3" || l.Instructions != "be kind" || len(l.Tools) != 1 {
		t.Errorf("%+v", l)
	}
	if want := `{"inputSchema":` + exactSchema + `,"name":"echo"}`; string(l.Tools[0]) != want {
		t.Errorf("got %s, want %s", l.Tools[0], want)
	}
	r, err := p.Call(t.Context(), "good", "echo", json.RawMessage(`{"b":9007199254740993,"a":1.0}`))
	if err != nil || !strings.Contains(string(r), `"structuredContent":{"z":9007199254740993,"args":{"b":9007199254740993,"a":1.0}}`) {
		t.Errorf("%s, %v", r, err)
	}
}

func TestExactBytesOfScriptedServer(t *testing.T) {
	const result = `{ "content":[ ],"b":1E400,"a":12345678901234567890.10,"a":"\u003c<\ud800é " }`
	var seen string
	p := newPool(t, Options{}, ServerSpec{Name: "s", Dial: dialScripted(func(s *scripted) {
		s.on["tools/call"] = func(s *scripted, r request) bool {
			seen = string(r.Params.Arguments)
			s.reply(r, "%s", result)
			return true
		}
	})})
	const args = `{"b":9007199254740993,"a":1.0,"<&>":"\u003cé ","a":1E400}`
	r, err := p.Call(t.Context(), "s", "t", json.RawMessage(args))
	if err != nil || string(r) != result {
		t.Errorf("got %s, %v", r, err)
	}
	if seen != args {
		t.Errorf("the server saw %s", seen)
	}
}

func TestArguments(t *testing.T) {
	p := newPool(t, Options{}, ServerSpec{Name: "good", Dial: dialSDK(t, sdkServer())})
	for _, bad := range []string{`[]`, `"x"`, `{`, `null`, `{} {}`} {
		_, err := p.Call(t.Context(), "good", "echo", json.RawMessage(bad))
		wantError(t, err, core.KindInvalidArguments, "not a JSON object")
	}
	if got := mustCall(t, p, "good", "echo"); !strings.Contains(got, `"args":{}`) {
		t.Errorf("no arguments became %s", got)
	}
	_, err := p.Call(t.Context(), "good", "nosuch", nil)
	wantError(t, err, core.KindInvalidArguments, "nosuch")
}

func TestUnknownServer(t *testing.T) {
	p := newPool(t, Options{}, ServerSpec{Name: "github", Dial: dialSDK(t, sdkServer())})
	_, err := p.Call(t.Context(), "githup", "t", nil)
	wantError(t, err, core.KindToolNotFound, `"githup"`, `"github"`)
	if st := p.StatusOf("nosuch"); st.State != StateInvalid {
		t.Errorf("%+v", st)
	}
}

func TestInvalidConfiguration(t *testing.T) {
	p := newPool(t, Options{},
		ServerSpec{Name: "err", Command: "sh", Err: core.Errorf(core.KindUpstreamGone, "config", "the variable TOKEN is not set").WithHint("set it")},
		ServerSpec{Name: "plain", Command: "sh", Err: errors.New("the variable KEY is not set")},
		ServerSpec{Name: "none"}, ServerSpec{Name: "both", Command: "sh", URL: "http://127.0.0.1/"},
		ServerSpec{Name: "url", URL: "ftp://x"}, ServerSpec{Name: "transport", Command: "sh", Transport: "pigeon"}, ServerSpec{Name: "mixed", Command: "sh", Transport: "http"})
	for name, text := range map[string]string{
		"err": "TOKEN", "plain": "KEY", "none": "neither", "both": "both", "url": "not an http or https address", "transport": "pigeon", "mixed": "conflicts with its other settings",
	} {
		_, err := p.List(t.Context(), name)
		wantError(t, err, core.KindUpstreamGone, text)
		_, err = p.Call(t.Context(), name, "t", nil)
		wantError(t, err, core.KindUpstreamGone, text)
		if st := p.StatusOf(name); st.State != StateInvalid || st.LastError == nil {
			t.Errorf("%+v", st)
		}
	}
	if names := p.ServerNames(); !slices.Equal(names, []string{"both", "err", "mixed", "none", "plain", "transport", "url"}) {
		t.Errorf("%v", names)
	}
}

// TestListAll checks that ListAll asks all servers concurrently, and that a broken server does not
// delay the others: one server hangs until the others have answered.
func TestListAll(t *testing.T) {
	others := make(chan struct{})
	hang := ServerSpec{Name: "hang", Dial: func(context.Context) (io.ReadWriteCloser, error) {
		<-others
		return nil, errors.New("gave up")
	}}
	die := hostileServer("die at start")
	die.Name = "die"
	loop := hostileServer("cursor loop")
	loop.Name = "loop"
	p := newPool(t, Options{}, hang, die, loop, ServerSpec{Name: "good", Dial: dialSDK(t, sdkServer())},
		ServerSpec{Name: "unset", Command: "sh", Err: errors.New("unset")})
	got := map[string]bool{}
	p.ListAll(testenv.Context(t), func(server string, l ToolListing, err error) { // needs no lock: ListAll never calls it concurrently
		got[server] = err == nil && len(l.Tools) == 1
		if len(got) == 4 {
			close(others)
		}
	})
	if len(got) != 5 || !got["good"] || got["hang"] || got["die"] || got["loop"] || got["unset"] {
		t.Errorf("%v", got)
	}
}

// TestSingleFlight checks that concurrent callers share one connection attempt.
func TestSingleFlight(t *testing.T) {
	p := newPool(t, Options{}, hostileServer("proper"))
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { mustCall(t, p, "s", "t") })
	}
	wg.Wait()
	if st := p.StatusOf("s"); st.Connects != 1 || st.State != StateReady || st.Latency <= 0 || st.Connect <= 0 || st.PID == 0 {
		t.Errorf("%+v", st)
	}
}

func TestIdleIsIdle(t *testing.T) {
	p := newPool(t, Options{}, hostileServer("proper"))
	if st := p.StatusOf("s"); st.State != StateIdle || st.Connects != 0 || st.Transport != "stdio" {
		t.Errorf("%+v", st)
	}
}

func TestCloseDuringEverything(t *testing.T) {
	connected := func(p *Pool) bool { return p.StatusOf("s").Connects > 0 }
	hangs := func(p *Pool) bool { return p.servers["s"].main.pendingCalls() == 4 }
	for mode, begun := range map[string]func(*Pool) bool{
		"hang at start": func(p *Pool) bool { return len(markedProcesses(p.servers["s"].main.spec.Env[processMarker])) > 0 },
		"hang in call":  hangs, "deaf": hangs, "endless line": connected,
		"flood stderr": func(p *Pool) bool { return len(p.StatusOf("s").Stderr) > 0 },
	} {
		t.Run(mode, func(t *testing.T) {
			p := newPool(t, Options{}, hostileServer(mode))
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					if _, err := p.Call(t.Context(), "s", "t", nil); err == nil && mode != "flood stderr" {
						t.Error("no error")
					}
				})
			}
			testenv.WaitUntil(t, "the operation has begun", func() bool { return begun(p) })
			if err := p.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			wg.Wait()
			_, err := p.Call(t.Context(), "s", "t", nil)
			wantError(t, err, core.KindUpstreamGone, "closed")
			if st := p.StatusOf("s"); st.State != StateClosed || st.PID != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

func TestCloseWithoutUse(t *testing.T) {
	p := newPool(t, Options{}, hostileServer("proper"))
	p.Close()
	p.Close()
}
