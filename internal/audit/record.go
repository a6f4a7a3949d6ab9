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

// LogReader reads, verifies and erases an audit log: the chains of all stores of a data directory, with their
// archives. Engines may write meanwhile.
type LogReader struct {
	Stores      []LogStore
	Archives    string  // folder of archives
	Checkpoints string  // folder of checkpoints
	Home        string  // data directory, as checkpoints name it
	Keys        LogKeys // without them, bodies stay encrypted and MACs unchecked

	// Erasing durably writes the erasure entry that lists the keys which are about to be destroyed. It may be nil.
	Erasing func(e core.AuditEvent) error

	unread  unreadFiles
	checked sync.Once
	trusted []LogStore // cached result of soundStores
}

// recordChain represents one chain of an audit log, with the store that contains it.
type recordChain struct {
	ChainHead
	store  LogStore // nil if the chain has only archives
	copies int      // number of stores that contain the chain
	shared bool     // its store also contains other chains, perhaps of other persons
}

// listChains returns all chains in stores or archives, sorted by name.
func (r *LogReader) listChains(ctx context.Context) ([]*recordChain, error) {
	found := map[string]*recordChain{}
	for _, s := range r.Stores {
		heads, err := s.Chains(ctx)
		if err != nil && r.skipsStore(ctx, err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, h := range heads {
			c := found[h.Chain]
			if c == nil {
				c = &recordChain{ChainHead: h, store: s, shared: len(heads) > 1}
				found[h.Chain] = c
			}
			c.copies++
		}
	}
	kept, err := listArchives(r.Archives)
	if err != nil {
		return nil, err
	}
	for _, a := range kept {
		if found[a.chain] == nil {
			found[a.chain] = &recordChain{ChainHead: ChainHead{Chain: a.chain}}
		}
	}
	var all []*recordChain
	for _, c := range found {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *recordChain) int { return strings.Compare(a.Chain, b.Chain) })
	return all, nil
}

// damagedArchiveError reports an archive that cannot be read or is not valid.
type damagedArchiveError struct {
	archiveFile
	err error
}

func (d *damagedArchiveError) Error() string { return d.err.Error() }
func (d *damagedArchiveError) Unwrap() error { return d.err }

// walkChain yields the rows of a chain in order, beginning with sequence number next: first from archives, then
// from the store. After a *damagedArchiveError it continues with the rows after that archive. It calls seals with
// the seal of each archive, unless seals is nil.
func (r *LogReader) walkChain(ctx context.Context, c *recordChain, next int64, seals func(ArchiveSeal)) iter.Seq2[LogRow, error] {
	return func(yield func(LogRow, error) bool) {
		for moved := true; moved; {
			var ok bool
			if next, ok = r.walkArchives(c.Chain, next, seals, yield); !ok || c.store == nil {
				return
			}
			moved = false
			for row, err := range c.store.Walk(ctx, c.Chain, next) {
				if err == nil && row.Seq > next && r.isArchived(c.Chain, next) {
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

func (r *LogReader) isArchived(chain string, seq int64) bool {
	_, ok, _ := r.archiveWith(chain, seq)
	return ok
}

// archiveWith returns the archive that contains an entry. The second result is false if there is no such archive.
func (r *LogReader) archiveWith(chain string, seq int64) (archiveFile, bool, error) {
	all, err := listArchives(r.Archives)
	for _, a := range all {
		if a.chain == chain && a.first <= seq && seq <= a.last {
			return a, true, nil
		}
	}
	return archiveFile{}, false, err
}

// walkArchives yields the archived rows of a chain, beginning with sequence number next. It returns the sequence
// number that follows the last of these rows. ok is false if the consumer has stopped.
func (r *LogReader) walkArchives(chain string, next int64, seals func(ArchiveSeal), yield func(LogRow, error) bool) (_ int64, ok bool) {
	for {
		a, there, err := r.archiveWith(chain, next)
		if err != nil {
			return next, yield(LogRow{}, err)
		}
		if !there {
			return next, true
		}
		var s ArchiveSeal
		if a.gone {
			s, err = a.readLeftoverSeal()
			if err != nil && !yield(LogRow{}, &damagedArchiveError{
				a, fmt.Errorf("the seal of the deleted entries %d to %d cannot be read: %w", a.first, a.last, err),
			}) {
				return next, false
			}
		} else if ok, err = yieldArchive(a, next, &s, yield); !ok {
			return next, false
		}
		if err == nil && seals != nil {
			seals(s)
		}
		next = a.last + 1
	}
}

// yieldArchive yields the rows of one archive, beginning with sequence number next.
func yieldArchive(a archiveFile, next int64, s *ArchiveSeal, yield func(LogRow, error) bool) (ok bool, failed error) {
	for row, err := range a.readRows(s) {
		if err != nil {
			err = &damagedArchiveError{a, err}
			return yield(LogRow{}, err), err
		}
		if row.Seq >= next && !yield(row, nil) {
			return false, nil
		}
	}
	return true, nil
}

// storeOf returns the store that contains a chain, or nil if only archives contain it.
func storeOf(all []*recordChain, name string) LogStore {
	for _, c := range all {
		if c.Chain == name {
			return c.store
		}
	}
	return nil
}

// signerKey returns the owner's signing keys, and the public key that verifies checkpoints and archives. The public
// key is the argument given or, if that is nil, the owner's own one. It is nil if neither is known.
func (r *LogReader) signerKey(given ed25519.PublicKey) (signingKeys, ed25519.PublicKey, error) {
	if r.Keys.Codes == nil {
		return signingKeys{}, given, errors.New("there is no key")
	}
	c, err := r.Keys.signingKeys()
	if err == nil && given == nil {
		given = c.publicKey()
	}
	return c, given, err
}

// CountArchives returns two numbers: how many archives exist, and how many were deleted because of their age.
func (r *LogReader) CountArchives() (there, deleted int, err error) {
	all, err := listArchives(r.Archives)
	for _, a := range all {
		if a.gone {
			deleted++
		} else {
			there++
		}
	}
	return there, deleted, err
}
