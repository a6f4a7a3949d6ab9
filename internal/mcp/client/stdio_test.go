//go:build unix

package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"retort/internal/base/reaper"
	"retort/internal/core"
	"retort/internal/devel/testenv"
)

func TestHangAtStart(t *testing.T) {
	s := hostileServer("hang at start")
	s.probe, s.ConnectTimeout = 50*time.Millisecond, 300*time.Millisecond
	p := newPool(t, Options{}, s)
	_, err := p.List(t.Context(), "s")
	wantError(t, err, core.KindUpstreamTimeout, "did not answer while connecting")
}

func TestDieAtStart(t *testing.T) {
	p := newPool(t, Options{}, hostileServer("die at start"))
	_, err := p.List(t.Context(), "s")
	e := wantError(t, err, core.KindUpstreamGone, "exit status 3", "cannot open the database")
	if e.Server != "s" || strings.Contains(e.Hint, "\x1b") {
		t.Errorf("%+v", e)
	}
	if st := p.StatusOf("s"); st.State != StateFailing || st.LastError == nil || st.Failures != 1 || st.PID != 0 {
		t.Errorf("%+v", st)
	}
}

// TestFallback checks that the pool finds the protocol version of older servers. These react to server/discover, which
// they do not know, in different ways.
func TestFallback(t *testing.T) {
	for _, mode := range []string{"proper", "die on discover", "mute on discover", "text on discover", "error without id", "refuse versions"} {
		t.Run(mode, func(t *testing.T) {
			s := hostileServer(mode)
			if mode == "mute on discover" || mode == "text on discover" {
				s.probe = 50 * time.Millisecond // for the other modes, the fallback must not wait for the probe to time out
			}
			p := newPool(t, Options{}, s)
			l, err := p.List(testenv.Context(t), "s")
			if err != nil {
				t.Fatal(err)
			}
			want := "2025-11-25"
			if mode == "refuse versions" {
				want = "2025-03-26"
			}
			if l.Protocol != want || len(l.Tools) != 1 {
				t.Errorf("%+v", l)
			}
			if st := p.StatusOf("s"); st.Failures != 0 || st.Protocol != want || st.Connects != 1 {
				t.Errorf("%+v", st)
			}
		})
	}
}

func TestDieOnInitialize(t *testing.T) {
	p := newPool(t, Options{}, hostileServer("die on initialize"))
	_, err := p.List(t.Context(), "s")
	wantError(t, err, core.KindUpstreamGone, "exit status 4")
}

// TestServerDiesDuringCall checks that all pending calls fail immediately when their server dies, and that the next
// call restarts it.
func TestServerDiesDuringCall(t *testing.T) {
	var changes atomic.Int32
	p := newPool(t, Options{OnChange: func(string) { changes.Add(1) }}, hostileServer("die in call"))
	mustCall(t, p, "s", "t")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, err := p.Call(t.Context(), "s", "hang", nil)
			wantError(t, err, core.KindUpstreamGone, "exit status 7", "panic: boom")
			if !errors.Is(err, ErrOutcomeUnknown) {
				t.Error("outcome should be unknown")
			}
		})
	}
	testenv.WaitUntil(t, "the server has seen all calls", func() bool { return strings.Count(strings.Join(p.StatusOf("s").Stderr, "\n"), "called hang") == 8 })
	_, err := p.Call(t.Context(), "s", "die", nil)
	e := wantError(t, err, core.KindUpstreamGone, "exit status 7", "panic: boom")
	if e.Server != "s" || e.Tool != "die" || !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("%+v", e)
	}
	wg.Wait()
	mustCall(t, p, "s", "t")
	if st := p.StatusOf("s"); st.Restarts != 1 || st.Failures != 0 || st.State != StateReady {
		t.Errorf("%+v", st)
	}
	testenv.WaitUntil(t, "OnChange is called for the restart", func() bool { return changes.Load() == 1 })
}

// retryNow ends the backoff of a failed server, so that the next use of the server connects immediately.
func retryNow(s *serverConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.breaker.RetryAt = time.Time{}
}

func (s *serverConn) pendingCalls() int {
	s.mu.Lock()
	sess := s.session
	s.mu.Unlock()
	if sess == nil {
		return 0
	}
	sess.link.mu.Lock()
	defer sess.link.mu.Unlock()
	return len(sess.link.pending)
}

func TestManyLastWords(t *testing.T) {
	p := newPool(t, Options{}, hostileServer("die loudly"))
	_, err := p.Call(t.Context(), "s", "t", nil)
	wantError(t, err, core.KindUpstreamGone, "exit status 6", "line 19999 of a long trace | the very last word")
}

// TestNoCallTwice checks that a call that was sent is never repeated, even if the server dies during it.
func TestNoCallTwice(t *testing.T) {
	file := filepath.Join(t.TempDir(), "calls")
	s := hostileServer("count and die")
	s.Env = map[string]string{"COUNT_FILE": file}
	p := newPool(t, Options{}, s)
	for range 3 {
		retryNow(p.servers["s"].main)
		_, err := p.Call(t.Context(), "s", "t", nil)
		wantError(t, err, core.KindUpstreamGone, "exit status 9")
		if !errors.Is(err, ErrOutcomeUnknown) {
			t.Error("outcome should be unknown")
		}
	}
	if made, err := os.ReadFile(file); err != nil || len(made) != 3 {
		t.Errorf("%d calls were made, %v", len(made), err)
	}
}

// TestEraIsRemembered checks that a server is probed for its protocol version only at its first start.
func TestEraIsRemembered(t *testing.T) {
	s := hostileServer("die on discover")
	p := newPool(t, Options{}, s)
	for n := range 3 {
		retryNow(p.servers["s"].main)
		mustCall(t, p, "s", "t")
		if pid := p.StatusOf("s").PID; syscall.Kill(pid, syscall.SIGKILL) != nil {
			t.Fatal("no process")
		}
		testenv.WaitUntil(t, "the death is noticed", func() bool { return p.StatusOf("s").PID == 0 })
		if probes := len(p.StatusOf("s").Stderr); probes != 1 {
			t.Errorf("%d probes after %d starts", probes, n+1)
		}
	}
}

func TestFloodStderr(t *testing.T) {
	p := newPool(t, Options{}, hostileServer("flood stderr"))
	mustCall(t, p, "s", "t")
	if st := p.StatusOf("s"); len(st.Stderr) != 1 || len(st.Stderr[0]) != tailWidth {
		t.Errorf("%d lines kept", len(st.Stderr))
	}
}

func TestRubbish(t *testing.T) {
	p := newPool(t, Options{}, hostileServer("rubbish"))
	mustCall(t, p, "s", "t")
	st := p.StatusOf("s").Rubbish
	if st.Lines != 5 || len(st.Samples) != 5 || st.Samples[0] != "> starting up" || st.Samples[4] != "no newline before the first message:" {
		t.Errorf("%+v", st)
	}
}

func TestHugeResult(t *testing.T) {
	s := hostileServer("300 MB")
	p := newPool(t, Options{}, s)
	mustCall(t, p, "s", "t")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := p.Call(t.Context(), "s", "huge", nil)
	wantError(t, err, core.KindLimit, "exceeds the limit of 64 MB")
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 260 { // a buffer that grows to 64 MB by doubling
		t.Errorf("%d MB were allocated for a message of 300 MB that is over the limit, want at most 260", got)
	}
	mustCall(t, p, "s", "t")
	if st := p.StatusOf("s"); st.Connects != 1 {
		t.Errorf("the server was restarted: %+v", st)
	}
}

// TestHugeResultAmongOthers checks that a result over the size limit fails only its own call.
func TestHugeResultAmongOthers(t *testing.T) {
	s := hostileServer("300 MB")
	s.MaxMessage = 40 << 20
	p := newPool(t, Options{}, s)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			tool := "t"
			if i == 3 {
				tool = "huge"
			}
			_, err := p.Call(t.Context(), "s", tool, nil)
			if i == 3 {
				wantError(t, err, core.KindLimit, "exceeds the limit of 40 MB")
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestEndlessLine(t *testing.T) {
	s := hostileServer("endless line")
	s.MaxMessage = 1 << 20
	p := newPool(t, Options{}, s)
	_, err := p.Call(t.Context(), "s", "t", nil)
	wantError(t, err, core.KindLimit, "exceeds the limit of 1 MB")
}

func TestListBounds(t *testing.T) {
	for mode, text := range map[string]string{
		"cursor loop": "the cursor \"a\" came twice", "endless pages": "more than 1000 pages", "endless tools": "more than 20000 tools",
	} {
		t.Run(mode, func(t *testing.T) {
			p := newPool(t, Options{}, hostileServer(mode))
			_, err := p.List(t.Context(), "s")
			wantError(t, err, core.KindLimit, text)
			mustCall(t, p, "s", "t")
		})
	}
}

func TestManyTools(t *testing.T) {
	p := newPool(t, Options{}, hostileServer("10,000 tools"))
	l, err := p.List(t.Context(), "s")
	if err != nil || len(l.Tools) != 10_000 || !strings.HasPrefix(string(l.Tools[9_999]), `{"name":"tool_9999",`) {
		t.Errorf("%d tools, %v", len(l.Tools), err)
	}
}

func TestListOddities(t *testing.T) {
	p := newPool(t, Options{}, hostileServer("no tools"))
	if l, err := p.List(t.Context(), "s"); err != nil || len(l.Tools) != 0 || l.Name != "scripted" {
		t.Errorf("%+v, %v", l, err)
	}
}

// TestLargeInitialize checks that a server whose answer to initialize is large is refused, because the SDK would take
// minutes to decode it.
func TestLargeInitialize(t *testing.T) {
	p := newPool(t, Options{}, hostileServer("large initialize"))
	_, err := p.Call(t.Context(), "s", "t", nil)
	if err == nil || !strings.Contains(err.Error(), "the result of initialize is too large") {
		t.Errorf("%v", err)
	}
}

func TestBadList(t *testing.T) {
	p := newPool(t, Options{}, hostileServer("bad list"))
	_, err := p.List(t.Context(), "s")
	wantError(t, err, core.KindUpstreamGone, "list of tools cannot be read")
}

func TestBadAnswers(t *testing.T) {
	for _, tt := range []struct {
		mode, tool string
		kind       core.Kind
		text       string
	}{
		{"no result", "null", core.KindToolError, "not a tool result: null"},
		{"no result", "string", core.KindToolError, "not a tool result"},
		{"no result", "list", core.KindToolError, "not a tool result"},
		{"input required", "t", core.KindToolError, "asked for input"},
		{"close stdout", "t", core.KindUpstreamGone, "closed its output without exiting"},
		{"error answers", "params", core.KindInvalidArguments, "missing argument \"path\""},
		{"error answers", "internal", core.KindToolError, "disk on fire"},
		{"error answers", "url", core.KindToolError, "open a page"},
	} {
		t.Run(tt.mode+" "+tt.tool, func(t *testing.T) {
			s := hostileServer(tt.mode)
			if tt.mode == "close stdout" {
				s.exit = 50 * time.Millisecond // the server never exits
			}
			p := newPool(t, Options{}, s)
			_, err := p.Call(t.Context(), "s", tt.tool, nil)
			wantError(t, err, tt.kind, tt.text)
			if answered := tt.kind == core.KindToolError || tt.kind == core.KindInvalidArguments; answered == errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("outcome unknown: %v", !answered)
			}
		})
	}
}

func TestStrays(t *testing.T) {
	for mode, strays := range map[string]int{"wrong ids": 3, "duplicates": 2} {
		t.Run(mode, func(t *testing.T) {
			p := newPool(t, Options{}, hostileServer(mode))
			for range 3 {
				mustCall(t, p, "s", "t")
			}
			testenv.WaitUntil(t, "the strays are counted", func() bool { return p.StatusOf("s").Rubbish.Strays == 3*strays })
		})
	}
}

func TestIsErrorIsNoError(t *testing.T) {
	p := newPool(t, Options{}, hostileServer("error answers"))
	if got, want := mustCall(t, p, "s", "t"), `{"content":[{"type":"text","text":"no"}],"isError":true}`; got != want {
		t.Errorf("got %s", got)
	}
}

func TestBatches(t *testing.T) {
	p := newPool(t, Options{}, hostileServer("batches"))
	mustCall(t, p, "s", "t")
}

// TestServerRequests checks that the client answers a server's ping and refuses other requests, because it has no
// other capabilities.
func TestServerRequests(t *testing.T) {
	p := newPool(t, Options{}, hostileServer("asks back"))
	r, err := p.Call(t.Context(), "s", "t", nil)
	if err != nil {
		t.Fatal(err)
	}
	answers := strings.Split(text(t, r), "\n")
	for i, answer := range answers {
		var a struct {
			ID     int
			Result json.RawMessage
			Error  *struct{ Code int }
		}
		if err := json.Unmarshal([]byte(answer), &a); err != nil || a.ID != i+1 {
			t.Fatalf("%d: %s", i, answer)
		}
		if i == 0 && string(a.Result) != "{}" || i > 0 && (a.Error == nil || a.Error.Code != -32601) {
			t.Errorf("%d: %s", i, answer)
		}
	}
}

func TestServerAsksWithoutEnd(t *testing.T) {
	p := newPool(t, Options{}, hostileServer("asks without end"))
	mustCall(t, p, "s", "t")
}

func TestCancelIsForwarded(t *testing.T) {
	p := newPool(t, Options{}, hostileServer("tells cancelled"))
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := p.Call(ctx, "s", "hang", nil)
		failed <- err
	}()
	testenv.WaitUntil(t, "the server is called", func() bool { return len(p.StatusOf("s").Stderr) == 1 })
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) || !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("%v", err)
	}
	testenv.WaitUntil(t, "the cancellation arrives", func() bool {
		lines := p.StatusOf("s").Stderr
		return len(lines) == 2 && strings.HasPrefix(lines[1], "cancelled ")
	})
	mustCall(t, p, "s", "t")
}

// TestDeafServer checks that calls to a server that does not read its input end at their timeout.
func TestDeafServer(t *testing.T) {
	s := hostileServer("deaf")
	s.CallTimeout = 200 * time.Millisecond
	p := newPool(t, Options{}, s)
	big := json.RawMessage(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			_, err := p.Call(t.Context(), "s", "t", big)
			wantError(t, err, core.KindUpstreamTimeout)
		})
	}
	wg.Wait()
}

// TestDaemonHoldsStreams checks that neither errors nor Close are delayed if a server leaves a daemon behind that
// holds its streams open. The daemon is not killed.
func TestDaemonHoldsStreams(t *testing.T) {
	s := hostileServer("leave a daemon")
	s.exit = 50 * time.Millisecond
	p := newPool(t, Options{}, s)
	failed := make(chan error, 1)
	go func() {
		_, err := p.Call(t.Context(), "s", "t", nil)
		failed <- err
	}()
	var daemon int
	testenv.WaitUntil(t, "the daemon runs", func() bool {
		n, _ := fmt.Sscanf(strings.Join(p.StatusOf("s").Stderr, "\n"), "daemon %d", &daemon)
		return n == 1
	})
	defer func() { _ = syscall.Kill(daemon, syscall.SIGKILL) }()
	_, err := p.Call(t.Context(), "s", "die", nil)
	wantError(t, err, core.KindUpstreamGone, "exit status 5", "daemon ")
	wantError(t, testenv.Receive(t, failed, "the end of the first call"), core.KindUpstreamGone, "exit status 5", "daemon ")
	if err := p.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := syscall.Kill(daemon, 0); err != nil {
		t.Errorf("the daemon was killed, but must be left running: %v", err)
	}
}

func TestIgnoresTerm(t *testing.T) {
	p := newPool(t, Options{}, hostileServer("ignore term"))
	mustCall(t, p, "s", "t")
}

func TestGrandchildren(t *testing.T) {
	p := newPool(t, Options{}, hostileServer("grandchildren"))
	mustCall(t, p, "s", "t")
	testenv.WaitUntil(t, "the grandchildren run", func() bool { return len(markedProcesses(p.servers["s"].main.spec.Env[processMarker])) >= 4 })
}

// TestKilledServer checks that a server is restarted after another program has killed it with SIGKILL.
func TestKilledServer(t *testing.T) {
	p := newPool(t, Options{Processes: reaper.New(os.Args[0], "reaper")}, hostileServer("proper"))
	mustCall(t, p, "s", "t")
	pid := p.StatusOf("s").PID
	_ = syscall.Kill(pid, syscall.SIGKILL)
	testenv.WaitUntil(t, "the death is noticed", func() bool { return p.StatusOf("s").PID != pid })
	mustCall(t, p, "s", "t")
	if st := p.StatusOf("s"); st.Restarts != 1 || st.PID == pid {
		t.Errorf("%+v", st)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("RETORT_SECRET_KEY", "hidden")
	t.Setenv("LC_TIME", "C")
	s := hostileServer("environment")
	s.Env = map[string]string{"CONFIGURED": "yes", "LANG": "xx"}
	p := newPool(t, Options{}, s)
	r, err := p.Call(t.Context(), "s", "t", nil)
	if err != nil {
		t.Fatal(err)
	}
	env := "\n" + text(t, r) + "\n"
	for _, want := range []string{"\nCONFIGURED=yes\n", "\nLANG=xx\n", "\nLC_TIME=C\n", "\nPATH=" + os.Getenv("PATH") + "\n"} {
		if strings.Count(env, want) != 1 {
			t.Errorf("environment lacks %q", want)
		}
	}
	if strings.Contains(env, "hidden") || strings.Count(env, "\nLANG=") != 1 {
		t.Errorf("environment: %s", env)
	}
}

func TestCommandNotFound(t *testing.T) {
	p := newPool(t, Options{}, ServerSpec{Name: "s", Command: "no-such-program-here"}, ServerSpec{Name: "u", Command: "/no/such/program"},
		ServerSpec{Name: "v", Command: "sh", Dir: "/no/such/dir"}, ServerSpec{Name: "w", Command: "sh", Env: map[string]string{"PATH": "/no/such/dir"}})
	for _, name := range []string{"s", "u", "v", "w"} {
		_, err := p.List(t.Context(), name)
		wantError(t, err, core.KindUpstreamGone, "cannot be started")
	}
}
