package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"retort/internal/audit"
	"retort/internal/audit/sqlstore"
	"retort/internal/core"
	"retort/internal/engine"
)

// measureAuditLog measures how fast durable entries are written by one caller and by 64 callers. The targets are
// 5,000 entries a second and a median below 5 ms. It also measures how much recording slows down a small program; the
// target is 1 ms.
func (b *benchRun) measureAuditLog(ctx context.Context) error {
	if err := b.measureAppends(ctx); err != nil {
		return err
	}
	return b.measureRecordedRuns(ctx)
}

// makeEntry returns an entry of the usual size: 600 bytes with its body.
func makeEntry(execution string, n int) core.AuditEvent {
	body, _ := json.Marshal(map[string]string{"arguments": fmt.Sprintf("%0300d", n)})
	return core.AuditEvent{
		Kind: core.EventCall, Execution: execution, Session: "default", Client: "bench 1.0", Server: "crm",
		Tool: "update_record", Effect: "write",
		Facts: map[string]any{"call": n, "arguments": "0123456789abcdef01234567", "pin": "0123456789ab"}, Body: body,
	}
}

// openAuditLog opens an audit log below home.
func (b *benchRun) openAuditLog(ctx context.Context, name string) (*audit.Log, error) {
	dir := filepath.Join(b.home, name)
	owner, err := fixedKeys().OwnerID()
	if err != nil {
		return nil, err
	}
	rows, err := sqlstore.Open(ctx, filepath.Join(dir, "record")+"/", sqlstore.Options{Owner: owner})
	if err != nil {
		return nil, err
	}
	return audit.Open(ctx, rows, audit.Options{Keys: fixedKeys(), Checkpoints: filepath.Join(dir, "checkpoints"), Home: dir})
}

// fixedKeys returns fixed, public encryption keys, which are good enough for measurements.
func fixedKeys() audit.LogKeys {
	key := func() ([]byte, error) { return make([]byte, 32), nil }
	return audit.LogKeys{Bodies: key, Codes: key}
}

func (b *benchRun) measureAppends(ctx context.Context) error {
	log, err := b.openAuditLog(ctx, "appends")
	if err != nil {
		return err
	}
	defer log.Close()
	for _, m := range []struct {
		callers, each int
		one, all      string
		each1000      float64
	}{
		{1, 200, "durable entry of the audit log, one caller", "", 0},
		{64, 100, "durable entry of the audit log, 64 callers", "1,000 durable entries, 64 callers", 200},
	} {
		took, whole, err := appendConcurrently(log, m.callers, m.each)
		if err != nil {
			return err
		}
		target := 0.0
		if m.all != "" {
			target = 5
			b.addRow(m.all, []float64{toMilliseconds(whole) / float64(m.callers*m.each) * 1000}, "ms", m.each1000)
		}
		b.addRow(m.one, took, "ms", target)
	}
	return b.measureThreeEntries(log)
}

// measureThreeEntries measures the entries that an execution without calls adds to the audit log.
func (b *benchRun) measureThreeEntries(log *audit.Log) error {
	n := 0
	code, _ := json.Marshal(map[string]string{"code": "return 1"})
	return b.timeRuns("audit entries of one execution without calls", 200, 0, func() error {
		n++
		about := core.AuditEvent{Execution: fmt.Sprint("alone", n), Session: "default"}
		for _, kind := range []core.EventKind{core.EventRequest, core.EventVerdict, core.EventEnd} {
			e := about
			e.Kind, e.Status, e.Facts = kind, "ok", map[string]any{"language": "typescript"}
			if kind == core.EventRequest {
				e.Body = code
			}
			if refused := log.Record(e, kind == core.EventEnd); refused != nil {
				return refused
			}
		}
		return nil
	})
}

func toMilliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// appendConcurrently lets several callers write entries at the same time. Each caller waits for one entry before it
// writes the next.
func appendConcurrently(log *audit.Log, callers, each int) (took []float64, whole time.Duration, err error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	begin := time.Now()
	for c := range callers {
		all.Go(func() {
			execution := fmt.Sprintf("x%dof%d", c, callers)
			_ = log.Record(core.AuditEvent{Kind: core.EventRequest, Execution: execution, Session: "default"}, false)
			for n := range each {
				start := time.Now()
				refused := log.Record(makeEntry(execution, n), true)
				mu.Lock()
				took = append(took, toMilliseconds(time.Since(start)))
				if refused != nil {
					err = refused
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return took, time.Since(begin), err
}

// runPause is the pause between two programs. In this time the next sandbox becomes ready and the processors become
// idle.
const runPause = 50 * time.Millisecond

// measureRecordedRuns measures a small program with an audit log and without one. The runs of the two alternate.
func (b *benchRun) measureRecordedRuns(ctx context.Context) error {
	var engines [2]*engine.Engine
	for i, settings := range []string{"auditLogging: false", "auditLogging: true"} {
		e, err := engine.Open(ctx, engine.Config{
			NoFiles: true, Home: filepath.Join(b.home, fmt.Sprint("recorded", i)), Keys: filepath.Join(b.home, "keys"), Settings: settings,
			Guest: []string{b.Self, "guest"}, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return err
		}
		defer e.Close()
		engines[i] = e
	}
	const runs = 100
	var took [2][]float64
	for n := range runs + 10 {
		for i, e := range engines {
			time.Sleep(runPause)
			start := time.Now()
			if err := outcomeError(e.Execute(ctx, engine.Request{Code: "return 1"})); err != nil {
				return err
			}
			if n >= 10 {
				took[i] = append(took[i], toMilliseconds(time.Since(start)))
			}
		}
	}
	b.addRow("return 1 without an audit log", took[0], "ms", 0)
	b.addRow("return 1 with an audit log", took[1], "ms", 0)
	n := len(b.rows)
	b.rows = append(b.rows, ResultRow{
		Name: "added by the audit log", Median: b.rows[n-1].Median - b.rows[n-2].Median, Unit: "ms", Runs: runs, Target: 1,
	})
	return nil
}
