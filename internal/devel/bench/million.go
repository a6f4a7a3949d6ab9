package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"retort/internal/audit"
	"retort/internal/audit/sqlstore"
	"retort/internal/core"
	"retort/internal/home"
)

// logEntryCount sets the number of entries in the audit log that is queried and verified.
const logEntryCount = 1_000_000

// measureLargeLog measures an audit log with 1,000,000 entries: its queries and its verification. The targets are 100
// ms for a page of any query, and 100,000 verified entries a second.
func (b *benchRun) measureLargeLog(ctx context.Context) error {
	const name = "million"
	if err := b.fillLog(ctx, name, logEntryCount); err != nil {
		return err
	}
	r, closeLog, err := b.readLog(ctx, name)
	if err != nil {
		return err
	}
	defer func() { _ = closeLog() }()
	for _, q := range []struct {
		what string
		audit.Filter
	}{
		{"the newest", audit.Filter{}},
		{"of one session", audit.Filter{Session: "session 7"}},
		{"of one tool that failed", audit.Filter{Tool: "tool_3", Statuses: []string{"tool_error"}}},
		{"of a high risk, some weeks ago", audit.Filter{MinRisk: 80, To: time.Now().Add(-20 * 24 * time.Hour)}},
		{"of nobody", audit.Filter{Principal: "nobody"}},
	} {
		err := b.timeRuns("50 of 1,000,000 entries: "+q.what, 5, 100, func() error {
			_, err := r.Find(ctx, audit.Query{Filter: q.Filter, Limit: 50})
			return err
		})
		if err != nil {
			return err
		}
	}
	start := time.Now()
	v, err := r.Verify(ctx, audit.VerifyOptions{})
	if err == nil && !v.OK {
		err = fmt.Errorf("the audit log is not valid: %s", v.First.Says)
	}
	b.addRow("prove 100,000 of 1,000,000 entries", []float64{toMilliseconds(time.Since(start)) / float64(v.Entries) * 100_000}, "ms", 1000)
	return err
}

// readLog opens an audit log that openAuditLog has made.
func (b *benchRun) readLog(ctx context.Context, name string) (r *audit.LogReader, closeLog func() error, err error) {
	dir := filepath.Join(b.home, name)
	rows, err := sqlstore.Open(ctx, filepath.Join(dir, "record", home.AuditFileName(1)), sqlstore.Options{ReadOnly: true})
	if err != nil {
		return nil, nil, err
	}
	return &audit.LogReader{
		Stores: []audit.LogStore{rows}, Archives: filepath.Join(dir, "archive"),
		Checkpoints: filepath.Join(dir, "checkpoints"), Home: dir, Keys: fixedKeys(),
	}, rows.Close, nil
}

// fillLog writes entries of executions of thirty days. Each execution has five entries.
func (b *benchRun) fillLog(ctx context.Context, name string, entries int) error {
	log, err := b.openAuditLog(ctx, name)
	if err != nil {
		return err
	}
	const each = 5
	began := time.Now().Add(-30 * 24 * time.Hour)
	for x := range entries / each {
		at := began.Add(time.Duration(x) * 30 * 24 * time.Hour / time.Duration(entries/each))
		risk := x * 7 % 101
		about := core.AuditEvent{
			At: at, Execution: fmt.Sprint("x", x), Session: fmt.Sprint("session ", x%100),
			Principal: fmt.Sprint("person ", x%20), Client: "bench 1.0",
		}
		for n := range each {
			e := about
			switch n {
			case 0:
				e.Kind = core.EventRequest
			case 1:
				e.Kind, e.Status, e.Risk = core.EventVerdict, "ok", &risk
			case each - 1:
				e.Kind, e.Status, e.Risk = core.EventEnd, "ok", &risk
			default:
				e.Kind, e.Server, e.Tool, e.Status = core.EventCall, fmt.Sprint("server ", x%10), fmt.Sprint("tool_", x%200), "ok"
				if x%50 == 3 {
					e.Status = "tool_error"
				}
				e.Body = []byte(`{"arguments":{"id":"0123456789","fields":["name","email","phone"],"limit":100}}`)
			}
			if err := waitForWriter(log, e); err != nil {
				return err
			}
		}
	}
	return log.Close()
}

// waitForWriter records an entry in the audit log. If the log refuses the entry because its writer is behind, it
// waits and tries again.
func waitForWriter(log *audit.Log, e core.AuditEvent) error {
	for {
		refused := log.Record(e, false)
		if refused == nil {
			return nil
		}
		if e.Kind == core.EventEnd {
			return refused
		}
		time.Sleep(10 * time.Millisecond)
	}
}
