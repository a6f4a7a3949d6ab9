package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
)

func options(t *testing.T) Options {
	return Options{Keys: testKeys(), Checkpoints: t.TempDir(), Home: "home"}
}

func opening(t *testing.T, s LogStore, o Options) *Log {
	t.Helper()
	l, err := Open(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func request(id string) core.AuditEvent {
	return core.AuditEvent{Kind: core.EventRequest, Execution: id, Session: "s", Body: json.RawMessage(`{"code":"` + id + `"}`)}
}

func call(id string) core.AuditEvent {
	return core.AuditEvent{Kind: core.EventCall, Execution: id, Session: "s", Server: "crm", Tool: "update", Body: json.RawMessage(`{"arguments":"` + id + `"}`)}
}

func end(id string) core.AuditEvent {
	return core.AuditEvent{Kind: core.EventEnd, Execution: id, Session: "s", Status: "ok"}
}

// mustBeChain fails the test unless its argument is a valid chain of rows that begins with entry 1.
func mustBeChain(t *testing.T, rows []LogRow) {
	t.Helper()
	keys, _ := testKeys().signingKeys()
	var before []byte
	for i, r := range rows {
		if r.Seq != int64(i+1) || string(r.computeHash(before)) != string(r.Hash) || string(hashMAC(keys.mac, r.Hash)) != string(r.Code) {
			t.Fatalf("row %d (%s) does not follow", i+1, r.Kind)
		}
		before = r.Hash
	}
}

// mustBeReadable fails the test unless every body in the store can be decrypted.
func mustBeReadable(t *testing.T, m *memory) {
	t.Helper()
	wrap, _ := testKeys().wrapCipher()
	for _, r := range m.all() {
		if r.Body == nil {
			continue
		}
		k, ok := m.keys[keyID(&r)]
		if !ok {
			t.Fatalf("the key of entry %d (%s of %s) is nowhere", r.Seq, r.Kind, r.Execution)
		}
		c, err := unwrapKey(wrap, k)
		if err == nil {
			_, err = openText(c, r.Body, k.ID)
		}
		if err != nil {
			t.Fatalf("entry %d (%s of %s): %v", r.Seq, r.Kind, r.Execution, err)
		}
	}
}

// TestGroups checks that entries are written in groups: callers that record an entry while a batch is being written
// share the next batch. So even many parallel executions together need only about two batches for each entry that a
// single execution records.
func TestGroups(t *testing.T) { synctest.Test(t, groups) }

func groups(t *testing.T) {
	m := newMemory("c1")
	m.slow = func() { time.Sleep(2 * time.Millisecond) }
	l := opening(t, m, options(t))
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			id := fmt.Sprint("x", i)
			_ = l.Record(request(id), false)
			for range 20 {
				if err := l.Record(call(id), true); err != nil {
					t.Error(err)
				}
			}
			_ = l.Record(end(id), true)
		})
	}
	all.Wait()
	rows := m.all()
	mustBeChain(t, rows)
	mustBeReadable(t, m)
	if len(rows) != 64*22 || len(m.groups) > 2*22+6 || len(m.open) > 0 {
		t.Errorf("%d rows in %d batches, open %v", len(rows), len(m.groups), m.open)
	}
	stage := map[string]int{}
	for _, r := range rows {
		stage[r.Execution]++
		if r.Kind == "request" && stage[r.Execution] != 1 || r.Kind == "end" && stage[r.Execution] != 22 {
			t.Fatalf("%s of %s is number %d", r.Kind, r.Execution, stage[r.Execution])
		}
	}
}

// TestPower checks that acknowledged entries survive a power loss, and that an execution that was open gets exactly
// one end entry.
func TestPower(t *testing.T) { synctest.Test(t, losePower) }

func losePower(t *testing.T) {
	m := newMemory("c1")
	o := options(t)
	l := opening(t, m, o)
	var acknowledged atomic.Int64
	var all, called sync.WaitGroup
	stop, power := make(chan struct{}), make(chan struct{})
	for i := range 8 {
		called.Add(1)
		all.Go(func() {
			id := fmt.Sprint("x", i)
			_ = l.Record(request(id), false)
			for n := 1; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if l.Record(call(id), true) == nil {
					acknowledged.Add(1)
				}
				if n == 20 {
					called.Done()
				}
			}
		})
	}
	called.Wait()
	m.set(func() { m.slow = func() { <-power } })
	synctest.Wait() // a batch is being written, and all callers wait for it
	had := acknowledged.Load()
	left := m.afterPowerLoss()
	close(power)
	close(stop)
	all.Wait()
	calls := 0
	for _, r := range left.all() {
		if r.Kind == "call" {
			calls++
		}
	}
	if had < 8*20 || int64(calls) < had {
		t.Fatalf("%d calls were acknowledged, %d are there", had, calls)
	}
	for range 2 {
		o.Checkpoints = t.TempDir()
		again, err := Open(t.Context(), left, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
	mustBeChain(t, left.all())
	ends := map[string]int{}
	for _, r := range left.all() {
		if r.Kind == "end" {
			ends[r.Execution]++
			var facts struct{ Calls int }
			if json.Unmarshal(r.Facts, &facts); r.Status != "outcome_unknown" || facts.Calls == 0 || r.Session != "s" {
				t.Errorf("%+v %s", r, r.Facts)
			}
		}
	}
	if len(ends) != 8 || slices.Max([]int{ends["x0"], ends["x3"], ends["x7"]}) != 1 {
		t.Errorf("ends %v", ends)
	}
}

func TestFull(t *testing.T) {
	m := newMemory("c1")
	o := options(t)
	l := opening(t, m, o)
	_ = l.Record(request("x"), true)
	m.set(func() { m.fails = func(WriteBatch) error { return errFull } })
	for range 3 {
		err := l.Record(call("x"), true)
		if err == nil || !strings.Contains(err.Message, "no space left") || err.Hint == "" {
			t.Fatalf("%v", err)
		}
	}
	reads := 0
	big := core.AuditEvent{Kind: core.EventCall, Execution: "x", Session: "s", Effect: "read", Body: json.RawMessage(`"` + strings.Repeat("a", 1<<20) + `"`)}
	for ; reads < 100; reads++ {
		if err := l.Record(big, false); err != nil {
			break
		}
	}
	if reads < 30 || reads > 40 {
		t.Errorf("%d megabytes are kept", reads)
	}
	m.set(func() { m.fails = nil })
	var err *core.Error
	for range 50 {
		if err = l.Record(end("x"), true); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Record(call("x"), true); err != nil {
		t.Fatalf("it does not go on: %v", err)
	}
	_ = l.Close()
	rows := m.all()
	mustBeChain(t, rows)
	kinds := strings.Join(kindsOf(rows), " ")
	if n := strings.Count(kinds, "call"); n != reads+1 || strings.Count(kinds, "gap") != 1 {
		t.Errorf("%d of %d reads: %s", n-1, reads, kinds)
	}
	i := slices.IndexFunc(rows, func(r LogRow) bool { return r.Kind == "gap" })
	var facts struct {
		Cause, Since string
		Refused      int
	}
	if json.Unmarshal(rows[i].Facts, &facts); facts.Refused != 4 || !strings.Contains(facts.Cause, "space") || facts.Since == "" {
		t.Errorf("%s", rows[i].Facts)
	}
}

// TestKeyOfWhatWasTakenBack checks what happens if the entry that carries the key of an execution cannot be written.
// The key must be stored with the next body of the execution.
func TestKeyOfWhatWasTakenBack(t *testing.T) {
	m := newMemory("c1")
	l := opening(t, m, options(t))
	_ = l.Record(core.AuditEvent{Kind: core.EventRequest, Execution: "x", Session: "s"}, true)
	m.set(func() { m.fails = func(WriteBatch) error { return errFull } })
	if l.Record(call("x"), true) == nil {
		t.Fatal("it was recorded")
	}
	_ = l.Record(core.AuditEvent{Kind: core.EventVerdict, Execution: "x", Session: "s"}, false)
	m.set(func() { m.fails = nil })
	for l.Record(call("x"), true) != nil {
	}
	mustBeReadable(t, m)
	mustBeChain(t, m.all())
}

// TestKeyOfWhatWasTakenBackInAQueue checks what happens if the entry that carries the key of an execution cannot be
// written. The key must be stored with the next body of the execution, even if that body was already in the queue.
func TestKeyOfWhatWasTakenBackInAQueue(t *testing.T) {
	m := newMemory("c1")
	l := opening(t, m, options(t))
	_ = l.Record(core.AuditEvent{Kind: core.EventRequest, Execution: "x", Session: "s"}, true)
	writes, goOn := make(chan struct{}), make(chan struct{})
	m.set(func() {
		m.slow = sync.OnceFunc(func() { close(writes); <-goOn })
		m.fails = func(WriteBatch) error { return errFull }
	})
	refused := make(chan *core.Error)
	go func() { refused <- l.Record(call("x"), true) }()
	<-writes
	_ = l.Record(core.AuditEvent{Kind: core.EventVerdict, Execution: "x", Session: "s", Body: json.RawMessage(`"queued"`)}, false)
	close(goOn)
	if <-refused == nil {
		t.Fatal("it was recorded")
	}
	m.set(func() { m.fails = nil })
	for l.Record(end("x"), true) != nil {
	}
	mustBeReadable(t, m)
}

func TestNothingBeginsUnrecorded(t *testing.T) {
	m := newMemory("c1")
	o := options(t)
	o.All = true
	l := opening(t, m, o)
	m.set(func() { m.fails = func(WriteBatch) error { return errFull } })
	if l.Record(request("x"), false) == nil {
		t.Fatal("an execution begins")
	}
	m.set(func() { m.fails = nil })
	for l.Record(request("y"), false) != nil {
	}
	_ = l.Record(end("y"), true)
	mustBeReadable(t, m)
	for _, r := range m.all() {
		if r.Execution == "x" {
			t.Errorf("%s of what did not begin", r.Kind)
		}
	}
}

// TestAmbiguous checks that a batch is not written twice if the store wrote it but returned an error. If the log
// cannot find out at once whether the batch was written, a refusal entry must say that the call did not happen.
func TestAmbiguous(t *testing.T) {
	lost := errors.New("connection reset")
	for _, blind := range []bool{false, true} {
		m := newMemory("c1")
		l := opening(t, m, options(t))
		_ = l.Record(request("x"), true)
		m.set(func() {
			m.lies = func(WriteBatch) error { return lost }
			if blind {
				m.blind = func() error { return lost }
			}
		})
		err := l.Record(call("x"), true)
		if (err != nil) != blind {
			t.Fatalf("blind %v: %v", blind, err)
		}
		m.set(func() { m.lies, m.blind = nil, nil })
		for l.Record(call("x"), true) != nil {
		}
		_ = l.Record(end("x"), true)
		_ = l.Close()
		rows := m.all()
		mustBeChain(t, rows)
		mustBeReadable(t, m)
		kinds := strings.Join(kindsOf(rows), " ")
		want := "request call call end stop"
		if blind { // the call is in the record, and that it did not happen is, too
			want = "request call refusal call gap end stop"
		}
		if kinds != want {
			t.Errorf("blind %v: %s", blind, kinds)
		}
	}
}

// TestAmbiguousBegin checks that an execution gets an end entry if its request entry was written although Record
// returned an error.
func TestAmbiguousBegin(t *testing.T) {
	lost := errors.New("connection reset")
	m := newMemory("c1")
	o := options(t)
	o.All = true
	l := opening(t, m, o)
	m.set(func() {
		m.lies = func(WriteBatch) error { return lost }
		m.blind = func() error { return lost }
	})
	if l.Record(request("x"), false) == nil {
		t.Fatal("it begins")
	}
	m.set(func() { m.lies, m.blind = nil, nil })
	for l.Record(request("y"), false) != nil {
	}
	_ = l.Record(end("y"), true)
	if len(m.open) > 0 {
		t.Errorf("open: %v", m.open)
	}
	mustBeChain(t, m.all())
}

// TestFrozenStore checks three things while the store does not respond. The result of an execution that only reads is
// not delayed, its end is written later, and a call with effects waits.
func TestFrozenStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("c1")
		l := opening(t, m, options(t))
		_ = l.Record(request("x"), true)
		m.set(func() { m.slow = func() { time.Sleep(40 * time.Second) } })
		start := time.Now()
		err := l.Record(end("x"), true)
		if took := time.Since(start); err == nil || !strings.Contains(err.Message, "not written to the audit log yet") || took > 4*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		_ = l.Record(request("y"), false)
		if err := l.Record(call("y"), true); err != nil || time.Since(start) < 40*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		m.set(func() { m.slow = nil })
		_ = l.Record(end("y"), true)
		if kinds := strings.Join(kindsOf(m.all()), " "); kinds != "request end request call end" {
			t.Error(kinds)
		}
	})
}

func TestSomebodyElseWrites(t *testing.T) {
	m := newMemory("c1")
	l := opening(t, m, options(t))
	_ = l.Record(request("x"), true)
	m.set(func() {
		head := m.head("c1")
		m.rows["c1"] = append(m.rows["c1"], LogRow{Chain: "c1", Seq: head.Seq + 1, Hash: []byte("x")})
	})
	err := l.Record(call("x"), true)
	err2 := l.Record(call("x"), true)
	if err == nil || err2 == nil || !strings.Contains(err2.Message, "but this engine wrote it up to entry") {
		t.Errorf("%v, %v", err, err2)
	}
}

func TestClosed(t *testing.T) {
	m := newMemory("c1")
	l := opening(t, m, options(t))
	_ = l.Record(request("x"), false)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, e := range []core.AuditEvent{end("x"), call("x")} {
		done := make(chan *core.Error, 1)
		go func() { done <- l.Record(e, true) }()
		if err := testenv.Receive(t, done, "an answer"); err == nil || err.Kind != core.KindCancelled {
			t.Errorf("%s: %v", e.Kind, err)
		}
	}
	if kinds := strings.Join(kindsOf(m.all()), " "); kinds != "request stop" {
		t.Error(kinds)
	}
}

func TestClosedWhileFull(t *testing.T) {
	m := newMemory("c1")
	l := opening(t, m, options(t))
	failing, failures := make(chan struct{}), 0
	m.set(func() {
		m.fails = func(WriteBatch) error {
			if failures++; failures == 20 {
				close(failing)
			}
			return errFull
		}
	})
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for range 50 {
				if l.Record(call(fmt.Sprint("x", i)), true) == nil {
					t.Error("it was recorded")
				}
				_ = l.Record(end(fmt.Sprint("x", i)), true)
			}
		})
	}
	testenv.Receive(t, failing, "batches that fail")
	if err := l.Close(); err == nil || !strings.Contains(err.Error(), "space") {
		t.Errorf("%v", err)
	}
	all.Wait()
}

func TestClock(t *testing.T) {
	m, c := newMemory("c1"), newClock()
	o := options(t)
	o.Now = c.now
	l := opening(t, m, o)
	_ = l.Record(request("x"), true)
	if err := l.Record(call("x"), true); err != nil {
		t.Fatal(err)
	}
	c.add(-90 * time.Second)
	if err := l.Record(call("x"), true); err != nil {
		t.Fatalf("a little is allowed: %v", err)
	}
	c.add(-10 * time.Hour)
	refused := func(l *Log) {
		t.Helper()
		if err := l.Record(call("x"), true); err == nil || !strings.Contains(err.Hint, "accept-clock") {
			t.Fatalf("%v", err)
		}
		if err := l.Record(call("x"), false); err != nil {
			t.Fatalf("what reads goes on: %v", err)
		}
	}
	refused(l)
	_ = l.Record(end("x"), true)
	_ = l.Close()
	for range 2 { // a start does not forget it, and neither do entries since
		l = opening(t, m, o)
		_ = l.Record(core.AuditEvent{Kind: core.EventStart}, true)
		refused(l)
		_ = l.Close()
	}
	l = opening(t, m, o)
	for _, at := range []time.Duration{-2 * time.Hour, time.Hour} {
		if err := AcceptClock(o.Checkpoints, c.now().Add(at)); err != nil {
			t.Fatal(err)
		}
		refused(l)
	}
	_ = AcceptClock(o.Checkpoints, c.now())
	c.add(time.Second)
	for range 3 {
		if err := l.Record(call("x"), true); err != nil {
			t.Fatal(err)
		}
	}
	_ = l.Close()
	c.add(4 * time.Hour) // the file counts no more, and need not
	l = opening(t, m, o)
	_ = l.Record(call("x"), true)
	c.add(-time.Hour)
	refused(l)
	c.add(time.Hour)
	if err := l.Record(call("x"), true); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(strings.Join(kindsOf(m.all()), " "), "clock"); n != 1 {
		t.Errorf("%d entries say that the clock is right", n)
	}
	mustBeChain(t, m.all())
}

// TestCut checks that Open does not continue a chain that was truncated, rewritten, or extended without the key.
func TestCut(t *testing.T) {
	fresh := func() (*memory, Options) {
		m, o := newMemory("c1"), options(t)
		l := opening(t, m, o)
		for i := range 5 {
			_ = l.Record(request(fmt.Sprint(i)), true)
			_ = l.Record(end(fmt.Sprint(i)), true)
		}
		_ = l.Close()
		return m, o
	}
	for name, tamper := range map[string]func(m *memory, rows []LogRow){
		"cut":   func(m *memory, rows []LogRow) { m.rows["c1"] = rows[:len(rows)-1] },
		"empty": func(m *memory, rows []LogRow) { m.rows["c1"] = nil },
		"added": func(m *memory, rows []LogRow) {
			r := LogRow{Chain: "c1", Seq: int64(len(rows) + 1), Kind: "end"}
			r.Hash = r.computeHash(rows[len(rows)-1].Hash)
			m.rows["c1"] = append(rows, r)
		},
		"rewritten": func(m *memory, rows []LogRow) {
			rows = slices.Clone(rows)
			var before []byte
			for i := range rows {
				rows[i].Status = "rewritten"
				rows[i].Hash = rows[i].computeHash(before)
				before = rows[i].Hash
			}
			m.rows["c1"] = rows
		},
	} {
		m, o := fresh()
		tamper(m, m.all())
		had := len(m.all())
		if l, err := Open(t.Context(), m, o); !errors.Is(err, ErrCut) {
			t.Errorf("%s: %v", name, err)
			if l != nil {
				_ = l.Close()
			}
		}
		if len(m.all()) != had {
			t.Errorf("%s: something was written", name)
		}
	}
	m, o := fresh()
	l := opening(t, m, o)
	if err := l.Record(call("x"), true); err != nil {
		t.Error(err)
	}
}

// TestErasedWhileItGoesOn checks that a key destroyed during its execution is not stored again, so that later bodies
// of the execution cannot be read.
func TestErasedWhileItGoesOn(t *testing.T) {
	m, c := newMemory("c1"), newClock()
	o := options(t)
	o.Now = c.now
	l := opening(t, m, o)
	_ = l.Record(request("x"), true)
	_ = l.Record(core.AuditEvent{Kind: core.EventSkill, Session: "s", Body: json.RawMessage(`"of the session"`)}, true)
	ids, _ := m.KeysOf(t.Context(), "", "s")
	if n, _ := m.Forget(t.Context(), ids); n != 2 {
		t.Fatalf("%d keys: %v", n, ids)
	}
	_ = l.Record(call("x"), true)
	_ = l.Record(end("x"), true)
	_ = l.Record(core.AuditEvent{Kind: core.EventReveal, Execution: "x", Session: "s", Body: json.RawMessage(`"after the end"`)}, true)
	if len(m.keys) != 0 {
		t.Errorf("keys: %v", m.keys)
	}
	c.add(2 * ringReadPause)
	_ = l.Record(core.AuditEvent{Kind: core.EventSkill, Session: "s", Body: json.RawMessage(`"later"`)}, true)
	if len(m.keys) != 1 {
		t.Errorf("the session has no new key: %v", m.keys)
	}
	page, err := (&LogReader{Stores: []LogStore{m}, Keys: o.Keys}).Find(t.Context(), Query{})
	for _, e := range page.Entries {
		later := string(e.Body) == `"later"`
		if hasBody := e.Kind != core.EventEnd; err != nil || hasBody && e.Erased == later || !later && e.Body != nil {
			t.Errorf("%+v, %v", e, err)
		}
	}
}

// TestAfterTheEnd checks that entries of an execution that follow its end use the same key and can be read.
func TestAfterTheEnd(t *testing.T) {
	m := newMemory("c1")
	l := opening(t, m, options(t))
	_ = l.Record(request("x"), false)
	_ = l.Record(end("x"), false)
	_ = l.Record(core.AuditEvent{Kind: core.EventReveal, Execution: "x", Session: "s", Body: json.RawMessage(`"soon"`)}, true)
	_ = l.Record(core.AuditEvent{Kind: core.EventReveal, Execution: "x", Session: "s", Body: json.RawMessage(`"later"`)}, true)
	mustBeReadable(t, m)
}

// TestStress checks that every caller gets an answer and the chain stays valid if writes fail, or seem to fail, at
// random.
func TestStress(t *testing.T) {
	m := newMemory("c1")
	var n atomic.Int64
	m.fails = func(WriteBatch) error {
		if n.Add(1)%3 == 0 {
			return errFull
		}
		return nil
	}
	m.lies = func(WriteBatch) error {
		if n.Load()%5 == 0 {
			return errFull
		}
		return nil
	}
	m.blind = func() error {
		if n.Load()%7 == 0 && n.Load() > 0 {
			return errFull
		}
		return nil
	}
	l := opening(t, m, options(t))
	var all sync.WaitGroup
	var acknowledged sync.Map
	for i := range 16 {
		all.Go(func() {
			for j := range 40 {
				id := fmt.Sprint(i, "-", j)
				_ = l.Record(request(id), false)
				if l.Record(call(id), true) == nil {
					acknowledged.Store(id, true)
				}
				_ = l.Record(end(id), j%4 == 0)
			}
		})
	}
	all.Wait()
	m.set(func() { m.fails, m.lies, m.blind = nil, nil, nil })
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	rows := m.all()
	mustBeChain(t, rows)
	mustBeReadable(t, m)
	if len(m.open) > 0 {
		t.Errorf("open: %v", m.open)
	}
	mustHaveAllEntries(t, rows, &acknowledged)
}

// mustHaveAllEntries fails the test unless each execution has all of its entries in the right order. If a call was
// refused, the execution must have either a refusal entry for this call or no entry about it.
func mustHaveAllEntries(t *testing.T, rows []LogRow, acknowledged *sync.Map) {
	t.Helper()
	kinds := map[string]string{}
	for _, r := range rows {
		if r.Execution != "" {
			kinds[r.Execution] += r.Kind + " "
		}
	}
	if len(kinds) != 640 {
		t.Errorf("%d executions", len(kinds))
	}
	for id, story := range kinds {
		want := []string{"request end ", "request call refusal end ", "request call end refusal "}
		if _, ok := acknowledged.Load(id); ok {
			want = []string{"request call end "}
		}
		if !slices.Contains(want, story) {
			t.Errorf("%s: %s", id, story)
		}
	}
}

func TestSeen(t *testing.T) {
	m, o := newMemory("c1"), options(t)
	var seen []string
	o.Seen = func(e core.AuditEvent) { seen = append(seen, string(e.Kind)) }
	l := opening(t, m, o)
	_ = l.Record(request("x"), true)
	m.set(func() { m.fails = func(WriteBatch) error { return errFull } })
	_ = l.Record(call("x"), true)
	if s := strings.Join(seen, " "); s != "request" {
		t.Error(s)
	}
	m.set(func() { m.fails = nil })
}
