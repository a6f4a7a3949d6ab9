package audit

import (
	"context"
	"time"
)

// Glance has what is known about an audit log without reading its entries.
type Glance struct {
	Chains   int
	Entries  int64 // as the chains count them, archives too
	Newest   time.Time
	Findings []Finding // chains that end before a checkpoint, or are nowhere
}

// Glance compares the ends of the chains with the checkpoints of this machine. Verify also checks the entries, which
// takes longer.
func (r *Record) Glance(ctx context.Context) (Glance, error) {
	v := &verifier{record: r}
	_, v.signer, _ = r.signer(nil)
	if err := v.readMarks(); err != nil {
		return Glance{}, err
	}
	chains, err := r.chains(ctx) // after the checkpoints: it is at least as long as they say
	if err != nil {
		return Glance{}, err
	}
	g := Glance{Chains: len(chains)}
	for _, c := range chains {
		m := v.marks[c.Chain]
		delete(v.marks, c.Chain)
		if c.store == nil {
			continue
		}
		g.Entries += c.Seq
		if m != nil && m.last().seq > c.Seq {
			v.find(Finding{c.Chain, c.Seq + 1, Truncated, "the end of chain " + c.Chain + " was cut off: a checkpoint has more entries"})
		}
		at, err := newest(ctx, c.store, c.Chain)
		if err != nil && r.passes(ctx, err) {
			continue
		}
		if err != nil {
			return g, err
		}
		if at.After(g.Newest) {
			g.Newest = at
		}
	}
	v.missing()
	v.damages()
	g.Findings = v.out.Findings
	return g, nil
}

// Behind returns how far a clock that shows now is behind the newest entry, or 0.
func (g Glance) Behind(now time.Time) time.Duration {
	if late := g.Newest.Sub(now); late > tolerance {
		return late
	}
	return 0
}
