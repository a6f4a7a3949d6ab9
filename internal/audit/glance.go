package audit

import (
	"context"
	"time"
)

// QuickCheck is the result of a check of the audit log that reads no entries.
type QuickCheck struct {
	Chains   int
	Entries  int64 // number of entries, including archived ones, according to the heads of the chains
	Newest   time.Time
	Findings []VerifyFinding // chains that end before their last checkpoint, or are missing
}

// QuickCheck compares the last entries of the chains with the checkpoints of this machine. It is faster than
// Verify, which also checks all other entries.
func (r *LogReader) QuickCheck(ctx context.Context) (QuickCheck, error) {
	v := &recordVerifier{record: r}
	_, v.signer, _ = r.signerKey(nil)
	if err := v.readMarks(); err != nil {
		return QuickCheck{}, err
	}
	chains, err := r.listChains(ctx) // after the checkpoints: it is at least as long as they say
	if err != nil {
		return QuickCheck{}, err
	}
	g := QuickCheck{Chains: len(chains)}
	for _, c := range chains {
		m := v.marks[c.Chain]
		delete(v.marks, c.Chain)
		if c.store == nil {
			continue
		}
		g.Entries += c.Seq
		if m != nil && m.lastMark().seq > c.Seq {
			v.addFinding(VerifyFinding{c.Chain, c.Seq + 1, Truncated, "the end of chain " + c.Chain + " was cut off: a checkpoint has more entries"})
		}
		at, err := newestTime(ctx, c.store, c.Chain)
		if err != nil && r.skipsStore(ctx, err) {
			continue
		}
		if err != nil {
			return g, err
		}
		if at.After(g.Newest) {
			g.Newest = at
		}
	}
	v.findMissingChains()
	v.reportDamage()
	g.Findings = v.out.Findings
	return g, nil
}

// ClockLag returns how far the clock, which shows now, is behind the newest entry. It returns 0 if the difference
// is within the tolerance.
func (g QuickCheck) ClockLag(now time.Time) time.Duration {
	if late := g.Newest.Sub(now); late > clockTolerance {
		return late
	}
	return 0
}
