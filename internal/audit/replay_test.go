package audit

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"retort/internal/core"
)

// writePast writes n entries, a minute apart, into the chain of a store and closes it.
func writePast(t *testing.T, m *memory, o Options, n int, at time.Time) {
	t.Helper()
	o.Now = func() time.Time { return at.Add(24 * time.Hour) }
	l := opening(t, m, o)
	for i := range n {
		e := call(fmt.Sprint("x", i))
		e.At, e.Effect, e.Client, e.Duration, e.Bytes = at.Add(time.Duration(i)*time.Minute), "write", "c", time.Second, 5
		if refused := l.Record(e, false); refused != nil {
			t.Fatal(refused)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func calls(t *testing.T, l *Log, since time.Time, most int64) (all []core.AuditEvent, failed error) {
	t.Helper()
	for e, err := range l.ReplayEvents(t.Context(), since, most) {
		if err != nil {
			failed = err
			continue
		}
		if e.Kind == core.EventCall {
			all = append(all, e)
		}
	}
	return all, failed
}

func TestReplay(t *testing.T) {
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	m, o := newMemory("aa"), options(t)
	writePast(t, m, o, 10, at)
	m.chain = "bb"
	writePast(t, m, o, 10, at.Add(30*time.Second))
	l := opening(t, m, o)
	if refused := l.Record(call("new"), true); refused != nil {
		t.Fatal(refused)
	}
	all, err := calls(t, l, time.Time{}, 1000)
	if err != nil || len(all) != 20 {
		t.Fatalf("%d, %v", len(all), err)
	}
	for i, e := range all {
		if i > 0 && e.At.Before(all[i-1].At) || e.Effect != "write" || e.Client != "c" || e.Tool != "update" || e.Bytes != 5 || e.Duration != time.Second || e.Body != nil {
			t.Errorf("%d: %+v", i, e)
		}
	}
	if late, _ := calls(t, l, at.Add(5*time.Minute), 1000); len(late) != 10 || late[0].Execution != "x5" {
		t.Errorf("since: %d", len(late))
	}
	if few, _ := calls(t, l, time.Time{}, 4); len(few) != 6 { // the last entry of each chain says that it stopped
		t.Errorf("most: %d", len(few))
	}
	for e := range l.ReplayEvents(t.Context(), time.Time{}, 1000) {
		_ = e
		break
	}
}

// TestReplayHoldsWhatItGives checks that an entry that was changed in the store is not replayed, and neither are the
// entries after it.
func TestReplayHoldsWhatItGives(t *testing.T) {
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for name, change := range map[string]func(r *LogRow){
		"who":  func(r *LogRow) { r.Principal = "ann" },
		"code": func(r *LogRow) { r.Code = make([]byte, codeSize) },
	} {
		m, o := newMemory("aa"), options(t)
		writePast(t, m, o, 10, at)
		m.chain = "bb"
		l := opening(t, m, o)
		m.set(func() { change(&m.rows["aa"][5]) })
		all, err := calls(t, l, time.Time{}, 1000)
		if !errors.Is(err, ErrCut) || len(all) != 5 {
			t.Errorf("%s: %d, %v", name, len(all), err)
		}
	}
}
