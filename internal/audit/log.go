package audit

import (
	"context"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"log/slog"
	"sync"
	"time"

	"retort/internal/run"
)

// Options say how a record is kept. Keys is needed.
type Options struct {
	Keys Keys
	// Checkpoints is the folder of signed checkpoints. It lies where no server can write.
	Checkpoints string
	Home        string            // named in checkpoints
	Every       time.Duration     // between two lines of checkpoints at most; a minute if 0
	Tell        func(line []byte) // is given each line, too; may be nil. It must not wait
	// All has nothing begin that cannot be recorded. Without it programs go on that only
	// read, as long as what is to be written fits into memory.
	All bool
	// Mask takes what must not be recorded out of a text of JSON; nil takes out nothing.
	Mask func(json []byte) []byte
	// Seen is told of each event that was taken in; may be nil. It must not wait.
	Seen func(run.Event)
	Log  *slog.Logger
	Now  func() time.Time // time.Now if nil
}

const (
	linger    = 50 * time.Millisecond // before what nobody waits for is written
	again     = time.Second           // before writing is tried again
	maxBatch  = 2048                  // rows
	maxQueue  = 32 << 20              // bytes of rows that are not written yet
	overhead  = 256                   // of a row, in memory
	tolerance = 2 * time.Minute       // that a clock may be behind the record
)

// Log writes one chain. It is safe for concurrent use.
type Log struct {
	store  Store
	o      Options
	codes  codes
	wrap   cipher.AEAD
	points checkpoints

	mu      sync.Mutex
	ready   sync.Cond // the queue, failed or closed has changed
	queue   []*item
	size    int
	taken   int64 // items that were ever queued
	done    int64 // of these, how many are settled; in order
	urgent  bool  // somebody waits
	failed  *run.Error
	closed  bool
	keys    map[string]*key // of executions that go on
	orphans []Key           // of items that were taken back
	head    Head
	last    time.Time // of the newest entry
	ended   chan struct{}
	refused int // events that could not be taken in since something was written
}

// item is a row on its way.
type item struct {
	row      Row
	key      *Key
	opens    bool
	closes   bool
	size     int
	err      *run.Error
	waits    bool
	retracts bool // is taken back if it could not be written
	settled  bool
}

// Open goes on with the chain of a store. Executions that an engine which has died left open
// are closed: as outcome_unknown. The error is ErrCut, wrapped, if the chain is not what
// its checkpoint says; nothing was written then.
func Open(ctx context.Context, store Store, o Options) (*Log, error) {
	l := &Log{store: store, o: o, keys: map[string]*key{}, ended: make(chan struct{})}
	l.ready.L = &l.mu
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
	if l.codes, err = o.Keys.codes(); err != nil {
		return nil, err
	}
	if l.wrap, err = o.Keys.wrap(); err != nil {
		return nil, err
	}
	if err := l.resume(ctx); err != nil {
		return nil, err
	}
	go l.write()
	l.recover(ctx)
	return l, nil
}

// ErrCut says that a chain is not what it was.
var ErrCut = errors.New("the record is not what it was when it was last written")

// resume finds where the chain stands, and whether it stood there.
func (l *Log) resume(ctx context.Context) (err error) {
	if l.head, err = l.store.Head(ctx); err != nil {
		return err
	}
	l.points = checkpoints{dir: l.o.Checkpoints, chain: l.head.Chain, home: l.o.Home, sign: l.codes.sign, every: l.o.Every, tell: l.o.Tell}
	noted, err := readHead(l.o.Checkpoints, l.head.Chain)
	if err != nil {
		l.o.Log.Warn("the newest checkpoint of the record cannot be read", "chain", l.head.Chain, "error", err)
	}
	if noted.Seq > l.head.Seq {
		return cut(l.head, noted)
	}
	from := max(noted.Seq, l.head.Base+1, 1)
	for r, err := range l.store.Walk(ctx, l.head.Chain, from) {
		if err != nil {
			return err
		}
		if r.Seq == noted.Seq && hexadecimal(r.Hash) != noted.Hash {
			return cut(l.head, noted)
		}
		l.last = time.Unix(0, r.At)
	}
	return nil
}

func cut(h Head, noted Checkpoint) error {
	return run.Errorf(run.KindInternal, "audit.open", "%w: chain %s ends at entry %d, and a checkpoint of %s has entry %d", ErrCut, h.Chain, h.Seq, noted.At.Format(time.RFC3339), noted.Seq).
		WithHint("retort audit verify says more")
}

// Record implements run.Recorder.
func (l *Log) Record(e run.Event, durable bool) *run.Error {
	if e.At.IsZero() {
		e.At = l.o.Now()
	}
	it, err := l.item(e)
	if err != nil {
		return run.Errorf(run.KindInternal, "audit.record", "what happens cannot be recorded: %w", err)
	}
	if l.o.Seen != nil {
		l.o.Seen(e)
	}
	if it.waits = durable; l.o.All && it.opens {
		it.waits, it.retracts = true, true
	}
	if refused := l.put(it); refused != nil || !it.waits {
		return refused
	}
	return l.wait(it)
}

// item is an event as a row, sealed.
func (l *Log) item(e run.Event) (*item, error) {
	row, err := rowOf(e)
	if err != nil {
		return nil, err
	}
	it := &item{opens: e.Kind == run.EventRequest, closes: e.Kind == run.EventEnd, retracts: e.Kind == run.EventCall}
	if l.o.Mask != nil {
		row.Facts = l.o.Mask(row.Facts)
	}
	if len(e.Body) > 0 {
		body := []byte(e.Body)
		if l.o.Mask != nil {
			body = l.o.Mask(body)
		}
		k, err := l.keyOf(e)
		if err != nil {
			return nil, err
		}
		row.Body = sealed(k.aead, body, k.ID)
		it.key = k.take()
	}
	if it.closes {
		l.mu.Lock()
		delete(l.keys, e.Execution)
		l.mu.Unlock()
	}
	it.row = row
	it.size = overhead + len(row.Facts) + len(row.Body)
	return it, nil
}

// put queues an item. An end is queued always.
func (l *Log) put(it *item) *run.Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !it.closes {
		if err := l.refuses(it); err != nil {
			l.refused++
			return err
		}
	}
	l.queue = append(l.queue, it)
	l.size += it.size
	l.taken++
	if it.waits {
		l.urgent = true
	}
	l.ready.Broadcast()
	return nil
}

func (l *Log) refuses(it *item) *run.Error {
	switch {
	case l.closed:
		return run.Errorf(run.KindCancelled, "audit.record", "the record is closed")
	case l.size > maxQueue:
		return l.unwritten(l.failed)
	case it.waits && it.retracts && l.late(it) > tolerance:
		return run.Errorf(run.KindInternal, "audit.record", "the clock of this machine is %s behind the newest entry of the record, so calls that may have effects cannot be recorded", l.late(it).Round(time.Second)).
			WithHint("set the clock right. If it is right, and was wrong before: retort audit accept-clock")
	}
	return nil
}

// late is how far a clock is behind.
func (l *Log) late(it *item) time.Duration { return l.last.Sub(time.Unix(0, it.row.At)) }

func (l *Log) unwritten(cause *run.Error) *run.Error {
	if cause == nil {
		cause = run.Errorf(run.KindInternal, "audit.record", "the disk is too slow")
	}
	return run.Errorf(run.KindInternal, "audit.record", "what happens cannot be recorded, so it does not happen: %w", cause).
		WithHint("make room or mend what is said; then it goes on by itself. retort doctor says where the record is")
}

// wait waits until an item is settled.
func (l *Log) wait(it *item) *run.Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !it.settled && it.err == nil {
		l.ready.Wait()
	}
	return it.err
}

// Close writes what is left, and ends.
func (l *Log) Close() error {
	_ = l.Record(run.Event{Kind: run.EventStop}, false)
	l.mu.Lock()
	l.closed = true
	l.ready.Broadcast()
	l.mu.Unlock()
	<-l.ended
	l.points.close()
	var failed error
	if l.failed != nil {
		failed = l.failed
	}
	return errors.Join(failed, l.store.Close())
}

// Digest names a text without telling it: the same text of the same record has the same one.
func (l *Log) Digest(text []byte) string {
	h := hmac.New(sha256.New, l.codes.digest)
	h.Write(text)
	return hexadecimal(h.Sum(nil)[:12])
}

// key is the key of an execution.
type key struct {
	Key
	aead cipher.AEAD

	mu    sync.Mutex
	taken bool // it is on its way to the store, or there
}

// take is the key, for the first who asks.
func (k *key) take() *Key {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.taken {
		return nil
	}
	k.taken = true
	return &k.Key
}

// keyOf is the key of what an event belongs to.
func (l *Log) keyOf(e run.Event) (*key, error) {
	id := e.Execution
	if id == "" {
		id = l.head.Chain
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.keys[id]; k != nil {
		return k, nil
	}
	k := &key{Key: Key{ID: id, Session: e.Session, Principal: e.Principal}}
	secret, err := l.kept(id)
	if err != nil {
		return nil, err
	}
	if k.taken = secret != nil; !k.taken {
		secret = make([]byte, keySize)
		_, _ = rand.Read(secret) // never fails
		k.Wrapped = sealed(l.wrap, secret, id)
	}
	if k.aead, err = aead(secret); err != nil {
		return nil, err
	}
	l.keys[id] = k
	return k, nil
}

// kept is a key that is in the store already; nil if it is not.
func (l *Log) kept(id string) ([]byte, error) {
	if id != l.head.Chain {
		return nil, nil
	}
	kept, err := l.store.Keys(context.Background(), []string{id})
	if err != nil {
		return nil, err
	}
	if k, ok := kept[id]; ok {
		return opened(l.wrap, k.Wrapped, id)
	}
	return nil, nil
}
