package audit

import (
	"bytes"
	"context"
	"crypto/hmac"
	"encoding/json"
	"iter"
	"strings"
	"time"

	"retort/internal/core"
)

// ReplayEvents yields past events since the given time from all chains of the same owner, in order of time and
// without bodies. It reads this log's store and the stores in others. From each chain it yields only the newest
// events, at most the number in the argument most. From this log's own chain it yields only events from before
// Open was called. It verifies each event by hash and MAC. If an event is not valid, it yields an error that wraps
// ErrCut and skips the rest of that chain.
func (l *Log) ReplayEvents(ctx context.Context, since time.Time, most int64, others ...LogStore) iter.Seq2[core.AuditEvent, error] {
	return func(yield func(core.AuditEvent, error) bool) {
		var heads []*replayedChain
		own, chain := l.currentStore()
		for _, s := range append([]LogStore{own}, others...) {
			chains, err := s.Chains(ctx)
			if err != nil {
				yield(core.AuditEvent{}, err)
				return
			}
			for _, c := range chains {
				if c.Owner != l.owner || c.Chain == chain && s != own {
					continue
				}
				r := l.replayChain(ctx, s, c, since, most)
				defer r.stop()
				if r.nextEvent() {
					heads = append(heads, r)
				}
			}
		}
		for len(heads) > 0 {
			i := earliestHead(heads)
			if !yield(heads[i].event, heads[i].err) {
				return
			}
			if !heads[i].nextEvent() {
				heads = append(heads[:i], heads[i+1:]...)
			}
		}
	}
}

// replayedChain holds the reading position in one chain during ReplayEvents.
type replayedChain struct {
	event core.AuditEvent
	err   error
	pull  func() (core.AuditEvent, error, bool)
	stop  func()
}

func (r *replayedChain) nextEvent() (ok bool) {
	r.event, r.err, ok = r.pull()
	return ok
}

func earliestHead(heads []*replayedChain) (first int) {
	for i, h := range heads {
		if h.event.At.Before(heads[first].event.At) {
			first = i
		}
	}
	return first
}

func (l *Log) replayChain(ctx context.Context, s LogStore, h ChainHead, since time.Time, most int64) *replayedChain {
	last := h.Seq
	l.mu.Lock()
	if h.Chain == l.head.Chain {
		last = l.opened
	}
	l.mu.Unlock()
	r := &replayedChain{}
	r.pull, r.stop = iter.Pull2(l.chainEvents(ctx, s, h, last, since, most))
	return r
}

// chainEvents yields the verified events of a chain, up to the entry with sequence number last.
func (l *Log) chainEvents(ctx context.Context, s LogStore, h ChainHead, last int64, since time.Time, most int64) iter.Seq2[core.AuditEvent, error] {
	return func(yield func(core.AuditEvent, error) bool) {
		from, err := firstSequence(ctx, s, h, last, since, most)
		if err != nil {
			yield(core.AuditEvent{}, err)
			return
		}
		var before []byte
		for r, err := range s.Walk(ctx, h.Chain, from) {
			if err == nil && r.Seq > last {
				return
			}
			if err == nil &&
				!(hmac.Equal(hashMAC(l.codes.mac, r.Hash), r.Code) && (before == nil && r.Seq > 1 || bytes.Equal(r.computeHash(before), r.Hash))) {
				err = truncatedError(h, Checkpoint{Chain: h.Chain, Seq: r.Seq, At: time.Unix(0, r.At)})
			}
			if err != nil {
				yield(core.AuditEvent{}, err)
				return
			}
			bare := before == nil && r.Seq > 1 // nothing says what it was before it
			if before = r.Hash; !bare && !yield(eventOf(&r), nil) {
				return
			}
		}
	}
}

// firstSequence returns the sequence number at which replaying a chain begins. It is one before the first event to
// yield, because that event's hash is verified with the hash before it.
func firstSequence(ctx context.Context, s LogStore, h ChainHead, last int64, since time.Time, most int64) (int64, error) {
	from := max(h.Base+1, last-most, 1)
	if since.IsZero() {
		return from, nil
	}
	for r, err := range s.Find(ctx, Filter{Chain: h.Chain, To: since, Limit: 1, Bare: true}) {
		if err != nil {
			return 0, err
		}
		from = max(from, r.Seq)
	}
	return from, nil
}

// eventOf converts a row to an event without its body.
func eventOf(r *LogRow) core.AuditEvent {
	e := core.AuditEvent{
		Kind: core.EventKind(r.Kind), At: time.Unix(0, r.At), Execution: r.Execution, Session: r.Session, Principal: r.Principal,
		Server: r.Server, Tool: r.Tool, Status: r.Status, Duration: time.Duration(r.Micros) * time.Microsecond, Bytes: r.Bytes,
	}
	if len(r.Facts) > 0 {
		_ = json.Unmarshal(r.Facts, &e.Facts) // what is no object has no facts
	}
	e.Client, _ = e.Facts["client"].(string)
	effect, _ := e.Facts["effect"].(string)
	e.Effect = core.EffectName(effect)
	if e.Kind == core.EventAnomaly {
		e.Status = core.AnomalyName(e.Status)
	}
	if kinds, ok := e.Facts["anomaly"].(string); ok {
		e.Facts["anomaly"] = renameKinds(kinds)
	}
	return e
}

// renameKinds returns kinds of anomalies, separated by commas, with the present name of each.
func renameKinds(kinds string) string {
	list := strings.Split(kinds, ",")
	for i, kind := range list {
		list[i] = core.AnomalyName(kind)
	}
	return strings.Join(list, ",")
}
