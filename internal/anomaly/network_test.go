package anomaly

import (
	"testing"
	"time"

	"retort/internal/core"
)

// recordAccess records direct network access of a worker's program to a host.
func (o *office) recordAccess(w worker, id string, at time.Time, host, status string, sent, received int) {
	e := o.event(w, id, at, core.EventNetwork)
	e.Status, e.Bytes, e.Facts = status, int64(received), map[string]any{"host": host, "sent": sent}
	if status == "refused" {
		e.Facts["error"] = core.KindPolicy
	}
	o.emit(e)
}

// TestNetwork checks that many refused attempts to reach a host, and unusually large transfers, are found.
func TestNetwork(t *testing.T) {
	usual := func(o *office, w worker) {
		for day := range history {
			at := o.at(day, w.from+1)
			o.simulateProgram(w, at, func(id string) {
				for i := range 3 {
					o.recordAccess(w, id, at.Add(time.Duration(i)*time.Second), "api.example.com", "ended", 200, 4000)
				}
			})
		}
	}
	for name, plant := range map[string]struct {
		kind Kind
		do   func(o *office, w worker, id string, at time.Time)
	}{
		"refused": {Denials, func(o *office, w worker, id string, at time.Time) {
			for i := range 25 {
				o.recordAccess(w, id, at.Add(time.Duration(i)*time.Second), "evil.test", "refused", 0, 0)
			}
		}},
		"much is sent": {Size, func(o *office, w worker, id string, at time.Time) {
			o.recordAccess(w, id, at, "api.example.com", "ended", 50e6, 100)
		}},
		"much is received": {Size, func(o *office, w worker, id string, at time.Time) {
			o.recordAccess(w, id, at, "api.example.com", "ended", 100, 80e6)
		}},
		"much is read and sent elsewhere": {Exfiltration, func(o *office, w worker, id string, at time.Time) {
			o.read(w, id, at, "issues", "list", 400e6)
			o.recordAccess(w, id, at, "paste.example.com", "ended", 5e6, 100)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := watching(officeOptions())
			o := newOffice(1, w.event)
			o.days(0, history)
			bob := by("bob")
			usual(o, bob)
			before := len(w.of(plant.kind))
			at := o.at(history, bob.from+1)
			o.simulateProgram(bob, at, func(id string) { plant.do(o, bob, id, at) })
			found := w.of(plant.kind)[before:]
			if len(found) == 0 || found[0].Principal != "bob" || found[0].Words == "" {
				t.Errorf("%+v", w.found[len(w.found)-min(3, len(w.found)):])
			}
		})
	}
}

// TestAtOnce checks that access to a blacklisted host and a very large transfer are reported at once, although
// nothing was learned about the principal before.
func TestAtOnce(t *testing.T) {
	at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	attempt := func(status string, facts map[string]any, received int64) core.AuditEvent {
		return core.AuditEvent{Kind: core.EventNetwork, At: at, Principal: "new", Execution: "x", Status: status, Bytes: received, Facts: facts}
	}
	for name, c := range map[string]struct {
		e     core.AuditEvent
		kinds map[Kind]int
	}{
		"the blacklist":             {attempt("refused", map[string]any{"host": "evil.test", "error": core.KindPolicy, "blacklist": true}, 0), map[Kind]int{Blacklist: 1}},
		"a host that no list names": {attempt("refused", map[string]any{"host": "evil.test", "error": core.KindPolicy}, 0), nil},
		"much":                      {attempt("ended", map[string]any{"host": "a.test", "sent": 6 << 20}, 6<<20), map[Kind]int{Volume: 1}},
		"not much":                  {attempt("ended", map[string]any{"host": "a.test", "sent": 1 << 20}, 6<<20), nil},
	} {
		for _, action := range []AnomalyAction{Alert, Off} {
			found := map[Kind]int{}
			w := New(Options{Actions: map[Kind]AnomalyAction{Blacklist: action, Volume: action}}, func(f AnomalyFinding) { found[f.Kind]++ })
			w.ObserveEvent(c.e)
			w.ObserveEvent(c.e) // within an hour it is told once
			want := c.kinds
			if action == Off {
				want = nil
			}
			if name == "not much" && action == Alert {
				want = map[Kind]int{Volume: 1} // twice as much
			}
			if len(found) != len(want) || found[Blacklist] != want[Blacklist] || found[Volume] != want[Volume] {
				t.Errorf("%s, %s: %v, want %v", name, action, found, want)
			}
		}
	}
}
