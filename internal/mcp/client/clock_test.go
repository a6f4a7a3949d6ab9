//go:build unix

package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"retort/internal/core"
)

// TestCallTimeout checks that a call without an answer ends exactly at its timeout, that the client then sends a
// cancellation, and that the server can be used afterwards.
func TestCallTimeout(t *testing.T) {
	for _, mode := range []string{"hang in call", "wrong ids"} {
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var called, cancelled string
				p := inBubble(t, Options{}, ServerSpec{Name: "s", CallTimeout: time.Second, Dial: dialScripted(func(s *scripted) {
					s.on[methodCall] = func(s *scripted, r request) bool {
						called = string(r.ID)
						return onMethod[mode][methodCall](s, r)
					}
					s.on[methodCancelled] = func(_ *scripted, r request) bool {
						cancelled = string(r.Params.RequestID)
						return true
					}
				})})
				began := time.Now()
				_, err := p.Call(t.Context(), "s", "hang", nil)
				wantError(t, err, core.KindUpstreamTimeout, "did not answer within 1s")
				if took := time.Since(began); took != time.Second {
					t.Errorf("the call ended after %s, want 1s", took)
				}
				if !errors.Is(err, ErrOutcomeUnknown) {
					t.Error("the error of a call that timed out is not ErrOutcomeUnknown")
				}
				synctest.Wait()
				if called == "" || cancelled != called {
					t.Errorf("the call had the id %q, and the cancellation the id %q", called, cancelled)
				}
				if l, err := p.List(t.Context(), "s"); err != nil || len(l.Tools) != 1 {
					t.Errorf("the server can't be used afterwards: %v", err)
				}
				if st := p.StatusOf("s"); st.Connects != 1 {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// TestAnswersTooLate checks what happens if a server of the newest protocol version answers server/discover only
// after the timeout of that request: the client connects again and then uses the newest version.
func TestAnswersTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inBubble(t, Options{}, ServerSpec{Name: "s", Dial: dialScripted(func(s *scripted) {
			s.on[methodDiscover] = func(s *scripted, r request) bool {
				time.Sleep(defaultProbe + time.Second)
				s.reply(r, `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete"}`)
				return true
			}
			s.on[methodInitialize] = func(s *scripted, r request) bool { s.fail(r, -32601, "Method not found"); return true }
		})})
		l, err := p.List(t.Context(), "s")
		if err != nil || l.Protocol != "2026-07-28" || len(l.Tools) != 1 {
			t.Errorf("%+v, %v", l, err)
		}
		if st := p.StatusOf("s"); st.Failures != 0 || st.Protocol != "2026-07-28" || st.Connects != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// TestBreaker checks that a server that keeps failing is retried after increasing delays, and then
// not at all for a while. The error says why. After that time the server is tried again.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		broken.Store(true)
		var tries []time.Duration
		began, works := time.Now(), dialMode("proper")
		p := inBubble(t, Options{}, ServerSpec{Name: "s", Dial: func(ctx context.Context) (io.ReadWriteCloser, error) {
			tries = append(tries, time.Since(began))
			if broken.Load() {
				return nil, errors.New("cannot open the database")
			}
			return works(ctx)
		}})
		for range openAfter {
			_, err := p.Call(t.Context(), "s", "t", nil)
			wantError(t, err, core.KindUpstreamGone, "cannot open the database")
		}
		for n, earliest := range []time.Duration{0, firstDelay / 2, firstDelay, 2 * firstDelay, 4 * firstDelay} {
			if n > 0 && (tries[n]-tries[n-1] < earliest || tries[n]-tries[n-1] > 3*earliest) {
				t.Errorf("try %d came %s after the one before, want between %s and %s", n+1, tries[n]-tries[n-1], earliest, 3*earliest)
			}
		}
		failed := time.Now()
		_, err := p.Call(t.Context(), "s", "t", nil)
		wantError(t, err, core.KindUpstreamGone, "failed 5 times in a row", "is not called for", "cannot open the database")
		st := p.StatusOf("s")
		if len(tries) != openAfter || !time.Now().Equal(failed) || st.State != StateOpen || !st.RetryAt.After(failed) {
			t.Errorf("%d tries, an answer after %s, %+v", len(tries), time.Since(failed), st)
		}
		broken.Store(false)
		time.Sleep(time.Until(st.RetryAt))
		mustCall(t, p, "s", "t")
		if st := p.StatusOf("s"); len(tries) != openAfter+1 || st.Failures != 0 || st.State != StateReady {
			t.Errorf("%d tries, %+v", len(tries), st)
		}
	})
}

// TestBackoffIsWaited checks that a call after a failure waits until the backoff is over.
func TestBackoffIsWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inBubble(t, Options{}, ServerSpec{Name: "s", Dial: dialMode("proper")})
		const wait = 150 * time.Millisecond
		p.servers["s"].main.breaker.Failures, p.servers["s"].main.breaker.RetryAt = 1, time.Now().Add(wait)
		began := time.Now()
		mustCall(t, p, "s", "t")
		if took := time.Since(began); took != wait {
			t.Errorf("tried after %s, want %s", took, wait)
		}
	})
}

// TestListChangedIsDebounced checks that several list_changed notifications in a row call OnChange
// once, changeDelay after the last of them.
func TestListChangedIsDebounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes []time.Time
		p := inBubble(t, Options{OnChange: func(server string) {
			if server == "s" {
				changes = append(changes, time.Now())
			}
		}}, ServerSpec{Name: "s", Dial: dialMode("news")})
		for range 2 {
			mustCall(t, p, "s", "t")
			time.Sleep(changeDelay / 2)
		}
		last := time.Now().Add(-changeDelay / 2)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(changes) != 1 || !changes[0].Equal(last.Add(changeDelay)) {
			t.Errorf("OnChange was called at %v, want once, at %v", changes, last.Add(changeDelay))
		}
	})
}

// TestWaiterGivesUp checks that a caller whose context ends does not stop the connection attempt it
// was waiting for.
func TestWaiterGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inBubble(t, Options{}, ServerSpec{Name: "s", Dial: dialMode("mute on discover")})
		ctx, cancel := context.WithTimeout(t.Context(), defaultProbe/2)
		defer cancel()
		_, err := p.Call(ctx, "s", "t", nil)
		wantError(t, err, core.KindUpstreamTimeout, "while the server was being started")
		if errors.Is(err, ErrOutcomeUnknown) {
			t.Error("the error is ErrOutcomeUnknown, though the call was never made")
		}
		time.Sleep(defaultProbe)
		synctest.Wait()
		if st := p.StatusOf("s"); st.State != StateReady || st.Connects != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// TestPageStopsTheClock checks that a call is retried after a pause if the server wants a page to be opened first and
// does not report when the person has finished with it. The pauses do not count against CallTimeout.
func TestPageStopsTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		p := inBubble(t, Options{}, ServerSpec{Name: "s", CallTimeout: firstPause / 2, Client: ClientFeatures{Elicit: true}, Dial: dialScripted(func(s *scripted) {
			s.on[methodCall] = func(s *scripted, r request) bool {
				if calls++; calls > 2 {
					return false
				}
				s.line(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32042,"message":"first","data":{"elicitations":[{"mode":"url","elicitationId":"1","url":"https://pages.example/","message":"m"}]}}}`, r.ID)
				return true
			}
		})})
		ctx := core.WithPeer(t.Context(), &core.ClientPeer{ID: "c", Pages: true, Ask: func(context.Context, core.ServerRequest) (json.RawMessage, *core.Error) {
			return json.RawMessage(`{"action":"accept"}`), nil
		}})
		began := time.Now()
		if _, err := p.Call(ctx, "s", "t", nil); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != firstPause+2*firstPause || calls != 3 {
			t.Errorf("answered after %s and %d calls, want %s and 3", took, calls, 3*firstPause)
		}
	})
}

// finished is a server process for tests. It has already exited or, if the field lives is set, never exits.
type finished struct {
	lives   bool
	stopped *bool
}

func (f finished) Done() <-chan struct{} {
	done := make(chan struct{})
	if !f.lives {
		close(done)
	}
	return done
}

func (finished) State() string        { return "exit status 3" }
func (f finished) Stop(time.Duration) { *f.stopped = true }

// TestLastLogLines checks that errEnded waits for the process to exit and then for the last lines of its log. Neither
// wait may take longer than the argument patience.
func TestLastLogLines(t *testing.T) {
	for name, c := range map[string]struct {
		lives   bool
		lines   time.Duration // time after which the last lines have been read; 0 means never
		takes   time.Duration
		says    string
		stopped bool
	}{
		"lines that come late":  {lines: exitPatience / 2, takes: exitPatience / 2, says: "exit status 3"},
		"lines without an end":  {takes: exitPatience, says: "exit status 3"},
		"a process that stays":  {lives: true, takes: exitPatience, says: "closed its output without exiting", stopped: true},
		"lines that were there": {lines: -1, says: "exit status 3"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logged := make(chan struct{})
				if c.lines != 0 {
					time.AfterFunc(c.lines, func() { close(logged) })
					synctest.Wait()
				}
				stopped, began := false, time.Now()
				wantError(t, errEnded(finished{c.lives, &stopped}, logged, exitPatience), core.KindUpstreamGone, c.says)
				if took := time.Since(began); took != c.takes || stopped != c.stopped {
					t.Errorf("it took %s and stopped the process: %v; want %s and %v", took, stopped, c.takes, c.stopped)
				}
			})
		})
	}
}

// rememberingServers starts servers within this process. Each server answers a call with everything that it was ever
// sent and with the number of the connection. If delays has a function for the called tool, the server answers when
// the function returns.
type rememberingServers struct {
	delays map[string]func()
	made   atomic.Int64
}

func (m *rememberingServers) dial(ctx context.Context) (io.ReadWriteCloser, error) {
	number := m.made.Add(1)
	var heard []string
	return dialScripted(func(s *scripted) {
		s.on[methodCall] = func(s *scripted, r request) bool {
			if delay := m.delays[r.Params.Name]; delay != nil {
				delay()
			}
			heard = append(heard, string(r.Params.Arguments))
			quoted, _ := json.Marshal(strings.Join(heard, " "))
			s.reply(r, `{"content":[{"type":"text","text":%s},{"type":"text","text":"%d"}]}`, quoted, number)
			return true
		}
	})(ctx)
}

// TestIdleInstanceEnds checks that an instance without calls ends after the time Idle, but not during a call, and that
// the next call starts another instance. Listing tools does not keep an instance alive.
func TestIdleInstanceEnds(t *testing.T) {
	for _, caller := range []string{"", "alice"} {
		t.Run(caller, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := rememberingServers{delays: map[string]func(){"late": func() { time.Sleep(time.Minute) }}}
				p := inBubble(t, Options{}, ServerSpec{Name: "s", Dial: m.dial, Isolation: IsolationPrincipal, Idle: 10 * time.Second, CallTimeout: time.Hour})
				_, first := callWithText(t, p, caller, "1", "a")
				heard, late, err := tells(t.Context(), p, caller, "1", "late", "b") // the call takes longer than Idle
				if err != nil || late != first || !strings.Contains(heard, `"a"`) {
					t.Errorf("%q by %s, %v; it was %s", heard, late, err, first)
				}
				time.Sleep(9 * time.Second)
				if _, again := callWithText(t, p, caller, "1", "b"); again != first {
					t.Errorf("answered by %s; %s was not idle for long enough", again, first)
				}
				for range 9 { // listing is not a call
					time.Sleep(time.Second)
					if _, err := p.List(t.Context(), "s"); err != nil {
						t.Error(err)
					}
				}
				time.Sleep(time.Second)
				synctest.Wait()
				st := p.StatusOf("s")
				if caller == "" && st.State == StateReady || st.Instances > 0 || st.LastError != nil || st.Failures != 0 {
					t.Errorf("it should be idle, without having failed: %+v", st)
				}
				if heard, second := callWithText(t, p, caller, "1", "c"); second == first || strings.Contains(heard, `"a"`) {
					t.Errorf("%q by %s again", heard, second)
				}
			})
		})
	}
}

func TestInstanceCapWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		m := rememberingServers{delays: map[string]func(){"slow": func() { <-release }}}
		p := inBubble(t, Options{}, ServerSpec{Name: "s", Dial: m.dial, Isolation: IsolationPrincipal, Instances: 1, CallTimeout: time.Hour})
		answered := make(chan error, 1)
		go func() {
			_, _, err := tells(t.Context(), p, "alice", "1", "slow", "a")
			answered <- err
		}()
		synctest.Wait()
		impatient, cancel := context.WithTimeout(t.Context(), roomPatience/2)
		defer cancel()
		began := time.Now()
		_, _, err := tells(impatient, p, "carol", "1", "t", "c")
		wantError(t, err, core.KindUpstreamTimeout, "waiting for an instance")
		_, _, err = tells(t.Context(), p, "carol", "1", "t", "c")
		wantError(t, err, core.KindLimit, "all 1 instances", "servers.s.instances")
		if took := time.Since(began); took != roomPatience/2+roomPatience {
			t.Errorf("carol gave up after %s, want %s", took, roomPatience/2+roomPatience)
		}
		time.AfterFunc(roomPatience/2, func() { close(release) })
		if heard, _ := callWithText(t, p, "bob", "1", "b"); strings.Contains(heard, `"a"`) {
			t.Errorf("bob got alice's instance: %s", heard)
		}
		if err := <-answered; err != nil {
			t.Errorf("alice: %v", err)
		}
	})
}
