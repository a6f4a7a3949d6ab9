package audit

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"retort/internal/core"
)

// Record is an audit log for readers: the chains of all stores of a data directory, with their archives. It reads,
// verifies and erases, also while engines write.
type Record struct {
	Stores      []Store
	Archives    string // folder
	Checkpoints string // folder
	Home        string // as it is named in checkpoints
	Keys        Keys   // either may fail: then less is read, or proved

	// Erasing durably records the keys that are about to be destroyed. It may be nil.
	Erasing func(e core.Event) error

	unread  unread
	checked sync.Once
	trusted []Store // as sound has found them
}

// chain represents one chain of a record.
type chain struct {
	Head
	store  Store // nil: it has archives only
	copies int   // stores that have it
	shared bool  // its store has others, which may be other persons'
}

// chains returns all chains in stores or archives, by name.
func (r *Record) chains(ctx context.Context) ([]*chain, error) {
	found := map[string]*chain{}
	for _, s := range r.Stores {
		heads, err := s.Chains(ctx)
		if err != nil && r.passes(ctx, err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, h := range heads {
			c := found[h.Chain]
			if c == nil {
				c = &chain{Head: h, store: s, shared: len(heads) > 1}
				found[h.Chain] = c
			}
			c.copies++
		}
	}
	kept, err := archives(r.Archives)
	if err != nil {
		return nil, err
	}
	for _, a := range kept {
		if found[a.chain] == nil {
			found[a.chain] = &chain{Head: Head{Chain: a.chain}}
		}
	}
	var all []*chain
	for _, c := range found {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *chain) int { return strings.Compare(a.Chain, b.Chain) })
	return all, nil
}

// damaged represents an archive that cannot be read.
type damaged struct {
	archive
	err error
}

func (d *damaged) Error() string { return d.err.Error() }
func (d *damaged) Unwrap() error { return d.err }

// walk yields the rows of a chain in order, beginning at next: those of archives, then those of the store. After a
// *damaged error it continues behind that archive. seals is called for each seal read; it may be nil.
func (r *Record) walk(ctx context.Context, c *chain, next int64, seals func(Seal)) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for moved := true; moved; {
			var ok bool
			if next, ok = r.walkArchives(c.Chain, next, seals, yield); !ok || c.store == nil {
				return
			}
			moved = false
			for row, err := range c.store.Walk(ctx, c.Chain, next) {
				if err == nil && row.Seq > next && r.covered(c.Chain, next) {
					moved = true // to an archive, just now
					break
				}
				if !yield(row, err) || err != nil {
					return
				}
				next = row.Seq + 1
			}
		}
	}
}

func (r *Record) covered(chain string, seq int64) bool {
	_, ok, _ := r.covering(chain, seq)
	return ok
}

// covering returns the archive with an entry.
func (r *Record) covering(chain string, seq int64) (archive, bool, error) {
	all, err := archives(r.Archives)
	for _, a := range all {
		if a.chain == chain && a.first <= seq && seq <= a.last {
			return a, true, nil
		}
	}
	return archive{}, false, err
}

// walkArchives yields the rows of archives from next on, and returns the following sequence number. ok is false if no
// more are wanted.
func (r *Record) walkArchives(chain string, next int64, seals func(Seal), yield func(Row, error) bool) (_ int64, ok bool) {
	for {
		a, there, err := r.covering(chain, next)
		if err != nil {
			return next, yield(Row{}, err)
		}
		if !there {
			return next, true
		}
		var s Seal
		if a.gone {
			s, err = a.leftover()
			if err != nil && !yield(Row{}, &damaged{a, fmt.Errorf("what the deleted entries %d to %d have left cannot be read: %w", a.first, a.last, err)}) {
				return next, false
			}
		} else if ok, err = give(a, next, &s, yield); !ok {
			return next, false
		}
		if err == nil && seals != nil {
			seals(s)
		}
		next = a.last + 1
	}
}

// give gives the rows of an archive from next on.
func give(a archive, next int64, s *Seal, yield func(Row, error) bool) (ok bool, failed error) {
	for row, err := range a.rows(s) {
		if err != nil {
			err = &damaged{a, err}
			return yield(Row{}, err), err
		}
		if row.Seq >= next && !yield(row, nil) {
			return false, nil
		}
	}
	return true, nil
}

// storeOf returns the store that has a chain, or had it.
func storeOf(all []*chain, name string) Store {
	for _, c := range all {
		if c.Chain == name {
			return c.store
		}
	}
	return nil
}

// signer returns the public key that checkpoints and archives are signed with; nil if it is not known.
func (r *Record) signer(given ed25519.PublicKey) (codes, ed25519.PublicKey, error) {
	if r.Keys.Codes == nil {
		return codes{}, given, errors.New("there is no key")
	}
	c, err := r.Keys.codes()
	if err == nil && given == nil {
		given = c.public()
	}
	return c, given, err
}

// Archived counts the archives, and those that were deleted as the settings say.
func (r *Record) Archived() (there, deleted int, err error) {
	all, err := archives(r.Archives)
	for _, a := range all {
		if a.gone {
			deleted++
		} else {
			there++
		}
	}
	return there, deleted, err
}
