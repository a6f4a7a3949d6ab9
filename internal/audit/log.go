package audit

import (
	"bytes"
	"context"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"retort/internal/core"
)

// Options configures a Log. Only Keys is required.
type Options struct {
	Keys LogKeys
	// Checkpoints is the folder of signed checkpoints. It must be a folder where upstream servers cannot write.
	Checkpoints string
	Home        string            // data directory to name in checkpoints
	Every       time.Duration     // maximum time between two lines of the checkpoint history; 0: a minute
	Tell        func(line []byte) // is called with each line of the checkpoint history; must not block; may be nil
	// Renew opens another store with an empty chain. It is called when the current store fails with ErrUnsynced or
	// ErrGone. If Renew is nil, nothing more is written after such a failure.
	Renew func(ctx context.Context) (LogStore, error)
	// All makes the log refuse every action that cannot be recorded. Without it, programs that only read may continue
	// as long as the unwritten entries fit into memory.
	All bool
	// User is the name of the operating system's user. Entries without a principal contain this name instead, or no
	// name if User is "".
	User string
	// Mask removes values that must not be recorded, such as secrets, from JSON text. If it is nil, nothing is
	// removed.
	Mask func(json []byte) []byte
	// Seen is called for each event after the log has accepted it. It may be nil, and it must not block.
	Seen func(core.AuditEvent)
	Log  *slog.Logger
	Now  func() time.Time // nil: time.Now
}

const (
	writeDelay      = 10 * time.Millisecond // how long entries that no caller waits for are collected into a batch
	writeRetryPause = time.Second           // pause before a failed write is repeated
	maxBatch        = 2048                  // rows in one batch
	maxQueue        = 32 << 20              // bytes of queued rows
	rowOverhead     = 256                   // estimated bytes of a queued row besides its data
	// endPatience bounds how long the result of an execution waits for its end entry to be written.
	endPatience    = 3 * time.Second
	clockTolerance = 2 * time.Minute // how far the clock may be behind the newest entry
)

// Log writes one chain of the audit log. It is safe for concurrent use.
type Log struct {
	o      Options
	codes  signingKeys
	wrap   cipher.AEAD
	ended  chan struct{}
	close  func() error
	owner  string // ID of the owner of the chain
	leaves atomic.Bool

	// points writes the checkpoints. Only the goroutine that writes entries uses this field and the fields that
	// follow without an empty line.
	points checkpointWriter
	unsure *unconfirmedBatch
	lost   error      // why the store can no longer be relied on; nil: it can
	kept   []LogStore // abandoned stores, which stay locked until the log is closed

	mu      sync.Mutex
	store   LogStore  // is replaced only by the goroutine that writes
	ready   sync.Cond // signals a change of any field below
	queue   []*queuedRow
	size    int  // bytes of the queued rows
	urgent  bool // a caller waits for a queued row
	failed  *core.Error
	since   time.Time // when writing began to fail
	refused int       // events refused since then
	closed  bool
	stopped bool                // the goroutine that writes has ended
	keys    map[string]*bodyKey // keys of running executions and of sessions, by ID
	head    ChainHead
	opened  int64     // Seq of the head when the log was opened
	last    time.Time // time of the newest entry
}

// queuedRow represents a row that waits to be written.
type queuedRow struct {
	row     LogRow
	key     *bodyKey // key of its body, or of the execution that it begins
	withKey bool     // the store must write the key together with this row
	opens   bool
	// continues lists executions that began in an earlier chain and continue in this one.
	continues []string
	closes    bool
	size      int
	waits     bool
	retracts  bool // the action that it announces is refused if the row cannot be written
	retracted bool // the row was retracted and is not written
	settled   bool
	err       *core.Error
}

// Open opens the log and continues the chain of a store. It adds end entries, with status outcome_unknown, for
// executions that a crashed engine left open. If the chain contradicts its last checkpoint, Open writes nothing
// and returns an error that wraps ErrCut.
func Open(ctx context.Context, store LogStore, o Options) (*Log, error) {
	l := &Log{store: store, o: o, keys: map[string]*bodyKey{}, ended: make(chan struct{})}
	l.ready.L, l.close = &l.mu, sync.OnceValue(l.closeChain)
	if l.o.Now == nil {
		l.o.Now = time.Now
	}
	if l.o.Log == nil {
		l.o.Log = slog.New(slog.DiscardHandler)
	}
	if l.o.Every == 0 {
		l.o.Every = time.Minute
	}
	var err error
	if l.codes, err = o.Keys.signingKeys(); err != nil {
		return nil, err
	}
	if l.wrap, err = o.Keys.wrapCipher(); err != nil {
		return nil, err
	}
	if err := l.resumeChain(ctx); err != nil {
		return nil, err
	}
	go l.writeLoop()
	l.closeOrphans(ctx)
	return l, nil
}

// ErrCut is wrapped by errors about a chain that was changed after its last checkpoint, for example truncated.
var ErrCut = errors.New("the audit log has changed since it was last written")

// resumeChain reads the end of the chain and compares it with the last checkpoint.
func (l *Log) resumeChain(ctx context.Context) (err error) {
	if l.head, err = l.store.Head(ctx); err != nil {
		return err
	}
	l.opened, l.owner = l.head.Seq, l.head.Owner
	l.points = l.newCheckpointWriter(l.head.Chain)
	noted, err := readHead(l.o.Checkpoints, l.head.Chain)
	if err != nil || noted.Chain != "" && !(noted.Chain == l.head.Chain && noted.isSignedBy(l.codes.publicKey())) {
		l.o.Log.Warn("the newest checkpoint of the audit log cannot be read", "chain", l.head.Chain, "error", err)
		noted = Checkpoint{}
	}
	if noted.Seq > l.head.Seq {
		return truncatedError(l.head, noted)
	}
	if err := l.verifyTail(ctx, noted); err != nil {
		return err
	}
	l.last, err = newestTime(ctx, l.store, l.head.Chain)
	return err
}

func (l *Log) newCheckpointWriter(chain string) checkpointWriter {
	return checkpointWriter{dir: l.o.Checkpoints, chain: chain, home: l.o.Home, sign: l.codes.sign, every: l.o.Every, onLine: l.o.Tell}
}

// verifyTail verifies the hashes and MACs of the entries after the last checkpoint. If they are valid, an owner of
// the key has added these entries.
func (l *Log) verifyTail(ctx context.Context, noted Checkpoint) error {
	var before []byte
	for r, err := range l.store.Walk(ctx, l.head.Chain, max(noted.Seq, l.head.Base+1, 1)) {
		if err != nil {
			return err
		}
		first := before == nil && r.Seq > 1
		if r.Seq == noted.Seq && encodeHex(r.Hash) != noted.Hash || !first && !bytes.Equal(r.computeHash(before), r.Hash) ||
			!hmac.Equal(hashMAC(l.codes.mac, r.Hash), r.Code) {
			return truncatedError(l.head, noted)
		}
		before = r.Hash
	}
	if before != nil && !bytes.Equal(before, l.head.Hash) {
		return truncatedError(l.head, noted)
	}
	return nil
}

func truncatedError(h ChainHead, noted Checkpoint) error {
	return core.Errorf(
		core.KindInternal, "audit.open", "%w: chain %s ends at entry %d, but a checkpoint of %s has entry %d", ErrCut,
		h.Chain, h.Seq, noted.At.Format(time.RFC3339), noted.Seq,
	).
		WithHint("run retort audit verify for details")
}

// Record implements core.EventRecorder. An execution whose request entry it refuses gets no end entry either.
func (l *Log) Record(e core.AuditEvent, durable bool) *core.Error {
	if e.At.IsZero() {
		e.At = l.o.Now()
	}
	it, err := l.sealEvent(e)
	if err != nil {
		return core.Errorf(core.KindInternal, "audit.record", "this cannot be recorded in the audit log: %w", err)
	}
	waits := durable || l.o.All && it.opens
	it.waits = waits // the writer may change it from now on
	refused := l.enqueueRow(it)
	if refused == nil && waits {
		refused = l.waitWritten(it)
	}
	if refused == nil && l.o.Seen != nil {
		l.o.Seen(e)
	}
	return refused
}

// isRetractable reports whether an entry of this kind can be retracted, because it announces an action that has not
// been carried out yet. If such an entry cannot be written, the action is not carried out.
func isRetractable(k core.EventKind) bool {
	return k == core.EventRequest || k == core.EventCall || k == core.EventReveal
}

// sealEvent converts an event to a row for the write queue. It masks secrets and encrypts the body.
func (l *Log) sealEvent(e core.AuditEvent) (*queuedRow, error) {
	if l.o.User != "" && e.Principal == "" && namesUser(e.Kind) {
		e.Facts = withFact(e.Facts, "user", l.o.User)
	}
	row, err := rowOf(e)
	if err != nil {
		return nil, err
	}
	_, row.Chain = l.currentStore()
	l.maskNames(&row)
	it := &queuedRow{opens: e.Kind == core.EventRequest, closes: e.Kind == core.EventEnd, retracts: isRetractable(e.Kind)}
	if l.o.Mask != nil && row.Facts != nil {
		row.Facts = l.o.Mask(row.Facts)
	}
	if len(e.Body) > 0 || it.opens && e.Execution != "" {
		if it.key, err = l.keyOf(&row); err != nil {
			return nil, err
		}
	}
	if len(e.Body) > 0 {
		body := []byte(e.Body)
		if l.o.Mask != nil {
			body = l.o.Mask(body)
		}
		row.Body = sealText(it.key.aead, body, it.key.ID)
	}
	it.row, it.size = row, rowOverhead+len(row.Facts)+len(row.Body)
	return it, nil
}

// maskNames masks secrets in those plain fields of a row that clients, servers and programs choose, because plain
// fields are stored unencrypted.
func (l *Log) maskNames(row *LogRow) {
	if l.o.Mask == nil {
		return
	}
	for _, name := range []*string{&row.Session, &row.Principal, &row.Server, &row.Tool, &row.Status} {
		if *name != "" {
			*name = string(l.o.Mask([]byte(*name)))
		}
	}
}

// enqueueRow adds a row to the write queue, or returns the reason for refusing it. Ends of executions are accepted
// until the log is closed.
func (l *Log) enqueueRow(it *queuedRow) *core.Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refusalOf(it); err != nil {
		if l.failed != nil {
			l.refused++
		}
		return err
	}
	l.adoptEntry(it)
	if k := it.key; k != nil && it.row.Body != nil && !k.kept {
		it.withKey, k.kept = true, true
	}
	l.appendQueue(it)
	l.urgent = l.urgent || it.waits || it.opens // while the program is looked at, the disk has time
	l.ready.Broadcast()
	return nil
}

// appendQueue appends a row to the queue. The caller must hold l.mu.
func (l *Log) appendQueue(it *queuedRow) {
	l.queue = append(l.queue, it)
	l.size += it.size
}

func (l *Log) refusalOf(it *queuedRow) *core.Error {
	switch {
	case l.stopped, l.closed && !it.closes:
		return core.Errorf(core.KindCancelled, "audit.record", "the audit log is closed")
	case it.closes:
		return nil
	case l.size > maxQueue:
		return l.unwrittenError(l.failed)
	case it.waits && it.retracts:
		return l.refuseClockBehind()
	}
	return nil
}

func (l *Log) unwrittenError(cause *core.Error) *core.Error {
	if cause == nil {
		cause = core.Errorf(core.KindInternal, "audit.record", "the disk is too slow")
	}
	return core.Errorf(core.KindInternal, "audit.record", "this cannot be recorded in the audit log, so it was not done: %w", cause).
		WithHint("free disk space or fix the cause; Retort then continues automatically. Run retort doctor to see where the audit log is")
}

// waitWritten waits until a row is written or has failed. For the end of an execution it waits at most 3 s and leaves
// the row in the queue. Such an execution is over, so a store that does not respond must not delay its result.
func (l *Log) waitWritten(it *queuedRow) *core.Error {
	late := false
	if it.closes {
		timer := time.AfterFunc(endPatience, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			late = true
			l.ready.Broadcast()
		})
		defer timer.Stop()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for !it.settled && it.err == nil && !late {
		l.ready.Wait()
	}
	if !it.settled && it.err == nil {
		return core.Errorf(
			core.KindInternal, "audit.record",
			"the end of the execution is not written to the audit log yet: its store does not answer",
		).
			WithHint("it is written as soon as the store answers; retort doctor shows where the audit log is")
	}
	return it.err
}

// Close writes the queued entries, and an entry which says that the engine has ended.
func (l *Log) Close() error { return l.close() }

// CloseQuietly works like Close but adds no entry about the end of the engine. It is for processes that only repaired
// the chain of another engine.
func (l *Log) CloseQuietly() error {
	l.leaves.Store(true)
	return l.close()
}

func (l *Log) closeChain() error {
	if !l.leaves.Load() {
		_ = l.Record(core.AuditEvent{Kind: core.EventStop}, false)
	}
	l.mu.Lock()
	l.closed = true
	l.ready.Broadcast()
	l.mu.Unlock()
	<-l.ended
	l.points.closeFiles()
	var failed error
	if l.failed != nil {
		failed = l.failed
	}
	for _, s := range l.kept {
		_ = s.Close()
	}
	return errors.Join(failed, l.store.Close())
}

// Digest returns a keyed digest of a text. It does not reveal the text, and equal texts have equal digests in the
// same audit log.
func (l *Log) Digest(text []byte) string {
	h := hmac.New(sha256.New, l.codes.digest)
	h.Write(text)
	return encodeHex(h.Sum(nil)[:12])
}
