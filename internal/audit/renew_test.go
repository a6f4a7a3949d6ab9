package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"retort/internal/core"
)

// renewableLog returns a log that writes to the store first, and continues in the store second after first has
// failed.
func renewableLog(t *testing.T) (l *Log, first, second *memory, o Options) {
	t.Helper()
	first, second = newMemory("c1"), newMemory("c2")
	o = options(t)
	o.Renew = func(context.Context) (LogStore, error) { return second, nil }
	return opening(t, first, o), first, second, o
}

// failWritesWith makes every later write to the store fail with the given error.
func (m *memory) failWritesWith(err error) {
	m.set(func() {
		m.fails = func(WriteBatch) error { return fmt.Errorf("the audit log: %w", err) }
		m.blind = func() error { return fmt.Errorf("the audit log: %w", err) }
	})
}

// TestRenew checks that the log continues in a new chain if the file of the first one is gone or could not be synced.
// Each call must be recorded once, every body must be readable, and both chains must be valid.
func TestRenew(t *testing.T) {
	for _, cause := range []error{ErrGone, ErrUnsynced} {
		l, first, second, o := renewableLog(t)
		for _, e := range []core.AuditEvent{request("x"), call("x"), {Kind: core.EventDecision, Session: "s", Body: json.RawMessage(`{"n":1}`)}} {
			if err := l.Record(e, true); err != nil {
				t.Fatal(err)
			}
		}
		first.failWritesWith(cause)
		answer := core.AuditEvent{Kind: core.EventAnswer, Execution: "x", Session: "s", Server: "crm", Tool: "update", Status: "ok", Body: json.RawMessage(`{"value":1}`)}
		events := []core.AuditEvent{answer, call("x"), request("y"), call("y"), {Kind: core.EventDecision, Session: "s", Body: json.RawMessage(`{"n":2}`)}, end("x")}
		for _, e := range events {
			if err := l.Record(e, true); err != nil {
				t.Errorf("%v: %s is refused: %v", cause, e.Kind, err)
			}
		}
		if open := slices.Clone(second.open); !slices.Equal(open, []string{"y"}) {
			t.Errorf("%v: open in the new chain: %v", cause, open)
		}
		_ = l.Record(end("y"), true)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if kinds := strings.Join(kindsOf(second.all()), " "); kinds != "gap answer call request call decision end end stop" {
			t.Errorf("%v: %s", cause, kinds)
		}
		mustBeChain(t, second.all())
		mustBeReadable(t, second)
		v := verified(t, &LogReader{Stores: []LogStore{first, second}, Checkpoints: o.Checkpoints, Home: "home", Keys: o.Keys}, VerifyOptions{})
		if !v.OK || !slices.ContainsFunc(v.Notes, func(n string) bool { return strings.Contains(n, "continues chain c1") }) {
			t.Errorf("%v: %+v", cause, v)
		}
		v = verified(t, &LogReader{Stores: []LogStore{second}, Checkpoints: o.Checkpoints, Home: "home", Keys: o.Keys}, VerifyOptions{})
		if v.OK || v.First.What != Missing || v.First.Chain != "c1" {
			t.Errorf("%v: the chain that is gone is not missed: %+v", cause, v)
		}
	}
}

// TestUsageAfterRenew checks that an execution or call is counted once if two chains contain it, and also if only the
// old chain contains it. Two chains can contain the same events for two reasons: an engine later opens the old file
// and ends executions there, or the failed file has kept entries although writing them was reported as failed.
func TestUsageAfterRenew(t *testing.T) {
	l, first, second, o := renewableLog(t)
	record := func(l *Log, e core.AuditEvent) {
		t.Helper()
		if err := l.Record(e, true); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range []core.AuditEvent{request("before"), end("before"), request("x"), call("x"), request("z")} {
		record(l, e)
	}
	first.set(func() {
		first.lies = func(WriteBatch) error { return fmt.Errorf("the audit log: %w", ErrUnsynced) }
		first.blind = func() error { return fmt.Errorf("the audit log: %w", ErrUnsynced) }
	})
	record(l, call("x")) // is in both files
	for _, e := range []core.AuditEvent{end("x"), request("y"), end("y")} {
		record(l, e)
	}
	// z does not end: its engine dies.
	first.set(func() { first.lies, first.blind = nil, nil })
	later, err := Open(t.Context(), first, o)
	if err != nil {
		t.Fatal(err)
	}
	record(later, request("after"))
	record(later, end("after"))
	if err := later.Close(); err != nil {
		t.Fatal(err)
	}
	check := func(stores []LogStore, s UsageSpan, want map[string]int64, calls int64) {
		t.Helper()
		for _, ends := range []bool{false, true} {
			u, err := SumUsageOf(t.Context(), stores, s, ends)
			executions, persons := int64(0), int64(0)
			for _, n := range want {
				executions += n
			}
			for _, p := range u.Principals {
				persons += p.Executions
			}
			if err != nil || u.Executions != executions || !maps.Equal(u.ByStatus, want) || u.Calls != calls || u.Sampled != 0 || ends && persons != executions {
				t.Errorf("%+v %v, %d of principals, want %v and %d calls", u, err, persons, want, calls)
			}
		}
	}
	check([]LogStore{first, second}, UsageSpan{}, map[string]int64{"ok": 4, "outcome_unknown": 1}, 2)
	check([]LogStore{second, first}, UsageSpan{}, map[string]int64{"ok": 4, "outcome_unknown": 1}, 2)
	check([]LogStore{first, second}, UsageSpan{Session: "another"}, map[string]int64{}, 0)
	check([]LogStore{first}, UsageSpan{}, map[string]int64{"ok": 2, "outcome_unknown": 2}, 2) // all that this one knows
	_ = l.Close()
}

// TestRenewFails checks that calls are refused while no new file can be created, and that recording continues once
// that works.
func TestRenewFails(t *testing.T) {
	l, first, second, _ := renewableLog(t)
	var mu sync.Mutex
	refuse := errors.New("input/output error")
	l.o.Renew = func(context.Context) (LogStore, error) {
		mu.Lock()
		defer mu.Unlock()
		return second, refuse
	}
	_ = l.Record(request("x"), true)
	first.failWritesWith(ErrUnsynced)
	for range 3 {
		if err := l.Record(call("x"), true); err == nil || !strings.Contains(err.Message, "input/output error") {
			t.Fatalf("%v", err)
		}
	}
	mu.Lock()
	refuse = nil
	mu.Unlock()
	for l.Record(call("x"), true) != nil {
	}
	_ = l.Record(end("x"), true)
	if kinds := strings.Join(kindsOf(second.all()), " "); kinds != "gap call gap end" {
		t.Error(kinds)
	}
	mustBeReadable(t, second)
}

// TestRenewUnderLoad checks that no entry is lost or written twice if the store is replaced while many goroutines
// record.
func TestRenewUnderLoad(t *testing.T) {
	l, first, second, _ := renewableLog(t)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			id := fmt.Sprint("x", i)
			_ = l.Record(request(id), false)
			for n := range 50 {
				if i == 0 && n == 25 {
					first.failWritesWith(ErrGone)
				}
				if err := l.Record(call(id), true); err != nil {
					t.Error(err)
				}
			}
			_ = l.Record(end(id), true)
		})
	}
	all.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, r := range append(first.all(), second.all()...) {
		count[r.Kind+" "+r.Execution]++
	}
	for i := range 16 {
		if n := count[fmt.Sprint("call x", i)]; n != 50 {
			t.Errorf("x%d has %d calls", i, n)
		}
	}
	mustBeChain(t, first.all())
	mustBeChain(t, second.all())
	mustBeReadable(t, first)
	mustBeReadable(t, second)
	if len(second.open) > 0 {
		t.Errorf("open: %v of %v", second.open, slices.Sorted(maps.Keys(count)))
	}
}

// TestUnreadStore checks that the other stores can be read if one store is damaged, and that a warning names the
// damaged one.
func TestUnreadStore(t *testing.T) {
	_, r, _, _ := writeLog(t, 10)
	r.Stores = append([]LogStore{damagedStore{newMemory("c9")}}, r.Stores...)
	page, err := r.Find(t.Context(), Query{Limit: 100})
	if err != nil || len(page.Entries) != 41 || len(page.Warnings) != 1 || !strings.Contains(page.Warnings[0], "record-7.db") {
		t.Errorf("%d entries, %v, %v", len(page.Entries), page.Warnings, err)
	}
	var warnings []string
	n := 0
	for _, err := range r.After(t.Context(), Filter{}, "", ReadPositions{}, &warnings) {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if n != 41 || len(warnings) != 1 {
		t.Errorf("%d entries, %v", n, warnings)
	}
	if _, err := r.SumUsage(t.Context(), UsageSpan{}, true); err != nil {
		t.Error(err)
	}
	v := verified(t, r, VerifyOptions{})
	if v.OK || v.First.What != Damaged || v.Entries != 41 || !strings.Contains(v.First.Says, "record-7.db") {
		t.Errorf("%+v", v)
	}
	if _, err := r.EraseMentions(t.Context(), func(_, _, _ string) bool { return false }, nil); err == nil {
		t.Error("everything counts as erased, and a file was not read")
	}
}

// damagedStore is a LogStore whose file is damaged.
type damagedStore struct{ *memory }

var errBroken = errors.New("the audit log record-7.db: database disk image is malformed")

func (damagedStore) Chains(context.Context) ([]ChainHead, error)           { return nil, errBroken }
func (damagedStore) Find(context.Context, Filter) iter.Seq2[LogRow, error] { return failing }
func (damagedStore) Groups(context.Context, Filter) ([]UsageGroup, error)  { return nil, errBroken }

func failing(yield func(LogRow, error) bool) { yield(LogRow{}, errBroken) }
