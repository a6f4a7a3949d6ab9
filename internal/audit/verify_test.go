package audit

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"retort/internal/core"
)

// writeLog returns an audit log with some executions, a minute apart.
func writeLog(t testing.TB, executions int) (*memory, *LogReader, Options, *clock) {
	t.Helper()
	m, c := newMemory("c1"), newClock()
	o := Options{Keys: testKeys(), Checkpoints: t.TempDir(), Home: "home", Now: c.now}
	l, err := Open(t.Context(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range executions {
		id := fmt.Sprintf("x%d", i)
		_ = l.Record(request(id), false)
		_ = l.Record(call(id), i%50 == 0)
		_ = l.Record(core.AuditEvent{Kind: core.EventAnswer, Execution: id, Session: "s", Server: "crm", Tool: "update", Status: "ok"}, false)
		_ = l.Record(end(id), false)
		c.add(time.Minute)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return m, &LogReader{Stores: []LogStore{m}, Archives: filepath.Join(t.TempDir(), "archive"), Checkpoints: o.Checkpoints, Home: "home", Keys: o.Keys}, o, c
}

func verified(t *testing.T, r *LogReader, o VerifyOptions) VerifyResult {
	t.Helper()
	v, err := r.Verify(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVerify(t *testing.T) {
	m, r, _, _ := writeLog(t, 1000)
	v := verified(t, r, VerifyOptions{})
	if !v.OK || v.Entries != 4001 || !v.Codes || v.Checkpoints < 2 || len(v.Chains) != 1 || v.Chains[0].Last != 4001 {
		t.Fatalf("%+v", v)
	}
	// An auditor who has not the key, but its public half.
	keys, _ := testKeys().signingKeys()
	r.Keys = LogKeys{}
	if v := verified(t, r, VerifyOptions{Key: keys.publicKey()}); !v.OK || v.Codes || len(v.Notes) == 0 {
		t.Errorf("%+v", v)
	}
	if v := verified(t, r, VerifyOptions{}); !v.OK || len(v.Notes) != 2 {
		t.Errorf("%+v", v)
	}
	other, _, _ := ed25519.GenerateKey(nil)
	if v := verified(t, r, VerifyOptions{Key: other}); v.OK || v.First.What != Forged {
		t.Errorf("%+v", v)
	}
	_ = m
}

// tamper changes rows of the log, as an attacker could, and returns the result. It may modify its argument, which is
// a copy.
type tamper func(rows []LogRow) []LogRow

// rehashFrom recomputes the hashes of all rows beginning at an index, as an attacker without the owner's key could
// do it.
func rehashFrom(rows []LogRow, from int) []LogRow {
	var before []byte
	if from > 0 {
		before = rows[from-1].Hash
	}
	for i := from; i < len(rows); i++ {
		rows[i].Hash = rows[i].computeHash(before)
		before = rows[i].Hash
	}
	return rows
}

func numbered(rows []LogRow) []LogRow {
	for i := range rows {
		rows[i].Seq = int64(i + 1)
	}
	return rows
}

func swapped(i, j int) tamper {
	return func(rows []LogRow) []LogRow { rows[i], rows[j] = rows[j], rows[i]; return numbered(rows) }
}

func fake(seq int64) LogRow {
	return LogRow{Chain: "c1", Seq: seq, Kind: "call", Execution: "x1", Risk: -1, Code: make([]byte, codeSize), Hash: make([]byte, 32)}
}

func tampers() map[string]struct {
	what string
	seq  int64
	tamper
} {
	type T = struct {
		what string
		seq  int64
		tamper
	}
	edit := func(change func(*LogRow)) tamper {
		return func(rows []LogRow) []LogRow { change(&rows[99]); return rows }
	}
	return map[string]T{
		"status":     {Edited, 100, edit(func(r *LogRow) { r.Status = "x" })},
		"body":       {Edited, 100, edit(func(r *LogRow) { r.Body = []byte("x") })},
		"time":       {Edited, 100, edit(func(r *LogRow) { r.At++ })},
		"hash":       {Edited, 100, edit(func(r *LogRow) { r.Hash = bytes.Repeat([]byte{1}, 32) })},
		"first":      {Edited, 1, func(rows []LogRow) []LogRow { rows[0].Tool = "x"; return rows }},
		"last":       {Edited, 801, func(rows []LogRow) []LogRow { rows[800].Kind = "x"; return rows }},
		"code":       {Rehashed, 100, edit(func(r *LogRow) { r.Code = bytes.Repeat([]byte{1}, codeSize) })},
		"deleted":    {Deleted, 100, func(rows []LogRow) []LogRow { return slices.Delete(rows, 99, 102) }},
		"renumbered": {Deleted, 100, func(rows []LogRow) []LogRow { return numbered(slices.Delete(rows, 99, 102)) }},
		"beginning":  {Deleted, 1, func(rows []LogRow) []LogRow { return rows[3:] }},
		"neighbours": {Swapped, 100, swapped(99, 100)},
		"far":        {Swapped, 100, swapped(99, 499)},
		"inserted":   {Inserted, 100, func(rows []LogRow) []LogRow { return numbered(slices.Insert(rows, 99, fake(100))) }},
		"inserted well": {Inserted, 100, func(rows []LogRow) []LogRow {
			f := fake(100)
			f.Hash = f.computeHash(rows[98].Hash)
			return numbered(slices.Insert(rows, 99, f))
		}},
		"appended":          {Inserted, 802, func(rows []LogRow) []LogRow { return rehashFrom(append(rows, fake(802)), 801) }},
		"rehashed":          {Rehashed, 100, func(rows []LogRow) []LogRow { rows[99].Status = "x"; return rehashFrom(rows, 99) }},
		"rehashed, deleted": {Rehashed, 100, func(rows []LogRow) []LogRow { return rehashFrom(numbered(slices.Delete(rows, 99, 102)), 99) }},
		"rehashed, one": {Rehashed, 100, func(rows []LogRow) []LogRow {
			rows[99].Status = "x"
			rows[99].Hash = rows[99].computeHash(rows[98].Hash)
			return rows
		}},
		"truncated":      {Truncated, 701, func(rows []LogRow) []LogRow { return rows[:700] }},
		"truncated, one": {Truncated, 801, func(rows []LogRow) []LogRow { return rows[:800] }},
		"emptied":        {Truncated, 1, func(rows []LogRow) []LogRow { return nil }},
	}
}

func TestTampering(t *testing.T) {
	m, r, _, _ := writeLog(t, 200)
	whole := m.all()
	for name, c := range tampers() {
		m.rows["c1"] = c.tamper(slices.Clone(whole))
		v := verified(t, r, VerifyOptions{})
		if v.OK || v.First.What != c.what || v.First.Seq != c.seq || v.First.Chain != "c1" {
			t.Errorf("%s: %+v", name, v.First)
		}
	}
	m.rows["c1"] = whole
	if v := verified(t, r, VerifyOptions{}); !v.OK {
		t.Errorf("%+v", v.First)
	}
}

// TestTamperingWithTheKey checks that checkpoints reveal changed entries even if the attacker has the owner's key and
// recomputed all hashes and MACs.
func TestTamperingWithTheKey(t *testing.T) {
	m, r, _, _ := writeLog(t, 200)
	away := filepath.Join(t.TempDir(), "away.jsonl")
	text, err := os.ReadFile(filepath.Join(r.Checkpoints, linesFile))
	if err != nil || os.WriteFile(away, text, 0o600) != nil {
		t.Fatal(err)
	}
	keys, _ := testKeys().signingKeys()
	rows := m.all()
	rows[99].Status = "x"
	rehashFrom(rows, 99)
	for i := range rows {
		rows[i].Code = hashMAC(keys.mac, rows[i].Hash)
	}
	m.rows["c1"] = rows
	v := verified(t, r, VerifyOptions{})
	if v.OK || v.First.What != Rehashed || !strings.Contains(v.First.Says, "checkpoint") || v.First.Seq < 100 {
		t.Errorf("%+v", v.First)
	}
	// The checkpoints of this machine are gone, too; not those elsewhere.
	r.Checkpoints = t.TempDir()
	if v := verified(t, r, VerifyOptions{}); !v.OK {
		t.Errorf("%+v", v.First)
	}
	if v := verified(t, r, VerifyOptions{Checkpoints: []string{away}}); v.OK || v.First.What != Rehashed {
		t.Errorf("%+v", v.First)
	}
	m.rows = map[string][]LogRow{}
	if v := verified(t, r, VerifyOptions{Checkpoints: []string{away}}); v.OK || v.First.What != Missing {
		t.Errorf("%+v", v.First)
	}
	r.Home = "another"
	if v := verified(t, r, VerifyOptions{Checkpoints: []string{away}}); !v.OK {
		t.Errorf("a chain of another home is missed: %+v", v.First)
	}
	if _, err := r.Verify(t.Context(), VerifyOptions{Checkpoints: []string{away + "x"}}); err == nil {
		t.Error("a file that is not there holds")
	}
}

func TestForgedCheckpoint(t *testing.T) {
	_, r, _, _ := writeLog(t, 20)
	path := filepath.Join(r.Checkpoints, linesFile)
	text, _ := os.ReadFile(path)
	forged := bytes.Replace(text, []byte(`"seq":`), []byte(`"seq":1`), 1)
	if err := os.WriteFile(path, forged, 0o600); err != nil {
		t.Fatal(err)
	}
	if v := verified(t, r, VerifyOptions{}); v.OK || v.First.What != Forged {
		t.Errorf("%+v", v.First)
	}
	_, other, _ := ed25519.GenerateKey(nil)
	line, _ := json.Marshal(Checkpoint{Chain: "c1", Seq: 5, Hash: strings.Repeat("ab", 32), Home: "home"}.withSignature(other))
	_ = os.WriteFile(path, append(line, '\n'), 0o600)
	if v := verified(t, r, VerifyOptions{}); v.OK || v.First.What != Forged {
		t.Errorf("%+v", v.First)
	}
	_ = os.WriteFile(path, text, 0o600)
	_ = os.Remove(filepath.Join(r.Checkpoints, "c1.head"))
	if v := verified(t, r, VerifyOptions{}); !v.OK {
		t.Errorf("%+v", v.First)
	}
}

// TestStories checks that Verify finds impossible sequences of entries, such as an end without a beginning, in an
// otherwise valid chain.
func TestStories(t *testing.T) {
	for want, events := range map[string][]core.AuditEvent{
		"second time":     {request("x"), request("x")},
		"already ended":   {request("x"), end("x"), end("x")},
		"had not started": {end("y")},
		"but no call":     {request("x"), {Kind: core.EventAnswer, Execution: "x", Server: "crm", Tool: "update"}},
		"result of crm.":  {request("x"), call("x"), {Kind: core.EventAnswer, Execution: "x", Server: "crm", Tool: "delete"}},
		"":                {request("x"), call("x"), {Kind: core.EventReveal, Execution: "x"}, request("y"), end("x")},
	} {
		m, o := newMemory("c1"), options(t)
		l := opening(t, m, o)
		for _, e := range events {
			_ = l.Record(e, false)
		}
		_ = l.Close()
		r := &LogReader{Stores: []LogStore{m}, Checkpoints: o.Checkpoints, Keys: o.Keys, Home: "home"}
		v := verified(t, r, VerifyOptions{})
		if v.OK != (want == "") || !v.OK && (v.First.What != Told || !strings.Contains(v.First.Says, want)) {
			t.Errorf("%q: %+v", want, v.First)
		}
		if want == "" && v.Chains[0].Open != 1 {
			t.Errorf("%+v", v.Chains)
		}
	}
}

// TestVerifyWhileItIsWritten checks that Verify finds no fault in a log to which entries are added at the same time.
func TestVerifyWhileItIsWritten(t *testing.T) {
	m, o := newMemory("c1"), options(t)
	l := opening(t, m, o)
	rounds, ended := make(chan int, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for round := range rounds {
			for i := range 100 {
				id := fmt.Sprint(round, "-", i)
				_ = l.Record(request(id), false)
				_ = l.Record(end(id), i%10 == 0)
			}
		}
	}()
	r := &LogReader{Stores: []LogStore{m}, Checkpoints: o.Checkpoints, Keys: o.Keys, Home: "home"}
	for round := range 20 {
		rounds <- round
		if v := verified(t, r, VerifyOptions{}); !v.OK {
			t.Errorf("%+v", v.First)
			break
		}
	}
	close(rounds)
	<-ended
}

func BenchmarkVerify(b *testing.B) {
	m, r, _, _ := writeLog(b, 25_000)
	rows := m.rows["c1"]
	body := bytes.Repeat([]byte("x"), 400)
	for i := range rows {
		rows[i].Body = body
	}
	rows = rehashFrom(rows, 0)
	keys, _ := testKeys().signingKeys()
	for i := range rows {
		rows[i].Code = hashMAC(keys.mac, rows[i].Hash)
	}
	r.Checkpoints = b.TempDir()
	for b.Loop() {
		if v, err := r.Verify(b.Context(), VerifyOptions{}); err != nil || !v.OK {
			b.Fatal(v.First, err)
		}
	}
	b.ReportMetric(float64(len(rows)*b.N)/b.Elapsed().Seconds(), "entries/s")
}
