package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"retort/internal/core"
)

var (
	// ErrUnsynced means that a store's file could not be synced to disk. The file's content may then exist only in
	// the page cache, and even a later successful sync does not prove that it is on disk. Callers must neither
	// trust Head nor try again.
	ErrUnsynced = errors.New("the disk did not confirm that it was written")
	// ErrGone means that a store's file was deleted or replaced while it was open. New entries would be lost,
	// because they would go into a file that no path leads to.
	ErrGone = errors.New("its file was deleted or replaced while it was open")
)

// StatusLost is the status of a gap entry: the first entry of a chain that continues another chain, because the
// file of the other chain became unreliable.
const StatusLost = "lost"

// continuationFacts is the additional JSON data ("facts") of a gap entry: the first entry of a chain that
// continues another one, whose file became unreliable.
type continuationFacts struct {
	Cause      string   `json:"cause"`
	Chain      string   `json:"chain"`      // the chain that this one continues
	Entries    int64    `json:"entries"`    // number of entries that are known to be written in the other chain
	Executions []string `json:"executions"` // executions that began in the other chain and continue in this one
}

// isLost reports whether an error means that the store can no longer be relied on.
func isLost(err error) bool { return errors.Is(err, ErrUnsynced) || errors.Is(err, ErrGone) }

// currentStore returns the store and the chain to which entries are written.
func (l *Log) currentStore() (LogStore, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.store, l.head.Chain
}

// startNewChain makes the log continue in a new chain, in another store. The entries in the queue are then written
// to the new chain. If startNewChain fails, nothing changes, and nothing is written until a later attempt
// succeeds.
func (l *Log) startNewChain() *core.Error {
	if l.o.Renew == nil {
		return core.AsError(l.lost)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	store, head, err := l.openEmptyStore(ctx)
	if err != nil {
		return core.Errorf(core.KindInternal, "audit.write", "%w; a new file could not be created: %w", l.lost, err).
			WithHint("check the disk and the folder that the error names, then restart Retort")
	}
	cause, was := l.lost, l.head
	l.o.Log.Error("the file of the audit log is no longer reliable; the audit log continues in a new chain",
		"chain", was.Chain, "entries", was.Seq, "new", head.Chain, "error", cause)
	l.points.closeFiles()
	l.points = l.newCheckpointWriter(head.Chain)
	l.lost, l.unsure = nil, nil
	old := l.switchStore(store, head, cause)
	if errors.Is(cause, ErrGone) {
		_ = old.Close() // nobody can find what it holds
		return nil
	}
	l.kept = append(l.kept, old) // so that no other engine closes the executions that go on here
	return nil
}

// openEmptyStore opens a new store. It returns an error unless the chain of the store is empty.
func (l *Log) openEmptyStore(ctx context.Context) (LogStore, ChainHead, error) {
	store, err := l.o.Renew(ctx)
	if err != nil {
		return nil, ChainHead{}, err
	}
	head, err := store.Head(ctx)
	if err == nil && head.Seq != 0 {
		err = fmt.Errorf("chain %s is not new", head.Chain)
	}
	if err != nil {
		return nil, ChainHead{}, errors.Join(err, store.Close())
	}
	return store, head, nil
}

// switchStore makes store the one to which all further entries are written, and returns the previous store.
func (l *Log) switchStore(store LogStore, head ChainHead, cause error) (old LogStore) {
	l.mu.Lock()
	defer l.mu.Unlock()
	open := l.openExecutions()
	gap := l.newGapEntry(continuationFacts{Cause: messageOf(cause), Chain: l.head.Chain, Entries: l.head.Seq, Executions: open})
	old, l.store, l.head, l.opened = l.store, store, head, 0
	clear(l.keys)
	for _, it := range l.queue {
		l.adoptEntry(it)
	}
	if gap != nil {
		gap.row.Chain = head.Chain
		l.queue = slices.Insert(l.queue, 0, gap)
		l.size += gap.size
	}
	return old
}

// newGapEntry returns the gap entry with which a chain begins that continues another one. It says why the other
// chain ended and which executions continue.
func (l *Log) newGapEntry(c continuationFacts) *queuedRow {
	row, err := rowOf(core.AuditEvent{Kind: core.EventGap, Status: StatusLost, At: l.o.Now(), Facts: map[string]any{
		"cause": c.Cause, "chain": c.Chain, "entries": c.Entries, "executions": c.Executions,
	}})
	if err != nil { // it is made of strings and numbers
		return nil
	}
	return &queuedRow{row: row, continues: c.Executions, size: rowOverhead + len(row.Facts)}
}

// openExecutions returns the executions whose request entry is written and whose end entry is not. The caller must
// hold l.mu.
func (l *Log) openExecutions() []string {
	open := []string{}
	for id := range l.keys {
		begins := slices.ContainsFunc(l.queue, func(it *queuedRow) bool { return it.opens && it.row.Execution == id })
		if id != l.head.Chain && !strings.HasPrefix(id, l.head.Chain+":") && !begins {
			open = append(open, id)
		}
	}
	slices.Sort(open)
	return open
}

// adoptEntry changes an entry that was queued for an abandoned chain so that it can be written to the current one.
// It encrypts the body with a new key, which the current store will contain. The caller must hold l.mu.
func (l *Log) adoptEntry(it *queuedRow) {
	if it.row.Chain == l.head.Chain {
		return
	}
	was := it.key
	it.row.Chain, it.withKey = l.head.Chain, false
	if was == nil {
		return
	}
	id := keyID(&it.row)
	k := l.keys[id]
	if k == nil {
		var err error
		if k, err = l.newKey(&it.row, was.lost); err != nil {
			return // a key of the right size is never refused
		}
		l.keys[id] = k
	}
	it.key = k
	if it.row.Body == nil {
		return
	}
	if body, err := openText(was.aead, it.row.Body, was.ID); err == nil {
		it.row.Body = sealText(k.aead, body, k.ID)
	}
	if !k.kept {
		it.withKey, k.kept = true, true
	}
}
