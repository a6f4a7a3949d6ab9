package audit

import (
	"bytes"
	"context"
	"slices"
	"time"

	"retort/internal/run"
)

// write is the one who writes: everything that is queued at once, until the log is closed.
func (l *Log) write() {
	defer close(l.ended)
	for {
		batch := l.next()
		if batch == nil {
			return
		}
		err := l.commit(batch)
		l.settle(batch, err)
		if err != nil && !l.rest(again) {
			return
		}
	}
}

// next waits for items, and a little longer for more if nobody waits for these.
func (l *Log) next() []*item {
	l.mu.Lock()
	for len(l.queue) == 0 && !l.closed {
		l.ready.Wait()
	}
	if !l.urgent && !l.closed {
		l.mu.Unlock()
		l.pause(linger)
		l.mu.Lock()
	}
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return nil
	}
	batch := l.queue[:min(len(l.queue), maxBatch)]
	l.urgent = len(batch) < len(l.queue) && l.urgent
	return batch
}

// pause waits, less if somebody else does.
func (l *Log) pause(d time.Duration) {
	timer := time.AfterFunc(d, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.urgent = true
		l.ready.Broadcast()
	})
	defer timer.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.urgent && !l.closed {
		l.ready.Wait()
	}
}

// rest waits after a failure, less if somebody waits. It reports false if the log is closed:
// what is not written then is lost.
func (l *Log) rest(d time.Duration) bool {
	l.mu.Lock()
	closed := l.closed
	l.mu.Unlock()
	if !closed {
		l.pause(d)
	}
	return !closed
}

// commit gives items their places and writes them.
func (l *Log) commit(items []*item) *run.Error {
	b := Batch{Rows: make([]Row, 0, len(items)), Keys: l.without()}
	seq, hash := l.head.Seq, l.head.Hash
	for _, it := range items {
		r := it.row
		seq++
		r.Chain, r.Seq = l.head.Chain, seq
		hash = r.hash(hash)
		r.Hash, r.Code = hash, code(l.codes.mac, hash)
		b.Rows = append(b.Rows, r)
		if it.key != nil {
			b.Keys = append(b.Keys, *it.key)
		}
		if it.opens {
			b.Opened = append(b.Opened, r.Execution)
		}
		if it.closes {
			b.Closed = append(b.Closed, r.Execution)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := l.store.Append(ctx, b); err != nil && !l.written(ctx, seq, hash) {
		return run.AsError(err)
	}
	l.mu.Lock()
	l.head.Seq, l.head.Hash = seq, hash
	l.mu.Unlock()
	if err := l.points.reached(seq, hash, l.o.Now(), l.closing(len(items))); err != nil {
		l.o.Log.Warn("a checkpoint of the record could not be written", "error", err)
	}
	return nil
}

// without are the keys of items that were taken back.
func (l *Log) without() []Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.orphans)
}

// closing reports whether nothing follows these items.
func (l *Log) closing(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed && n == len(l.queue)
}

// written reports whether a batch is there although its writing has failed.
func (l *Log) written(ctx context.Context, seq int64, hash []byte) bool {
	head, err := l.store.Head(ctx)
	return err == nil && head.Seq == seq && bytes.Equal(head.Hash, hash)
}

// settle tells those who wait. What could not be written stays, but for what must not happen now.
func (l *Log) settle(batch []*item, err *run.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.ready.Broadcast()
	if err == nil {
		l.queue, l.orphans = l.queue[len(batch):], nil
		for _, it := range batch {
			it.settled = true
			l.size -= it.size
			if at := time.Unix(0, it.row.At); at.After(l.last) {
				l.last = at
			}
		}
		l.healed()
		return
	}
	if l.failed == nil {
		l.o.Log.Error("the record cannot be written", "error", err)
	}
	l.failed, l.urgent = err, false
	left := l.queue[:0:0]
	for _, it := range l.queue {
		if it.waits {
			it.err = l.unwritten(err)
		}
		if it.waits && it.retracts {
			l.size -= it.size
			if it.key != nil {
				l.orphans = append(l.orphans, *it.key)
			}
			continue
		}
		it.waits = false
		left = append(left, it)
	}
	l.queue = left
}

// healed notes that writing goes on.
func (l *Log) healed() {
	if l.failed == nil {
		return
	}
	l.o.Log.Info("the record is written again")
	cause := l.failed.Message
	l.failed = nil
	row, err := rowOf(run.Event{Kind: run.EventGap, At: l.o.Now(), Facts: map[string]any{"cause": cause, "refused": l.refused}})
	if err != nil {
		return
	}
	l.refused = 0
	l.queue = append(l.queue, &item{row: row, size: overhead})
	l.size += overhead
}

// recover closes what an engine that has died left open.
func (l *Log) recover(ctx context.Context) {
	open, err := l.store.Open(ctx)
	if err != nil {
		l.o.Log.Warn("what was open when the engine ended is not known", "error", err)
		return
	}
	for _, id := range open {
		end := run.Event{Kind: run.EventEnd, Execution: id, Status: string(run.StatusOutcomeUnknown), Facts: map[string]any{"cause": "the engine ended before the execution did"}}
		sent := 0
		for r, err := range l.store.Find(ctx, Filter{Chain: l.head.Chain, Executions: []string{id}, Bare: true}) {
			if err != nil {
				break
			}
			switch run.EventKind(r.Kind) {
			case run.EventCall:
				sent++
			case run.EventRequest:
				end.Session, end.Principal = r.Session, r.Principal
			}
		}
		end.Facts["calls"] = sent
		_ = l.Record(end, false)
	}
}
