package web

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// RefusedLogins describes requests from one network address whose tokens were invalid.
type RefusedLogins struct {
	From  string // network address, or network for IPv6; empty if the requests came from several
	Why   string
	Count int // number of requests
}

const (
	refusalWindow = time.Minute
	// maxRefusals bounds how many addresses are logged individually in a time window, so that endless attempts cannot
	// fill the disk.
	maxRefusals = 8
)

// refusalLog logs the first failed login of each network address within a time window. At the end of the window it
// logs how many other logins have failed.
type refusalLog struct {
	tell func(RefusedLogins) // called with each report; may be nil

	mu    sync.Mutex
	began time.Time
	seen  map[string]bool
	more  int
}

func (r *refusalLog) noteRefusal(from, why string, now time.Time) {
	if r.tell == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.began) >= refusalWindow || now.Before(r.began) {
		r.startWindow(now)
	}
	if r.seen[from] || len(r.seen) >= maxRefusals {
		r.more++
		return
	}
	r.seen[from] = true
	r.tell(RefusedLogins{From: from, Why: why, Count: 1})
}

// flushPending logs the failed logins that were counted but not logged yet.
func (r *refusalLog) flushPending(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.startWindow(now)
}

// endQuietWindow ends the current time window when its time is over, although no further login has failed. Otherwise
// the number of failed logins that were only counted would not be logged before the next failure.
func (r *refusalLog) endQuietWindow(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.began) >= refusalWindow {
		r.startWindow(now)
	}
}

// startWindow logs how many failed logins of the current time window were not logged individually, and begins a new
// window. The caller must hold mu.
func (r *refusalLog) startWindow(now time.Time) {
	if r.more > 0 {
		r.tell(RefusedLogins{Why: "further calls with an invalid token", Count: r.more})
	}
	r.began, r.seen, r.more = now, map[string]bool{}, 0
}

// networkOf returns the part of an address that a client cannot choose freely. That is the whole address for IPv4,
// and the 64-bit network for IPv6.
func networkOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if address = address.Unmap().WithZone(""); address.Is4() {
		return address.String()
	}
	network, err := address.Prefix(64)
	if err != nil {
		return address.String()
	}
	return network.String()
}
