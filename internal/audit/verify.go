package audit

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"time"

	"retort/internal/core"
)

// Each VerifyFinding has one of these kinds.
const (
	Edited    = "edited"    // an entry was changed
	Deleted   = "deleted"   // entries are missing
	Swapped   = "swapped"   // two entries were exchanged
	Inserted  = "inserted"  // an entry was added that no engine recorded
	Rehashed  = "re-hashed" // entries were changed and their hashes recomputed
	Truncated = "truncated" // the newest entries are missing
	Missing   = "missing"   // a whole chain is missing
	Damaged   = "damaged"   // an archive cannot be read, or differs from its seal
	Forged    = "forged"    // a checkpoint is not signed with the owner's key
	Keyless   = "keyless"   // the key of a body is missing, and no erasure entry lists it
	Told      = "story"     // an execution has an impossible sequence of entries
)

// VerifyFinding describes one fault found in an audit log.
type VerifyFinding struct {
	Chain string `json:"chain,omitempty"`
	Seq   int64  `json:"seq,omitempty"` // sequence number of the first affected entry
	What  string `json:"what"`          // one of the constants above
	Says  string `json:"says"`
}

// VerifyResult holds the result of verifying an audit log.
type VerifyResult struct {
	OK          bool            `json:"ok"`
	Entries     int64           `json:"entries"`
	Checkpoints int64           `json:"checkpoints"`
	Codes       bool            `json:"codes_checked"`
	First       *VerifyFinding  `json:"first,omitempty"`
	Findings    []VerifyFinding `json:"findings,omitempty"` // the first finding of each chain, and some of the others
	Chains      []ChainVerdict  `json:"chains"`
	Notes       []string        `json:"notes,omitempty"` // what could not be verified, and what retention has removed
}

// ChainVerdict holds the result of verifying one chain.
type ChainVerdict struct {
	Chain   string    `json:"chain"`
	Entries int64     `json:"entries"`
	Last    int64     `json:"last"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Bad     int64     `json:"bad"`               // entries with a wrong hash, MAC or checkpoint
	Open    int       `json:"open"`              // executions without an end entry
	Foreign bool      `json:"foreign,omitempty"` // it belongs to another person, so its MACs were not verified
}

// VerifyOptions holds evidence that is kept outside of the data directory, with which the audit log is compared:
// saved checkpoints and a public key.
type VerifyOptions struct {
	Checkpoints []string          // paths of files with saved checkpoints
	Key         ed25519.PublicKey // public key of checkpoint signatures; needed only without the owner's keys
	Progress    func(entries int64)
}

const (
	maxFindings = 100
	jobRows     = 512
)

// Verify checks hashes, MACs, checkpoints, archives, keys and the sequence of entries of the whole audit log.
// Faults of the log are in the result. An error means that the log could not be read.
func (r *LogReader) Verify(ctx context.Context, o VerifyOptions) (VerifyResult, error) {
	v := &recordVerifier{record: r, o: o, keyless: keylessBodies{lost: map[string]lostKey{}, erased: map[string]int64{}}}
	var err error
	if v.codes, v.signer, err = r.signerKey(o.Key); err != nil {
		v.addNote("authentication codes were not checked: the key cannot be read (%v)", err)
	}
	v.out.Codes = err == nil
	if v.signer == nil {
		v.addNote("no key for the checkpoints was given: any key that signed all of them is accepted")
	}
	if err := v.readMarks(); err != nil {
		return v.out, err
	}
	chains, err := r.listChains(ctx) // after the checkpoints: it is at least as long as they say
	if err != nil {
		return v.out, err
	}
	v.opener = r.newOpener(ctx, nil)
	v.opener.chains = chains
	if !v.out.Codes {
		v.opener.wrap = nil // whoever looks is not the person whose keys these are
	}
	if v.opener.wrap == nil && r.Keys.Bodies != nil {
		v.addNote("bodies were not decrypted, because the key cannot be read; only the existence of their own keys was checked")
	}
	for _, c := range chains {
		if err := v.verifyChain(ctx, c); err != nil {
			return v.out, err
		}
		delete(v.marks, c.Chain)
	}
	v.findMissingChains()
	v.findUnaccountedKeys()
	if err := v.checkTables(ctx); err != nil {
		return v.out, err
	}
	v.reportDamage()
	v.out.OK = len(v.out.Findings) == 0
	return v.out, nil
}

// recordVerifier holds the state of one call of Verify.
type recordVerifier struct {
	record  *LogReader
	o       VerifyOptions
	codes   signingKeys
	signer  ed25519.PublicKey
	marks   map[string]*checkpointIndex // by chain
	opener  *bodyOpener
	keyless keylessBodies
	out     VerifyResult
}

func (v *recordVerifier) addNote(format string, args ...any) {
	if len(v.out.Notes) < maxFindings {
		v.out.Notes = append(v.out.Notes, fmt.Sprintf(format, args...))
	}
}

func (v *recordVerifier) addFinding(f VerifyFinding) {
	if v.out.First == nil {
		v.out.First = &f
	}
	if len(v.out.Findings) < maxFindings {
		v.out.Findings = append(v.out.Findings, f)
	}
}

// findMissingChains adds a finding for each chain that a checkpoint of this data directory names but that does not
// exist.
func (v *recordVerifier) findMissingChains() {
	for _, m := range sortedMarks(v.marks) {
		if !m.local || m.lastMark().seq == 0 {
			continue
		}
		v.addFinding(VerifyFinding{
			m.chain, 1, Missing,
			fmt.Sprintf("chain %s had %d entries according to a checkpoint, but is missing", m.chain, m.lastMark().seq),
		})
	}
}

// chainCheck verifies one chain, row by row.
type chainCheck struct {
	*recordVerifier
	c       *recordChain
	out     ChainVerdict
	marks   *checkpointIndex
	next    int64  // sequence number of the next row
	before  []byte // hash of the previous row; nil for the first row or if unknown
	known   bool   // whether the previous row's hash is known
	stories openExecutions
	found   bool
	unread  bool // the rest of the chain cannot be read
	foreign bool // it was written with another person's key
}

func (v *recordVerifier) verifyChain(ctx context.Context, c *recordChain) error {
	k := &chainCheck{
		recordVerifier: v, c: c, out: ChainVerdict{Chain: c.Chain}, marks: v.marks[c.Chain], next: 1, known: true,
		stories: openExecutions{whole: true},
	}
	if k.marks == nil {
		k.marks = &checkpointIndex{chain: c.Chain}
	}
	if c.copies > 1 {
		k.addFault(1, Inserted, fmt.Sprintf("chain %s is in %d stores", c.Chain, c.copies))
	}
	if err := k.verifyRows(ctx); err != nil {
		return err
	}
	k.checkEnd()
	if err := k.checkChainTables(ctx); err != nil {
		return err
	}
	k.out.Open = len(k.stories.open)
	k.recordVerifier.out.Chains = append(k.recordVerifier.out.Chains, k.out)
	return nil
}

// verifyRows hashes batches of rows in parallel, and checks the results in order.
func (k *chainCheck) verifyRows(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	work, ordered := make(chan *verifyJob, 4), make(chan *verifyJob, 8)
	for range runtime.GOMAXPROCS(0) {
		go func() {
			for j := range work {
				j.verifyHashes(k.codes.mac)
				close(j.done)
			}
		}()
	}
	go k.readJobs(ctx, work, ordered)
	var failed error
	for j := range ordered {
		<-j.done
		if failed == nil && j.err == nil {
			failed = k.applyJob(ctx, j)
		}
		if failed == nil {
			failed = k.reportReadError(ctx, j.err)
		}
		if failed != nil {
			stop()
		}
	}
	return failed
}

// verifyJob represents a batch of consecutive rows to verify, and the results of hashing them.
type verifyJob struct {
	rows     []LogRow
	before   []byte       // hash of the row before the first one
	unlinked []bool       // by row: the hash does not follow from the previous one
	forged   []bool       // by row: the MAC does not match the hash
	seal     *ArchiveSeal // seal that was read just before these rows
	err      error        // read error in place of rows
	done     chan struct{}
}

func (j *verifyJob) verifyHashes(mac []byte) {
	j.unlinked, j.forged = make([]bool, len(j.rows)), make([]bool, len(j.rows))
	before := j.before
	for i := range j.rows {
		r := &j.rows[i]
		j.unlinked[i] = string(r.computeHash(before)) != string(r.Hash)
		j.forged[i] = mac != nil && string(hashMAC(mac, r.Hash)) != string(r.Code)
		before = r.Hash
	}
}

// readJobs reads a chain in batches. It sends each batch to two channels: work, whose receivers compute the hashes,
// and ordered, whose receiver checks the batches in order.
func (k *chainCheck) readJobs(ctx context.Context, work, ordered chan<- *verifyJob) {
	defer close(ordered)
	defer close(work)
	var before []byte
	var seal *ArchiveSeal
	rows := make([]LogRow, 0, jobRows)
	send := func(err error) bool {
		j := &verifyJob{rows: rows, before: before, seal: seal, err: err, done: make(chan struct{})}
		if len(rows) > 0 {
			before = rows[len(rows)-1].Hash
		}
		rows, seal = make([]LogRow, 0, jobRows), nil
		for _, to := range []chan<- *verifyJob{work, ordered} {
			select {
			case to <- j:
			case <-ctx.Done():
				return false
			}
		}
		return true
	}
	seals := func(s ArchiveSeal) {
		if len(rows) > 0 || seal != nil {
			send(nil)
		}
		seal = &s
		if s.Deleted != nil {
			before, _ = hex.DecodeString(s.Hash)
		}
	}
	for r, err := range k.record.walkChain(ctx, k.c, 1, seals) {
		if err != nil {
			if !send(nil) || !send(err) {
				return
			}
			continue
		}
		if rows = append(rows, r); len(rows) == jobRows && !send(nil) {
			return
		}
	}
	send(nil)
}

// reportReadError handles an error that occurred while rows were read. A damaged archive becomes a finding, after
// which the check continues.
func (k *chainCheck) reportReadError(ctx context.Context, err error) error {
	var d *damagedArchiveError
	if !errors.As(err, &d) {
		if err != nil && k.record.skipsStore(ctx, err) {
			k.known, k.stories.whole, k.unread = false, false, true
			return nil
		}
		return err
	}
	k.addFault(max(k.next, d.first), Damaged, fmt.Sprintf("the archive of entries %d to %d of chain %s: %v", d.first, d.last, k.c.Chain, err))
	k.next, k.known, k.stories.whole = d.last+1, false, false
	return nil
}

// applyJob checks the rows of a batch in order. Their hashes have already been computed.
func (k *chainCheck) applyJob(ctx context.Context, j *verifyJob) error {
	if j.seal != nil {
		k.checkSeal(*j.seal)
	}
	for i := range j.rows {
		r := &j.rows[i]
		if err := k.checkRow(ctx, r, j.unlinked[i], j.forged[i]); err != nil {
			return err
		}
		k.known, k.before, k.next = true, r.Hash, r.Seq+1
	}
	if err := k.collectKeyless(j.rows); err != nil {
		return err
	}
	k.recordVerifier.out.Entries += int64(len(j.rows))
	k.out.Entries += int64(len(j.rows))
	if k.o.Progress != nil {
		k.o.Progress(k.recordVerifier.out.Entries)
	}
	return nil
}

func (k *chainCheck) checkRow(ctx context.Context, r *LogRow, loose, forged bool) error {
	switch {
	case r.Seq != k.next:
		k.reportGap(r.Seq)
	case loose && k.known:
		k.out.Bad++
		if !k.found {
			f, err := k.diagnoseRow(ctx, r)
			if err != nil {
				return err
			}
			k.addFault(f.Seq, f.What, f.Says)
		}
	case forged && k.isForeignChain(r):
	case forged:
		k.out.Bad++
		if err := k.reportForged(ctx, r); err != nil {
			return err
		}
	}
	if k.marks.contradictsRow(r) {
		k.out.Bad++
		k.addFault(
			r.Seq, Rehashed,
			fmt.Sprintf(
				"entry %d of chain %s has a valid hash but does not match the checkpoint for this position; this entry or an earlier one was changed, and the hashes were recomputed",
				r.Seq, r.Chain,
			),
		)
	}
	if r.Kind == string(core.EventGap) && r.Status == StatusLost {
		k.applyGapEntry(r)
	}
	if says := k.stories.applyRow(r); says != "" {
		k.addFinding(VerifyFinding{r.Chain, r.Seq, Told, fmt.Sprintf("entry %d of chain %s: %s", r.Seq, r.Chain, says)})
	}
	at := time.Unix(0, r.At).UTC()
	if k.out.Entries == 0 && k.out.From.IsZero() {
		k.out.From = at
	}
	k.out.Last, k.out.To = r.Seq, at
	return nil
}

// applyGapEntry handles the gap entry, with which a chain begins that continues another chain. It adds a note that
// names the other chain, and marks the executions that continue in this chain as open.
func (k *chainCheck) applyGapEntry(r *LogRow) {
	var c continuationFacts
	if err := json.Unmarshal(r.Facts, &c); err != nil {
		return
	}
	k.stories.continueExecutions(c.Executions)
	k.addNote(
		"chain %s continues chain %.40s (%s): that chain is known to have %d written entries, and later entries in it may belong to calls that were not sent",
		r.Chain, c.Chain, c.Cause, c.Entries,
	)
}

// isForeignChain reports whether a chain in a shared store belongs to another owner. It assumes so if no
// checkpoint of this owner names the chain and none of the chain's MACs was made with this owner's key.
func (k *chainCheck) isForeignChain(r *LogRow) bool {
	if !k.foreign && k.c.shared && k.out.Entries == 0 && k.out.Last == 0 && len(k.marks.all) == 0 {
		k.foreign = true
		k.out.Foreign = true
		k.addNote("chain %s was written with another person's key, so its authentication codes were not checked", r.Chain)
	}
	return k.foreign
}

// addFault adds a finding if it is the first one of its chain. Later findings in a chain are dropped, because they
// may be consequences of the first.
func (k *chainCheck) addFault(seq int64, what, says string) {
	if k.found {
		return
	}
	k.found = true
	k.addFinding(VerifyFinding{k.c.Chain, seq, what, says})
}

func (k *chainCheck) reportGap(seq int64) {
	k.out.Bad++
	k.stories.whole = false
	k.addFault(k.next, Deleted, fmt.Sprintf("entries %d to %d of chain %s are missing", k.next, seq-1, k.c.Chain))
}

// reportForged adds a fault for an entry whose hash is right but whose MAC was not made with the owner's key.
func (k *chainCheck) reportForged(ctx context.Context, r *LogRow) error {
	switch {
	case k.found:
	case r.Seq > k.marks.lastMark().seq:
		k.addFault(
			r.Seq, Inserted,
			fmt.Sprintf(
				"entry %d of chain %s was added without the key, or the hashes since the last checkpoint were recomputed without it",
				r.Seq, r.Chain,
			),
		)
	default:
		d, err := k.lookAround(ctx, r)
		if err != nil {
			return err
		}
		if d.belongs != nil {
			k.addFault(
				r.Seq, Inserted,
				fmt.Sprintf(
					"entry %d of chain %s was inserted without the key: the entry that belongs there is now number %d",
					r.Seq, r.Chain, d.belongs.Seq,
				),
			)
		}
		k.addFault(
			r.Seq, Rehashed,
			fmt.Sprintf(
				"entry %d of chain %s was changed and its hash recomputed without the key, perhaps with later entries, too",
				r.Seq, r.Chain,
			),
		)
	}
	return nil
}

// checkSeal checks the seal of an existing or deleted archive: its signature and, for a deleted one, its place in the
// chain.
func (k *chainCheck) checkSeal(s ArchiveSeal) {
	switch before := encodeHex(k.before); {
	case !s.isSignedBy(k.signer):
		k.addFault(
			s.First, Damaged,
			fmt.Sprintf("the archive of entries %d to %d of chain %s is not signed by the key of this audit log", s.First, s.Last, s.Chain),
		)
	case s.Deleted != nil && s.First != k.next:
		k.reportGap(s.First)
	case s.Deleted != nil && k.known && s.Before != before:
		k.addFault(
			s.First, Rehashed,
			fmt.Sprintf("the deleted entries %d to %d of chain %s did not continue the entries before them", s.First, s.Last, s.Chain),
		)
	}
	if s.Deleted == nil {
		return
	}
	k.addNote(
		"entries %d to %d of chain %s were deleted on %s by the retention settings; a signed seal proves that they existed", s.First,
		s.Last, s.Chain, s.Deleted.Format(time.DateOnly),
	)
	k.before, _ = hex.DecodeString(s.Hash)
	k.next, k.known, k.stories.whole = s.Last+1, true, false
	k.out.Last = s.Last
}

// checkEnd adds a fault if a chain ends before its last checkpoint or before the head that its store records.
func (k *chainCheck) checkEnd() {
	if k.unread {
		return // damages tells of it
	}
	last := k.next - 1
	if m := k.marks.lastMark(); m.seq > last {
		k.reportTruncated(m.seq, "a checkpoint")
	}
	if k.c.Seq > last {
		k.reportTruncated(k.c.Seq, "its head")
	}
}

func (k *chainCheck) reportTruncated(seq int64, who string) {
	k.out.Bad++
	k.addFault(
		k.next, Truncated,
		fmt.Sprintf("chain %s ends at entry %d, but %s records %d entries: the end was cut off", k.c.Chain, k.next-1, who, seq),
	)
}
