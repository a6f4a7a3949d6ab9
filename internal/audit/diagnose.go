package audit

import (
	"bytes"
	"context"
	"fmt"
)

// lookahead is the number of rows that are searched for a row at a wrong position.
const lookahead = 100_000

// diagnose returns what happened to a row that does not follow the one before it.
func (k *checking) diagnose(ctx context.Context, r *Row) (Finding, error) {
	d, err := k.lookAround(ctx, r)
	what, says := d.says()
	return Finding{r.Chain, r.Seq, what, fmt.Sprintf("entry %d of chain %s %s", r.Seq, r.Chain, says)}, err
}

// lookAround looks for the rows that belong around one that is wrong.
func (k *checking) lookAround(ctx context.Context, r *Row) (*diagnosis, error) {
	d := &diagnosis{checking: k, bad: r}
	for row, err := range k.record.walk(ctx, k.c, r.Seq+1, nil) {
		if err != nil || d.sees(&row) || row.Seq > r.Seq+lookahead {
			break // what is wrong with the rest is found in its turn
		}
	}
	return d, ctx.Err()
}

// diagnosis looks at what follows a row that is wrong.
type diagnosis struct {
	*checking
	bad     *Row
	next    *Row // the row after it
	belongs *Row // a later row, or the next one, that belongs where the bad one stands
}

// sees looks at a later row, and reports whether it has seen enough.
func (d *diagnosis) sees(r *Row) bool {
	if d.next == nil {
		next := *r
		d.next = &next
		if d.linked() || d.shifted() {
			return true
		}
	}
	moved := *r
	moved.Seq = d.bad.Seq
	if bytes.Equal(moved.hash(d.before), r.Hash) {
		found := *r
		d.belongs = &found
		return true
	}
	return false
}

// genuine reports whether the hash of the bad row was made with the key.
func (d *diagnosis) genuine() bool {
	return d.codes.mac != nil && bytes.Equal(code(d.codes.mac, d.bad.Hash), d.bad.Code)
}

// linked reports whether the next row follows the hash in the bad row: then position and hash are right, and the
// content was changed.
func (d *diagnosis) linked() bool {
	return d.next.Seq == d.bad.Seq+1 && bytes.Equal(d.next.hash(d.bad.Hash), d.next.Hash)
}

// shifted reports whether the next row would follow the bad row at a later position: then rows are missing before
// them and the rest was renumbered. It tries a bounded number of missing rows.
func (d *diagnosis) shifted() bool {
	for by := int64(1); by <= 1000; by++ {
		moved := *d.next
		moved.Seq += by
		if bytes.Equal(moved.hash(d.bad.Hash), moved.Hash) {
			return true
		}
	}
	return false
}

func (d *diagnosis) says() (what, says string) {
	switch {
	case d.next == nil && d.genuine():
		return Edited, "is not what was hashed: it was edited, or entries before it were deleted"
	case d.next == nil:
		return Edited, "is not what was hashed: it was edited"
	case d.linked():
		return Edited, "is not what was hashed: it was edited"
	case d.shifted():
		return Deleted, "is missing, perhaps with some that followed, and the rest was numbered anew"
	case d.belongs == nil:
		return Edited, "and those around it do not follow each other: they were edited, or replaced"
	case d.exchanged():
		return Swapped, fmt.Sprintf("stands at place %d, and something else in its place", d.belongs.Seq)
	case d.belongs.Seq == d.bad.Seq+1:
		return Inserted, "was put in: the one that belongs there comes after it"
	}
	return Swapped, fmt.Sprintf("stands at place %d: entries were moved", d.belongs.Seq)
}

// exchanged reports whether the bad row belongs right after the one that belongs in its
// place; further apart that cannot be told from the rows alone.
func (d *diagnosis) exchanged() bool {
	if d.belongs.Seq != d.bad.Seq+1 {
		return true
	}
	moved := *d.bad
	moved.Seq = d.belongs.Seq
	return bytes.Equal(moved.hash(d.belongs.Hash), d.bad.Hash)
}
