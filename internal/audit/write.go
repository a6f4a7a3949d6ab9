package audit

import (
	"bytes"
	"context"
	"slices"
	"time"

	"retort/internal/core"
)

// unconfirmedBatch is a batch whose write returned an error, although the store may have written it.
type unconfirmedBatch struct {
	items []*queuedRow
	seq   int64 // sequence number of its last row
	hash  []byte
}

// writeLoop writes the queue in batches until the log is closed. It runs in its own goroutine.
func (l *Log) writeLoop() {
	defer close(l.ended)
	for {
		var batch []*queuedRow
		err := l.resolveUnconfirmed()
		if err == nil {
			if batch = l.nextBatch(); batch == nil {
				l.writeCheckpoint(true)
				return
			}
			if err = l.commitBatch(batch); l.lost != nil {
				err = l.startNewChain()
				batch = nil // it is still queued, and now for the new chain
			}
		}
		if batch == nil && err == nil {
			continue
		}
		l.finishBatch(batch, err)
		if err == nil {
			l.writeCheckpoint(false) // when nobody waits for it
		} else if !l.backOff(writeRetryPause) {
			return
		}
	}
}

// nextBatch waits until the queue has rows and returns them. If no caller waits for one of these rows, nextBatch
// waits 10 ms longer for further rows. It returns nil if the log is closed and the queue is empty.
func (l *Log) nextBatch() []*queuedRow {
	l.mu.Lock()
	for len(l.queue) == 0 && !l.closed {
		l.ready.Wait()
	}
	if !l.urgent && !l.closed {
		l.mu.Unlock()
		l.waitForMore(writeDelay)
		l.mu.Lock()
	}
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		l.stopped = true
		return nil
	}
	batch := l.queue[:min(len(l.queue), maxBatch)]
	l.urgent = len(batch) < len(l.queue) && l.urgent
	return batch
}

// waitForMore waits for the given time, so that further rows can be queued. It returns earlier if a caller waits for
// a row or the log is closed.
func (l *Log) waitForMore(d time.Duration) {
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

// backOff waits after a failed write. It returns earlier if a caller waits for a row. If the log is closed, it
// returns false without waiting, and the unwritten entries are lost.
func (l *Log) backOff(d time.Duration) bool {
	l.mu.Lock()
	closed := l.closed
	if closed {
		l.stopped = true
		for _, it := range l.queue { // those that came since
			it.err = l.unwrittenError(l.failed)
		}
		l.ready.Broadcast()
	}
	l.mu.Unlock()
	if !closed {
		l.waitForMore(d)
	}
	return !closed
}

// commitBatch assigns sequence numbers and hashes to the rows, and writes them to the store.
func (l *Log) commitBatch(items []*queuedRow) *core.Error {
	b := WriteBatch{Rows: make([]LogRow, 0, len(items))}
	seq, hash := l.head.Seq, l.head.Hash
	for _, it := range items {
		r := it.row
		seq++
		r.Chain, r.Seq = l.head.Chain, seq
		hash = r.computeHash(hash)
		r.Hash, r.Code = hash, hashMAC(l.codes.mac, hash)
		b.Rows = append(b.Rows, r)
		if it.withKey {
			b.Keys = append(b.Keys, it.key.BodyKey)
		}
		if it.opens {
			b.Opened = append(b.Opened, r.Execution)
		}
		b.Opened = append(b.Opened, it.continues...)
		if i := slices.Index(b.Opened, r.Execution); it.closes && i >= 0 {
			b.Opened = slices.Delete(b.Opened, i, i+1) // it was never seen open
		} else if it.closes {
			b.Closed = append(b.Closed, r.Execution)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := l.store.Append(ctx, b); err != nil {
		if isLost(err) {
			l.lost = err
			return core.AsError(err)
		}
		l.unsure = &unconfirmedBatch{items, seq, hash}
		if written, unknown := l.isBatchWritten(); unknown != nil || !written {
			return core.AsError(err)
		}
	}
	l.advanceHead(seq, hash)
	return nil
}

// isBatchWritten reports whether the unconfirmed batch is in the store although its write returned an error.
func (l *Log) isBatchWritten() (bool, *core.Error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	head, err := l.store.Head(ctx)
	if isLost(err) {
		l.lost = err
	}
	switch {
	case err != nil:
		return false, core.AsError(err)
	case head.Seq == l.unsure.seq && bytes.Equal(head.Hash, l.unsure.hash):
		return true, nil
	case head.Seq == l.head.Seq && bytes.Equal(head.Hash, l.head.Hash):
		l.unsure = nil
		return false, nil
	}
	return false, core.Errorf(
		core.KindInternal, "audit.write", "chain %s is at entry %d but this engine wrote it up to entry %d",
		l.head.Chain, head.Seq, l.head.Seq,
	).
		WithHint("another process writes to it, or it was replaced by an old copy: run retort audit verify, then restart the engine")
}

// resolveUnconfirmed finds out whether an unconfirmed batch was written. Until then nothing else can be written,
// because the position of the next entry depends on it.
func (l *Log) resolveUnconfirmed() *core.Error {
	if l.lost != nil {
		return l.startNewChain()
	}
	if l.unsure == nil {
		return nil
	}
	was := l.unsure
	written, err := l.isBatchWritten()
	if err != nil || !written {
		return err
	}
	l.advanceHead(was.seq, was.hash)
	l.mu.Lock()
	defer l.mu.Unlock()
	var undone []*queuedRow
	for _, it := range was.items {
		if it.retracted {
			undone = append(undone, retractionOf(it))
			l.size += it.size
		}
		l.markWritten(it)
	}
	l.queue = slices.Concat(undone, slices.DeleteFunc(slices.Clone(l.queue), func(it *queuedRow) bool { return it.settled }))
	l.size += len(undone) * rowOverhead
	l.recordRecovery()
	return nil
}

// retractionOf returns an entry that retracts a recorded action: it says that the action did not happen.
func retractionOf(it *queuedRow) *queuedRow {
	e := core.AuditEvent{
		Kind: core.EventRefusal, At: time.Unix(0, it.row.At), Execution: it.row.Execution, Session: it.row.Session, Principal: it.row.Principal,
		Server: it.row.Server, Tool: it.row.Tool, Status: "unrecorded",
		Facts: map[string]any{"cause": "Retort could not confirm that it was recorded, so it was not done", "of": it.row.Kind},
	}
	if it.opens {
		e.Kind, e.Status = core.EventEnd, string(core.StatusError)
	}
	row, _ := rowOf(e) // of strings
	return &queuedRow{row: row, closes: it.opens, size: rowOverhead}
}

// advanceHead sets the head of the chain after a successful write.
func (l *Log) advanceHead(seq int64, hash []byte) {
	l.unsure = nil
	l.mu.Lock()
	l.head.Seq, l.head.Hash = seq, hash
	l.mu.Unlock()
}

// writeCheckpoint writes a checkpoint, which records where the chain ends now.
func (l *Log) writeCheckpoint(end bool) {
	if l.head.Seq == 0 || l.o.Checkpoints == "" {
		return
	}
	err := l.points.recordDurable(l.head.Seq, l.head.Hash, l.o.Now(), end)
	if err != nil && !l.points.failed {
		l.o.Log.Warn("a checkpoint of the audit log could not be written", "error", err)
	}
	l.points.failed = err != nil
}

// finishBatch informs the callers that wait for a batch, after it was written or writing has failed. After an error,
// the entries stay in the queue to be written later, except those of actions that are refused because of the error.
func (l *Log) finishBatch(batch []*queuedRow, err *core.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.ready.Broadcast()
	if err != nil {
		l.failBatch(err)
		return
	}
	l.queue = l.queue[len(batch):]
	for _, it := range batch {
		l.markWritten(it)
	}
	l.recordRecovery()
}

// markWritten marks a row as durable, so that the caller that waits for it can continue.
func (l *Log) markWritten(it *queuedRow) {
	it.settled = true
	l.size -= it.size
	if at := time.Unix(0, it.row.At); at.After(l.last) {
		l.last = at
	}
	if it.closes {
		delete(l.keys, it.row.Execution)
	}
}

// failBatch informs all waiting callers of an error, and removes the entries of actions that are refused because of
// it.
func (l *Log) failBatch(err *core.Error) {
	if l.failed == nil {
		l.since = l.o.Now()
		l.o.Log.Error("the audit log cannot be written", "error", err)
	}
	l.failed, l.urgent = err, false
	left := make([]*queuedRow, 0, len(l.queue))
	var loose []*bodyKey
	for _, it := range l.queue {
		if it.waits {
			it.err = l.unwrittenError(err)
		}
		if it.waits && it.retracts {
			it.retracted = true
			l.refused++
			l.size -= it.size
			if it.withKey {
				it.key.kept = false
				loose = append(loose, it.key)
			}
			continue
		}
		it.waits = false
		left = append(left, it)
	}
	l.queue = left
	for _, k := range loose {
		attachKey(left, k)
	}
}

// attachKey finds the first queued row whose body is encrypted with the key k, and marks it so that k is written to
// the store together with it. If no queued row uses k, it does nothing, and k is stored with the next body that uses
// it.
func attachKey(queue []*queuedRow, k *bodyKey) {
	for _, it := range queue {
		if it.key == k && it.row.Body != nil {
			it.withKey, k.kept = true, true
			return
		}
	}
}

// recordRecovery adds a gap entry when writing works again after it had failed. The entry says why writing failed,
// since when, and how many entries were refused.
func (l *Log) recordRecovery() {
	if l.failed == nil {
		return
	}
	l.o.Log.Info("the audit log is being written again")
	row, err := rowOf(core.AuditEvent{
		Kind: core.EventGap, At: l.o.Now(),
		Facts: map[string]any{"cause": l.failed.Message, "refused": l.refused, "since": l.since.UTC().Format(time.RFC3339Nano)},
	})
	l.failed, l.refused = nil, 0
	if err == nil {
		l.appendQueue(&queuedRow{row: row, size: rowOverhead})
	}
}

// closeOrphans adds end entries for the executions that a crashed engine left open.
func (l *Log) closeOrphans(ctx context.Context) {
	store, chain := l.currentStore()
	open, err := store.Open(ctx)
	if err != nil {
		l.o.Log.Warn("the executions that a crashed engine left open cannot be read", "error", err)
		return
	}
	for _, id := range open {
		end := core.AuditEvent{
			Kind: core.EventEnd, Execution: id, Status: string(core.StatusOutcomeUnknown),
			Facts: map[string]any{"cause": "the engine ended before the execution ended"},
		}
		sent := 0
		for r, err := range store.Find(ctx, Filter{Chain: chain, Executions: []string{id}, Bare: true}) {
			if err != nil {
				break
			}
			switch core.EventKind(r.Kind) {
			case core.EventCall:
				sent++
			case core.EventRequest:
				end.Session, end.Principal = r.Session, r.Principal
			}
		}
		end.Facts["calls"] = sent
		_ = l.Record(end, false)
	}
}
