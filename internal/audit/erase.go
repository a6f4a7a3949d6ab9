package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"retort/internal/core"
)

// EraseResult counts what was erased from an audit log.
type EraseResult struct {
	Keys    int   // destroyed keys of executions and sessions; the bodies they encrypted cannot be read any more
	Scanned int64 // entries that were searched
}

// eraseRepeatDelay is how long an erasure waits before it erases a second time. It is longer than an engine keeps
// entries in its queue, so that entries which were queued at the first time are erased too.
const eraseRepeatDelay = 250 * time.Millisecond

// EraseSession destroys the keys of all entry bodies of a principal's session, so that these bodies cannot be read
// any more. A running execution still encrypts further bodies with its key in memory. Nobody can read these
// either.
func (r *LogReader) EraseSession(ctx context.Context, principal, session string) (out EraseResult, err error) {
	for again := range 2 {
		if err := waitFor(ctx, time.Duration(again)*eraseRepeatDelay); err != nil {
			return out, err
		}
		for _, s := range r.Stores {
			ids, err := s.KeysOf(ctx, principal, session)
			if err != nil {
				return out, uncertainErasure(err)
			}
			if err := r.recordErasure(ids); err != nil {
				return out, uncertainErasure(err)
			}
			n, err := forgetKeys(ctx, s, ids)
			if out.Keys += n; err != nil {
				return out, uncertainErasure(err)
			}
		}
	}
	if err := r.damageError(); err != nil {
		return out, uncertainErasure(err)
	}
	return out, nil
}

func waitFor(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func forgetKeys(ctx context.Context, s LogStore, ids []string) (int, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	return s.Forget(ctx, ids)
}

func uncertainErasure(err error) error {
	return core.Errorf(
		core.KindInternal, "audit.erase", "not everything could be erased from the audit log: %w", err,
	).WithHint("run it again: what is already erased stays erased")
}

// EraseMentions destroys the keys of all entry bodies that mention a person, in all stores and archives. The
// function mentions decides whether a text mentions the person. EraseMentions calls it for the whole body and for
// every name and string in the body's JSON, together with the principal and the session of the entry.
func (r *LogReader) EraseMentions(
	ctx context.Context, mentions func(principal, session, text string) bool, progress func(entries int64),
) (EraseResult, error) {
	e := &subjectEraser{record: r, mentions: mentions, progress: progress, position: map[string]int64{}, toDestroy: map[string]bool{}}
	var err error
	if e.opener = r.newOpener(ctx, nil); e.opener.wrap == nil {
		return e.out, core.Errorf(core.KindInternal, "audit.erase", "the audit log cannot be searched: the key of its bodies cannot be read").
			WithHint("erase whole sessions, or run this as the user who has the key")
	}
	for again := range 2 { // once more for what was on its way
		if err := waitFor(ctx, time.Duration(again)*eraseRepeatDelay); err != nil {
			return e.out, err
		}
		if e.opener.chains, err = r.listChains(ctx); err != nil {
			return e.out, uncertainErasure(err)
		}
		for _, c := range e.opener.chains {
			if err := e.scanChain(ctx, c); err != nil {
				return e.out, uncertainErasure(err)
			}
		}
	}
	if err := r.damageError(); err != nil {
		return e.out, uncertainErasure(err)
	}
	if e.unreadable > 0 {
		return e.out, core.Errorf(
			core.KindInternal, "audit.erase",
			"%d entries could not be searched: they are encrypted with another user's key", e.unreadable,
		).
			WithHint("ask the owner of that key to erase them")
	}
	return e.out, nil
}

// subjectEraser finds and erases the bodies that mention a person.
type subjectEraser struct {
	record     *LogReader
	opener     *bodyOpener
	mentions   func(principal, session, text string) bool
	progress   func(int64)
	position   map[string]int64 // by chain: sequence number of the last entry that was searched
	toDestroy  map[string]bool  // IDs of keys to destroy, of the chain being searched
	unreadable int64            // number of bodies that could not be decrypted
	out        EraseResult
}

func (e *subjectEraser) scanChain(ctx context.Context, c *recordChain) error {
	clear(e.toDestroy)
	rows := make([]LogRow, 0, openBatch)
	for r, err := range e.record.walkChain(ctx, c, e.position[c.Chain]+1, nil) {
		if err != nil {
			return err
		}
		e.position[c.Chain] = r.Seq
		if rows = append(rows, r); len(rows) == openBatch {
			if err := e.scanRows(rows); err != nil {
				return err
			}
			rows = rows[:0]
		}
	}
	if err := e.scanRows(rows); err != nil {
		return err
	}
	return e.destroyKeys(ctx, c)
}

func (e *subjectEraser) scanRows(rows []LogRow) error {
	if err := e.opener.loadKeys(rows); err != nil {
		return err
	}
	for i := range rows {
		id := keyID(&rows[i])
		if e.toDestroy[id] {
			continue
		}
		body, erased := e.opener.openBody(&rows[i])
		switch {
		case body != nil && e.isMentioned(&rows[i], body):
			e.toDestroy[id] = true
		case body == nil && !erased && len(rows[i].Body) > 0:
			e.unreadable++
		}
	}
	if e.out.Scanned += int64(len(rows)); e.progress != nil {
		e.progress(e.out.Scanned)
	}
	return nil
}

// isMentioned reports whether a body mentions the person. It searches the body as text, and each name and string of
// its JSON in decoded form.
func (e *subjectEraser) isMentioned(r *LogRow, body json.RawMessage) bool {
	return anyText(body, func(text string) bool { return e.mentions(r.Principal, r.Session, text) })
}

func (e *subjectEraser) destroyKeys(ctx context.Context, c *recordChain) error {
	ids := make([]string, 0, len(e.toDestroy))
	for id := range e.toDestroy {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil
	}
	if c.store == nil {
		return fmt.Errorf("the store of chain %s is missing", c.Chain)
	}
	if err := e.record.recordErasure(ids); err != nil {
		return err
	}
	n, err := forgetKeys(ctx, c.store, ids)
	e.out.Keys += n
	for _, id := range ids {
		e.opener.keys[keyIn(c.Chain, id)] = nil
	}
	return err
}
