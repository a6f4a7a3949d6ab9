package web

import (
	"fmt"
	"testing"
	"time"
)

// TestRefusalsAreBounded checks that invalid tokens from tens of thousands of addresses within an hour cause a
// bounded number of log entries, which together count every request.
func TestRefusalsAreBounded(t *testing.T) {
	entries, calls := 0, 0
	r := refusalLog{tell: func(r RefusedLogins) { entries++; calls += r.Count }}
	now := time.Now()
	const n = 36_000
	for i := range n {
		r.noteRefusal(fmt.Sprint(i), "", now.Add(time.Duration(i)*100*time.Millisecond))
	}
	r.flushPending(now.Add(time.Hour))
	if entries > 60*(maxRefusals+1)+1 || calls != n || len(r.seen) > maxRefusals {
		t.Errorf("%d entries of %d calls", entries, calls)
	}
	r.noteRefusal("x", "", now) // the clock was set back
	if calls != n+1 {
		t.Errorf("%d calls", calls)
	}
}

func TestNetworks(t *testing.T) {
	for remote, want := range map[string]string{
		"10.1.2.3:5": "10.1.2.3", "[::ffff:10.1.2.3]:5": "10.1.2.3", "[2001:db8:1:2:3:4:5:6]:7": "2001:db8:1:2::/64", "[fe80::1%eth0]:7": "fe80::/64", "pipe": "pipe", "": "",
	} {
		if got := networkOf(remote); got != want {
			t.Errorf("%s: %s, want %s", remote, got, want)
		}
	}
}
