//go:build unix

package client

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
)

// TestHungProcessIsEnded checks that a suspended process is ended after it has answered neither a call nor pings, and
// that the next call starts another one.
func TestHungProcessIsEnded(t *testing.T) {
	s := ServerSpec{Name: "s", Command: os.Args[0], Args: []string{"hostile", "remembers"}, CallTimeout: 300 * time.Millisecond}
	p := newPool(t, Options{}, s)
	testenv.WaitUntil(t, "the server answers", func() bool {
		_, err := p.List(t.Context(), "s")
		return err == nil
	})
	pid := p.StatusOf("s").PID
	suspendProcess(t, pid)
	_, err := p.Call(t.Context(), "s", "t", nil)
	wantError(t, err, core.KindUpstreamTimeout)
	testenv.WaitUntil(t, "the status says that it hung", func() bool {
		st := p.StatusOf("s")
		return st.State == StateFailing && st.LastError != nil && st.LastError.Op == "upstream.ping"
	})
	testenv.WaitUntil(t, "the process has ended", func() bool { return syscall.Kill(pid, 0) != nil })
	testenv.WaitUntil(t, "another process answers", func() bool {
		_, err := p.Call(t.Context(), "s", "t", nil)
		return err == nil
	})
	if now := p.StatusOf("s").PID; now == pid {
		t.Error("it is the same process")
	}
}

// suspendProcess suspends a process and waits until all of it has stopped. A process that runs on another processor can
// still answer a call after the signal was sent.
func suspendProcess(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	testenv.WaitUntil(t, "the process has stopped", func() bool {
		state, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
		return err == nil && strings.HasPrefix(strings.TrimSpace(string(state)), "T")
	})
}

// TestSilentServerIsPinged checks that a server that does not answer a call is pinged, and that its session ends only
// if it stays silent.
func TestSilentServerIsPinged(t *testing.T) {
	for name, c := range map[string]struct {
		ping  func(s *scripted, r request) bool
		pings int
		ends  bool
	}{
		"answers pings":    {func(*scripted, request) bool { return false }, 1, false},
		"writes something": {func(s *scripted, _ request) bool { s.line("still working"); return true }, 1, false},
		"is silent":        {func(*scripted, request) bool { return true }, maxPings, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pings := 0
				p := inBubble(t, Options{}, ServerSpec{Name: "s", CallTimeout: 30 * time.Second, Dial: dialScripted(func(s *scripted) {
					s.on[methodCall] = func(*scripted, request) bool { return true }
					s.on[methodPing] = func(s *scripted, r request) bool { pings++; return c.ping(s, r) }
				})})
				_, err := p.Call(t.Context(), "s", "t", nil)
				wantError(t, err, core.KindUpstreamTimeout)
				time.Sleep(31 * time.Second)
				synctest.Wait()
				st := p.StatusOf("s")
				if ended := st.State == StateFailing && st.Failures == 1; pings != c.pings || ended != c.ends {
					t.Errorf("%d pings, want %d; ended %v, want %v: %+v", pings, c.pings, ended, c.ends, st)
				}
				if c.ends && !strings.Contains(st.LastError.Message, "the server hung") {
					t.Errorf("%v", st.LastError)
				}
				if l, err := p.List(t.Context(), "s"); err != nil || len(l.Tools) != 1 {
					t.Errorf("it can't be used afterwards: %v", err)
				}
			})
		})
	}
}
