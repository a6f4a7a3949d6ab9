package anomaly

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
)

// observedOffice returns a watcher that has observed an office for a month, and the office.
func observedOffice(actions map[Kind]AnomalyAction) (*watcherSetup, *office) {
	options := officeOptions()
	options.Actions = actions
	w := watching(options)
	o := newOffice(1, w.event)
	o.days(0, history)
	w.found = nil
	return w, o
}

func (w *watcherSetup) deletes(o *office, id string, at time.Time, n int) {
	for i := range n {
		o.write(by("intern"), id, at.Add(time.Duration(i)*time.Second), "crm", "delete_record", "irreversible", 40)
	}
}

// TestApproveHoldsUntilYes checks that after a burst of destructive calls all calls with effects of the same
// principal need approval, until a person approves one or an hour has passed. Other principals must not be affected.
func TestApproveHoldsUntilYes(t *testing.T) {
	w, o := observedOffice(map[Kind]AnomalyAction{IrreversibleBurst: Approve})
	at := o.at(history, 10)
	w.deletes(o, "burst", at, 9)
	if w.last.Kinds != "" || len(w.of(IrreversibleBurst)) != 0 {
		t.Fatalf("%+v %+v", w.last, w.found)
	}
	w.deletes(o, "burst", at.Add(10*time.Second), 1)
	if w.last.Kinds != "irreversible_burst" || !strings.HasPrefix(w.last.Rule, "anomalies.irreversible_burst: intern made 10 irreversible calls") || w.last.Refused != nil {
		t.Fatalf("%+v", w.last)
	}
	w.deletes(o, "another", at.Add(time.Minute), 1)
	if w.last.Kinds == "" {
		t.Error("another execution of the principal is not held")
	}
	o.write(by("ann"), "other", at.Add(time.Minute), "crm", "update", "write", 40)
	if w.last.Kinds != "" {
		t.Error("another principal is held")
	}
	decide := func(answer string) {
		q := core.AuditEvent{Kind: core.EventQuestion, At: at, Principal: "intern", Facts: map[string]any{"question": answer, "anomaly": "irreversible_burst"}}
		w.event(q)
		q.Kind, q.Status, q.Facts = core.EventDecision, answer, map[string]any{"question": answer}
		w.event(q)
	}
	decide("denied")
	w.deletes(o, "another", at.Add(2*time.Minute), 1)
	if w.last.Kinds == "" {
		t.Error("a no lets calls leave")
	}
	decide("approved")
	w.deletes(o, "another", at.Add(3*time.Minute), 1)
	if w.last.Kinds != "" || len(w.of(IrreversibleBurst)) != 1 {
		t.Errorf("%+v %+v", w.last, w.found)
	}
	if said := w.Warnings("burst"); len(said) != 2 || !strings.Contains(said[1], "irreversible_burst") || len(w.Warnings("burst")) != 0 {
		t.Errorf("%q", said)
	}
}

func TestHoldEnds(t *testing.T) {
	w, o := observedOffice(map[Kind]AnomalyAction{IrreversibleBurst: Approve})
	w.deletes(o, "burst", o.at(history, 10), 12)
	w.deletes(o, "later", o.at(history, 10).Add(Cooldown+time.Minute), 1)
	if w.last.Kinds != "" {
		t.Errorf("%+v", w.last)
	}
}

// TestTellsAgainWhenWorse checks that a finding is reported again when its value has become four times as large.
func TestTellsAgainWhenWorse(t *testing.T) {
	w, o := observedOffice(nil)
	w.deletes(o, "burst", o.at(history, 10), 45)
	if found := w.of(IrreversibleBurst); len(found) != 2 || found[1].Evidence.Suppressed != 29 || found[1].Evidence.Now != 40 {
		t.Errorf("%+v", found)
	}
}

func TestStop(t *testing.T) {
	w, o := observedOffice(map[Kind]AnomalyAction{IrreversibleBurst: Stop})
	at := o.at(history, 10)
	w.deletes(o, "burst", at, 10)
	refused := w.last.Refused
	if refused == nil || refused.Kind != core.KindPolicy || refused.Hint == "" || w.Stopped("burst") == nil || w.Stopped("other") != nil {
		t.Fatalf("%+v", w.last)
	}
	w.deletes(o, "other", at.Add(time.Minute), 1)
	if w.last.Refused != nil || w.last.Kinds == "" {
		t.Errorf("further executions wait for a person: %+v", w.last)
	}
}

// TestReplay checks that replaying the audit log after a restart restores the actions of findings without reporting
// them again.
func TestReplay(t *testing.T) {
	var events []core.AuditEvent
	w := watching(Options{Zone: officeOptions().Zone, Actions: map[Kind]AnomalyAction{IrreversibleBurst: Stop}})
	o := newOffice(1, func(e core.AuditEvent) { events = append(events, e); w.event(e) })
	o.days(0, history)
	w.deletes(o, "burst", o.at(history, 10), 12)
	again := watching(Options{Zone: officeOptions().Zone, Actions: map[Kind]AnomalyAction{IrreversibleBurst: Stop}})
	for _, e := range events {
		again.ReplayEvent(e)
	}
	if again.Stopped("burst") == nil || len(again.found) != 0 || len(w.found) == 0 {
		t.Errorf("%v, told %d of %d", again.Stopped("burst"), len(again.found), len(w.found))
	}
	again.deletes(newOffice(1, again.event), "other", o.at(history, 10).Add(time.Minute), 1)
	if again.last.Kinds == "" {
		t.Error("the hold is lost")
	}
}

// TestReplayOfFindings checks that a hold is restored from a finding in the audit log alone. A call that was refused
// may leave no other entry.
func TestReplayOfFindings(t *testing.T) {
	w, o := observedOffice(map[Kind]AnomalyAction{IrreversibleBurst: Stop})
	at := o.at(history, 10)
	w.deletes(o, "burst", at, 10)
	e := w.of(IrreversibleBurst)[0].ToEvent()
	e.At, e.Facts["action"] = at, string(Stop) // as it is read
	next, o := observedOffice(nil)
	next.ReplayEvent(e)
	o.write(by("intern"), "next", at.Add(time.Minute), "crm", "update", "write", 40)
	if next.last.Kinds != "irreversible_burst" {
		t.Errorf("%+v", next.last)
	}
}

// TestNothingBeforeABaseline checks that planted anomalies are not reported before the principal has the required
// days and executions.
func TestNothingBeforeABaseline(t *testing.T) {
	for _, l := range []struct{ days, runs int }{{4, 1000}, {30, 29}, {1, 1}} {
		w := watching(Options{})
		o := newOffice(3, w.event)
		for _, plant := range plants {
			for r := range l.runs {
				id, at := o.id(), monday.AddDate(0, 0, r%l.days)
				o.emit(o.event(worker{name: plant.who + plant.name}, id, at, core.EventRequest))
			}
		}
		for _, plant := range plants {
			who := by(plant.who)
			who.name += plant.name
			o.sink = func(e core.AuditEvent) {
				if e.Kind != core.EventRequest { // which would count as one more
					w.event(e)
				}
			}
			plant.do(o, who, monday.AddDate(0, 0, l.days-1))
		}
		if len(w.found) != 0 {
			t.Errorf("%d days, %d executions: %+v", l.days, l.runs, w.found[0])
		}
	}
}

// TestMemoryIsBounded checks that memory stays bounded, however many different executions, servers,
// tools, skills and questions the events name.
func TestMemoryIsBounded(t *testing.T) {
	names := 100_000
	if testenv.Full() {
		names = 1_000_000
	}
	w := watching(Options{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range names {
		n := fmt.Sprint(i)
		e := core.AuditEvent{At: monday.Add(time.Duration(i) * time.Millisecond), Kind: core.EventCall, Effect: "read", Status: "ok", Execution: n, Principal: fmt.Sprint(i % 100), Server: "s" + n, Tool: n, Bytes: 100}
		switch i % 5 {
		case 1:
			e.Effect = "irreversible"
		case 2:
			e.Kind, e.Facts = core.EventVerdict, map[string]any{"skills": []string{n}}
		case 3:
			e.Kind = core.EventRequest
		case 4:
			e.Kind, e.Facts = core.EventQuestion, map[string]any{"question": n, "anomaly": "rate"}
		}
		w.event(e)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	used := float64(after.HeapAlloc-before.HeapAlloc) / (1 << 20)
	t.Logf("%.1f MB", used)
	if used > 48 {
		t.Errorf("%.1f MB after %d names", used, names)
	}
	runtime.KeepAlive(w)
}

// TestManyToolsForgetOnlyOnesOwn checks that a principal that uses many tools displaces only what the watcher has
// learned about this principal.
func TestManyToolsForgetOnlyOnesOwn(t *testing.T) {
	w, o := observedOffice(map[Kind]AnomalyAction{})
	at := o.at(history, 9)
	for i := range 3000 {
		o.read(by("bob"), "sweep", at.Add(time.Duration(i)*time.Minute), "files", fmt.Sprint("tool", i), 500)
	}
	w.found = nil
	for range 2 { // of three tools
		o.read(by("ann"), "big", at, "crm", "list", 400e6)
	}
	if len(w.of(Size)) == 0 {
		t.Error("what is known of ann is gone")
	}
}

// TestClockThatJumps checks that a clock that jumps ahead or back causes almost no findings.
func TestClockThatJumps(t *testing.T) {
	for name, jump := range map[string]time.Duration{"ahead": 10 * 365 * 24 * time.Hour, "back": -200 * 24 * time.Hour, "a little back": -3 * time.Minute} {
		shift := time.Duration(0)
		w := watching(officeOptions())
		o := newOffice(2, func(e core.AuditEvent) { e.At = e.At.Add(shift); w.event(e) })
		o.days(0, 12)
		shift = jump
		o.days(12, 2)
		shift = 0
		o.days(14, 12)
		if len(w.found) > 2 {
			t.Errorf("%s: %d: %+v", name, len(w.found), w.found[0])
		}
	}
}

// TestOrderWithinAMinute checks that events that arrive slightly out of order cause almost no findings.
func TestOrderWithinAMinute(t *testing.T) {
	w := watching(officeOptions())
	r := rand.New(rand.NewPCG(1, 1))
	var held []core.AuditEvent
	o := newOffice(1, func(e core.AuditEvent) {
		held = append(held, e)
		if len(held) > 20 {
			i := r.IntN(len(held))
			w.event(held[i])
			held = append(held[:i], held[i+1:]...)
		}
	})
	o.days(0, history)
	if len(w.found) > 5 {
		t.Errorf("%d false alarms: %+v", len(w.found), w.found)
	}
}

func TestEventOfAFinding(t *testing.T) {
	f := AnomalyFinding{Kind: Rate, Execution: "x", ended: true, Words: "much", Evidence: FindingEvidence{Now: 4, Suppressed: 2}}
	e := f.ToEvent()
	if e.Kind != core.EventAnomaly || e.Execution != "" || e.Status != "rate" || string(e.Body) != `{"words":"much"}` || e.Facts["suppressed"] != 2 {
		t.Errorf("%+v", e)
	}
	if _, err := json.Marshal(e.Facts); err != nil {
		t.Error(err)
	}
}

// FuzzEvents checks that no sequence of events causes a panic or lets memory grow beyond its limits.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("abcdefghijklmnop"))
	f.Add([]byte{0, 1, 2, 3, 255, 254, 253, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9})
	kinds := []core.EventKind{core.EventRequest, core.EventVerdict, core.EventCall, core.EventAnswer, core.EventRefusal, core.EventQuestion, core.EventDecision, core.EventEnd, core.EventAnomaly}
	f.Fuzz(func(t *testing.T, data []byte) {
		actions := map[Kind]AnomalyAction{}
		for _, k := range AllKinds() {
			actions[k] = Stop
		}
		limits := StateLimits{Principals: 3, Series: 3, Total: 6, Executions: 4}
		w := watching(Options{Actions: actions, Learning: LearningThresholds{1, 1, 1, 1}, Limits: limits})
		at := monday
		for len(data) >= 6 {
			b := data[:6]
			data = data[6:]
			at = at.Add(time.Duration(int8(b[0])) * time.Duration(int64(1)<<(b[1]%48)))
			name := string('a' + rune(b[2]%8))
			e := core.AuditEvent{
				Kind: kinds[int(b[3])%len(kinds)], At: at, Principal: name, Execution: string('a' + rune(b[4]%8)), Server: name, Tool: string('a' + rune(b[4]%16)),
				Effect: []string{"read", "write", "irreversible", ""}[b[5]%4], Status: []string{"ok", "policy", "approved", "denied"}[b[5]/4%4],
				Bytes: int64(int8(b[0])) << (b[1] % 56), Duration: time.Duration(int8(b[2])) << (b[1] % 56),
				Facts: map[string]any{"arguments_bytes": float64(b[5]) * 1e6, "question": name, "anomaly": "rate,errors", "skills": []any{name, 1}, "cause": UnknownToken, TokenRun: int(b[0])},
			}
			w.event(e)
			w.ReplayEvent(e)
			_ = w.Stopped(e.Execution)
		}
		d := w.d
		if len(d.people.by) > limits.Principals || d.series > limits.Total || d.series < 0 || len(d.running.by) > limits.Executions || len(w.held) > 2*limits.Principals+8 {
			t.Errorf("%d people, %d series, %d executions, %d held", len(d.people.by), d.series, len(d.running.by), len(w.held))
		}
		count := 0
		d.people.eachValue(func(_ string, p *principalState) { count += len(p.tools.by) + len(p.skills.by) })
		if count != d.series {
			t.Errorf("%d series, counted %d", count, d.series)
		}
	})
}

func BenchmarkJudge(b *testing.B) {
	w, o := observedOffice(nil)
	at := o.at(history, 9)
	e := core.AuditEvent{Kind: core.EventCall, Principal: "ann", Execution: "x", Server: "crm", Tool: "update", Effect: "write", Facts: map[string]any{"arguments_bytes": 300}}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		e.At = at.Add(time.Duration(i) * 10 * time.Second)
		w.Judge(e)
	}
}

func BenchmarkSeen(b *testing.B) {
	var events []core.AuditEvent
	o := newOffice(1, func(e core.AuditEvent) { events = append(events, e) })
	o.days(0, history)
	w := watching(officeOptions())
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		w.event(events[i%len(events)])
	}
}
