package audit

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
)

const (
	acceptedFile = "clock.accepted"
	acceptedFor  = time.Hour
)

// AcceptClock records, in the folder of checkpoints, that a person has confirmed the current time. For an hour,
// engines then accept that the clock is behind the newest entry of the audit log.
func AcceptClock(checkpoints string, now time.Time) error {
	return seal.ReplaceFile(filepath.Join(checkpoints, acceptedFile), []byte(now.UTC().Format(time.RFC3339Nano)+"\n"))
}

// isClockAccepted reports whether a person confirmed the clock within the last hour.
func isClockAccepted(checkpoints string, now time.Time) bool {
	if checkpoints == "" {
		return false
	}
	text, err := seal.ReadFile(filepath.Join(checkpoints, acceptedFile), 64)
	if err != nil {
		return false
	}
	at, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(string(text)))
	return err == nil && !at.After(now) && now.Sub(at) < acceptedFor
}

// refuseClockBehind returns an error if the clock is too far behind the newest entry, so that calls which may have
// effects are refused. If a person has confirmed the clock, it instead adds an entry that says so and returns nil.
// The caller must hold l.mu.
func (l *Log) refuseClockBehind() *core.Error {
	now := l.o.Now()
	late := l.last.Sub(now)
	if late <= clockTolerance {
		return nil
	}
	if isClockAccepted(l.o.Checkpoints, now) {
		return l.recordRewind(now)
	}
	return core.Errorf(
		core.KindInternal, "audit.record",
		"the clock of this machine is %s behind the newest entry of the audit log, so calls that may have effects cannot be recorded",
		late.Round(time.Second),
	).
		WithHint("correct the clock. If it is right now and was wrong before, run retort audit accept-clock")
}

// recordRewind adds an entry which says that a person has confirmed the clock, although it shows an earlier time
// than the newest entry has.
func (l *Log) recordRewind(now time.Time) *core.Error {
	row, err := rowOf(core.AuditEvent{Kind: core.EventClock, At: now, Facts: map[string]any{"behind_ms": l.last.Sub(now).Milliseconds()}})
	if err != nil {
		return core.AsError(err)
	}
	l.appendQueue(&queuedRow{row: row, size: rowOverhead})
	l.last = now
	return nil
}

// newestTime returns the time of a chain's newest entry. It ignores entries from before a person last confirmed
// the clock, because these may have been written while the clock was wrong.
func newestTime(ctx context.Context, s LogStore, chain string) (last time.Time, err error) {
	var accepted int64
	for r, err := range s.Find(ctx, Filter{Chain: chain, Kinds: []string{string(core.EventClock)}, Bare: true}) {
		if err != nil {
			return last, err
		}
		accepted = max(accepted, r.Seq)
	}
	limit := 1
	if accepted > 0 {
		limit = 0 // those from before it come first
	}
	for r, err := range s.Find(ctx, Filter{Chain: chain, Limit: limit, Bare: true}) {
		if err != nil {
			return last, err
		}
		if r.Seq >= accepted {
			return time.Unix(0, r.At), nil
		}
	}
	return last, nil
}
