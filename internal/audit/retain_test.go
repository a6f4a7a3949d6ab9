package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
)

func retained(t *testing.T, m *memory, o Options, p RetentionPolicy) (RetainResult, error) {
	t.Helper()
	l, err := Open(t.Context(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.retain(t, p)
}

// retain calls ApplyRetention as if the clock had not jumped since the last run.
func (l *Log) retain(t testing.TB, p RetentionPolicy) (RetainResult, error) {
	seal.IsClockSteady((&retentionRun{Log: l, chain: l.head.Chain, p: p}).stampPath(), l.o.Now().Add(-time.Hour))
	return l.ApplyRetention(context.Background(), p)
}

// TestRetainAfterJump checks that nothing is deleted if the machine's clock was set forward by years.
func TestRetainAfterJump(t *testing.T) {
	m, r, o, c := writeLog(t, 100)
	p := RetentionPolicy{Dir: r.Archives, Keep: time.Hour, Archives: 2 * time.Hour}
	l := opening(t, m, o)
	if _, err := l.retain(t, p); err != nil || m.bases["c1"] == 0 {
		t.Fatal(err)
	}
	base := m.bases["c1"]
	c.add(3 * 365 * 24 * time.Hour)
	if out, err := l.ApplyRetention(t.Context(), p); err != nil || out != (RetainResult{}) || m.bases["c1"] != base {
		t.Errorf("%+v, %v", out, err)
	}
	c.add(time.Hour)
	if out, err := l.ApplyRetention(t.Context(), p); err != nil || out.Deleted == 0 {
		t.Errorf("%+v, %v", out, err)
	}
}

// foundNumbers returns the sequence numbers of all entries that a reader finds, newest first.
func foundNumbers(t *testing.T, r *LogReader, f Filter) (all []int64) {
	t.Helper()
	for e, err := range r.StreamEntries(t.Context(), f, "", 0, nil) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e.Seq)
	}
	return all
}

// mustFindAll fails the test unless the reader finds each entry from number first to number last exactly once.
func mustFindAll(t *testing.T, r *LogReader, first, last int64) {
	t.Helper()
	all := foundNumbers(t, r, Filter{})
	slices.Sort(all)
	if int64(len(all)) != last-first+1 || all[0] != first || all[len(all)-1] != last || len(slices.Compact(all)) != len(all) {
		t.Errorf("%d entries from %d to %d, want %d to %d", len(all), all[0], all[len(all)-1], first, last)
	}
}

func TestRetain(t *testing.T) {
	m, r, o, c := writeLog(t, 600) // one each minute: 2401 entries
	p := RetentionPolicy{Dir: r.Archives, Keep: 5 * time.Hour}
	out, err := retained(t, m, o, p)
	if err != nil || out.Archived != 1200 || len(m.rows["c1"]) < 1200 {
		t.Fatalf("%+v, %v, %d left", out, err, len(m.rows["c1"]))
	}
	last := m.head("c1").Seq
	mustFindAll(t, r, 1, last)
	if v := verified(t, r, VerifyOptions{}); !v.OK || v.Entries != last {
		t.Errorf("%+v", v)
	}
	// The same page, whether entries are in the store or in an archive.
	page, err := r.Find(t.Context(), Query{Filter: Filter{Executions: []string{"x5"}}})
	if err != nil || len(page.Entries) != 4 || page.Entries[0].Kind != core.EventEnd || string(page.Entries[3].Body) != `{"code":"x5"}` {
		t.Errorf("%+v, %v", page, err)
	}
	// What is erased is erased there, too.
	if _, err := m.Forget(t.Context(), []string{"x5"}); err != nil {
		t.Fatal(err)
	}
	page, _ = r.Find(t.Context(), Query{Filter: Filter{Executions: []string{"x5"}}})
	if e := page.Entries[3]; e.Body != nil || !e.Erased {
		t.Errorf("%+v", e)
	}
	c.add(3 * time.Hour)
	p.Archives = 7 * time.Hour
	for range 2 {
		if out, err = retained(t, m, o, p); err != nil {
			t.Fatal(err)
		}
	}
	v := verified(t, r, VerifyOptions{})
	if !v.OK || len(v.Notes) != 1 || !strings.Contains(v.Notes[0], "entries 1 to 1200") || len(m.keys) != 300 {
		t.Errorf("%+v, %d keys", v, len(m.keys))
	}
	mustFindAll(t, r, 1201, m.head("c1").Seq)
}

func TestRetainSize(t *testing.T) {
	m, r, o, _ := writeLog(t, 2000)
	size, _ := m.Size(t.Context())
	out, err := retained(t, m, o, RetentionPolicy{Dir: r.Archives, Size: size / 2})
	left, _ := m.Size(t.Context())
	if err != nil || out.Archived == 0 || left > size/2 || left < size/3 {
		t.Errorf("%+v, %v: of %d are left %d", out, err, size, left)
	}
	// A store that does not become smaller keeps the newest.
	m.size = func() int64 { return 1 << 40 }
	if _, err := retained(t, m, o, RetentionPolicy{Dir: r.Archives, Size: 1 << 20}); err != nil || len(m.rows["c1"]) < newestRows {
		t.Errorf("%v, %d rows are left", err, len(m.rows["c1"]))
	}
	mustFindAll(t, r, 1, m.head("c1").Seq)
	if v := verified(t, r, VerifyOptions{}); !v.OK {
		t.Errorf("%+v", v.First)
	}
}

// TestRetainKilled checks that nothing is lost or duplicated if retention is killed between any two steps, and that
// the next run finishes the work.
func TestRetainKilled(t *testing.T) {
	killed := errors.New("killed")
	for name, kill := range map[string]func(t *testing.T, m *memory, dir string){
		"while it is written": func(t *testing.T, m *memory, dir string) {
			_ = os.MkdirAll(dir, 0o700)
			_ = os.WriteFile(filepath.Join(dir, tempArchivePrefix+"1"), []byte("half"), 0o600)
		},
		"before rows are dropped": func(t *testing.T, m *memory, dir string) { m.drops = func() error { return killed } },
		"while rows are dropped": func(t *testing.T, m *memory, dir string) {
			m.drops = func() error { // half of them are
				m.rows["c1"], m.bases["c1"] = m.rows["c1"][700:], 700
				return killed
			}
		},
	} {
		m, r, o, _ := writeLog(t, 600)
		kill(t, m, r.Archives)
		p := RetentionPolicy{Dir: r.Archives, Keep: 5 * time.Hour}
		if _, err := retained(t, m, o, p); err == nil && m.drops != nil {
			t.Fatalf("%s: it was not", name)
		}
		mustFindAll(t, r, 1, m.head("c1").Seq)
		if v := verified(t, r, VerifyOptions{}); !v.OK {
			t.Errorf("%s: %+v", name, v.First)
		}
		m.drops = nil
		if _, err := retained(t, m, o, p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		mustFindAll(t, r, 1, m.head("c1").Seq)
		if v := verified(t, r, VerifyOptions{}); !v.OK || m.bases["c1"] < 1200 {
			t.Errorf("%s: %+v, base %d", name, v.First, m.bases["c1"])
		}
	}
}

// TestDeletionKilled checks that the next run finishes the deletion of an archive that was interrupted.
func TestDeletionKilled(t *testing.T) {
	m, r, o, c := writeLog(t, 600)
	if _, err := retained(t, m, o, RetentionPolicy{Dir: r.Archives, Keep: 5 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	list, _ := listArchives(r.Archives)
	s, err := list[0].readSeal()
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	keys, _ := testKeys().signingKeys()
	if err := s.writeLeftover(r.Archives, c.now(), keys.sign); err != nil { // and then it was killed
		t.Fatal(err)
	}
	mustFindAll(t, r, 1, m.head("c1").Seq)
	if v := verified(t, r, VerifyOptions{}); !v.OK || len(v.Notes) > 0 {
		t.Errorf("%+v", v)
	}
	c.add(24 * time.Hour)
	out, err := retained(t, m, o, RetentionPolicy{Dir: r.Archives, Archives: 7 * time.Hour})
	if err != nil || out.Deleted != 1200 || out.Keys != 300 {
		t.Fatalf("%+v, %v", out, err)
	}
	if v := verified(t, r, VerifyOptions{}); !v.OK || len(v.Notes) != 1 {
		t.Errorf("%+v", v)
	}
}

func TestRetainWhileItIsWritten(t *testing.T) {
	m, r, o, c := writeLog(t, 600)
	l := opening(t, m, o)
	c.add(10 * time.Hour)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				if err := l.Record(core.AuditEvent{Kind: core.EventVerdict}, true); err != nil {
					t.Error(err)
				}
			}
		})
	}
	out, err := l.retain(t, RetentionPolicy{Dir: r.Archives, Keep: 5 * time.Hour})
	all.Wait()
	_ = l.Close()
	if err != nil || out.Archived < 2400 {
		t.Errorf("%+v, %v", out, err)
	}
	mustFindAll(t, r, 1, m.head("c1").Seq)
	if v := verified(t, r, VerifyOptions{}); !v.OK {
		t.Errorf("%+v", v.First)
	}
}

// TestWalkWhileRowsMove checks that walkChain yields each row exactly once while rows are moved to an archive.
func TestWalkWhileRowsMove(t *testing.T) {
	m, r, o, _ := writeLog(t, 600)
	m.walks = func() {
		if _, err := retained(t, m, o, RetentionPolicy{Dir: r.Archives, Keep: 5 * time.Hour}); err != nil {
			t.Error(err)
		}
	}
	chains, err := r.listChains(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	next := int64(1)
	for row, err := range r.walkChain(t.Context(), chains[0], 1, nil) {
		if err != nil || row.Seq != next {
			t.Fatalf("entry %d in the place of %d: %v", row.Seq, next, err)
		}
		next++
	}
	if m.bases["c1"] == 0 || next < 2402 {
		t.Errorf("base %d, %d entries", m.bases["c1"], next-1)
	}
}

// TestTamperingWithArchives checks that changes to archives are found, and that rows stay in the store if their
// archive differs from them.
func TestTamperingWithArchives(t *testing.T) {
	m, r, o, c := writeLog(t, 600)
	if _, err := retained(t, m, o, RetentionPolicy{Dir: r.Archives, Keep: 5 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	list, _ := listArchives(r.Archives)
	path := list[0].path
	whole, _ := os.ReadFile(path)
	s, _ := list[0].readSeal()
	var rows []LogRow
	for row := range list[0].readRows(nil) {
		rows = append(rows, row)
	}
	keys, _ := testKeys().signingKeys()
	rewrite := func(change func(rows []LogRow), sign bool) {
		copied := slices.Clone(rows)
		change(copied)
		key := keys.sign
		if !sign {
			other := LogKeys{Bodies: testKeys().Bodies, Codes: testKeys().Bodies}
			forger, _ := other.signingKeys()
			key = forger.sign
		}
		if _, err := (ArchiveSeal{Chain: s.Chain, First: s.First, Last: s.Last, From: s.From, To: s.To}).writeArchive(r.Archives, func(yield func(LogRow, error) bool) {
			for _, row := range copied {
				if !yield(row, nil) {
					return
				}
			}
		}, key); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		what   string
		seq    int64
		tamper func()
	}{
		"gone":      {Deleted, 1, func() { _ = os.Remove(path) }},
		"cut":       {Damaged, 0, func() { _ = os.WriteFile(path, whole[:len(whole)/2], 0o600) }},
		"garbage":   {Damaged, 1, func() { _ = os.WriteFile(path, []byte("garbage"), 0o600) }},
		"edited":    {Edited, 51, func() { rewrite(func(rows []LogRow) { rows[50].Status = "x" }, true) }},
		"forged":    {Damaged, 1, func() { rewrite(func(rows []LogRow) {}, false) }},
		"misplaced": {Damaged, 901, func() { _ = os.Rename(path, filepath.Join(r.Archives, "c1-1-900.jsonl.gz")) }},
		"as if deleted": {Damaged, 1, func() {
			_ = os.Remove(path)
			now := c.now()
			s := s
			s.Deleted = &now
			text, _ := json.Marshal(s)
			_ = os.WriteFile(strings.TrimSuffix(path, archiveEnd)+goneEnd, text, 0o600)
		}},
	} {
		tc.tamper()
		v := verified(t, r, VerifyOptions{})
		if v.OK || v.First.What != tc.what || tc.seq > 0 && v.First.Seq != tc.seq {
			t.Errorf("%s: %+v", name, v.First)
		}
		left, _ := filepath.Glob(filepath.Join(r.Archives, "*"))
		for _, path := range left {
			_ = os.Remove(path)
		}
		_ = os.WriteFile(path, whole, 0o600)
	}
	if v := verified(t, r, VerifyOptions{}); !v.OK {
		t.Errorf("%+v", v.First)
	}

	m, r, o, _ = writeLog(t, 600)
	_ = os.MkdirAll(r.Archives, 0o700)
	_ = os.WriteFile(filepath.Join(r.Archives, filepath.Base(path)), bytes.Replace(whole, []byte("a"), []byte("b"), 1), 0o600)
	if _, err := retained(t, m, o, RetentionPolicy{Dir: r.Archives, Keep: 5 * time.Hour}); err == nil || m.bases["c1"] != 0 {
		t.Errorf("rows left the store for somebody else's archive: %v", err)
	}
}

// TestArchivedRows checks that rows with arbitrary bytes are read unchanged from an archive.
func TestArchivedRows(t *testing.T) {
	keys, _ := testKeys().signingKeys()
	odd := "\xff\x00<é\u2028\"\\"
	var rows []LogRow
	for seq := range int64(3) {
		r := LogRow{Chain: "c1", Seq: seq + 7, At: -seq, Kind: odd, Execution: odd, Session: odd, Principal: odd, Server: odd, Tool: odd, Status: odd,
			Risk: -1, Micros: 1 << 62, Bytes: -5, Returned: 3, Avoided: 4, Facts: []byte(odd), Body: []byte(odd), Hash: []byte{byte(seq)}, Code: []byte(odd)}
		rows = append(rows, r)
	}
	rows[2].Facts, rows[2].Body = nil, nil
	a, err := ArchiveSeal{Chain: "c1", First: 7, Last: 9}.writeArchive(t.TempDir(), func(yield func(LogRow, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}, keys.sign)
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	for r, err := range a.readRows(nil) {
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(r.computeHash(nil), rows[i].computeHash(nil)) || !bytes.Equal(r.Hash, rows[i].Hash) || !bytes.Equal(r.Code, rows[i].Code) {
			t.Errorf("%+v", r)
		}
		i++
	}
	if i != 3 {
		t.Errorf("%d rows", i)
	}
}

func FuzzArchive(f *testing.F) {
	m, r, o, _ := writeLog(f, 20)
	l, err := Open(f.Context(), m, o)
	if err != nil {
		f.Fatal(err)
	}
	if _, err := l.retain(f, RetentionPolicy{Dir: r.Archives, Keep: time.Minute}); err != nil {
		f.Fatal(err)
	}
	_ = l.Close()
	list, _ := listArchives(r.Archives)
	if len(list) == 0 {
		f.Fatal("no archive")
	}
	whole, _ := os.ReadFile(list[0].path)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		a := archiveFile{path: filepath.Join(dir, "c1-1-5"+archiveEnd), chain: "c1", first: 1, last: 5}
		if err := os.WriteFile(a.path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		a.timeSpan()
		n := 0
		for range a.readRows(nil) {
			n++
		}
		if n > 6 {
			t.Errorf("%d rows", n)
		}
		_, _ = a.readLeftoverSeal()
	})
}

func FuzzCheckpoints(f *testing.F) {
	keys, _ := testKeys().signingKeys()
	line, _ := json.Marshal(Checkpoint{Chain: "c1", Seq: 5, Hash: strings.Repeat("ab", 32)}.withSignature(keys.sign))
	f.Add(append(line, '\n'))
	f.Add([]byte("{}\n\n[]\n"))
	f.Add([]byte(`{"chain":"c1","seq":9223372036854775807,"hash":"zz"}` + "\n"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, name := range []string{linesFile, "c1.head"} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, signer := range []bool{true, false} {
			v := &recordVerifier{record: &LogReader{Checkpoints: dir}}
			if signer {
				v.signer = keys.publicKey()
			}
			_ = v.readMarks()
			for _, m := range v.marks {
				if !slices.IsSortedFunc(m.all, func(a, b checkpointMark) int { return int(a.seq - b.seq) }) || m.all[0].seq < 1 {
					t.Errorf("%v", m.all)
				}
			}
		}
	})
}
