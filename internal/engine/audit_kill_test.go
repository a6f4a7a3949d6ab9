package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"retort/internal/admin"
	"retort/internal/audit"
	"retort/internal/audit/sqlstore"
	"retort/internal/base/seal"
	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
)

// killedEngine is the environment variable that makes the test binary run an engine that the test kills.
const killedEngine = "RETORT_TEST_KILLED_ENGINE"

// noteServer returns an upstream server that appends each note to a file. The file outlives the server, so tests
// can see in it which calls took place. If the function made is not nil, the server calls it before and after it
// writes each note.
func noteServer(file string, made func()) *scriptedServer {
	return &scriptedServer{
		tools: func() string {
			return `{"name":"create_note","description":"Create a note.","inputSchema":{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}}`
		},
		answer: func(_ string, arguments json.RawMessage) string {
			if made != nil {
				made()
				defer made()
			}
			f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				panic(err)
			}
			defer f.Close()
			if _, err := f.Write(append(arguments, '\n')); err != nil {
				panic(err)
			}
			return `{"content":[{"type":"text","text":"made"}]}`
		},
	}
}

func killable(dir string) engine.Config { return killableWith(dir, nil) }

func killableWith(dir string, made func()) engine.Config {
	return engine.Config{
		NoFiles: true, Reserve: engine.ReserveNone, Home: filepath.Join(dir, "home"), Keys: filepath.Join(dir, "keys"),
		Servers: []engine.Server{{Name: "notes", Dial: noteServer(filepath.Join(dir, "effects"), made).dial}},
	}
}

// endCounter counts the executions that have ended, and prints that number at each event.
type endCounter struct {
	mu    sync.Mutex
	ended int
}

func (c *endCounter) tell(ended int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended += ended
	fmt.Println(c.ended)
}

// executeUntilKilled executes programs with effects until the process is killed. It prints a line when it starts,
// when the engine is open, before and after each effect, and when a program has ended.
func executeUntilKilled(dir string) {
	var c endCounter
	c.tell(0)
	e, err := engine.Open(context.Background(), killableWith(dir, func() { c.tell(0) }))
	if err != nil {
		panic(err)
	}
	c.tell(0)
	ended := make(chan core.Outcome)
	for range 3 {
		go func() {
			for {
				code := fmt.Sprintf(`for (let i = 0; i < 12; i++) await notes.createNote({id: '%x-' + i}); return 1`, rand.Int64())
				ended <- e.Execute(context.Background(), engine.Request{Code: code})
			}
		}()
	}
	for {
		if o := <-ended; o.Status != core.StatusOK {
			panic(fmt.Sprint(o.Status, o.Error))
		}
		c.tell(1)
	}
}

// killPositions returns the numbers of output lines after which the process is killed. The first few are reached
// while the engine starts. The others are spread over the executions. Three executions run at a time, and each
// prints 25 lines.
func killPositions() []int {
	step := 13
	if testenv.Full() {
		step = 1
	}
	all := []int{0, 1, 2}
	for at := 3; at < 170; at += step {
		all = append(all, at)
	}
	return all
}

// TestKilledWhileRecording checks that the audit log is valid whenever the engine is killed: each execution has one
// end, and each effect that the server saw was recorded once, before it happened.
func TestKilledWhileRecording(t *testing.T) {
	dir, done, kills := t.TempDir(), 0, killPositions()
	for _, at := range kills {
		done += testenv.KilledAt(t, killedEngine, dir, at, 0)
	}
	done += killSecondEngine(t, dir, slices.Max(kills))
	e, err := engine.Open(t.Context(), killable(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if v, err := admin.VerifyAudit(t.Context(), killable(dir), admin.VerifyOptions{}); err != nil || !v.OK {
		t.Errorf("the record is not valid: %+v %v", v, err)
	}
	rec := readRecord(t, dir)
	if rec.ends[string(core.StatusOK)] < done {
		t.Errorf("%d executions had ended, and %d are recorded", done, rec.ends[string(core.StatusOK)])
	}
	if done < len(kills) || rec.ends[string(core.StatusOutcomeUnknown)] < len(kills) {
		t.Errorf("%d kills came at the wrong time: %d executions had ended, and as recorded %v", len(kills), done, rec.ends)
	}
	text, err := os.ReadFile(filepath.Join(dir, "effects"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for line := range strings.Lines(string(text)) {
		seen[strings.TrimSpace(line)]++
	}
	for arguments, n := range seen {
		if n != 1 || rec.calls[rec.digest([]byte(arguments))] != 1 {
			t.Errorf("%s: the upstream saw it %d times, recorded are %d", arguments, n, rec.calls[rec.digest([]byte(arguments))])
		}
	}
	t.Logf("%d executions with %d effects; ended as %v", len(rec.requests), len(seen), rec.ends)
}

// killSecondEngine kills an engine that cannot write to the first file of the audit log, because another process
// holds its lock. This engine leaves unfinished executions in the second file. It returns how many executions had
// ended.
func killSecondEngine(t *testing.T, dir string, at int) (done int) {
	t.Helper()
	unlock, err := seal.Lock(filepath.Join(dir, "home", "audit", "record-1.db.lock"), seal.Unbounded)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	done = testenv.KilledAt(t, killedEngine, dir, at, 0)
	if files, err := sqlstore.ListFiles(filepath.Join(dir, "home", "audit")); err != nil || len(files) < 2 {
		t.Fatal("the engine did not write to a second file:", files, err)
	}
	return done
}

// recordedCounts counts the requests, calls and ends in an audit log.
type recordedCounts struct {
	requests map[string]int // by execution
	calls    map[string]int // by digest of the arguments
	ends     map[string]int // by status
	digest   func([]byte) string
}

// readRecord reads the audit log of an engine that has ended. It fails the test unless each execution has one request
// and one end.
func readRecord(t *testing.T, dir string) recordedCounts {
	t.Helper()
	files, err := sqlstore.ListFiles(filepath.Join(dir, "home", "audit"))
	if err != nil {
		t.Fatal(err)
	}
	r, ends := recordedCounts{map[string]int{}, map[string]int{}, map[string]int{}, nil}, map[string]int{}
	for _, file := range files { // an engine that starts while another one still holds its file writes to the next
		r.digest = recoverAuditFile(t, dir, file)
		rows, err := sqlstore.OpenFile(t.Context(), file, sqlstore.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for row, err := range rows.Find(t.Context(), audit.Filter{}) {
			if err != nil {
				t.Fatal(err)
			}
			r.take(t, row, ends)
		}
	}
	for id, n := range r.requests {
		if n != 1 || ends[id] != 1 {
			t.Errorf("the execution %s has %d requests and %d ends", id, n, ends[id])
		}
	}
	if len(ends) != len(r.requests) {
		t.Errorf("%d executions have begun and %d ended", len(r.requests), len(ends))
	}
	return r
}

// recoverAuditFile opens a file of the audit log and closes it again. Opening it adds an end entry for each execution that
// was unfinished when its engine was killed. recoverAuditFile returns the function that computes digests of arguments with
// the key of this log.
func recoverAuditFile(t *testing.T, dir, file string) (digest func([]byte) string) {
	t.Helper()
	keys := audit.LogKeys{}
	keys.Codes = func() ([]byte, error) { return seal.ReadKey(filepath.Join(dir, "keys", "audit.key")) }
	keys.Bodies = keys.Codes
	owner, err := keys.OwnerID()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := sqlstore.Open(t.Context(), file, sqlstore.Options{Owner: owner})
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.Open(t.Context(), rows, audit.Options{Keys: keys, Checkpoints: filepath.Join(dir, "keys", "checkpoints")})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil { // writes what is queued
		t.Fatal(err)
	}
	return log.Digest
}

func (r recordedCounts) take(t *testing.T, row audit.LogRow, ends map[string]int) {
	t.Helper()
	switch core.EventKind(row.Kind) {
	case core.EventRequest:
		r.requests[row.Execution]++
	case core.EventEnd:
		ends[row.Execution]++
		r.ends[row.Status]++
	case core.EventCall:
		var facts struct{ Arguments string }
		if err := json.Unmarshal(row.Facts, &facts); err != nil {
			t.Fatal(err)
		}
		r.calls[facts.Arguments]++
	}
}
