package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
)

// RetentionPolicy says how long entries stay in the store and in archives. Durations and sizes of zero mean no limit.
// If Dir is empty, nothing is archived.
type RetentionPolicy struct {
	Dir      string        // folder of archives
	Keep     time.Duration // age at which entries are moved from the store to archives
	Size     int64         // bytes of the store; if it is larger, the oldest entries are moved to archives
	Archives time.Duration // age of its newest entry at which an archive is deleted
}

// RetainResult counts what ApplyRetention has archived and deleted.
type RetainResult struct {
	Archived int64 // entries that were moved to archives
	Deleted  int64 // entries that were deleted with their archives
	Keys     int   // destroyed keys, which no entry needs any more
}

const (
	archiveRows  = 50_000
	archiveBytes = 64 << 20 // bytes of uncompressed rows in one archive
	newestRows   = 1_000    // rows that always stay in the store
)

// ApplyRetention moves old entries of the log's chain into archives, and deletes old archives. If the clock has
// jumped since the last run, it treats no entry as old. If the process is killed, the next run continues the work,
// and nothing is lost or duplicated. Other goroutines may record entries meanwhile.
func (l *Log) ApplyRetention(ctx context.Context, p RetentionPolicy) (RetainResult, error) {
	k := &retentionRun{Log: l, p: p, now: l.o.Now()}
	k.store, k.chain = l.currentStore()
	if p.Dir == "" || !seal.IsClockSteady(k.stampPath(), k.now) {
		k.p.Keep, k.p.Archives = 0, 0
	}
	err := k.archiveOld(ctx)
	if err == nil {
		err = k.deleteOld(ctx)
	}
	if k.out != (RetainResult{}) {
		_ = l.Record(core.AuditEvent{Kind: core.EventKept, Status: "ok", Facts: map[string]any{
			"archived": k.out.Archived, "deleted": k.out.Deleted, "keys": k.out.Keys,
		}}, false)
	}
	if err != nil {
		return k.out, core.Errorf(core.KindInternal, "audit.retain", "old entries of the audit log could not be moved to archives: %w", err)
	}
	return k.out, nil
}

// retentionRun holds the state of one call of ApplyRetention.
type retentionRun struct {
	*Log
	store LogStore // store and chain of the log when the run began
	chain string
	p     RetentionPolicy
	now   time.Time
	out   RetainResult
}

// stampPath returns the path of the file that records the time of the last run.
func (k *retentionRun) stampPath() string { return filepath.Join(k.p.Dir, "."+k.chain) }

// archiveOld moves old rows into archives, each with a limited number of rows.
func (k *retentionRun) archiveOld(ctx context.Context) error {
	if k.p.Dir == "" {
		return nil
	}
	k.removeLeftovers()
	for {
		head, err := k.ownHead(ctx)
		if err != nil {
			return err
		}
		a, there, err := k.nextArchive(head)
		if err != nil {
			return err
		}
		if !there { // else a run that was killed has left it
			s, n, err := k.selectPortion(ctx, head)
			if err != nil || n == 0 {
				return err
			}
			if a, err = s.writeArchive(k.p.Dir, k.store.Walk(ctx, head.Chain, s.First), k.codes.sign); err != nil {
				return err
			}
		}
		if err := k.verifyArchive(ctx, a); err != nil {
			return err
		}
		if err := k.store.Drop(ctx, head.Chain, a.last); err != nil {
			return err
		}
		k.out.Archived += a.last - head.Base
	}
}

// removeLeftovers removes temporary files that killed runs left behind, if they are over an hour old.
func (k *retentionRun) removeLeftovers() {
	left, _ := filepath.Glob(filepath.Join(k.p.Dir, tempArchivePrefix+"*"))
	for _, path := range left {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.Remove(path)
		}
	}
}

// ownHead returns the head (newest entry) of the log's own chain.
func (k *retentionRun) ownHead(ctx context.Context) (ChainHead, error) {
	heads, err := k.store.Chains(ctx)
	for _, h := range heads {
		if h.Chain == k.chain {
			return h, err
		}
	}
	return ChainHead{Chain: k.chain}, err
}

// nextArchive returns the archive that already contains the first row of the store. The second result is false if
// no archive contains it, which is the usual case. An archive contains it if an earlier run wrote the archive and was
// killed before it could delete the rows from the store.
func (k *retentionRun) nextArchive(head ChainHead) (archiveFile, bool, error) {
	r := LogReader{Archives: k.p.Dir}
	a, there, err := r.archiveWith(head.Chain, head.Base+1)
	if there && a.gone {
		return a, false, fmt.Errorf("the entries %d to %d of the store were already deleted: %s", a.first, a.last, filepath.Base(a.path))
	}
	return a, there, err
}

// selectPortion selects the oldest rows of the store for the next archive. It returns an unsigned seal for these
// rows, and the number of rows.
func (k *retentionRun) selectPortion(ctx context.Context, head ChainHead) (s ArchiveSeal, n int64, err error) {
	surplus, err := k.surplusBytes(ctx)
	if err != nil || surplus <= 0 && k.p.Keep <= 0 {
		return s, 0, err
	}
	var size int64
	before := ""
	for r, err := range k.store.Walk(ctx, head.Chain, head.Base+1) {
		if err != nil {
			return s, 0, err
		}
		old := k.p.Keep > 0 && k.now.Sub(time.Unix(0, r.At)) > k.p.Keep
		if !old && (size >= surplus || r.Seq > head.Seq-newestRows) || n == archiveRows || size > archiveBytes {
			break
		}
		if n == 0 {
			if before, err = k.hashBefore(head, &r); err != nil {
				return s, 0, err
			}
			s = ArchiveSeal{Chain: head.Chain, First: r.Seq, Before: before}
		}
		s.countRow(&r)
		s.Last = r.Seq
		size += sizeOf(&r)
		n++
	}
	found := s
	found.FirstHash, found.Hash = "", ""
	return found, n, nil
}

// hashBefore returns the hash of the newest archived entry, which must directly precede the first row of the store.
// It returns an error if the first row does not follow that hash.
func (k *retentionRun) hashBefore(head ChainHead, first *LogRow) (string, error) {
	var before []byte
	if head.Base > 0 {
		a, there, err := (&LogReader{Archives: k.p.Dir}).archiveWith(head.Chain, head.Base)
		if err != nil || !there {
			return "", errors.Join(err, fmt.Errorf("the archive of entry %d of chain %s is missing", head.Base, head.Chain))
		}
		s, err := a.readSeal()
		if err != nil {
			return "", err
		}
		if before, err = decodeHex(s.Hash); err != nil {
			return "", err
		}
	}
	if !bytes.Equal(first.computeHash(before), first.Hash) {
		return "", fmt.Errorf("%w: entry %d of chain %s does not continue the archived entries", ErrCut, first.Seq, head.Chain)
	}
	return encodeHex(before), nil
}

// surplusBytes returns how many bytes to move out of the store to reduce it to 90 % of the size in the policy. It
// returns 0 if the store does not exceed that size.
func (k *retentionRun) surplusBytes(ctx context.Context) (int64, error) {
	if k.p.Size <= 0 {
		return 0, nil
	}
	size, err := k.store.Size(ctx)
	if err != nil || size <= k.p.Size {
		return 0, err
	}
	return size - k.p.Size*9/10, nil
}

// verifyArchive reads an archive back and compares it with the rows of the store, before these are deleted.
func (k *retentionRun) verifyArchive(ctx context.Context, a archiveFile) error {
	var s ArchiveSeal
	next, stop := pullRows(k.store.Walk(ctx, a.chain, a.first))
	defer stop()
	kept, err := next()
	for r, err2 := range a.readRows(&s) {
		if err2 != nil {
			return err2
		}
		if err != nil {
			return err
		}
		if kept != nil && kept.Seq == r.Seq { // else it was dropped, by a run that was killed then
			if !bytes.Equal(kept.Hash, r.Hash) || !bytes.Equal(r.computeHash(nil), kept.computeHash(nil)) || !bytes.Equal(r.Code, kept.Code) {
				return fmt.Errorf("%s: entry %d differs from the store", filepath.Base(a.path), r.Seq)
			}
			kept, err = next()
		}
	}
	if !s.isSignedBy(k.codes.publicKey()) {
		return fmt.Errorf("%s: it is not signed by the key of this audit log", filepath.Base(a.path))
	}
	return nil
}

// deleteOld deletes the archives that are older than the policy allows, oldest first, and destroys the keys that
// no remaining entry needs.
func (k *retentionRun) deleteOld(ctx context.Context) error {
	if k.p.Archives <= 0 {
		return nil
	}
	all, err := listArchives(k.p.Dir)
	if err != nil {
		return err
	}
	for _, a := range all {
		if a.chain != k.chain || a.gone {
			continue
		}
		_, to := a.timeSpan()
		if k.now.Sub(time.Unix(0, to)) <= k.p.Archives {
			return nil // nor are those that follow
		}
		if err := k.deleteArchive(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// deleteArchive deletes an archive and the keys of its executions. It stores the archive's seal first and removes the
// file last, so that the next run can repeat an interrupted deletion.
func (k *retentionRun) deleteArchive(ctx context.Context, a archiveFile) error {
	var s ArchiveSeal
	var ended []string
	for r, err := range a.readRows(&s) {
		if err != nil {
			return err
		}
		if core.EventKind(r.Kind) == core.EventEnd && r.Execution != "" {
			ended = append(ended, r.Execution)
		}
	}
	if !s.isSignedBy(k.codes.publicKey()) || k.now.Sub(s.To) <= k.p.Archives {
		return fmt.Errorf("%s: it does not match its seal", filepath.Base(a.path))
	}
	if err := s.writeLeftover(k.p.Dir, k.now, k.codes.sign); err != nil {
		return err
	}
	ended, err := k.unneededExecutions(ctx, ended)
	if err != nil {
		return err
	}
	n, err := forgetKeys(ctx, k.store, ended)
	if k.out.Keys += n; err != nil {
		return err
	}
	if err := os.Remove(a.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	k.out.Deleted += a.last - a.first + 1
	return syncFolder(k.p.Dir)
}

// unneededExecutions returns those executions of an archive that have no entries in the store.
func (k *retentionRun) unneededExecutions(ctx context.Context, ended []string) (ids []string, err error) {
	for len(ended) > 0 {
		part := ended[:min(len(ended), 200)]
		ended = ended[len(part):]
		there := map[string]bool{}
		for r, err := range k.store.Find(ctx, Filter{Executions: part, Bare: true}) {
			if err != nil {
				return nil, err
			}
			there[r.Execution] = true
		}
		for _, id := range part {
			if !there[id] && !strings.HasPrefix(id, k.chain) {
				ids = append(ids, id)
			}
		}
	}
	return ids, nil
}
